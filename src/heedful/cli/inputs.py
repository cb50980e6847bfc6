"""Input of a command, line by line, with progress: texts on the command line, a file, or standard input."""

import atexit
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar
from unicodedata import normalize

import typer

from heedful.cli.options import InputFormat
from heedful.errors import InputError
from heedful.progress import ProgressReporter, show_progress, silent

if TYPE_CHECKING:
    from heedful.text.tokenizer import Tokenizer

T = TypeVar("T")

STANDARD_INPUT = Path("-")
PLAIN = ".txt"  # the ending of a copy of lines, which no table has
BLOCK = 1 << 20  # bytes that are copied at a time
LOOKED_AT = 1000  # characters of a line that tell whether the vocabulary knows its script
UNFAMILIAR = 0.25  # the share of unknown characters or words that a text in the right language does not reach
ENOUGH = 20  # unknown characters or words, from which the share in the text read so far counts


def input_lines(text: list[str] | None, source: Path | None) -> Iterable[str]:
    """Return the input of a command: the texts given, or else the lines of a file, or else of standard input.

    Raises:
        InputError: there are texts and a file, an input cannot be read, or a text is the name of a file or of a
            model.
    """
    from heedful.data.readers.files import decode_lines, read_lines

    if text and source:
        raise InputError("there are texts and --input; give one of them")
    if text:
        refuse_names(text)
        return text
    if source:
        return read_lines(source)
    if sys.stdin is None:
        raise InputError("standard input is closed; give texts or --input")
    return (line for line in decode_lines(sys.stdin.buffer, "standard input", bad_utf8="error") if line is not None)


def input_file(text: list[str] | None, source: Path | None, form: InputFormat | None) -> Path | None:
    """Return the file to read the input from; None: the texts given, or else the lines of standard input.

    A table is read more than once, and its name says its format. So a table on standard input or in a pipe, and a file
    whose name says another format, is copied to a temporary file, which is deleted at the end.

    Raises:
        InputError: There are texts and a file or a format, or the input cannot be read.
    """
    from heedful.data.readers.files import ending_of, open_bytes
    from heedful.data.readers.labelled import is_table

    if text and (source or form):
        raise InputError(f"there are texts and {'--input' if source else '--input-format'}; give one of them")
    source = None if source == STANDARD_INPUT else source
    named_table = source is not None and is_table(source)
    if source and (source.is_dir() or not source.exists()):
        return source  # its reader says what is wrong
    if form in (None, InputFormat.LINES) and not named_table:
        return source
    ending = ending_of(source) if source and not form else PLAIN if form is InputFormat.LINES else f".{form}"
    if source and source.is_file() and ending_of(source) == ending:
        return source
    if source is None and sys.stdin is None:
        raise InputError("standard input is closed; give texts or --input")
    folder = TemporaryDirectory(prefix="heedful-")
    atexit.register(folder.cleanup)
    copy = Path(folder.name) / f"{source.name if source else 'standard-input'}{ending}"
    with open_bytes(source) if source else nullcontext(sys.stdin.buffer) as stream, copy.open("wb") as file:
        while block := stream.read(BLOCK):
            file.write(block)
    return copy


def texts_or_stdin(texts: list[str] | None) -> list[str] | None:
    """Read "-" alone among the texts of a command as standard input, as other programs do."""
    return None if texts == ["-"] else texts


def place_of(source: Path | None, line: int) -> str:
    """Name a line of the input of a command, for messages: by its file, if it comes from one, and its number from 1."""
    return f"{source or 'input'}, line {line:,}"


def refuse_names(texts: list[str]) -> None:
    """Refuse a text that is the name of a file or of a model, whose lines, or which itself, are meant.

    Raises:
        InputError: There is such a text.
    """
    from heedful.checkpoint.load import model_in, names_in_box

    for text in texts:
        if text in names_in_box() or (os.path.isdir(text) and model_in(Path(text))):
            remedy = f"is a model, not a text; to use it: --model {text}"
        elif os.path.isfile(text):
            remedy = f"is a file, not a text; to read it: --input {text}"
        else:
            continue
        raise InputError(f"{text} {remedy}. A text that is such a name can come from standard input")


def is_typed(text: list[str] | None, source: Path | Sequence[Path] | None) -> bool:
    """True if the input lines are typed at a terminal, so that each needs its result at once."""
    return not (text or source) and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def progress_of(
    work: str,
    text: list[str] | None,
    source: Path | Sequence[Path] | None,
    output: Path | None,
    unit: str = "lines",
    each: int = 1,
    count: int | None = None,
) -> Iterator[ProgressReporter]:
    """Show how many input lines of a command are done; for typed lines, print how to end the input instead.

    Args:
        work: The work in words, such as "translating".
        text: The texts of the command line.
        source: The file, or files, that are read if no texts are given.
        output: The file for the results; None: standard output.
        unit: The name of the things that are counted, in the plural: lines, or results of lines.
        each: The number of counted things for each line.
        count: The number of lines, or of rows of a table; None: count them.
    """
    if is_typed(text, source):
        typer.echo("Type one line at a time; Ctrl-D ends.", err=True)
        yield silent(work, unit)
        return
    files = [source] if isinstance(source, Path) else source
    if count is None:
        count = len(text) if text else count_lines(*files) if files else None
    with show_progress(work, unit, each * count if count else None, bar=shows_bar(output)) as progress:
        yield progress


@contextmanager
def progress_of_stream(work: str, unit: str, total: int, output: Path | None) -> Iterator[ProgressReporter]:
    """Show the progress of one result, unless its parts appear at the terminal as they come."""
    if shows_bar(output):
        with show_progress(work, unit, total) as progress:
            yield progress
    else:
        yield silent(work, unit, total)


def shows_bar(output: Path | None) -> bool:
    """True if a progress bar has the terminal to itself, because results go elsewhere."""
    return output is not None or not sys.stdout.isatty()


def count_lines(*files: Path) -> int | None:
    """Count the lines of all files; None if one of the files can be read only once, such as a pipe."""
    from heedful.data.readers.files import open_bytes

    count = 0
    for file in files:
        if not file.is_file():
            return None
        with open_bytes(file) as stream:
            last = b"\n"
            for block in iter(partial(stream.read, 1 << 20), b""):
                count += block.count(b"\n")
                last = block
            count += not last.endswith(b"\n")
    return count


def warning_if_unknown(texts: Iterable[T], tokenizer: "Tokenizer", spell: Callable[[T], str] = str) -> Iterator[T]:
    """Pass texts through, and warn once if too much of the text is unknown to the model's vocabulary.

    Text is unknown if it becomes <unk>, or is spelled in bytes by a vocabulary that has more than bytes. An item that
    is no string, such as a row of a table, is turned into a string by `spell`.
    """
    from heedful.text.coverage import measure_coverage

    unknown = units = 0
    told = len(tokenizer) == tokenizer.byte_ids.stop  # nothing but bytes: no script is less known than another
    apart = False
    for text in texts:
        if not told:
            shown = spell(text)[:LOOKED_AT]
            coverage = measure_coverage(tokenizer, [shown])
            unknown, units = unknown + coverage.unfamiliar, units + coverage.units
            composed = normalize("NFC", shown)
            if not apart and composed != shown:
                apart = tell_apart(coverage.unfamiliar - measure_coverage(tokenizer, [composed]).unfamiliar)
            told = unknown >= ENOUGH and tell_unknown(unknown, units)
        yield text
    if not told:
        tell_unknown(unknown, units)


def tell_apart(fewer: int) -> bool:
    """Warn of accents apart from their letters, and return True, if fewer units are unknown once they are composed."""
    if fewer > 0:
        typer.echo(
            "heedful: the text has accents apart from their letters (Unicode NFD), and the model's vocabulary has them "
            "in one character; convert the text to NFC, for example with `uconv -x any-nfc`",
            err=True,
        )
    return fewer > 0


def tell_unknown(unknown: int, units: int) -> bool:
    """Warn if the share of unknown text is too large, and return True; else return False."""
    if unknown <= UNFAMILIAR * units:
        return False
    typer.echo(
        f"heedful: {unknown / units:.0%} of the text is unknown to the model's vocabulary; if it is in a language or "
        "script that the model was not trained on, the results mean nothing",
        err=True,
    )
    return True
