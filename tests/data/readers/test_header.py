"""A first row of names is no data, and a first row of data is no header."""

from pathlib import Path

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import columns_of, is_header
from heedful.data.readers.corpus import SentencePair, read_pairs, read_rows
from heedful.data.readers.documents import read_documents
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import labels_of, read_labelled
from heedful.errors import InputError

REVIEWS = [(f"film number {number} was long", "bad" if number % 3 else "good") for number in range(31)]


@pytest.fixture
def corpus(tmp_path):
    """A function that writes a table and returns its corpus, by an absolute name."""

    def write(name, rows, **settings):
        separator = "," if ".csv" in name else "\t"
        (tmp_path / name).write_text("".join(separator.join(row) + "\n" for row in rows), encoding="utf-8")
        return CorpusConfig(source=str(tmp_path / name), **settings)

    return write


@pytest.mark.parametrize(
    "header", [("text", "label"), ("Review", "Sentiment"), ("review_text", "verdict"), ("评论", "标签")]
)
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
@pytest.mark.parametrize("fields", [{}, {"source_field": "1", "target_field": "2"}])
def test_the_header_of_a_table_is_no_class_and_is_reported(corpus, name, header, fields):
    table, report = corpus(name, [header, *REVIEWS], **fields), DropReport()
    assert labels_of(DataConfig(train=(table,))) == ("bad", "good")
    assert len(list(read_labelled(table, DataConfig(), report))) == 31
    assert report.rows() == [("header", 1, f"{table.source}, line 1")]


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        (("Quality", "#1 String"), [("1", "a b"), ("0", "c d")]),
        (("en", "de"), [("one", "eins")]),
        (("file", "label"), [("a.png", "left"), ("b.png", "")]),
        (("图片", "说明"), [("a.png", "一只猫")]),
        (("comment", "points"), [("fine", "4.5"), ("dull", "-1")]),
        (("", "text", "label"), [("0", "fine", "pos"), ("1", "dull", "neg")]),
        (("", "remark", "verdict"), [("0", "fine", "pos"), ("1", "dull", "neg")]),
        (("kind", "what"), [("a" if i % 2 else "b", f"text {i}") for i in range(11)]),
    ],
)
def test_a_row_of_names_is_a_header(header, rows):
    assert is_header(header, rows)


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        (("a stirring , funny film", "1"), [("dull", "0"), ("good", "1")]),
        (("good", "pos"), [("bad", "neg"), ("fine", "pos")] * 7),
        (("good", "rare"), [("bad", "neg")] * 5),
        (("house", "Haus"), [(f"word{i}", f"Wort{i}") for i in range(13)]),
        (("text", "text"), [("text", "Text")]),
        (("7", "8"), [("1", "2"), ("3", "4")]),
        (("title", "Titel"), [("house", "Haus")]),
        (("lonely", "pos"), []),
        (("label", ""), [("a", "b")]),
        (("", "house", "Haus"), [("", "cat", "Katze"), ("", "dog", "Hund")]),
        (("",), [("a",)]),
        ((), []),
    ],
)
def test_a_row_of_data_is_no_header(first, rows):
    assert not is_header(first, rows)


def test_a_label_that_comes_once_among_others_that_do_is_a_label():
    assert not is_header(("good", "odd"), [(f"text {i}", "pos" if i else "single") for i in range(23)])


def test_columns_the_other_way_round_are_refused_with_the_keys_to_set(corpus):
    table = corpus("a.tsv", [("label", "text_a"), *((label, text) for text, label in REVIEWS)])
    with pytest.raises(InputError, match=r'set source_field = "text_a" and target_field = "label"'):
        list(read_labelled(table, DataConfig()))


def test_a_header_is_no_pair_and_no_document(corpus):
    table = corpus("a.csv", [("English", "German"), ("one", "eins")])
    assert list(read_pairs(table, DataConfig())) == [SentencePair(2, "one", "eins")]
    assert [document.text for document in read_documents(table, DataConfig())] == ["one"]


@pytest.mark.parametrize("count", [7, 11, 13])
def test_parts_of_a_table_with_a_header_share_nothing_and_leave_nothing_out(corpus, count):
    rows = [(f"text {number}", str(number % 2)) for number in range(count)]
    found = []
    for part in ((0.0, 0.3), (0.3, 0.9), (0.9, 1.0)):
        table = corpus("a.tsv", [("text", "label"), *rows], part=part)
        found += [row.texts for row in read_rows(table, DataConfig(), ("source", "target"), label="target")]
    assert found == rows


def test_a_column_without_a_name_is_called_by_its_number(corpus):
    table = corpus("a.csv", [("", "text", "label"), *((str(i), *row) for i, row in enumerate(REVIEWS))])
    columns = columns_of(Path(table.source), DataConfig())
    assert [(column.name, column.rows) for column in columns] == [("1", 31), ("text", 31), ("label", 31)]
