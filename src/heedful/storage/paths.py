"""Messages about paths that do not exist, or that are a folder instead of a file, or a file instead of a folder.

They suggest similar names next to the path, or mention the first folder on the way that is missing.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from heedful.wording import either

CHECK = "check the name and its folder"
MAX_NAMES = 10_000  # names in a folder that are compared


def no_file(path: Path, remedy: str = CHECK) -> str:
    """Return the reason why a path is not a file, and what to do; `remedy` if no similar name exists."""
    if os.path.isdir(path):
        inside = next((place for place in _inside(path) if os.path.isfile(place)), None)
        return f"{path}: is a folder; give a file in it" + (f", such as {inside}" if inside else "")
    return f"{path}: no such file; {likely(path, remedy)}"


def unreadable(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return no_file(path)
    return f"{path}: cannot be read ({error.strerror or error})"


def no_folder(path: Path, remedy: str = CHECK, what: str = "folder") -> str:
    """Return the reason why a path is not a folder, and what to do; `remedy` if no similar name exists."""
    if os.path.exists(path):
        return f"{path}: is a file; give a folder"
    return f"{path}: no such {what}; {likely(path, remedy, os.path.isdir)}"


def nothing_at(path: Path, remedy: str = CHECK) -> str:
    """Return a message about a path that does not exist, and what to do; `remedy` if no similar name exists."""
    return f"{path}: no such file or folder; {likely(path, remedy)}"


def likely(path: Path, remedy: str = CHECK, fits: Callable[[Path], object] = os.path.exists) -> str:
    if near := near_paths(path, fits):
        return f"did you mean {either(near)}?"
    lost = first_lost(path)
    if os.path.isfile(lost.parent):
        return f"{lost.parent} is a file, not a folder"
    if lost != path:
        return f"the folder {lost} does not exist; {likely(lost, remedy, os.path.isdir)}"
    return remedy


def near_paths(path: Path, fits: Callable[[Path], object] = os.path.exists) -> list[Path]:
    """List up to three existing paths that fit and differ in one name from a missing path, nearest first."""
    lost = first_lost(path)
    rest = path.relative_to(lost)
    names = {place.name.casefold(): place for place in reversed(_inside(lost.parent))}
    name = lost.name.casefold()
    # First names with an extension that was left out, then misspelt ones.
    near = [*(other for other in names if other.startswith(f"{name}.")), *get_close_matches(name, names, n=9)]
    places = [names[other] / rest if rest.parts else names[other] for other in dict.fromkeys(near)]
    return [place for place in places if fits(place)][:3]


def first_lost(path: Path) -> Path:
    """Return the outermost missing folder on the way to a path, or the path itself."""
    return next(place for place in (*reversed(path.parents), path) if place == path or not os.path.exists(place))


def _inside(folder: Path) -> list[Path]:
    """List the paths in a folder by name, without hidden ones; none if it cannot be read."""
    with suppress(OSError):
        return sorted(place for place in islice(folder.iterdir(), MAX_NAMES) if not place.name.startswith("."))
    return []
