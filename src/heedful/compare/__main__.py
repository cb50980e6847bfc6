"""Entry point of `python -m heedful.compare JOB`: the process that trains and measures one system of a comparison."""

import json
import sys
from pathlib import Path

from heedful.compare.job import Job
from heedful.compare.process import end_with_parent
from heedful.compare.work import work
from heedful.errors import Interrupted
from heedful.storage.standard_streams import standard_streams

end_with_parent()
try:
    with standard_streams():
        code = work(Job.from_json(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
    sys.exit(code)
except KeyboardInterrupt:  # while measuring; the process that started this one says so
    sys.exit(Interrupted.exit_code)
