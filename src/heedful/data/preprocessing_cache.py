"""Cache of prepared data, which is used again as long as nothing that it depends on has changed.

`report.json` in the folder holds counts of what was dropped, and the digest of all that the data depends on.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from heedful.data.filters import DropReport
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors

REPORT = "report.json"
FORMAT = 2  # of the stores as well

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
    if stored and stored[1:] == (1, digest):
        report(f"{folder}: prepared again (an older version of heedful prepared it)")
    elif stored and stored[1:] == (FORMAT, digest):
        try:
            found = read(stored[0])
        except InputError as damage:
            report(f"{folder}: prepared again ({damage})")
        else:
            report(f"{folder}: prepared before, used again")
            return found
    with named_write_errors(folder), atomic_folder(folder) as writer:
        drops = make(writer.path)
        document = {"format": FORMAT, "digest": digest, "dropped": drops.to_dict()}
        writer.write(REPORT, [json.dumps(document, indent=2).encode()])
    return read(drops)


def _stored(folder: Path) -> tuple[DropReport, int, str] | None:
    """Return report, format and digest of the data in a folder; nothing where there is no folder, or an empty one."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return None
        stored = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        return DropReport.from_dict(stored["dropped"]), stored.get("format", 1), stored["digest"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder}: not a folder of prepared data; name another one, or delete it") from error
