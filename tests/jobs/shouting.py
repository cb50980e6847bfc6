"""A job that turns text into capitals, over small files whose lines end in every way."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from heedful.jobs import WINDOW, FolderJob, open_job
from heedful.jobs.folder_job import Claims

SETTINGS = {"model": "capitals", "beam": 3, "alpha": 0.6}
LINES = {
    "long.txt": [f"line {number}" for number in range(2 * WINDOW + 313)],
    "windows.txt": ["", "b\u2028c", *[""] * (WINDOW - 2)],
    "packed.txt": ["g", "", "h\x0ci"],
    "empty.txt": [],
}


def shout(lines: Iterable[str], done: Callable[[int], object]) -> Iterator[str]:
    for line in lines:
        done(1)
        yield line.upper()


def write_input(folder: Path) -> Path:
    """The input folder: line feeds, carriage returns, a byte order mark, gzip, and ends without a line feed."""
    source = folder / "in"
    source.mkdir()
    (source / "long.txt").write_bytes(("\ufeff" + "\r\n".join(LINES["long.txt"])).encode())
    (source / "windows.txt").write_bytes("".join(f"{line}\n" for line in LINES["windows.txt"]).encode())
    (source / "packed.txt.gz").write_bytes(gzip.compress("\n".join(LINES["packed.txt"]).encode()))
    (source / "empty.txt").write_bytes(b"")
    (source / ".hidden").write_bytes(b"\xff")
    return source


def open_shouting(folder: Path, shard_lines: int = WINDOW, lease: float = 60.0) -> FolderJob:
    return open_job(folder / "in", folder / "out", SETTINGS, shard_lines, claims=Claims(lease))


def results(folder: Path) -> dict[str, list[str]]:
    """The lines of all files of results."""
    files = sorted((folder / "out").glob("[!.]*"))
    return {path.name: path.read_text(encoding="utf-8").split("\n")[:-1] for path in files}


EXPECTED = {name: [line.upper() for line in LINES[name]] for name in sorted(LINES)}
