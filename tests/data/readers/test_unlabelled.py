"""Texts are read from a table whatever other columns it has, and its header is none of them."""

import csv
import json

import pytest

from heedful.data.readers.corpus import TableRow
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import is_table, read_texts
from heedful.errors import InputError

TEXTS = ["good, as it goes", "bad\nand long", "fine"]


def write(file, rows):
    """A table or a list of objects with these rows, the first of which is the header."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        if file.suffix == ".jsonl":
            stream.writelines(json.dumps(dict(zip(rows[0], row, strict=True))) + "\n" for row in rows[1:])
        elif file.suffix == ".csv":
            csv.writer(stream).writerows(rows)
        else:
            stream.writelines("\t".join(row).replace("\n", " ") + "\n" for row in rows)
    return file


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
@pytest.mark.parametrize("labels", [True, False])
def test_a_column_is_read_by_name_with_labels_or_without(tmp_path, name, labels):
    header, rows = ["id", "Kommentar", "Urteil"], [[str(i), text, "ab"[i % 2]] for i, text in enumerate(TEXTS)]
    file = write(tmp_path / name, [row[: 3 if labels else 2] for row in (header, *rows)])
    report = DropReport()
    found = [row.texts for row in read_texts(file, ["Kommentar"], report)]
    assert found == [(text if name != "a.tsv" else text.replace("\n", " "),) for text in TEXTS]
    assert report.counts == {}


def test_a_row_that_spans_lines_is_one_and_knows_its_first_line(tmp_path):
    file = write(tmp_path / "a.csv", [["text"], *([text] for text in TEXTS)])
    assert [row.line for row in read_texts(file, ["text"])] == [2, 3, 5]


@pytest.mark.parametrize("field", ["1", "source"])
def test_a_header_that_only_the_labels_tell_is_no_text(tmp_path, field):
    rows = [[f"text of number {i}", "ab"[i % 2]] for i in range(23)]
    file, report = write(tmp_path / "a.tsv", [["Kommentar", "Urteil"], *rows]), DropReport()
    assert [row.texts[0] for row in read_texts(file, [field], report)] == [text for text, _ in rows]
    assert report.counts == {"header": 1}


def test_a_table_without_a_header_is_read_from_its_first_row(tmp_path):
    file = write(tmp_path / "a.tsv", [["what is it?", "it is a dog, they say"], ["who?", "Ada"]])
    assert list(read_texts(file, ["source", "pair"])) == [
        TableRow(1, ("what is it?", "it is a dog, they say")),
        TableRow(2, ("who?", "Ada")),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "text,label\nx,1\n", r"a\.csv: no column is named 'body'; .* 'text', 'label'\. Set source_field"),
        ("a.jsonl", '{"text": "x"}', r"a\.jsonl, line 1: no key 'body'; it has 'text'\. Set source_field"),
        ("a.jsonl", '{"body": 3}', r"a\.jsonl, line 1: the value of 'body' is a JSON number, not text"),
        ("a.csv", '{"body": "x"}\n', r"a\.csv: it seems to contain one JSON object per line"),
        ("a.tsv", "text\tbody\nx\n", r"a\.tsv, line 2: malformed row: 1 column, but the first row has 2"),
    ],
)
def test_what_cannot_be_read_is_told_with_file_column_and_remedy(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        list(read_texts(tmp_path / name, ["body"]))


def test_names_tell_what_is_a_table(tmp_path):
    assert [is_table(tmp_path / f"a{end}") for end in (".csv", ".tsv.gz", ".jsonl", ".txt", "", ".json", ".gz")] == [
        *[True] * 3,
        *[False] * 4,
    ]


def test_an_origin_with_a_capital_is_no_text(tmp_path):
    (tmp_path / "a.tsv").write_text("Text\tSource\nsome words here\timdb\n")
    assert [row.texts for row in read_texts(tmp_path / "a.tsv", ["source"])] == [("some words here",)]


@pytest.mark.parametrize("field", ["1", "text"])
def test_a_header_below_a_blank_line_is_one(tmp_path, field):
    (tmp_path / "a.csv").write_text("\ntext,label\none,a\ntwo,b\n")
    report = DropReport()
    assert [row.texts for row in read_texts(tmp_path / "a.csv", [field], report)] == [("one",), ("two",)]
    assert report.counts == ({"header": 1} if field == "1" else {})
    assert ["line 2" in str(place) for place in report.examples.values()] == [True] * (field == "1")
