"""Reader of texts in the columns of a table, with or without labels beside them, for a trained model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import has_header
from heedful.data.readers.corpus import TableRow, read_rows
from heedful.data.readers.files import ending_of
from heedful.data.readers.filters import DropReport
from heedful.data.readers.rows import READERS, cells_of
from heedful.data.readers.separators import NAMED


def is_table(path: Path) -> bool:
    """True if a file has columns or keys by its name, which ends in .tsv, .csv or .jsonl, or then in .gz."""
    return ending_of(path) in READERS


def read_texts(
    path: Path, fields: Sequence[str], report: DropReport | None = None, *, turns: bool = False
) -> Iterator[TableRow]:
    """Yield the wanted fields of each row of a table in file order; a header is no row, whatever columns it names.

    Args:
        path: The table.
        fields: Columns or keys by name, or columns by number, from 1.
        report: Counts a header that names none of the fields.
        turns: True if a text may be a list of turns of a dialogue in JSON; they are joined with tabs.

    Raises:
        InputError: As in `heedful.data.readers.corpus.read_rows`.
    """
    report = DropReport() if report is None else report
    names_columns = ending_of(path) in NAMED and has_header(path)
    header = next(cells_of(path, "error"))[0] if names_columns else 0
    for row in read_rows(CorpusConfig(source=str(path)), DataConfig(), fields, report, turns=turns):
        if row.line == header:
            report.drop("header", str(path), header)
        else:
            yield row
