"""Input of a command: texts on the command line, lines of a file or of standard input, or rows of a table."""

import atexit
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize

import typer

from heedful.cli.options import COPIED, STDIN, InputFormat
from heedful.cli.output import warn
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import decode_lines, ending_of, open_bytes, read_lines
from heedful.data.readers.labelled import WholeRow, is_table, names_of_cells, read_texts, read_whole_rows
from heedful.data.readers.rows import CHARACTERS, separator_of
from heedful.data.readers.text_columns import TextRequest, choose_columns
from heedful.errors import InputError
from heedful.progress import ProgressReporter, show_progress, silent
from heedful.text.coverage import measure_coverage

if TYPE_CHECKING:
    from heedful.text.tokenizer import Tokenizer

T = TypeVar("T")

STANDARD_INPUT = Path("-")
BLOCK = 1 << 20  # bytes read at a time
LINE_COLUMN = "text"  # the column for the lines of a plain text file, if the output is a table
CHECKED_CHARACTERS = 1000  # at the beginning of a line, to see whether the vocabulary covers its script
UNKNOWN_SHARE = 0.25  # of characters or words; it is smaller in texts in the model's languages
MIN_UNKNOWN = 20  # unknown characters or words before their share of the text so far is considered


def texts_argument(help: str) -> Any:
    """Make the argument for the texts of a command; "-" alone means standard input, as in other programs."""
    return typer.Argument(help=help, show_default=STDIN, callback=lambda texts: None if texts == ["-"] else texts)


def input_file(texts: list[str] | None, source: Path | None, form: InputFormat | None) -> Path | None:
    """Return the file to read the input from; None means the texts on the command line, or standard input.

    A table is read more than once, and its name determines its format. Therefore, a table from standard input or a pipe
    is copied to a temporary file, as is a file whose name suggests another format. The copy is deleted at the end.
    """
    if texts and (source or form):
        raise InputError(
            f"texts were given together with {'--input' if source else '--input-format'}; use only one of them"
        )
    source = None if source == STANDARD_INPUT else source
    if source and (source.is_dir() or not source.exists()):
        return source  # its reader reports what is wrong
    if form in (None, InputFormat.LINES) and not (source and is_table(source)):
        return source
    # A table never has the extension .txt, so a copy with it is read as lines.
    ending = ending_of(source) if source and not form else ".txt" if form is InputFormat.LINES else f".{form}"
    if source and source.is_file() and ending_of(source) == ending:
        return source
    if source is None and sys.stdin is None:
        raise InputError("standard input is closed; give texts or --input")

    folder = TemporaryDirectory(prefix="heedful-")
    atexit.register(folder.cleanup)
    copy = Path(folder.name) / f"{source.name if source else 'standard-input'}{ending}"
    COPIED[str(copy)] = str(source or "standard input")
    with open_bytes(source) if source else nullcontext(sys.stdin.buffer) as stream, copy.open("wb") as file:
        while block := stream.read(BLOCK):
            file.write(block)
    return copy


def input_lines(texts: list[str] | None, source: Path | None) -> Iterable[str]:
    """Return the input of a command: the texts on the command line, or else the lines of a file or standard input.

    A text that is the name of a file or a model is rejected, because the user probably means the file or the model.
    """
    if texts and source:
        raise InputError("texts were given together with --input; use only one of them")
    if texts:
        from heedful.checkpoint.find import bundled_names, model_in

        for text in texts:
            if text in bundled_names() or (os.path.isdir(text) and model_in(Path(text))):
                remedy = f"is a model, not a text; to use it, give --model {text}"
            elif os.path.isfile(text):
                from heedful.data.readers.media_files import ENDINGS  # imports torch

                is_media = text.lower().endswith(tuple(chain.from_iterable(ENDINGS.values())))
                remedy = f"is a file, not a text; to read it as lines, give --input {text}"
                if is_media:
                    remedy = "is a media file, but this command or its model reads texts"
            else:
                continue
            raise InputError(f"{text} {remedy}. If it is meant as a text, pass it on standard input")
        return texts
    if source:
        return read_lines(source)
    if sys.stdin is None:
        raise InputError("standard input is closed; give texts or --input")
    return (line for line in decode_lines(sys.stdin.buffer, "standard input", bad_utf8=None) if line is not None)


def place_of(source: Path | None, line: int) -> str:
    """Return where a line of the input is, for messages: its file, if there is one, and its number from 1."""
    return f"{source}, line {line:,}" if source else f"input {line:,}"


@dataclass(frozen=True)
class TextRows:
    """Input of a command: rows, each with the texts to read and all its cells."""

    rows: Iterator["WholeRow"]
    count: int | None  # number of rows, if known
    unit: str  # "line", "row" of a table, or "file", in messages
    columns: tuple[str, ...] = (LINE_COLUMN,)  # names of the cells
    separator: str = ","  # between the columns, if the input is a .csv file


def line_rows(lines: Iterable[str], source: Path | None, max_texts: int = 1) -> TextRows:
    """Return one row per line; a line contains one text, or up to `max_texts` texts separated by tabs."""

    def rows() -> "Iterator[WholeRow]":
        for number, line in enumerate(lines, start=1):
            texts = (line,) if max_texts == 1 else tuple(line.split("\t"))
            if len(texts) > max_texts:
                raise InputError(
                    f"{place_of(source, number)}: {len(texts)} texts separated by tabs; give one, or a pair"
                )
            yield WholeRow(number, texts, (line,))

    return TextRows(rows(), None, "line")


def table_rows(source: Path, texts: "TextRequest") -> TextRows:
    """Read the texts in some columns of a table; all rows are read once beforehand, so that errors are found early."""
    choice = choose_columns(source, texts)
    report = DropReport()
    first, count = None, 0
    for row in read_texts(source, choice.fields, report, turns=texts.turns):
        first, count = first or row.line, count + 1
    if choice.guessed:
        what = "text is" if len(choice.fields) == 1 else "texts are"
        names = (f"column {field}" if field.isdecimal() else f"column {field!r}" for field in choice.fields)
        warn(f"{source}: the {what} read from {', '.join(names)}; choose another with {texts.option}")
    elif "header" in report.counts and any(map(str.isdecimal, choice.fields)):
        warn(f"{source}: the first line is read as a header, not as text")
    columns = names_of_cells(source, first)
    rows = read_whole_rows(source, choice.fields, columns, turns=texts.turns)
    return TextRows(rows, count, "row", columns, csv_separator(source))


def csv_separator(source: Path) -> str:
    """Return the column separator of a .csv file; a comma for other tables."""
    return CHARACTERS[separator_of(source, "replace")] if ending_of(source) == ".csv" else ","


def texts_of(recipe: "Recipe | None", *names: str | None, fields: tuple[str, ...] | None = None) -> "TextRequest":
    """Return what a recipe says about the texts that a model reads from a table.

    `names` are the columns given as options, one for each text; None where an option is missing. `fields` are the
    recipe's column names; if None, its `source_field`.
    """
    recipe = recipe or Recipe()
    columns, data = columns_of(recipe), recipe.data
    own = (columns.source_field,) if fields is None else fields
    target = None if columns.target_field in own else columns.target_field
    facts = (own, names or (None,) * len(own), data.labels, target, data.source_language)
    return TextRequest(*facts, turns=recipe.task == "dialogue")


def columns_of(recipe: "Recipe") -> "CorpusConfig":
    """Return the corpus of a recipe (test, valid or train) whose column names are expected in other tables."""
    data = recipe.data
    return next((corpus for corpus in (data.test, data.valid, *data.train) if corpus), CorpusConfig(source=""))


def check_columns(file: Path | None, option: str, *fields: str | None) -> None:
    """Reject column names for an input file that is not a table; `option` is the option for the file."""
    if any(fields) and (file is None or not is_table(file)):
        names = ", ".join(filter(None, fields))
        problem = f"{option} FILE is missing" if file is None else f"{option} {file} is not a table"
        form = ", give its format with --input-format," if option == "--input" else ""
        raise InputError(
            f"columns were given ({names}), but {problem}; give a table whose name ends in .tsv, .csv or .jsonl{form} "
            "or leave out the column options"
        )


def is_typed(texts: list[str] | None, source: Path | list[Path] | None) -> bool:
    """Return True if the input lines are typed at a terminal, so that each needs its result immediately."""
    return not (texts or source) and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def progress_of(
    work: str,
    texts: list[str] | None,
    source: Path | list[Path] | None,
    output: Path | None,
    unit: str = "lines",
    each: int = 1,
    count: int | None = None,
) -> Iterator[ProgressReporter]:
    """Show how many input lines of a command are done; for typed lines, print how to end the input instead.

    Each line counts as `each` results. `count` is the number of lines; if None, the lines are counted.
    """
    if is_typed(texts, source):
        typer.echo("Type one line at a time; Ctrl-D ends the input.", err=True)
        yield silent(work, unit)
        return
    files = [source] if isinstance(source, Path) else source
    if count is None:
        count = len(texts) if texts else count_lines(*files) if files else None
    with show_progress(work, unit, each * count if count else None, bar=shows_bar(output)) as progress:
        yield progress


def shows_bar(output: Path | None) -> bool:
    """Return True if a progress bar has the terminal to itself, because results go elsewhere."""
    return output is not None or not sys.stdout.isatty()


def count_lines(*files: Path) -> int | None:
    """Count the lines of all files; None if one of the files can be read only once, such as a pipe."""
    count = 0
    for file in files:
        if not file.is_file():
            return None
        with open_bytes(file) as stream:
            last = b"\n"
            for block in iter(partial(stream.read, BLOCK), b""):
                count += block.count(b"\n")
                last = block
            count += not last.endswith(b"\n")
    return count


def warning_if_unknown(texts: Iterable[T], tokenizer: "Tokenizer", text_of: Callable[[T], str] = str) -> Iterator[T]:
    """Yield texts unchanged, and warn once if too much of the text is not covered by the model's vocabulary.

    Text is unknown if it becomes <unk>, or if it falls back to bytes although the vocabulary has longer tokens.
    `text_of` turns an item that is not a string, such as a table row, into a string. Accents that are separate
    characters (Unicode NFD) cause another warning, if the vocabulary has composed letters.
    """
    unknown = units = 0
    has_warned = len(tokenizer) == tokenizer.byte_ids.stop  # a vocabulary of bytes alone covers all scripts equally
    has_decomposed = False

    def warn_of_unknown() -> bool:
        if unknown <= UNKNOWN_SHARE * units:
            return False
        warn(
            f"{unknown / units:.0%} of the text is not in the model's vocabulary; if it is in a language or "
            "script that the model was not trained on, the results are meaningless"
        )
        return True

    for text in texts:
        if not has_warned:
            beginning = text_of(text)[:CHECKED_CHARACTERS]
            coverage = measure_coverage(tokenizer, [beginning])
            unknown, units = unknown + coverage.unfamiliar, units + coverage.units

            # The vocabulary may cover the text except for accents that are separate characters.
            composed = normalize("NFC", beginning)
            if not has_decomposed and composed != beginning:
                has_decomposed = coverage.unfamiliar > measure_coverage(tokenizer, [composed]).unfamiliar
                if has_decomposed:
                    warn(
                        "the text has accents as separate characters (Unicode NFD), but the model's vocabulary has "
                        "composed letters; convert the text to NFC, for example with `uconv -x any-nfc`"
                    )
            has_warned = unknown >= MIN_UNKNOWN and warn_of_unknown()
        yield text
    if not has_warned:
        warn_of_unknown()
