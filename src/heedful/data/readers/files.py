"""Text files as lines, plain or compressed, split at the line feed only, and the files of a folder."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from os import scandir
from os.path import exists
from pathlib import Path
from typing import Literal, Protocol

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.storage.compression import DAMAGE, decompressed, without_compression

RUN = "heedful.lock"  # is in the folder of a run from its beginning
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.bin")
DESCRIPTIONS = ("recipe.json", "config.json", "source_vocabulary.txt", "shared_vocabulary.txt")  # or of other toolkits
RECIPE = "config.toml"
RECIPE_KEYS = {"data", "task", "preset", "model"}  # of which a recipe has one or more


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files anywhere below a folder, folder by folder, by name; hidden files and folders are left out.

    So are the folders that heedful made, which `made_folders` lists. Links to files and folders are followed, but for a
    link to a folder that holds it.
    """
    yield from (path for path, is_made_folder in _below(folder, (folder.resolve(),)) if not is_made_folder)


def visible_folders(folder: Path) -> list[Path]:
    """List the folders in a folder, and links to such, by name; hidden ones and those of heedful are left out."""
    return [path for path, is_folder in _visible(folder) if is_folder and not is_made(path)]


def made_folders(folder: Path) -> list[Path]:
    """List the folders of runs, models and recipes below a folder, which are not read with it."""
    return [path for path, is_made_folder in _below(folder, (folder.resolve(),)) if is_made_folder]


def is_made(folder: Path) -> bool:
    """True if heedful made a folder: it holds a run, a model (that of another toolkit, too) or a recipe."""
    if (folder / RUN).is_file() or ((folder / "log.jsonl").is_file() and (folder / "checkpoints").is_dir()):
        return True
    if any((folder / name).is_file() for name in WEIGHTS) and any((folder / name).is_file() for name in DESCRIPTIONS):
        return True
    with suppress(OSError, ValueError):  # another program's, or none
        return not RECIPE_KEYS.isdisjoint(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")))
    return False


def _below(folder: Path, above: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Yield the files below a folder, and the folders there that heedful made, which are not entered, with True."""
    for path, is_folder in _visible(folder):
        if not is_folder or is_made(path):
            yield path, is_folder
        elif (real := path.resolve()) not in above:
            yield from _below(path, (*above, real))


def _visible(folder: Path) -> list[tuple[Path, bool]]:
    """The paths in a folder by name, and whether each is a folder; without hidden ones."""
    try:
        with scandir(folder) as entries:
            visible = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
            if lost := next((entry for entry in visible if entry.is_symlink() and not exists(entry.path)), None):
                raise InputError(f"{lost.path}: this link leads to what is not there; mend it, or take it out")
            return [(Path(entry.path), entry.is_dir()) for entry in visible if entry.is_dir() or entry.is_file()]
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror or error})") from error


BadUtf8 = Literal["error", "skip", "replace"]


class ByteStream(Protocol):
    """Interface of a binary file open for reading, such as `sys.stdin.buffer`, a `BytesIO` or a `GzipFile`."""

    def read(self, size: int, /) -> bytes: ...

    def readline(self, size: int, /) -> bytes: ...


WHOLE = (0.0, 1.0)  # the part of a corpus that is all of it
TABLE_ENDINGS = (".tsv", ".csv", ".jsonl")  # of files that `heedful.data.readers.rows` reads

BLOCK = 1 << 20  # bytes that are read at a time to count lines
MARK_BYTES = 1 << 10  # bytes of a line that show whether it holds more than byte order marks
MAX_LINE_BYTES = 1 << 26  # bytes: a longer one means that the file is not text, and would have to be held in memory

SURROGATE = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]")  # in UTF-8, of a JSON escape without its other half

SOUND_OR_VIDEO = "a sound or a video; give a folder with a folder of them for each class, or a table that names them"
FOREIGN_BEGINNINGS = {
    b"\xff\xfe": "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8`",
    b"\x1f\x8b": "gzip data, compressed twice; decompress it once with `gunzip`",
    b"PK\x03\x04": "a zip archive, as .docx, .xlsx and .odt files are; unpack it, or save the document as text or CSV",
    b"%PDF": "a PDF; extract its text with `pdftotext`",
    b"\x28\xb5\x2f\xfd": "Zstandard data; decompress it with `zstd -d`",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
    b"\xd0\xcf\x11\xe0": "a Word or Excel file; save it as text or CSV",
    b"{\\rtf": "an RTF document; save it as plain text",
    b"\x93NUMPY": "a NumPy array; save it as .wav if it is a sound, as .png if a picture, as .csv if a table",
    b"PAR1": "a Parquet file; save it as CSV or JSON Lines",
    b"ARROW1": "an Arrow file; save it as CSV or JSON Lines",
    b"SQLite format 3": "an SQLite database; export its table as CSV",
    b"\x89PNG": "an image; give the folder of the images",
    b"\xff\xd8\xff": "an image; give the folder of the images",
    b"GIF8": "an image; give the folder of the images",
    **dict.fromkeys((b"ID3\x02", b"ID3\x03", b"ID3\x04", b"fLaC\0", b"OggS\0", b"\x1a\x45\xdf\xa3"), SOUND_OR_VIDEO),
}


def ending_of(name: str | Path) -> str:
    """Return the ending of a file's name in lower case, such as ".csv"; in "words.CSV.gz" it is before .gz."""
    return Path(without_compression(Path(name).name.lower())).suffix


class NoItems(InputError):
    """Error: a part is wanted of a corpus that holds nothing."""


def corpus_files(corpus: CorpusConfig, data: DataConfig) -> tuple[Path, ...]:
    """Return the paths of the one or two files of a corpus; relative names start at `data.root`."""
    names = [corpus.source] if corpus.target is None else [corpus.source, corpus.target]
    paths = tuple(Path(data.root) / name for name in names)
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path}: not a plain file; a corpus is read more than once, so save it to a file first")
    return paths


def read_lines(path: Path, *, bad_utf8: BadUtf8 = "error") -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line ends; `bad_utf8 = "skip"` leaves undecodable lines out.

    Memory does not grow with the number of lines. One carriage return before the line feed is folded, byte order marks
    at the beginning of a line (`cat` leaves them inside files) are removed, and the last line feed may be missing.
    """
    with open_bytes(path) as stream:
        for line in decode_lines(stream, str(path), bad_utf8=bad_utf8):
            if line is not None:
                yield line


def check_text(path: Path) -> None:
    """Check that a file can be opened and begins like text; only its first line is read."""
    next(read_lines(path, bad_utf8="replace"), None)


def count_lines(path: Path) -> int:
    """Count the lines of a text file, as many as `read_lines` yields when it skips none, without decoding them."""
    check_text(path)
    lines, last = 0, b""
    with open_bytes(path) as stream:
        while block := stream.read(BLOCK):
            lines += block.count(b"\n")
            last = (last + block).rpartition(b"\n")[2][:MARK_BYTES]
    return lines + bool(last.decode("utf-8", "replace").strip("\ufeff"))


def decode_lines(
    stream: ByteStream, name: str, *, bad_utf8: BadUtf8, longest: int | None = None
) -> Iterator[str | None]:
    """Decode a byte stream line by line: yield each line as text, or None for a line that `bad_utf8 = "skip"` drops.

    The place of a dropped line is kept so that parallel files can drop the pair. `name` is for messages, and `longest`
    the number of bytes that a line may have, if it is not `MAX_LINE_BYTES`.
    """
    for number, line in enumerate(decode_text(stream, name, bad_utf8=bad_utf8, longest=longest), start=1):
        if line is None:
            yield None
            continue
        if number == 1 and not line.endswith("\n") and line.rstrip("\r").count("\r") > 1:  # one may be in a text
            raise InputError(
                f"{name}: its lines end in carriage returns alone, as on old Macs, and not in line feeds; convert it "
                "with `tr '\\r' '\\n' < OLD > NEW`, or save it again with line ends of Unix or Windows"
            )
        yield line.removesuffix("\n")


def decode_text(
    stream: ByteStream, name: str, *, bad_utf8: BadUtf8, longest: int | None = None
) -> Iterator[str | None]:
    r"""Decode a byte stream line by line, each with its "\n" if it has one; None for a line that is dropped.

    Joined, the lines are the text of the file. Otherwise the same as `decode_lines`.
    """
    for line in decode_unfolded(stream, name, bad_utf8=bad_utf8, longest=longest):
        if line is None:
            yield None
        else:
            content = line.removesuffix("\n")
            yield content.removesuffix("\r") + line[len(content) :]


def decode_unfolded(
    stream: ByteStream, name: str, *, bad_utf8: BadUtf8, longest: int | None = None
) -> Iterator[str | None]:
    r"""Decode a byte stream line by line as `decode_text` does, but with "\n" or "\r\n" as it is."""
    longest = MAX_LINE_BYTES if longest is None else longest
    pieces = iter(partial(stream.readline, longest + 1), b"")
    for number, raw in enumerate(pieces, start=1):
        if number == 1:
            _refuse_foreign(raw, name)
        if len(raw) > longest:
            raise InputError(f"{name}, line {number}: longer than {longest:,} bytes; is this a text file?")
        line = decode_utf8(raw, name, number, bad_utf8)
        if line is not None:
            line = line.lstrip("\ufeff")
            if not line:  # nothing but byte order marks after the last line feed
                return
        yield line


def decode_utf8(raw: bytes, name: str, line: int, bad_utf8: BadUtf8) -> str | None:
    """Return `raw` as text; where it is not UTF-8: raise, return None ("skip"), or put U+FFFD ("replace")."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if bad_utf8 != "error":
            return raw.decode("utf-8", "replace") if bad_utf8 == "replace" else None
        if surrogate := SURROGATE.match(raw, error.start):
            number = ord(surrogate[0].decode("utf-8", "surrogatepass"))
            problem = f"{name}, line {line}: holds a lone surrogate (U+{number:04X}), which is half of a character"
            remedy = f"repair what was cut, such as the escape \\u{number:04x}"
        else:
            problem = f"{name}, line {line}, byte {error.start + 1}: 0x{raw[error.start]:02X} is not valid UTF-8"
            remedy = "convert the file (for example `iconv -f LATIN1 -t UTF-8`)"
        raise InputError(
            f"{problem}; {remedy}, or have such lines left out: with `heedful init --bad-utf8 skip`, or with "
            'data.bad_utf8 = "skip" in a recipe; "replace" marks what is lost'
        ) from error


@contextmanager
def open_bytes(path: Path) -> Iterator[ByteStream]:
    """Context manager: opens a file for reading bytes, and turns errors until its end into InputError.

    A file that is compressed with gzip, bzip2 or xz is decompressed, whatever its name.
    """
    try:
        with path.open("rb") as file, decompressed(file, path) as stream:
            yield stream
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it") from error
    except EOFError as error:
        raise InputError(f"{path}: the compressed file ends too early; copy or download it again") from error
    except DAMAGE as error:
        raise InputError(f"{path}: not a sound {path.suffix} file ({error}); copy or download it again") from error
    except OSError as error:
        if error.errno is None:  # of bzip2
            raise InputError(f"{path}: not a sound {path.suffix} file ({error}); copy or download it again") from error
        from heedful.storage.paths import unreadable

        raise InputError(unreadable(path, error)) from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: not a file name ({error})") from error


def _refuse_foreign(first_line: bytes, name: str) -> None:
    for beginning, what in FOREIGN_BEGINNINGS.items():
        if first_line.startswith(beginning):
            raise InputError(f"{name}: not UTF-8 text but {what}")
    is_riff = first_line.startswith(b"RIFF") and first_line[8:12] in (b"WAVE", b"AVI ")
    if is_riff or (first_line.startswith(b"\0") and first_line[4:8] == b"ftyp"):
        raise InputError(f"{name}: not UTF-8 text but {SOUND_OR_VIDEO}")
