"""Answers as tables: quoting, line ends, missing keys, and the escapes of lines, which can be undone exactly."""

import csv
import io
import re
from itertools import product

import pytest

from heedful.cli.inputs import table_rows, texts_of
from heedful.cli.output import TableRows, one_cell, one_line, writing_results
from heedful.data.readers.rows import MISSING

TEXTS = ["plain", "a, b", 'say "so"', "one\ntwo", "one\r\ntwo", "one\rtwo", "a\tb", "", " ", "a\u2028b\x85c", "\\n"]


def undone(text: str, letters: str = "nrt") -> str:
    """What a reader makes of a line: an escape that it does not know stands for itself."""
    meant = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
    return re.sub(rf"\\([{letters}\\])", lambda found: meant[found[1]], text)


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("text", [*TEXTS, "a; b|c"])
def test_a_cell_of_csv_is_read_back_as_it_was(text, separator):
    rows = TableRows(".csv", ["given"], ["answer"], separator)
    written = f"{rows.header()}\n{rows.row([text], {'answer': text})}\n"
    cells = csv.reader(io.StringIO(written, newline=""), strict=True, delimiter=separator)
    assert list(cells) == [["given", "answer"], [text, text]]


@pytest.mark.parametrize(
    ("name", "separator", "written"),
    [("in.csv", ";", ";"), ("in.csv", "|", "|"), ("in.csv", "\t", "\t"), ("in.csv", ",", ","), ("in.tsv", "\t", ",")],
)
def test_a_csv_table_is_written_with_the_separator_of_the_csv_table_that_was_read(name, separator, written, tmp_path):
    source, output = tmp_path / name, tmp_path / "out.csv"
    rows = [("id", "text", "price"), *((f"{n}", f"A sentence of number {n}.", f"{n},50") for n in range(9))]
    with source.open("w", newline="") as stream:
        csv.writer(stream, delimiter=separator).writerows(rows)
    given = table_rows(source, texts_of(None, "text"))
    with writing_results(output, source, rows=given, columns=("answer",)) as answers:
        for row in given.rows:
            answers.write_answer(row.cells, "", {"answer": "x, y; z"})
    with output.open(newline="") as stream:
        read = list(csv.reader(stream, delimiter=written))
    assert read == [[*rows[0], "answer"], *([*row, "x, y; z"] for row in rows[1:])]


def test_escapes_of_lines_can_be_undone():
    for letters in product("\\nrt\n\r\t", repeat=4):
        text = "".join(letters)
        assert undone(one_cell(text)) == text
        assert not re.search(r"[\n\r\t]", one_cell(text))
        assert undone(one_line(text), "nr") == text
        assert not re.search(r"[\n\r]", one_line(text))


@pytest.mark.parametrize("text", ["C:\\data", "\\frac{1}{2}", "tab\there", "\u2028 \x85 \x0b", "back\\slash\\"])
def test_a_line_without_line_ends_stays_as_it_is(text):
    assert one_line(text) == text


def test_a_cell_of_tsv_is_one_cell_of_a_line_and_what_it_cannot_hold_is_counted():
    rows = TableRows(".tsv", ["given"], ["answer"])
    assert rows.row(['say "so" \\n'], {"answer": "one\ntwo\tthree"}) == 'say "so" \\n\tone\\ntwo\\tthree'
    assert rows.escaped == 1


def test_what_a_json_object_lacks_stays_missing_in_json_and_is_empty_in_csv():
    answer = {"answer": ["x", 1.5]}
    given = [MISSING, None, 7, {"k": True}]
    row = TableRows(".jsonl", list("abcd"), ["answer"]).row(given, answer)
    assert row == '{"b": null, "c": 7, "d": {"k": true}, "answer": ["x", 1.5]}'
    assert TableRows(".csv", list("abcd"), ["answer"]).row(given, answer) == ',,7,"{""k"": true}","[""x"", 1.5]"'


def test_an_answer_gets_a_name_that_the_input_does_not_have():
    rows = TableRows(".csv", ["label", "predicted_label"], ["label", "score"])
    assert rows.header() == "label,predicted_label,predicted_predicted_label,score"
