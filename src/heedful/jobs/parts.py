"""Parts: the results of a shard in a file, ended by their number and checksum, and input lines read by number."""

import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from heedful.data.readers.files import read_lines
from heedful.errors import RunError
from heedful.jobs.plan import Shard, checksum, input_changed
from heedful.storage.atomic import atomic_file


class ShardReader:
    """Reader of the lines of shards; fast if each shard comes after the one before it, for .gz files as well."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = ""
        self._next = 1  # number of the line that comes next
        self._lines: Iterator[str] = iter(())

    def read(self, shard: Shard) -> list[str]:
        """Read the lines of a shard.

        Raises:
            InputError: The lines are not those that were planned, or the file cannot be read.
        """
        if shard.file != self._file or shard.first < self._next:
            self._file, self._next = shard.file, 1
            self._lines = read_lines(self._folder / shard.file)
        skipped = shard.first - self._next
        lines = list(islice(self._lines, skipped, skipped + shard.lines))
        self._next = shard.first + shard.lines
        if checksum(lines) != shard.crc32:
            raise input_changed(self._folder / str(shard), "other text than before")
        return lines


def write_part(path: Path, results: Iterable[str], shard: Shard, writer: str) -> None:
    """Write the results of a shard atomically, one a line.

    Args:
        path: The file.
        results: One result for each line of the shard.
        shard: The shard.
        writer: A name that only this process has.

    Raises:
        OSError: Writing failed.
        RunError: There are more or fewer results than lines, or one is not a line.
    """
    count, ends, crc32 = 0, 0, 0
    with atomic_file(path, writer=writer) as stream:
        for result in results:
            line = f"{result}\n".encode()
            stream.write(line)
            count, ends, crc32 = count + 1, ends + line.count(b"\n"), zlib.crc32(line, crc32)
        if not count == ends == shard.lines:
            raise RunError(
                f"{shard}: has {count:,} results in {ends:,} lines, which must be a defect: please report it"
            )
        stream.write(_seal(count, crc32))


def read_part(path: Path, shard: Shard) -> bytes | None:
    """Read the results of a shard, each with a line feed; None if the file does not hold what was written.

    Raises:
        OSError: Reading failed.
    """
    data = path.read_bytes()
    end = data.rfind(b"\n", 0, -1) + 1
    results = data[:end]
    return results if data[end:] == _seal(shard.lines, zlib.crc32(results)) else None


def _seal(lines: int, crc32: int) -> bytes:
    return json.dumps({"lines": lines, "crc32": f"{crc32:08x}"}).encode() + b"\n"
