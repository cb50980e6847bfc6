"""Input of a command: texts of the command line, lines of a file or of standard input, or rows of a table."""

import atexit
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize

import typer

from heedful.cli.options import STDIN, InputFormat
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.files import decode_lines, ending_of, open_bytes, read_lines
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import WholeRow, is_table, names_of_cells, read_texts, read_whole_rows
from heedful.data.readers.rows import CHARACTERS, separator_of
from heedful.data.readers.text_columns import WantedTexts, choose_columns
from heedful.errors import InputError
from heedful.progress import ProgressReporter, show_progress, silent
from heedful.text.coverage import measure_coverage

if TYPE_CHECKING:
    from heedful.text.tokenizer import Tokenizer

T = TypeVar("T")

STANDARD_INPUT = Path("-")
BLOCK = 1 << 20  # bytes that are read at a time
LINE = "text"  # the name of the column that holds the line of a plain text file, where a table is written
LOOKED_AT = 1000  # characters of a line that tell whether the vocabulary knows its script
UNFAMILIAR = 0.25  # the share of unknown characters or words that a text in the right language does not reach
ENOUGH = 20  # unknown characters or words, from which the share in the text read so far counts


def texts_argument(help: str) -> Any:
    """Make the argument for the texts of a command, of which "-" alone is standard input, as in other programs."""
    return typer.Argument(help=help, show_default=STDIN, callback=lambda texts: None if texts == ["-"] else texts)


def input_file(text: list[str] | None, source: Path | None, form: InputFormat | None) -> Path | None:
    """Return the file to read the input from; None: the texts given, or else the lines of standard input.

    A table is read more than once, and its name says its format. So a table on standard input or in a pipe, and a file
    whose name says another format, is copied to a temporary file, which is deleted at the end.
    """
    if text and (source or form):
        raise InputError(f"there are texts and {'--input' if source else '--input-format'}; give one of them")
    source = None if source == STANDARD_INPUT else source
    if source and (source.is_dir() or not source.exists()):
        return source  # its reader says what is wrong
    if form in (None, InputFormat.LINES) and not (source and is_table(source)):
        return source
    # No table has the ending .txt, so a copy with it is read as lines.
    ending = ending_of(source) if source and not form else ".txt" if form is InputFormat.LINES else f".{form}"
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


def input_lines(text: list[str] | None, source: Path | None) -> Iterable[str]:
    """Return the input of a command: the texts given, or else the lines of a file, or else of standard input."""
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


def refuse_names(texts: list[str]) -> None:
    """Refuse a text that is the name of a file or of a model, whose lines, or which itself, are meant."""
    from heedful.checkpoint.load import model_in, names_in_box

    for text in texts:
        if text in names_in_box() or (os.path.isdir(text) and model_in(Path(text))):
            remedy = f"is a model, not a text; to use it: --model {text}"
        elif os.path.isfile(text):
            remedy = f"is a file, not a text; to read it: --input {text}"
        else:
            continue
        raise InputError(f"{text} {remedy}. A text that is such a name can come from standard input")


def place_of(source: Path | None, line: int) -> str:
    """Name a line of the input of a command, for messages: by its file, if it comes from one, and its number from 1."""
    return f"{source or 'input'}, line {line:,}"


@dataclass(frozen=True)
class TextRows:
    """Input texts of a command: the texts of each row, with all cells of the row."""

    rows: Iterator["WholeRow"]
    count: int | None  # of the rows, if known
    unit: str  # "line", or "row" of a table, for messages
    columns: tuple[str, ...] = (LINE,)  # names of the cells
    separator: str = ","  # of the columns of a .csv file that is read


def line_rows(lines: Iterable[str], source: Path | None, most: int = 1) -> TextRows:
    """Return a row for each line, which has one text, or up to `most` with tabs between them."""

    def rows() -> "Iterator[WholeRow]":
        for number, line in enumerate(lines, start=1):
            texts = (line,) if most == 1 else tuple(line.split("\t"))
            if len(texts) > most:
                raise InputError(
                    f"{place_of(source, number)}: {len(texts)} texts with tabs between them; give one, or a pair"
                )
            yield WholeRow(number, texts, (line,))

    return TextRows(rows(), None, "line")


def table_rows(source: Path, wanted: "WantedTexts") -> TextRows:
    """Read the texts in some columns of a table; all rows are read once beforehand, so that errors show at once."""
    choice = choose_columns(source, wanted)
    report = DropReport()
    first, count = None, 0
    for row in read_texts(source, choice.fields, report, turns=wanted.turns):
        first, count = first or row.line, count + 1
    if choice.guessed:
        texts = "text is" if len(choice.fields) == 1 else "texts are"
        names = (f"column {field}" if field.isdecimal() else f"column {field!r}" for field in choice.fields)
        typer.echo(
            f"heedful: {source}: the {texts} read from {', '.join(names)}; name another with {wanted.option}", err=True
        )
    elif "header" in report.counts and any(map(str.isdecimal, choice.fields)):
        typer.echo(f"heedful: {source}: its first line is taken for a header, and is not read", err=True)
    columns = names_of_cells(source, first)
    rows = read_whole_rows(source, choice.fields, columns, turns=wanted.turns)
    return TextRows(rows, count, "row", columns, separator_of_csv(source))


def separator_of_csv(source: Path) -> str:
    """Return what separates the columns of a .csv file; a comma for other tables."""
    return CHARACTERS[separator_of(source, "replace")] if ending_of(source) == ".csv" else ","


def wanted_texts(recipe: "Recipe | None", *named: str | None, fields: tuple[str, ...] | None = None) -> "WantedTexts":
    """Return what a recipe says about the texts that a model reads from a table.

    `named` are the columns that options name, one for each text; None where an option is not given. `fields` are the
    recipe's names of the columns; None: its `source_field`.
    """
    recipe = recipe or Recipe()
    columns, data = columns_of(recipe), recipe.data
    own = (columns.source_field,) if fields is None else fields
    target = None if columns.target_field in own else columns.target_field
    facts = (own, named or (None,) * len(own), data.labels, target, data.source_language)
    return WantedTexts(*facts, turns=recipe.task == "dialogue")


def columns_of(recipe: "Recipe") -> "CorpusConfig":
    """Return the corpus of a recipe, test, valid or train, whose column names other tables are expected to have."""
    data = recipe.data
    return next((corpus for corpus in (data.test, data.valid, *data.train) if corpus), CorpusConfig(source=""))


def check_columns(file: Path | None, option: str, *fields: str | None) -> None:
    """Refuse column names for an input file that is no table; `option` is the option that gives the file."""
    if any(fields) and (file is None or not is_table(file)):
        names = ", ".join(filter(None, fields))
        lacks = f"there is no {option} FILE" if file is None else f"{option} {file} is no table"
        raise InputError(
            f"columns are named ({names}), but {lacks}; give one whose name ends in .tsv, .csv or .jsonl, say with "
            "--input-format which of these it is, or leave the names of columns out"
        )


def is_typed(text: list[str] | None, source: Path | list[Path] | None) -> bool:
    """True if the input lines are typed at a terminal, so that each needs its result at once."""
    return not (text or source) and sys.stdin is not None and sys.stdin.isatty()


@contextmanager
def progress_of(
    work: str,
    text: list[str] | None,
    source: Path | list[Path] | None,
    output: Path | None,
    unit: str = "lines",
    each: int = 1,
    count: int | None = None,
) -> Iterator[ProgressReporter]:
    """Show how many input lines of a command are done; for typed lines, print how to end the input instead.

    `each` results are counted for a line, and `count` is the number of lines; None: count them.
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


def shows_bar(output: Path | None) -> bool:
    """True if a progress bar has the terminal to itself, because results go elsewhere."""
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


def warning_if_unknown(texts: Iterable[T], tokenizer: "Tokenizer", spell: Callable[[T], str] = str) -> Iterator[T]:
    """Pass texts through, and warn once if too much of the text is unknown to the model's vocabulary.

    Text is unknown if it becomes <unk>, or is spelled in bytes by a vocabulary that has more than bytes. An item that
    is no string, such as a row of a table, is turned into a string by `spell`.
    """
    unknown = units = 0
    has_warned = len(tokenizer) == tokenizer.byte_ids.stop  # nothing but bytes: no script is less known than another
    has_decomposed = False
    for text in texts:
        if not has_warned:
            beginning = spell(text)[:LOOKED_AT]
            coverage = measure_coverage(tokenizer, [beginning])
            unknown, units = unknown + coverage.unfamiliar, units + coverage.units

            # Accents apart from their letters may be all that the vocabulary does not know.
            composed = normalize("NFC", beginning)
            if not has_decomposed and composed != beginning:
                has_decomposed = coverage.unfamiliar > measure_coverage(tokenizer, [composed]).unfamiliar
                if has_decomposed:
                    typer.echo(
                        "heedful: the text has accents apart from their letters (Unicode NFD), and the model's "
                        "vocabulary has them in one character; convert the text to NFC, for example with "
                        "`uconv -x any-nfc`",
                        err=True,
                    )
            has_warned = unknown >= ENOUGH and warn_of_unknown(unknown, units)
        yield text
    if not has_warned:
        warn_of_unknown(unknown, units)


def warn_of_unknown(unknown: int, units: int) -> bool:
    """Warn if the share of unknown text is too large, and return True; else return False."""
    if unknown <= UNFAMILIAR * units:
        return False
    typer.echo(
        f"heedful: {unknown / units:.0%} of the text is unknown to the model's vocabulary; if it is in a language or "
        "script that the model was not trained on, the results mean nothing",
        err=True,
    )
    return True
