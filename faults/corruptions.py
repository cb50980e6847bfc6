"""Damages the newest checkpoint of a run, and lets the run go on: it goes on from the one before, to the same bytes.

Each time one of eight things happens to a file of the checkpoint: a flipped bit, a zeroed page, a cut, bytes at its
end, no bytes at all, the file of another step, an edited number, no file. The damage must be told and the checkpoint
put aside, and the run must end with the weights and the log of an uninterrupted one. `--count` is the number of damaged
checkpoints.
"""

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import tally
import toy
from rich.console import Console

from heedful.training import loop

COUNT = 500
PAGE = 4096
NEWEST, BEFORE = "step-00000013", "step-00000010"

Draw = Random


def flip_a_bit(path: Path, draw: Draw) -> None:
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def zero_a_page(path: Path, draw: Draw) -> None:
    data = path.read_bytes()
    begin = draw.randrange(0, len(data), PAGE)
    page = data[begin : begin + PAGE]
    path.write_bytes(data[:begin] + bytes(len(page)) + data[begin + PAGE :])


def cut(path: Path, draw: Draw) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(1, len(data))])


def append(path: Path, draw: Draw) -> None:
    path.write_bytes(path.read_bytes() + draw.randbytes(draw.choice([1, 7, PAGE])))


def empty(path: Path, draw: Draw) -> None:
    path.write_bytes(b"")


def swap(path: Path, draw: Draw) -> None:
    shutil.copy(of_the_step_before(path), path)


def edit(path: Path, draw: Draw) -> None:
    """Another digit in a JSON file, which stays JSON."""
    text = path.read_text(encoding="utf-8")
    digits = [match.start() for match in re.finditer(r"(?<=[ .\d])\d(?=[,\d\n])", text)]
    place = draw.choice(digits)
    path.write_text(text[:place] + str((int(text[place]) + 1) % 9 + 1) + text[place + 1 :], encoding="utf-8")


def remove(path: Path, draw: Draw) -> None:
    path.unlink()


KINDS: dict[str, Callable[[Path, Draw], None]] = {
    "flipped bits": flip_a_bit,
    "zeroed pages": zero_a_page,
    "cut files": cut,
    "files with bytes at their end": append,
    "emptied files": empty,
    "files of another step": swap,
    "edited numbers": edit,
    "missing files": remove,
}


def damage(run: Path, kind: str, draw: Draw) -> Path:
    """Damage one file of the newest checkpoint of a run; return it."""
    folder = run / "checkpoints" / NEWEST
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if kind == "edited numbers":
        files = [path for path in files if path.suffix == ".json" and path.parent == folder]
    if kind == "files of another step":
        files = [path for path in files if path.read_bytes() != of_the_step_before(path).read_bytes()]
    path = draw.choice(files)
    before = path.read_bytes()
    while path.exists() and path.read_bytes() == before:
        KINDS[kind](path, draw)
    return path


def of_the_step_before(path: Path) -> Path:
    return Path(str(path).replace(NEWEST, BEFORE))


def train(run: Path, updates: int) -> str:
    """Train the toy run up to an update; return what was said."""
    said = io.StringIO()
    recipe = toy.recipe(run.parent / "text", train={"max_updates": updates, "keep_last": 5})
    loop.train(recipe, run, Console(file=said, width=500))
    return said.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    asked = tally.options(__doc__, COUNT, arguments)
    counted = tally.Tally(__file__, asked)
    draw = Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        toy.write_pairs(place / "text")
        train(place / "whole", 19)
        train(place / "begun", 13)
        expected = toy.fingerprint(place / "whole")
        for number in range(asked.count):
            kind = list(KINDS)[number % len(KINDS)]
            run = shutil.copytree(place / "begun", place / "run")
            path = damage(run, kind, draw)
            counted.faults[kind] += 1
            with counted.trial(f"{kind}: {path.relative_to(run)}"):
                said = train(run, 19)
                assert f"{NEWEST}.bad" in said, said
                assert "resuming after update 10" in said, said
                assert toy.fingerprint(run) == expected
            shutil.rmtree(run)
    return counted.conclude()


if __name__ == "__main__":
    sys.exit(main())
