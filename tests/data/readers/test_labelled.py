"""Texts with labels and numbers, and which labels there are."""

import json

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import MAX_LABELS, Example, ScoredText, labels_of, read_labelled, read_scored
from heedful.errors import InputError


@pytest.fixture
def corpus(tmp_path):
    """A function that writes a file and returns the corpus that it is, by an absolute name."""

    def write(name, content, **settings):
        (tmp_path / name).write_text(content)
        return CorpusConfig(source=str(tmp_path / name), **settings)

    return write


def test_a_text_and_its_label_are_read_from_a_table(corpus):
    found = list(read_labelled(corpus("a.tsv", "one\t 1 \ntwo\tx y\n"), DataConfig()))
    assert found == [Example(1, "one", None, "1"), Example(2, "two", None, "x y")]


def test_a_label_over_several_lines_becomes_one_line(corpus):
    table = corpus("a.csv", 'source,target\none,"very\n good"\ntwo,"a\tb  c"\n')
    assert [example.label for example in read_labelled(table, DataConfig())] == ["very good", "a b  c"]


@pytest.mark.parametrize("pair_field", ["pair", "premise"])
def test_a_pair_and_its_label_are_read_by_name(corpus, pair_field):
    table = corpus("a.tsv", f"target\tsource\t{pair_field}\nno\tone\ttwo\n", pair_field=pair_field)
    assert list(read_labelled(table, DataConfig())) == [Example(2, "one", "two", "no")]


def test_a_pair_without_a_header_stands_in_the_first_three_columns(corpus):
    table = corpus("a.tsv", "one\ttwo\t1\n", pair_field="pair")
    assert list(read_labelled(table, DataConfig())) == [Example(1, "one", "two", "1")]


def test_labels_in_json_keep_their_spelling(corpus):
    values = [True, 3, "3 stars"]
    lines = "".join(json.dumps({"text": "t", "y": value}) + "\n" for value in values)
    objects = corpus("a.jsonl", lines, source_field="text", target_field="y")
    assert [example.label for example in read_labelled(objects, DataConfig())] == ["true", "3", "3 stars"]


@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (["1.0", "2.0", "10.0"], ("1", "2", "10")),
        (["0", "1.0", "-1.000"], ("-1", "0", "1")),
        (["1", "1.0", "2.0"], ("1", "1.0", "2.0")),
        (["1.5", "2.0"], ("1.5", "2.0")),
        (["1.0", "none"], ("1.0", "none")),
        (["007.0", "8.0"], ("007.0", "8.0")),
    ],
)
def test_labels_that_are_all_whole_numbers_are_written_without_a_fraction(corpus, written, classes):
    table = corpus("a.tsv", "".join(f"a text\t{label}\n" for label in written))
    assert labels_of(DataConfig(train=(table,))) == classes
    read = read_labelled(table, DataConfig(labels=classes))
    assert {example.label for example in read} == set(classes)


def test_files_of_one_training_may_write_their_whole_numbers_differently(corpus):
    files = (corpus("a.tsv", "a text\t1.0\nb\t2.0\n"), corpus("b.tsv", "a text\t1\nb\t3\n"))
    assert labels_of(DataConfig(train=files)) == ("1", "2", "3")


def test_text_and_label_may_stand_in_two_files(corpus, tmp_path):
    corpus("labels", "x\ny\n")
    texts = corpus("texts", "one\ntwo\n", target=str(tmp_path / "labels"))
    assert list(read_labelled(texts, DataConfig())) == [Example(1, "one", None, "x"), Example(2, "two", None, "y")]


def test_a_lost_label_is_not_searched_for_by_length(corpus, tmp_path):
    corpus("labels", "x\n" * 12)
    texts = corpus("texts", "one\n" * 7 + "a longer text\n" * 6, target=str(tmp_path / "labels"))
    with pytest.raises(InputError, match=r"has 13 lines, but .*labels has 12; line n of one must correspond") as caught:
        list(read_labelled(texts, DataConfig()))
    assert "about line" not in str(caught.value)


@pytest.mark.parametrize("label", ["", " ", "\u3000"])
@pytest.mark.parametrize("read", [read_labelled, read_scored])
@pytest.mark.parametrize("ending", [".tsv", ".csv", ".jsonl", "two files"])
def test_a_row_with_an_empty_label_is_left_out_with_a_count(corpus, tmp_path, label, read, ending):
    rows = [("one", "1"), ("two", label), ("three", "3"), ("four", label)]
    settings = {}
    if ending == ".jsonl":
        content = "".join(json.dumps({"source": text, "target": x or None}) + "\n" for text, x in rows)
    elif ending == "two files":
        content = "".join(f"{text}\n" for text, _ in rows)
        corpus("labels", "".join(f"{x}\n" for _, x in rows))
        settings = {"target": str(tmp_path / "labels")}
    else:
        content = "".join(f"{text}{',' if ending == '.csv' else chr(9)}{x}\n" for text, x in rows)
    name = "texts" if settings else f"a{ending}"
    drops = DropReport()
    assert [example.text for example in read(corpus(name, content, **settings), DataConfig(), drops)] == [
        "one",
        "three",
    ]
    place = tmp_path / ("labels" if settings else name)
    assert drops.rows() == [("empty label", 2, f"{place}, line 2")]


def test_a_number_is_read_with_its_text(corpus):
    found = list(read_scored(corpus("a.tsv", "one\t-2.5\ntwo\t1e3\n"), DataConfig()))
    assert found == [ScoredText(1, "one", None, -2.5), ScoredText(2, "two", None, 1000.0)]


@pytest.mark.parametrize("label", ["nan", "inf", "1e999", "1,5", "score"])
def test_what_is_no_finite_number_is_refused_with_file_line_and_value(corpus, label):
    with pytest.raises(InputError, match=rf"a\.tsv, line 2: '{label}' is not a finite number"):
        list(read_scored(corpus("a.tsv", f"one\t1\ntwo\t{label}\n"), DataConfig()))


def test_a_number_whose_square_no_float_holds_is_refused(corpus):
    with pytest.raises(InputError, match=r"a\.tsv, line 2: -1e20 is too large for regression"):
        list(read_scored(corpus("a.tsv", "one\t1e15\ntwo\t-1e20\n"), DataConfig()))


def labels(corpus, *columns):
    files = [
        corpus(f"{i}.tsv", "".join(f"text\t{label}\n" for label in column.split(",")))
        for i, column in enumerate(columns)
    ]
    return labels_of(DataConfig(train=tuple(files)))


def test_labels_are_those_of_all_training_corpora_in_order(corpus):
    assert labels(corpus, "b,a,b", "c,a") == ("a", "b", "c")


def test_numbers_are_sorted_as_numbers(corpus):
    assert labels(corpus, "10,9,-1,0.5", "1e1") == ("-1", "0.5", "9", "10", "1e1")
    assert labels(corpus, "10,9,x") == ("10", "9", "x")


def test_labels_that_the_recipe_names_stand_as_they_are():
    assert labels_of(DataConfig(labels=("x", "b"))) == ("x", "b")


def test_one_class_is_refused(corpus):
    with pytest.raises(InputError, match=r"0\.tsv: classification needs at least two classes, not \['a'\]"):
        labels(corpus, "a,a")


def test_suspiciously_many_classes_are_refused_where_they_become_too_many(corpus):
    many = [str(i) for i in range(MAX_LABELS)]
    assert len(labels(corpus, ",".join(many))) == MAX_LABELS
    with pytest.raises(InputError, match=r"1\.tsv, line 2: more than 1,000 distinct labels.*'y'; is target_field"):
        labels(corpus, ",".join(many), "0,y,z")
