"""Lines of text files, plain or compressed, split only at line feeds; and the files in a folder."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from os import scandir
from os.path import exists
from pathlib import Path
from typing import IO, Literal

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.storage.disk import DAMAGE, decompressed, without_compression
from heedful.storage.paths import unreadable

RUN = "heedful.lock"  # is in a run folder from the beginning
WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model.bin")
# Files next to the weights, in models of heedful and of other toolkits.
DESCRIPTIONS = ("recipe.json", "config.json", "source_vocabulary.txt", "shared_vocabulary.txt")
RECIPE = "config.toml"
RECIPE_KEYS = {"data", "task", "preset", "model"}  # a recipe has at least one of them


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield the files anywhere below a folder, folder by folder and sorted by name, without hidden files and folders.

    The folders that `made_folders` lists are left out as well. Links to files and folders are followed, except a link
    to a folder that contains the link.
    """
    return (path for path, is_made_folder in _below(folder, (folder.resolve(),)) if not is_made_folder)


def visible_folders(folder: Path) -> list[Path]:
    """List the folders directly in a folder by name, links included, without hidden ones, runs, models and recipes."""
    return [path for path, is_folder in _visible(folder) if is_folder and not is_run_model_or_recipe(path)]


def made_folders(folder: Path) -> list[Path]:
    """List the run, model and recipe folders below a folder, which are not read with it."""
    return [path for path, is_made_folder in _below(folder, (folder.resolve(),)) if is_made_folder]


def is_run_model_or_recipe(folder: Path) -> bool:
    """Return True if a folder is a run, a model (also from another toolkit) or a recipe."""
    # Such folders contain a .jsonl log or .txt vocabularies, which would be read as training text.
    if (folder / RUN).is_file() or ((folder / "log.jsonl").is_file() and (folder / "checkpoints").is_dir()):
        return True
    if any((folder / name).is_file() for name in WEIGHTS) and any((folder / name).is_file() for name in DESCRIPTIONS):
        return True
    with suppress(OSError, ValueError):  # the file is missing, or belongs to another program
        return not RECIPE_KEYS.isdisjoint(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")))
    return False


def _below(folder: Path, parents: tuple[Path, ...]) -> Iterator[tuple[Path, bool]]:
    """Yield files below a folder with False, and run, model and recipe folders, without entering them, with True."""
    for path, is_folder in _visible(folder):
        if not is_folder or is_run_model_or_recipe(path):
            yield path, is_folder
        elif (real := path.resolve()) not in parents:
            yield from _below(path, (*parents, real))


def _visible(folder: Path) -> list[tuple[Path, bool]]:
    """List the paths in a folder by name, without hidden ones, each with True if it is a folder."""
    try:
        with scandir(folder) as entries:
            visible = sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
            # Without this check, files on a disk that is not mounted would be left out silently.
            if broken := next((entry for entry in visible if entry.is_symlink() and not exists(entry.path)), None):
                raise InputError(f"{broken.path}: broken link: its target does not exist; fix or remove it")
            return [(Path(entry.path), entry.is_dir()) for entry in visible if entry.is_dir() or entry.is_file()]
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror or error})") from error


BadUtf8 = Literal["error", "skip", "replace"]
LineEnds = Literal["strip", "fold", "keep"]  # remove line breaks; replace "\r\n" with "\n"; keep line breaks unchanged
ByteStream = IO[bytes]

WHOLE = (0.0, 1.0)  # the part that is the whole corpus
TABLE_ENDINGS = (".tsv", ".csv", ".jsonl")  # of files that `heedful.data.readers.rows` reads

BLOCK = 1 << 20  # number of bytes read at a time to count lines
MARK_BYTES = 1 << 10  # number of bytes of a line that show whether it contains more than byte order marks
MAX_LINE_BYTES = 1 << 26  # a file with a longer line is probably not text, and lines are read into memory

SURROGATE = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]")  # a lone surrogate, as from a JSON escape without its other half

IMAGE = "an image; give a text file or, for a model that reads images, the folder of the images"
AUDIO_OR_VIDEO = "an audio file or a video; give a folder with one subfolder per class, or a table that lists the files"
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
    b"\x93NUMPY": "a NumPy array; save it as .wav if it is an audio file, as .png if an image, as .csv if a table",
    b"PAR1": "a Parquet file; save it as CSV or JSON Lines",
    b"ARROW1": "an Arrow file; save it as CSV or JSON Lines",
    b"SQLite format 3": "an SQLite database; export its table as CSV",
    b"\x89PNG": IMAGE,
    b"\xff\xd8\xff": IMAGE,
    b"GIF8": IMAGE,
    **dict.fromkeys((b"ID3\x02", b"ID3\x03", b"ID3\x04", b"fLaC\0", b"OggS\0", b"\x1a\x45\xdf\xa3"), AUDIO_OR_VIDEO),
}


def ending_of(name: str | Path) -> str:
    """Return the extension of a file name in lower case, such as ".csv", also for "words.CSV.gz"."""
    return Path(without_compression(Path(name).name.lower())).suffix


class NoItems(InputError):
    """Error raised if a part is requested of a corpus or file without items."""


def corpus_files(corpus: CorpusConfig, data: DataConfig) -> tuple[Path, ...]:
    """Return the paths of a corpus: a file, two files, or a folder. Relative names are resolved against `data.root`."""
    names = [corpus.source] if corpus.target is None else [corpus.source, corpus.target]
    paths = tuple(Path(data.root) / name for name in names)
    for path in paths:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(f"{path}: not a regular file; a corpus is read more than once, so save it to a file first")
    return paths


def read_lines(path: Path, *, bad_utf8: BadUtf8 | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line breaks; `bad_utf8 = "skip"` leaves undecodable lines out.

    Memory does not grow with the number of lines. One carriage return before the line feed belongs to the line break.
    Byte order marks at the beginning of a line (`cat` leaves them inside files) are removed, and the last line feed may
    be missing.
    """
    return (line for _, line in numbered_lines(path, bad_utf8) if line is not None)


def numbered_lines(
    path: Path, bad_utf8: BadUtf8 | None, *, longest: int | None = None, ends: LineEnds = "strip"
) -> Iterator[tuple[int, str | None]]:
    """Yield the number of each line of a file, from 1, and the line. The arguments are those of `decode_lines`."""
    with open_bytes(path) as stream:
        lines = decode_lines(stream, str(path), bad_utf8=bad_utf8, longest=longest, ends=ends)
        yield from enumerate(lines, start=1)


def check_text(path: Path) -> None:
    """Check that a file can be opened and begins like text. Only its first line is read."""
    next(read_lines(path, bad_utf8="replace"), None)


def count_lines(path: Path) -> int:
    """Count the lines of a text file without decoding them: as many as `read_lines` yields if it skips none."""
    check_text(path)
    lines, last = 0, b""
    with open_bytes(path) as stream:
        while block := stream.read(BLOCK):
            lines += block.count(b"\n")
            # As in `decode_lines`, byte order marks alone are not a last line; its first bytes show what it contains.
            last = (last + block).rpartition(b"\n")[2][:MARK_BYTES]
    return lines + bool(last.decode("utf-8", "replace").strip("\ufeff"))


def decode_lines(
    stream: ByteStream, name: str, *, bad_utf8: BadUtf8 | None, longest: int | None = None, ends: LineEnds = "strip"
) -> Iterator[str | None]:
    r"""Decode a byte stream line by line.

    A line that `bad_utf8 = "skip"` drops is yielded as None, so that parallel files stay aligned.

    Args:
        stream: A binary file open for reading.
        name: The name of the stream in messages.
        bad_utf8: What to do with a line that is not UTF-8. None: raise an error that does not mention the recipe's key.
        longest: Maximum number of bytes in a line, by default `MAX_LINE_BYTES`.
        ends: What to do with line breaks: remove them, replace "\r\n" with "\n", or keep them.
    """
    longest = MAX_LINE_BYTES if longest is None else longest
    # In bytes, `readline` splits only at line feeds. Other characters that end lines, such as U+2028 for
    # `str.splitlines`, may occur inside a line of a parallel corpus. The limit keeps binary files out of memory.
    for number, raw in enumerate(iter(partial(stream.readline, longest + 1), b""), start=1):
        if number == 1:
            _refuse_foreign(raw, name)
        if len(raw) > longest:
            raise InputError(f"{name}, line {number}: longer than {longest:,} bytes; is this a text file?")
        line = decode_utf8(raw, name, number, bad_utf8)
        if line is not None:
            line = line.lstrip("\ufeff")
            if not line:  # nothing but byte order marks after the last line feed
                return
            if ends != "keep":
                content = line.removesuffix("\n")
                end = line[len(content) :]
                content = content.removesuffix("\r")
                if number == 1 and not end and ends == "strip" and content.rstrip("\r").count("\r") > 1:
                    raise InputError(
                        f"{name}: its lines end in carriage returns only, as on old Macs, not in line feeds; "
                        "convert it with `tr '\\r' '\\n' < OLD > NEW`, or save it again with Unix or Windows line "
                        "breaks"
                    )
                line = content + end if ends == "fold" else content
        yield line


def decode_utf8(raw: bytes, name: str, line: int, bad_utf8: BadUtf8 | None) -> str | None:
    """Decode a line; if it is not UTF-8, raise an error, return None ("skip"), or insert U+FFFD ("replace")."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if bad_utf8 in ("skip", "replace"):
            return raw.decode("utf-8", "replace") if bad_utf8 == "replace" else None
        if surrogate := SURROGATE.match(raw, error.start):
            number = ord(surrogate[0].decode("utf-8", "surrogatepass"))
            problem = f"{name}, line {line}: contains a lone surrogate (U+{number:04X}), half of a surrogate pair"
            remedy = f"repair or remove it (in JSON, it is the escape \\u{number:04x})"
        else:
            problem = f"{name}, line {line}, byte {error.start + 1}: 0x{raw[error.start]:02X} is not valid UTF-8"
            remedy = "convert the file, for example with `iconv -f LATIN1 -t UTF-8`"
            if b"\0" in raw:
                remedy = (
                    "it is probably not a text file, because the line contains a NUL byte; give a text file in UTF-8"
                )
        hint = (
            '. In a recipe, data.bad_utf8 = "skip" (`heedful init --bad-utf8 skip`) skips such lines, and "replace" '
            "inserts U+FFFD for invalid bytes"
        )
        raise InputError(f"{problem}; {remedy}{hint if bad_utf8 else ''}") from error


@contextmanager
def open_bytes(path: Path) -> Iterator[ByteStream]:
    """Context manager that opens a file for reading bytes, and turns errors in its block into an InputError.

    Files compressed with gzip, bzip2 or xz are decompressed; they are recognised by their extension or first bytes.
    """
    try:
        with path.open("rb") as file, decompressed(file, path) as stream:
            yield stream
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it") from error
    except EOFError as error:
        raise InputError(f"{path}: the compressed file is truncated; copy or download it again") from error
    except (*DAMAGE, OSError) as error:
        # gzip and bz2 report damaged data as an OSError without a number; system errors have one.
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(unreadable(path, error)) from error
        raise InputError(f"{path}: not a valid {path.suffix} file ({error}); copy or download it again") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r}: not a file name ({error})") from error


def _refuse_foreign(first_line: bytes, name: str) -> None:
    for beginning, what in FOREIGN_BEGINNINGS.items():
        if first_line.startswith(beginning):
            raise InputError(f"{name}: not UTF-8 text but {what}")
    # Sizes precede the names of these formats: the name is at byte 8 in RIFF files, and at byte 4 in MP4.
    is_riff = first_line.startswith(b"RIFF") and first_line[8:12] in (b"WAVE", b"AVI ")
    if is_riff or (first_line.startswith(b"\0") and first_line[4:8] == b"ftyp"):
        raise InputError(f"{name}: not UTF-8 text but {AUDIO_OR_VIDEO}")
