"""Entry point of `python -m heedful.tools.compare JOB`, the process that trains and measures one system."""

import json
import sys
from pathlib import Path

from heedful.errors import Interrupted
from heedful.storage.standard_streams import standard_streams
from heedful.tools.compare.job import Job, end_with_parent
from heedful.tools.compare.measure import work

end_with_parent()
try:
    with standard_streams():
        code = work(Job.from_json(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    sys.exit(code)
except KeyboardInterrupt:  # while measuring; the process that started this one reports it
    sys.exit(Interrupted.exit_code)
