"""A table is read whatever separates its columns; JSON under the name of a table, and the reverse, is refused."""

import csv
import gzip
import io
from pathlib import Path

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import columns_of, has_header
from heedful.data.readers.corpus import read_pairs, read_rows
from heedful.data.readers.documents import read_documents
from heedful.data.readers.labelled import read_labelled, read_texts
from heedful.data.readers.rows import CHARACTERS, FIRST_LINES, check_objects, separator_of
from heedful.errors import InputError

TEXTS = ["good, really good", "bad", "so, so, so", "fine; just fine", 'a "quoted" word', "one | two"]
HEADER = ("text", "label")
ROWS = [(text, "yes" if i % 2 else "no") for i, text in enumerate(TEXTS * 3)]
OBJECTS = '{"text": "good, really good", "label": 1}\n' * 7


def table(separator: str, rows: list[tuple[str, str]], header: tuple[str, ...] | None = HEADER) -> str:
    """A table as Python's csv module writes it, or between tabs without any quoting."""
    every = [*([header] if header else []), *rows]
    if separator == "tabs":
        return "".join("\t".join(row) + "\n" for row in every)
    stream = io.StringIO()
    csv.writer(stream, delimiter=CHARACTERS[separator], lineterminator="\n").writerows(every)
    return stream.getvalue()


def write(file: Path, text: str) -> Path:
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file


TABLES = [
    *((separator, ".csv") for separator in CHARACTERS),
    *((separator, ".csv.gz") for separator in CHARACTERS),
    *((separator, ".tsv") for separator in CHARACTERS),
]


@pytest.fixture(params=TABLES, ids="".join)
def path(request, tmp_path) -> Path:
    separator, ending = request.param
    return write(tmp_path / f"table{ending}", table(separator, rows_of(separator, ending)))


def rows_of(separator: str, ending: str) -> list[tuple[str, str]]:
    """The rows of a table; in a .csv file quotes mean something, also between tabs."""
    in_quotes = separator == "tabs" and ending != ".tsv"
    return [row for row in ROWS if '"' not in row[0]] if in_quotes else ROWS


READERS = {
    "rows": lambda corpus: [row.texts for row in read_rows(corpus, DataConfig(), HEADER)],
    "labels": lambda corpus: [(one.text, one.label) for one in read_labelled(corpus, DataConfig())],
    "pairs": lambda corpus: [(pair.source, pair.target) for pair in read_pairs(corpus, DataConfig())],
    "texts to predict": lambda corpus: [row.texts for row in read_texts(Path(corpus.source), HEADER)],
    "documents": lambda corpus: [(document.text, "") for document in read_documents(corpus, DataConfig())],
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_reads_every_table(path, reader):
    wanted = rows_of(separator_of(path, "error"), "".join(path.suffixes))
    corpus = CorpusConfig(source=str(path), source_field="text", target_field="label")
    found = READERS[reader](corpus)
    assert found == ([(text, "") for text, _ in wanted] if reader == "documents" else wanted)


def test_columns_and_header_are_those_of_the_table(path):
    assert has_header(path)
    assert [column.name for column in columns_of(path, DataConfig())] == list(HEADER)


@pytest.mark.parametrize("separator", CHARACTERS)
def test_a_table_needs_no_header(tmp_path, separator):
    rows = rows_of(separator, ".csv")
    corpus = CorpusConfig(source=str(write(tmp_path / "a.csv", table(separator, rows, None))))
    assert [(one.text, one.label) for one in read_labelled(corpus, DataConfig())] == rows


def test_a_few_broken_rows_do_not_hide_the_separator(tmp_path):
    place = write(tmp_path / "a.csv", table("semicolons", ROWS * 3) + "lost\n" + table("semicolons", ROWS, None))
    assert separator_of(place, "error") == "semicolons"
    with pytest.raises(InputError, match=r"a\.csv, line 56: malformed row: .* contains semicolons or line breaks"):
        list(read_texts(place, HEADER))


@pytest.mark.parametrize("header", [("text", "score"), None])
def test_decimal_commas_do_not_separate(tmp_path, header):
    rows = [(f"w{i} w", f"{i},{i + 1}") for i in range(9)]
    content = "".join(f"{';'.join(row)}\n" for row in ([header] if header else []) + rows)
    place = write(tmp_path / "a.csv", content)
    assert [row.texts for row in read_texts(place, ("1", "2"))] == rows


@pytest.mark.parametrize("separator", CHARACTERS)
def test_a_first_line_may_declare_the_separator(tmp_path, separator):
    rows = rows_of(separator, ".csv")
    place = write(tmp_path / "a.csv", f"sep={CHARACTERS[separator]}\n" + table(separator, rows))
    assert [row.texts for row in read_texts(place, HEADER)] == rows
    assert next(read_texts(place, HEADER)).line == 3


@pytest.mark.parametrize(
    ("name", "text", "separator"),
    [
        ("a.tsv", table("tabs", ROWS), "tabs"),
        ("a.csv", table("commas", ROWS), "commas"),
        ("one.csv", "text\n" + "".join(f'"{text}"\n' for text in TEXTS[:4]), "commas"),
        ("one.tsv", "text\n" + "".join(f"{text}\n" for text in TEXTS), "tabs"),
        ("cells.csv", "".join(f'"a\tb",{i}\n' for i in range(7)), "commas"),
        ("ragged.csv", "a,b\nc\nd,e,f\n", "commas"),
        ("braces.csv", '{"well"},1\n{so},2\n', "commas"),
        ("broken.tsv", '"a,b\nc\n', "tabs"),
        ("long.csv", f"{'x' * 200_003},1\n", "commas"),
        ("empty.csv", "", "commas"),
        ("bad.tsv", "a\tb\n", "tabs"),
        ("text.txt", "so, so\nfine, fine\n", "tabs"),
        ("many.tsv", table("commas", ROWS) + '"a text\nthat ends elsewhere",1\n' * FIRST_LINES, "commas"),
    ],
)
def test_the_name_is_believed_where_it_cuts_columns(tmp_path, name, text, separator):
    assert separator_of(write(tmp_path / name, text), "error") == separator


LYING = {
    "objects.csv": (OBJECTS, "contain one JSON object per line, but commas separate .* .csv file; .* ends in .jsonl"),
    "objects.tsv.gz": (OBJECTS, "contain one JSON object per line, but tabs separate .* .tsv file; .* ends in .jsonl"),
    "commas.jsonl": (table("commas", ROWS), "2 columns separated by commas, .* one JSON object per line; .*csv"),
    "tabs.jsonl": (table("tabs", ROWS), "2 columns separated by tabs, .*; .* ends in .tsv"),
}


@pytest.mark.parametrize("name", LYING)
def test_json_and_tables_are_not_taken_for_each_other(tmp_path, name):
    text, message = LYING[name]
    with pytest.raises(InputError, match=message):
        columns_of(write(tmp_path / name, text), DataConfig())


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", OBJECTS), ("broken.jsonl", '{"text": "so", "label": 1\n' * 7), ("empty.jsonl", "")],
)
def test_objects_are_believed(tmp_path, name, text):
    check_objects(write(tmp_path / name, text), "error")
