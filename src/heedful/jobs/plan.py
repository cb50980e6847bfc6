"""Plan of a job (the files in a folder, their shards with checksums, the settings), and the results of each shard."""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from heedful.data.readers.files import read_lines
from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file
from heedful.storage.complete_folder import seal, unseal
from heedful.storage.disk import without_compression
from heedful.storage.paths import no_folder
from heedful.wording import counted

FORMAT = 1
WINDOW = 1024  # lines computed together; shards end between windows, so that batches do not depend on shards
SHARD_LINES = 4 * WINDOW

Done = Callable[[int], object]  # called with the number of lines just done, for a progress report
Compute = Callable[[Iterator[str], Done], Iterable[str]]  # returns a result for each line, in order
Setting = str | int | float | bool | None


@dataclass(frozen=True)
class Shard:
    """Range of lines in a file: the unit of work, which a single worker computes."""

    file: str  # its name in the input folder
    first: int  # number of the first line, from 1
    lines: int
    crc32: str  # of the lines, as 8 hexadecimal digits

    @property
    def name(self) -> str:
        """Name of the shard's result file: the numbers of the first and the last line."""
        return f"{self.first:010}-{self.first + self.lines - 1:010}"

    def __str__(self) -> str:
        return f"{self.file}, lines {self.first:,} to {self.first + self.lines - 1:,}"


@dataclass(frozen=True)
class SourceFile:
    """File of the input folder: its size and its shards, in order."""

    bytes: int
    shards: tuple[Shard, ...]

    @property
    def lines(self) -> int:
        return sum(shard.lines for shard in self.shards)


@dataclass(frozen=True)
class Plan:
    """Plan of a job, the same for every worker."""

    settings: dict[str, Setting]  # everything that results depend on besides the text, such as the model digest
    shard_lines: int  # number of lines in a shard; the last shard of a file may have fewer
    files: dict[str, SourceFile]  # by their names in the input folder

    @property
    def lines(self) -> int:
        return sum(source.lines for source in self.files.values())


def make_plan(folder: Path, settings: Mapping[str, Setting], shard_lines: int, done: Done) -> Plan:
    """Return the plan of a new job: read all files in a folder, and split them into shards."""
    check_shard_lines(shard_lines)
    files = {path.name: survey(path, shard_lines, done) for path in input_files(folder)}
    return Plan(dict(settings), shard_lines, files)


def check_shard_lines(shard_lines: int) -> None:
    if shard_lines < 1 or shard_lines % WINDOW:
        raise InputError(
            f"--shard-lines {shard_lines}: must be a multiple of {WINDOW:,}, the number of lines computed together"
        )


def survey(path: Path, shard_lines: int, done: Done = lambda _: None) -> SourceFile:
    """Read a file (plain, .gz, .bz2 or .xz), and split it into shards."""
    shards, first, lines = [], 1, read_lines(path)
    while shard_text := list(islice(lines, shard_lines)):
        shards.append(Shard(path.name, first, len(shard_text), checksum(shard_text)))
        first += len(shard_text)
        done(len(shard_text))
    return SourceFile(path.stat().st_size, tuple(shards))


def input_files(folder: Path) -> list[Path]:
    """List the files in a folder except hidden ones, sorted by name."""
    if not folder.is_dir():
        raise InputError(no_folder(folder))
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read as a folder ({error.strerror})") from error
    if not paths:
        raise InputError(f"{folder}: contains no files; give a folder with text files")
    named: dict[str, Path] = {}  # by the name of the result file, which is not compressed
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: not a file; everything in {folder} is read, so move this elsewhere")
        if other := named.get(without_compression(path.name)):
            raise InputError(f"{other} and {path}: their results would have the same name; rename one of them")
        named[without_compression(path.name)] = path
    return paths


def checksum(lines: Iterable[str]) -> str:
    """Compute the CRC-32 of lines, each followed by a line feed."""
    crc32 = 0
    for line in lines:
        crc32 = zlib.crc32(f"{line}\n".encode(), crc32)
    return f"{crc32:08x}"


def plan_text(plan: Plan) -> bytes:
    """Format a plan as JSON with its own checksum."""
    files = {
        name: {"bytes": source.bytes, "lines": source.lines, "crc32": [shard.crc32 for shard in source.shards]}
        for name, source in plan.files.items()
    }
    return seal({"format": FORMAT, "settings": plan.settings, "shard_lines": plan.shard_lines, "files": files})


def read_plan(path: Path) -> Plan:
    """Read a plan that `plan_text` formatted."""
    try:
        document = unseal(path.read_bytes())
        if document["format"] != FORMAT:
            raise InputError(
                f"{path} has format {document['format']}, but this version of heedful reads {FORMAT}; "
                "use another folder"
            )
        size = document["shard_lines"]
        files = {}
        for name, entry in document["files"].items():
            begins = range(0, entry["lines"], size)
            shards = [
                Shard(name, begin + 1, min(size, entry["lines"] - begin), crc32)
                for begin, crc32 in zip(begins, entry["crc32"], strict=True)
            ]
            files[name] = SourceFile(entry["bytes"], tuple(shards))
        return Plan(document["settings"], size, files)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged; start again with another output folder") from error


def check_unchanged(plan: Plan, folder: Path, settings: Mapping[str, Setting], shard_lines: int, output: Path) -> None:
    """Check that settings and files match an earlier plan; files are compared by name and size."""
    before = plan.settings | {"shard_lines": plan.shard_lines}
    now = {**settings, "shard_lines": shard_lines}
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            difference = f"has {key} = {before.get(key)}, but this command has {key} = {now.get(key)}"
            if key == "model":  # the values are checksums
                difference = "was started with another model"
            raise InputError(f"{output}: the job {difference}; give the same options, or another output folder")
    # Contents are compared when a shard is read; sizes reveal most changes at once.
    sizes = {path.name: path.stat().st_size for path in input_files(folder)}
    for name in sorted(sizes.keys() | plan.files.keys()):
        if name not in sizes:
            raise input_changed(folder / name, "is missing")
        if name not in plan.files:
            raise input_changed(folder / name, "is new")
        if sizes[name] != plan.files[name].bytes:
            raise input_changed(
                folder / name, f"has {counted(sizes[name], 'bytes')} instead of {plan.files[name].bytes:,}"
            )


def input_changed(file: Path | str, change: str) -> InputError:
    """Return an error that says how the input has changed since the job started."""
    return InputError(
        f"{file}: {change}, so the input has changed since the job started; restore it, or give another output folder"
    )


class ShardReader:
    """Reader of shards; fast if they are read in order, even from .gz files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = ""
        self._next = 1  # number of the line that comes next
        self._lines: Iterator[str] = iter(())

    def read(self, shard: Shard) -> list[str]:
        # Later lines are reached by skipping, earlier ones only from the start of the file.
        if shard.file != self._file or shard.first < self._next:
            self._file, self._next = shard.file, 1
            self._lines = read_lines(self._folder / shard.file)
        skipped = shard.first - self._next
        lines = list(islice(self._lines, skipped, skipped + shard.lines))
        self._next = shard.first + shard.lines
        if checksum(lines) != shard.crc32:
            raise input_changed(self._folder / str(shard), "contains different text than before")
        return lines


def write_part(path: Path, results: Iterable[str], shard: Shard, writer: str) -> None:
    """Write the results of a shard atomically, one per line."""
    count, ends, crc32 = 0, 0, 0
    with atomic_file(path, writer=writer) as stream:
        for result in results:
            line = f"{result}\n".encode()
            stream.write(line)
            count, ends, crc32 = count + 1, ends + line.count(b"\n"), zlib.crc32(line, crc32)
        # A result that contains a line feed, or a missing result, would shift all results after it.
        if not count == ends == shard.lines:
            raise RunError(
                f"{shard}: has {count:,} results in {ends:,} lines, which is a bug in heedful; please report it"
            )
        stream.write(_seal(count, crc32))


def read_part(path: Path, shard: Shard) -> bytes | None:
    """Read the results of a shard, each followed by a line feed; return None if the file is damaged."""
    data = path.read_bytes()
    end = data.rfind(b"\n", 0, -1) + 1
    results = data[:end]
    return results if data[end:] == _seal(shard.lines, zlib.crc32(results)) else None


def _seal(lines: int, crc32: int) -> bytes:
    return json.dumps({"lines": lines, "crc32": f"{crc32:08x}"}).encode() + b"\n"
