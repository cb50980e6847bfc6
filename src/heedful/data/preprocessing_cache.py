"""Cache of prepared data, which is used again as long as nothing that it depends on has changed.

`report.json` in the folder holds counts of what was dropped, and the digest of all that the data depends on.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from heedful.data.arrays import published
from heedful.data.filters import DropReport
from heedful.errors import InputError

REPORT = "report.json"

T = TypeVar("T")


def made_once(
    folder: Path,
    digest: str,
    make: Callable[[Path], DropReport],
    read: Callable[[DropReport], T],
    report: Callable[[str], None],
) -> T:
    """Read prepared data from a folder if its digest is the wanted one; otherwise make the data first.

    Args:
        folder: Where the data is. Data prepared from something else is replaced.
        digest: The digest of all that the data depends on.
        make: Writes the data to a temporary folder, which then gets its name, and returns what it dropped.
        read: Reads the data from `folder`, given what was dropped when it was made.
        report: Called with sentences that say what is done.

    Raises:
        InputError: `folder` holds something else, or what `make` and `read` raise.
        RunError: The folder cannot be written.
    """
    stored = _stored(folder)
    if stored and stored[0] == digest:
        try:
            found = read(stored[1])
        except InputError as damage:
            report(f"{folder}: prepared again ({damage})")
        else:
            report(f"{folder}: prepared before, used again")
            return found
    with published(folder) as temporary:
        drops = make(temporary)
        text = json.dumps({"digest": digest, "dropped": drops.to_dict()}, indent=2)
        (temporary / REPORT).write_text(text, encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
    return read(drops)


def _stored(folder: Path) -> tuple[str, DropReport] | None:
    """Return digest and report of the data in a folder; nothing where there is no folder, or an empty one."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return None
        stored = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        return stored["digest"], DropReport.from_dict(stored["dropped"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder}: not a folder of prepared data; name another one, or delete it") from error
