"""Download of public data sets.

Addresses are downloaded to a hidden folder next to the data set, and the next call resumes them after an interruption.
The data set is written under a hidden name, and gets its own name only if its checksums are right.
"""

import gzip
import hashlib
import html
import http.client
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from heedful.data.catalogue import DataSet, Pairs, SourceFile
from heedful.errors import InputError, RunError
from heedful.progress import ProgressReporter
from heedful.storage.atomic import atomic_folder, named_write_errors, remove
from heedful.storage.disk import UNFLUSHED, decompressed

CHUNK = 1 << 16  # bytes
TIMEOUT = 30  # seconds without a byte
ATTEMPTS = 3  # maximum number of connections for one file
PARTIAL, COMPLETE = 206, 416  # HTTP status of the rest of a file, and of the rest of a complete file
NOTE = "SOURCE.md"
SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL)
KEY = b"heedful"  # of the hash that selects the pairs of the validation and test sets
PARTS = ("train", "valid", "test")
MAX_GROUP = 10  # of the pairs in these sets that share a sentence


class ConnectionLost(Exception):
    """Error for a download that ended before its last byte."""


class DifferentContent(Exception):
    """Error for a file that does not have the content that its checksum stands for."""


DAMAGE = (DifferentContent, EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError, zipfile.BadZipFile)


def fetch(data_set: DataSet, out: Path, mirror: str | None, progress: ProgressReporter) -> bool:
    """Download a data set to the folder of its name in `out`; return False if it is already there.

    Args:
        mirror: The address of a server that has the same files in a folder of the same name, or the archive if the data
            set has many files.
    """
    folder, downloads = out / data_set.name, out / f".download-{data_set.name}"
    if folder.exists():
        if difference := first_difference(data_set, folder):
            raise InputError(f"{folder}: exists, but {difference}; rename the folder, or choose another one with --out")
        return False
    with named_write_errors(downloads, "make room for it, or choose another folder with --out"):
        downloads.mkdir(parents=True, exist_ok=True)
        files = [
            (downloaded(address, downloads / f"{number}-{PurePosixPath(address).name}", progress), names)
            for number, (address, names) in enumerate(downloads_of(data_set, mirror).items())
        ]
        with atomic_folder(folder, UNFLUSHED) as writer:
            try:
                progress.begin("bytes written", None)
                write(data_set, files, writer.path, progress.advance)
                (writer.path / NOTE).write_text(note(data_set, mirror), encoding="utf-8")
            except DAMAGE as error:
                remove(UNFLUSHED, downloads)  # what would be resumed is wrong
                raise RunError(
                    f"{data_set.name}: {mirror or data_set.address} has other content than the recipes' results are "
                    f"based on: {error}; try again later, or name another server with --mirror"
                ) from error
        remove(UNFLUSHED, downloads)
    return True


def note(data_set: DataSet, mirror: str | None) -> str:
    """Return the text of SOURCE.md: where a data set comes from."""
    return (
        f"# {data_set.name}\n\nThis data set has {data_set.content}.\n\n"
        f"* source: {mirror or data_set.address}, downloaded on {date.today()}\n"
        f"* licence: {data_set.licence}\n* citation: {data_set.citation}\n"
    )


def downloads_of(data_set: DataSet, mirror: str | None) -> dict[str, dict[str, str]]:
    """Return the addresses to download and, for each, the names of its files in the data set.

    The files of an archive are keyed by their names in the archive, any other file by "". An archive that is unpacked
    as a whole has no files here.
    """
    base = f"{mirror.rstrip('/')}/{data_set.name}/" if mirror else data_set.address
    if mirror and not data_set.tree:
        return {base + name: {"": name} for name in contents(data_set)}
    if not data_set.files:
        return {base + PurePosixPath(data_set.address).name if mirror else base: {}}
    files: dict[str, dict[str, str]] = {}
    for name, file in data_set.files.items():
        address, _, member = file.source.partition("#")
        files.setdefault(urljoin(base, address), {})[member] = name
    return files


def contents(data_set: DataSet) -> Mapping[str, SourceFile | None]:
    """Return the files of a data set by name; the parts of a table that grows over time are None."""
    if data_set.pairs:
        return {f"{part}.{language}.gz": None for part in PARTS for language in data_set.pairs.languages}
    return data_set.files


def downloaded(address: str, path: Path, progress: ProgressReporter) -> Path:
    """Download a file, or the rest of it; return its path, which ends in ".complete"."""
    complete = path.with_name(path.name + ".complete")
    attempts = 0
    while not complete.exists():
        try:
            transfer(address, path, progress)
            path.rename(complete)
        except ConnectionLost as error:
            attempts += 1
            if attempts == ATTEMPTS:
                raise RunError(
                    f"{address}: the connection was lost ({error}); run the same command again to resume the download"
                ) from error
    return complete


def transfer(address: str, path: Path, progress: ProgressReporter) -> None:
    """Append to a file what it lacks of the content of an address.

    Raises:
        ConnectionLost: The connection ended early; the bytes that were received are in the file.
    """
    size = path.stat().st_size if path.exists() else 0
    answer = request(address, size)
    if answer is None:
        return
    with answer:
        if answer.status != PARTIAL:  # the server sends everything again
            size = 0
        length = answer.headers.get("Content-Length")
        end = size + int(length) if length else None
        progress.begin("bytes", end)
        progress.advance(size)
        with path.open("ab" if size else "wb") as stream:
            while chunk := received(answer):
                size += stream.write(chunk)
                progress.advance(len(chunk))
    if end is not None and size < end:
        raise ConnectionLost(f"after {size:,} of {end:,} bytes")


def request(address: str, begin: int) -> Any:
    """Request an address from a byte on; return the open answer, or None if no byte is left."""
    headers = {"User-Agent": "heedful"} | ({"Range": f"bytes={begin}-"} if begin else {})
    try:
        return urlopen(Request(address, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        if begin and error.code == COMPLETE:
            return None
        raise RunError(
            f"{address}: the server answered {error.code} ({error.reason}); name another server with --mirror"
        ) from error
    except (URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RunError(
            f"{address}: the server cannot be reached ({reason}); check the network, or name another server with "
            "--mirror"
        ) from error


def received(answer: Any) -> bytes:
    try:
        return answer.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionLost(str(error) or type(error).__name__) from error


def write(
    data_set: DataSet,
    files: Sequence[tuple[Path, Mapping[str, str]]],
    folder: Path,
    done: Callable[[int], object] = lambda _: None,
) -> None:
    """Write a data set from its downloaded files, each with the names of its parts in the data set.

    `done` is called with numbers of bytes, before compression, that have been written.

    Raises:
        DifferentContent: The data set does not have the expected content.
    """
    for file, names in files:
        if "" in names:
            with file.open("rb") as stream:
                store(decompressed(stream, file), folder / names[""], done)
        elif names:
            for member, stream in members(file):
                if member in names:
                    content = cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if member.endswith(".gz") else stream
                    store(
                        segments(stream) if member.endswith((".sgm", ".xml")) else content, folder / names[member], done
                    )
        elif data_set.tree:
            for name, source in data_set.tree.folders.items():
                unpack(file, f"{source}/", folder / name, done)
        elif data_set.pairs:
            tables = [stream.read() for member, stream in members(file) if member == data_set.pairs.table]
            if not tables:
                raise DifferentContent(f"{data_set.pairs.table} is missing")
            write_pairs(data_set.pairs, tables[0].decode("utf-8").splitlines(), folder)
    if difference := first_difference(data_set, folder):
        raise DifferentContent(difference)


def segments(stream: IO[bytes]) -> BytesIO:
    """Return the sentences of a test set in WMT's SGML or XML, one per line."""
    texts = SEGMENT.findall(stream.read().decode("utf-8"))
    return BytesIO("".join(f"{' '.join(html.unescape(text).split())}\n" for text in texts).encode())


def unpack(archive: Path, prefix: str, folder: Path, done: Callable[[int], object]) -> None:
    """Write the files of an archive whose names begin with `prefix` to a folder."""
    for member, stream in members(archive):
        if member.startswith(prefix):
            path = folder / member.removeprefix(prefix)
            if not path.resolve().is_relative_to(folder.resolve()):
                raise DifferentContent(f"{member} would be outside its folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            done(path.write_bytes(stream.read()))


def members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the names and contents of the files in an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as contents:
            for info in contents.infolist():
                if not info.is_dir():
                    with contents.open(info) as stream:
                        yield info.filename, stream
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isfile() else None
                if stream:
                    yield member.name, stream


def store(content: IO[bytes], path: Path, done: Callable[[int], object] = lambda _: None) -> None:
    """Write a file, compressed if its name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        compresses = path.suffix == ".gz"
        # Without a name and a time, the same content gives the same bytes.
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) if compresses else nullcontext(file) as stream
        ):
            while chunk := content.read(CHUNK):
                done(stream.write(chunk))


def write_pairs(pairs: Pairs, lines: Iterable[str], folder: Path) -> None:
    """Split sentence pairs into training, validation and test data, so that no sentence is in more than one part.

    A keyed hash of the pairs selects the held-out ones: anyone gets the same parts from the same table.
    """
    rows = list(dict.fromkeys(tuple(line.split("\t")[:2]) for line in lines if "\t" in line))
    groups = sorted(connected(rows), key=lambda group: min(keyed_hash(rows[number]) for number in group))
    part_of = ["train"] * len(rows)
    for part, size in {"test": pairs.test, "valid": pairs.valid}.items():
        missing = size
        for group in groups:
            if len(group) <= min(missing, MAX_GROUP) and part_of[group[0]] == "train":
                missing -= len(group)
                for number in group:
                    part_of[number] = part
    for part in PARTS:
        for side, language in enumerate(pairs.languages):
            text = "".join(f"{row[side]}\n" for row, its in zip(rows, part_of, strict=True) if its == part)
            store(BytesIO(text.encode()), folder / f"{part}.{language}.gz")


def connected(rows: Sequence[Sequence[str]]) -> Iterable[list[int]]:
    """Group the pairs that share a sentence, directly or by way of other pairs; return their numbers."""
    parents = list(range(len(rows)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    first: dict[tuple[int, str], int] = {}  # the first pair with a sentence, by side and sentence
    for number, row in enumerate(rows):
        for sentence in enumerate(row):
            parents[root(number)] = root(first.setdefault(sentence, number))
    groups: dict[int, list[int]] = {}
    for number in range(len(rows)):
        groups.setdefault(root(number), []).append(number)
    return groups.values()


def keyed_hash(row: Sequence[str]) -> bytes:
    return hashlib.blake2b("\t".join(row).encode(), key=KEY, digest_size=16).digest()


def first_difference(data_set: DataSet, folder: Path) -> str | None:
    """Return the first thing that is missing or different in the folder of a data set; None if it is complete."""
    if data_set.tree:
        names = [path for name in data_set.tree.folders for path in (folder / name).rglob("*") if path.is_file()]
        lines = sorted(f"{path.relative_to(folder).as_posix()} {sha256(path)}\n" for path in names)
        if len(lines) != data_set.tree.files:
            return f"it has {len(lines):,} files instead of {data_set.tree.files:,}"
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()
        return None if digest == data_set.tree.sha256 else "its files have different contents"
    for name, file in contents(data_set).items():
        if not (folder / name).is_file():
            return f"{name} is missing"
        if file and file.sha256 and sha256(folder / name) != file.sha256:
            return f"{name} has a different content"
        if file and file.lines and (count := line_count(folder / name)) != file.lines:
            return f"{name} has {count:,} lines instead of {file.lines:,}"
    return None


def line_count(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(1 for _ in decompressed(stream, path))


def sha256(path: Path) -> str:
    """Return the SHA-256 of the content of a file without compression."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        content = decompressed(stream, path)
        while chunk := content.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
