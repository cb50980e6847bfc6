"""What a command reads, line by line: the texts of the command line, a file, or standard input."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from heedful.errors import InputError
from heedful.progress import ProgressReporter, show_progress, silent

if TYPE_CHECKING:
    from heedful.text.tokenizer import Tokenizer

T = TypeVar("T")

LOOKED_AT = 1000  # characters of a line that tell whether the vocabulary knows its script
UNFAMILIAR = 0.25  # the share of unknown characters or words that a text in the right language does not reach
ENOUGH = 20  # unknown characters or words, before the share of what was read so far counts


def lines(text: list[str] | None, source: Path | None) -> Iterable[str]:
    """The texts, or else the lines of the file, or else of standard input.

    Raises:
        InputError: there are texts and a file, or one of the inputs cannot be read.
    """
    from heedful.data.files import decode_lines, read_lines

    if text and source:
        raise InputError("there are texts and --input; give one of them")
    if text:
        tell_file_names(text)
        return text
    if source:
        return read_lines(source)
    if sys.stdin is None:
        raise InputError("standard input is closed; give texts or --input")
    return (line for line in decode_lines(sys.stdin.buffer, "standard input", bad_utf8="error") if line is not None)


def tell_file_names(texts: list[str]) -> None:
    """Point out a text that is the name of a file, whose lines may be what is meant."""
    if name := next(filter(os.path.isfile, texts), None):
        typer.echo(f"heedful: {name} is a file; what is read is its name. To read its lines: --input {name}", err=True)


def is_typed(text: list[str] | None, source: Path | Sequence[Path] | None) -> bool:
    """Whether the lines are typed at a terminal, so that each wants its answer at once."""
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
    """Show how many of the lines are done; somebody who types them sees it, and is told how to end.

    Args:
        work: What is done to them, such as "translating".
        text: The texts of the command line.
        source: The file, or files, that are read if there are none.
        output: The file that results go to; None: standard output.
        unit: What is counted: lines, or what is made of them.
        each: How many a line counts for.
        count: How many lines, or rows of a table, there are; None: it is found out.
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
    """Show how much is done of one result, where it does not itself appear at the terminal part by part."""
    if shows_bar(output):
        with show_progress(work, unit, total) as progress:
            yield progress
    else:
        yield silent(work, unit, total)


def shows_bar(output: Path | None) -> bool:
    """Whether a progress bar has the terminal for itself, because results go elsewhere."""
    return output is not None or not sys.stdout.isatty()


def count_lines(*files: Path) -> int | None:
    """The number of lines of all files; None if one of them can be read only once, as a pipe."""
    from heedful.data.files import open_bytes

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


def told_if_unknown(texts: Iterable[T], tokenizer: "Tokenizer", spell: Callable[[T], str] = str) -> Iterator[T]:
    """The texts; one warning is given as soon as much of them is unknown to the vocabulary of the model.

    Unknown is what becomes <unk>, or is spelled in bytes by a vocabulary that has more than bytes. What is no string,
    such as a row of a table, is made one by `spell`.
    """
    from heedful.text.coverage import measure_coverage

    unknown = units = 0
    told = len(tokenizer) == tokenizer.byte_ids.stop  # nothing but bytes: no script is less known than another
    for text in texts:
        if not told:
            coverage = measure_coverage(tokenizer, [spell(text)[:LOOKED_AT]])
            unknown, units = unknown + coverage.unfamiliar, units + coverage.units
            told = unknown >= ENOUGH and tell_unknown(unknown, units)
        yield text
    if not told:
        tell_unknown(unknown, units)


def tell_unknown(unknown: int, units: int) -> bool:
    """Warn of a share of unknown text that is too large; return whether it was."""
    if unknown <= UNFAMILIAR * units:
        return False
    typer.echo(
        f"heedful: {unknown / units:.0%} of the text is unknown to the model's vocabulary; if it is in a language or "
        "script that the model was not trained on, the results mean nothing",
        err=True,
    )
    return True
