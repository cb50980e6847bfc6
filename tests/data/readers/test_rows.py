"""Any fields of one file, and any part of its rows."""

import gzip
import json
from itertools import pairwise

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import SentencePair, TableRow, part_of, read_pairs, read_rows
from heedful.data.readers.drop_report import DropReport
from heedful.errors import InputError


@pytest.fixture
def rows(tmp_path):
    """A function that writes one file and reads fields of it."""

    def read(name, content, fields, report=None, *, policy="error", label=None, **settings):
        raw = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        data = DataConfig(root=str(tmp_path), bad_utf8=policy)
        return list(read_rows(CorpusConfig(source=name, **settings), data, fields, report, label=label))

    return read


THREE = ("source", "pair", "target")


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("one\ttwo\t3\n", THREE, TableRow(1, ("one", "two", "3"))),
        ("target\tid\tpair\tsource\n3\t7\ttwo\tone\n", THREE, TableRow(2, ("one", "two", "3"))),
        ("id\ta\tb\n7\tone\ttwo\n", ("b", "1", "a"), TableRow(2, ("two", "7", "one"))),
        ('"one\ttwo"\t"\n', THREE, TableRow(1, ('"one', 'two"', '"'))),
        ("\ufeffb\ta\r\none\ttwo\r\n", ("a",), TableRow(2, ("two",))),
        ("one\ttwo\n", ("2", "2"), TableRow(1, ("two", "two"))),
    ],
)
def test_any_number_of_fields_is_read(rows, text, fields, expected):
    assert rows("a.tsv", text, fields) == [expected]
    assert rows("a.tsv.gz", text, fields) == [expected]
    if '"' not in text:
        assert rows("a.csv", text.replace("\t", ","), fields) == [expected]


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_number_is_a_place_even_where_the_first_label_is_that_number(rows, name):
    text = "good\t2\nbad\t1\n".replace("\t", "," if name == "a.csv" else "\t")
    assert rows(name, text, ("1", "2")) == [TableRow(1, ("good", "2")), TableRow(2, ("bad", "1"))]


def test_quoted_cells_hold_commas_quotes_and_line_ends_and_rows_know_their_first_line(rows):
    text = 'text,label\r\n"one, ""1""",a\r\n"two\r\n\r\nlines",b\r\nfive,c\r\n'
    expected = [TableRow(2, ('one, "1"', "a")), TableRow(3, ("two\r\n\r\nlines", "b")), TableRow(6, ("five", "c"))]
    assert rows("a.csv", text, ("text", "label")) == expected
    assert rows("a.csv.gz", text, ("text", "label")) == expected


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.csv", 'one,1\n"two,2\n3,4\n', r"a\.csv, line 2: not valid CSV"),
        ("a.csv", 'one,1\n"two"2,3\n', r"line 2: not valid CSV"),
        pytest.param("a.csv", "x" * 200_003 + ",1\n", "line 1: not valid CSV.*.jsonl for very long texts", id="long"),
        ("a.csv", "one\ntwo\n", r"line 1: has 1 column, but 2 are needed .*; columns are separated by commas"),
        ("a.csv.gz", "one\t1\n", r"line 1: has 1 column.*separated by commas"),
        ("a.tsv", "one,1\n", r"line 1: has 1 column.*separated by tabs"),
        ("a.csv", b"one,1\ntw\xff,2\n", r"a\.csv, line 2, byte 3"),
        ("a.dat", "one\n", r"a\.dat: only a file whose name ends in \.tsv, \.csv, \.jsonl"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(rows, name, text, problem):
    with pytest.raises(InputError, match=problem):
        rows(name, text, ("source", "target"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "a.csv",
            "text,label\none,1\ntwo, too,2\n",
            r"a\.csv, line 3: malformed row: 3 columns, .* has 2; .*Quote text.*commas",
        ),
        ("a.csv", "text,label\none,1\ntwo\n", r"line 3: malformed row: 1 column, but the first row has 2"),
        ("a.tsv", "text\tlabel\none\ttwo\t1\n", r"line 2: malformed row: 3 columns.* 2; .* use \.csv"),
        ("a.tsv", "text\tlabel\tid\none\n", r"line 2: malformed row: 1 column, but the first row has 3"),
    ],
)
def test_a_row_that_is_shorter_or_longer_than_the_first_is_called_broken(rows, name, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        rows(name, text, ("text", "label"))
    assert "source_field" not in str(caught.value)


def test_a_row_may_lack_columns_that_nobody_asks_for(rows):
    assert rows("a.tsv", "text\tlabel\tremark\none\t1\n", ("text", "label")) == [TableRow(2, ("one", "1"))]


def test_blank_lines_of_a_table_with_commas_are_no_rows(rows):
    text = "text,label\n\none,1\n\n\n"
    assert rows("a.csv", text, ("text", "label")) == [TableRow(3, ("one", "1"))]
    assert rows("a.csv", "one,1\n\n\n", ("1", "2"), part=(0.0, 1.0)) == [TableRow(1, ("one", "1"))]


def test_a_pair_without_names_is_refused_with_the_keys_to_set(rows):
    with pytest.raises(InputError, match=r"no column is named 'source'.*\(and pair_field\)"):
        rows("a.tsv", "one\ttwo\t3\n", ("source", "premise", "target"))


def test_bad_utf8_in_csv_can_be_replaced_but_not_skipped(rows):
    assert rows("a.csv", b"tw\xff,2\n", ("1", "2"), policy="replace") == [TableRow(1, ("tw\ufffd", "2"))]
    with pytest.raises(InputError, match=r"a\.csv, line 1: not valid UTF-8.*cannot be"):
        rows("a.csv", b"tw\xff,2\n", ("1", "2"), policy="skip")


@pytest.mark.parametrize(("value", "text"), [(7, "7"), (True, "true"), (-1.5, "-1.5"), ("x", "x"), (False, "false")])
def test_a_label_in_json_may_be_a_number_or_a_truth_value(rows, value, text):
    content = json.dumps({"a": "one", "b": value})
    assert rows("a.jsonl", content, ("a", "b"), label="b") == [TableRow(1, ("one", text))]


@pytest.mark.parametrize("value", ["null", "NaN"])
def test_a_label_in_json_that_is_missing_is_empty(rows, value):
    content = f'{{"a": "one", "b": {value}}}'
    assert rows("a.jsonl", content, ("a", "b"), label="b") == [TableRow(1, ("one", ""))]


@pytest.mark.parametrize(("value", "kind"), [([1], "list"), ({"x": 1}, "object")])
def test_a_label_in_json_is_nothing_else(rows, value, kind):
    with pytest.raises(InputError, match=f"line 1: the value of 'b' is a JSON {kind}, not text; choose another key"):
        rows("a.jsonl", json.dumps({"a": "one", "b": value}), ("a", "b"), label="b")


@pytest.mark.parametrize(("value", "kind"), [(1, "number"), (0.5, "number"), (True, "boolean")])
def test_a_text_in_json_is_no_number(rows, value, kind):
    with pytest.raises(InputError, match=f"the value of 'a' is a JSON {kind}, not text; put it in quotes"):
        rows("a.jsonl", json.dumps({"a": value, "b": 2}), ("a", "b"), label="b")


def test_a_table_among_json_is_called_one(rows):
    with pytest.raises(InputError, match=r"a\.jsonl: it seems to have 2 columns separated by tabs, .* ends in \.tsv"):
        rows("a.jsonl", "a\tb\none\t1\ntwo\t2\n", ("a", "b"))


@pytest.mark.parametrize("value", ["null", "NaN"])
def test_a_text_in_json_that_is_missing_is_to_be_filled_in(rows, value):
    with pytest.raises(InputError, match=r"line 1: the value of 'a' is null, .*; fill it in, or remove the line"):
        rows("a.jsonl", f'{{"a": {value}, "b": 2}}', ("a", "b"), label="b")


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
@pytest.mark.parametrize("count", [7, 11, 13])
def test_parts_that_meet_share_nothing_and_leave_nothing_out(rows, name, count):
    if name == "a.jsonl":
        text = "".join(json.dumps({"source": f"s{i}", "target": f"t{i}"}) + "\n" for i in range(count))
    else:
        cells = [("source", "target"), *((f"s{i}", f"t{i}") for i in range(count))]
        text = "".join(("," if name == "a.csv" else "\t").join(row) + "\n" for row in cells)
    whole = rows(name, text, ("source", "target"))
    assert len(whole) == count
    cuts = [0.0, 0.3, 0.9, 1.0]
    parts = [rows(name, text, ("source", "target"), part=part) for part in pairwise(cuts)]
    assert [row for part in parts for row in part] == whole
    assert [len(part) for part in parts] == [int(count * b) - int(count * a) for a, b in pairwise(cuts)]


def test_a_part_of_two_files_counts_rows_and_keeps_their_lines(tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.de").write_bytes(b"eins\nzw\xff\ndrei\n")
    corpus = CorpusConfig(source="a.en", target="a.de", part=(0.34, 1.0))
    report = DropReport()
    found = list(read_pairs(corpus, DataConfig(root=str(tmp_path), bad_utf8="skip"), report))
    assert found == [SentencePair(3, "three", "drei")]
    assert report.rows() == [("bad UTF-8", 1, "a.en, line 2")]


def test_two_files_have_no_third_field(tmp_path):
    with pytest.raises(InputError, match="two files contain two fields, not source, pair, target"):
        list(read_rows(CorpusConfig(source="a", target="b"), DataConfig(root=str(tmp_path)), THREE))


@pytest.mark.parametrize("part", [(0.5, 0.5), (0.7, 0.2), (-0.1, 1.0), (0.0, 1.1), (float("nan"), 1.0)])
def test_what_is_no_share_is_refused(part):
    with pytest.raises(InputError, match="give two shares from 0 to 1, the smaller first"):
        part_of(CorpusConfig(source="a.tsv", part=part), 7, "rows")


def test_a_part_that_holds_nothing_is_refused(rows):
    with pytest.raises(InputError, match=r"a\.tsv: part \(0\.0, 0\.1\) contains none of its 3 rows"):
        rows("a.tsv", "a\t1\nb\t2\nc\t3\n", ("source", "target"), part=(0.0, 0.1))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "ID, Review ,Stars\n7,good,5\n"),
        ("a.tsv", "ID\t REVIEW\tstars\n7\tgood\t5\n"),
        ("a.jsonl", '{"ID": "7", "review ": "good", "STARS": "5"}\n'),
    ],
)
def test_a_recipe_names_columns_in_any_case(rows, name, content):
    assert [row.texts for row in rows(name, content, ("review", "Stars"))] == [("good", "5")]
    with pytest.raises(InputError, match=r"'(revew|Revew)' \(did you mean '.*(?i:review).*'\?"):
        rows(name, content, ("Revew", "Stars"))


def test_an_equal_name_counts_more_than_one_in_another_case(rows):
    assert [row.texts for row in rows("a.csv", "Text,text\none,two\n", ("text",))] == [("two",)]
    with pytest.raises(InputError, match="no column is named 'TEXT'"):
        rows("a.csv", "Text,text\none,two\n", ("TEXT",))
