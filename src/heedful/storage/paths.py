"""Messages about paths that do not exist, or that are a folder instead of a file, or a file instead of a folder.

They suggest existing paths with a similar name, or mention the first missing folder in the path.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from heedful.wording import did_you_mean

CHECK = "check the path"
MARKS = ("heedful.lock", "manifest.json")  # are in run folders, and in folders of models and prepared data
MAX_NAMES = 10_000  # maximum number of names in a folder that are compared


def no_file(path: Path, remedy: str = CHECK) -> str:
    """Return a message that says why a path is not a file and what to do: `remedy`, unless a similar name exists."""
    if os.path.isdir(path):
        # The files of a run or a model, such as its lock, are not what the user is looking for.
        children = [] if any(os.path.isfile(path / name) for name in MARKS) else _inside(path)
        inside = next((child for child in children if os.path.isfile(child)), None)
        return f"{path}: is a folder; give a file in it" + (f", such as {inside}" if inside else "")
    return f"{path}: no such file; {likely(path, remedy)}"


def unreadable(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return no_file(path)
    return f"{path}: cannot be read ({error.strerror or error})"


def no_folder(path: Path, remedy: str = CHECK, what: str = "folder") -> str:
    """Return a message that says why a path is not a folder and what to do: `remedy`, unless a similar name exists."""
    if os.path.exists(path):
        return f"{path}: is a file; give a folder"
    return f"{path}: no such {what}; {likely(path, remedy, os.path.isdir)}"


def nothing_at(path: Path, remedy: str = CHECK) -> str:
    """Return a message that says that a path does not exist and what to do: `remedy`, unless a similar name exists."""
    return f"{path}: no such file or folder; {likely(path, remedy)}"


def likely(path: Path, remedy: str = CHECK, fits: Callable[[Path], object] = os.path.exists) -> str:
    if path.parts[:1] in (("http:",), ("https:",)):
        return "download it, and give the path of the file"
    if near := near_paths(path, fits):
        return did_you_mean(near)
    lost = first_missing(path)
    if os.path.isfile(lost.parent):
        return f"{lost.parent} is a file, not a folder"
    if lost != path:
        return f"the folder {lost} does not exist; {likely(lost, remedy, os.path.isdir)}"
    return remedy


def near_paths(path: Path, fits: Callable[[Path], object] = os.path.exists) -> list[Path]:
    """List up to three existing paths that satisfy `fits` and differ from a missing path in one name, nearest first."""
    lost = first_missing(path)
    rest = path.relative_to(lost)
    names = {child.name.casefold(): child for child in reversed(_inside(lost.parent))}
    name = lost.name.casefold()
    # Names whose extension was left out come first, then similar names.
    stem = Path(name).stem  # an extension alone does not make two names similar
    similar = [other for other in get_close_matches(name, names, n=9) if get_close_matches(stem, [Path(other).stem])]
    near = [*(other for other in names if other.startswith(f"{name}.")), *similar]
    candidates = [names[other] / rest if rest.parts else names[other] for other in dict.fromkeys(near)]
    return [candidate for candidate in candidates if fits(candidate)][:3]


def first_missing(path: Path) -> Path:
    """Return the outermost missing parent folder of a path, or the path itself if all its parents exist."""
    return next(part for part in (*reversed(path.parents), path) if part == path or not os.path.exists(part))


def _inside(folder: Path) -> list[Path]:
    """List the paths in a folder by name, without hidden ones; return [] if it cannot be read."""
    with suppress(OSError):
        return sorted(child for child in islice(folder.iterdir(), MAX_NAMES) if not child.name.startswith("."))
    return []
