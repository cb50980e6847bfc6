"""A folder that a generated corpus is written to: nothing else is in it, and an interrupted command goes on."""

from collections.abc import Callable, Mapping
from pathlib import Path

from heedful.errors import InputError, RunError

Files = Mapping[str, Callable[[], bytes]]  # by name relative to the folder: a function that makes the content


def write_corpus(folder: Path, files: Files, what: str, done: Callable[[int], object] = lambda _: None) -> None:
    """Write the files of a generated corpus into a folder that may hold nothing but some of these files.

    Files that are there already are compared before anything is written, and left as they are. Files are whole or not
    there, however the command ends; only the loss of power may leave damaged ones, which are then refused.

    Args:
        folder: The folder, which is made if it is not there.
        files: The files. Each is made when it is its turn, so that they need not fit into memory together.
        what: The kind of corpus, for messages: "scenes", "stories" or "shapes".
        done: Called with the number of files that are compared or written.

    Raises:
        InputError: The folder holds something else.
        RunError: Writing failed; once the cause is repaired, the same command goes on.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        other = other_name(folder, files) or other_content(folder, files, done)
    except OSError as error:
        raise RunError(f"cannot write to {folder}: {error.strerror or error}; name another with --out") from error
    if other:
        raise InputError(f"--out {folder}: {other} in it is none of these {what}; name an empty folder")
    for name, content in files.items():
        if not (folder / name).exists():
            _write(folder / name, content())
            done(1)


def other_name(folder: Path, files: Files) -> str:
    """Find something in a folder that has the name of none of these files; "" if there is nothing.

    What an interrupted command left of a file under its temporary name counts as that file.
    """
    from heedful.storage.atomic import TEMPORARY

    folders = {str(parent) for name in files for parent in Path(name).parents}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        known = folders if path.is_dir() else files
        if name.with_name(name.name.removeprefix(TEMPORARY)).as_posix() not in known:
            return name.as_posix()
    return ""


def other_content(folder: Path, files: Files, done: Callable[[int], object]) -> str:
    """Find one of these files in a folder that has another content; "" if there is none."""
    for name, content in files.items():
        if (folder / name).exists():
            if (folder / name).read_bytes() != content():
                return name
            done(1)
    return ""


def _write(path: Path, content: bytes) -> None:
    from heedful.storage.atomic import atomic_file, named_write_errors
    from heedful.storage.disk import UNFLUSHED

    with named_write_errors(path):
        path.parent.mkdir(exist_ok=True)
        with atomic_file(path, UNFLUSHED) as stream:
            stream.write(content)
