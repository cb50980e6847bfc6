"""Which column holds the texts: by an option, by the recipe, by what `init` would choose, or none."""

import json

import pytest

from heedful.data.readers.text_columns import TextRequest, choose_columns
from heedful.errors import InputError

SENTENCES = [f"{word} are words of a sentence" for word in ("these", "those", "many", "some", "few", "all", "no")]


def write(folder, columns, end):
    rows = list(zip(*columns.values(), strict=True))
    file = folder / f"a{end}"
    if end == ".jsonl":
        content = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
    else:
        content = "".join(("," if end == ".csv" else "\t").join(row) + "\n" for row in [tuple(columns), *rows])
    file.write_text(content)
    return file


@pytest.mark.parametrize("end", [".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize(
    ("columns", "wanted", "fields"),
    [
        ({"sentiment": "+-+-+-+", "review": SENTENCES}, TextRequest(("source",)), ("review",)),
        ({"stars": "1234512", "id": "3456789", "x": SENTENCES}, TextRequest(("source",)), ("x",)),
        ({"label": ["yes", "no"] * 3 + ["no"], "body": SENTENCES}, TextRequest(("2",)), ("body",)),
        ({"answer": ["Good", "bad"], "text": ["fine", "poor"]}, TextRequest(("q",), labels=("good", "bad")), ("text",)),
        ({"topic": ["one", "two"], "prompt": ["three", "four"]}, TextRequest(("x",), target="Topic"), ("prompt",)),
        ({"de": SENTENCES, "en": SENTENCES}, TextRequest(("source",), language="en"), ("en",)),
        ({"German": SENTENCES, "English": SENTENCES}, TextRequest(("source",), language="de-AT"), ("German",)),
        ({"summary": SENTENCES, "article": SENTENCES}, TextRequest(("source",)), ("article",)),
        ({"context": SENTENCES, "label": "aabbabb", "question": SENTENCES}, TextRequest(("q", "c")), None),
        ({"tExT": SENTENCES, "label": "aabbabb", "prompt": SENTENCES}, TextRequest(("Text",)), ("Text",)),
        ({"label": "aabbabb", "2020": SENTENCES}, TextRequest(("text",)), "2020"),
    ],
)
def test_the_column_of_the_text_is_found(tmp_path, columns, wanted, fields, end):
    chosen = choose_columns(write(tmp_path, columns, end), wanted)
    expected = ("question", "context") if fields is None else fields
    if fields == "2020":  # a number is a place, but in JSON it is a key
        expected = ("2020",) if end == ".jsonl" else ("2",)
    assert chosen.fields == expected
    assert chosen.guessed == (wanted.fields != ("Text",))


@pytest.mark.parametrize("end", [".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"title": SENTENCES, "review": SENTENCES}, "several columns may contain the text"),
        ({"label": "aabbabb", "score": "1234567"}, "no column seems to contain the text"),
    ],
)
def test_in_doubt_the_columns_are_listed_and_the_option_is_named(tmp_path, columns, why, end):
    first, second = columns
    with pytest.raises(InputError, match=f"{why}; its columns are '{first}' .*'{second}' .*--column"):
        choose_columns(write(tmp_path, columns, end), TextRequest(("body",)))


@pytest.mark.parametrize("end", [".csv", ".tsv", ".jsonl"])
def test_an_option_comes_first_in_any_case_and_a_slip_is_pointed_out(tmp_path, end):
    file = write(tmp_path, {"Text": SENTENCES, "Other Text": SENTENCES}, end)
    assert choose_columns(file, TextRequest(("Text",), ("other text",))).fields == ("Other Text",)
    with pytest.raises(InputError, match=r"no column is named 'x'; it has 'Text', 'Other Text'"):
        choose_columns(file, TextRequest(("Text",), ("x",)))
    with pytest.raises(InputError, match=r"'Oter text' \(did you mean 'Other Text'.*\).*--target-field"):
        choose_columns(file, TextRequest(("Text",), ("Oter text",), option="--target-field"))


@pytest.mark.parametrize("labels", [(), ("x", "y")])
def test_numbers_of_a_recipe_hold_without_a_header_unless_there_are_labels(tmp_path, labels):
    file = tmp_path / "a.tsv"
    file.write_text("".join(f"{'xy'[i % 2]}\t{text}\n" for i, text in enumerate(SENTENCES)))
    for fields in (("source",), ("1",)):
        assert choose_columns(file, TextRequest(fields, labels=labels)).fields == ("2",)
        assert choose_columns(file, TextRequest(("2",), labels=labels)).guessed is False
    file.write_text("one\ttwo\nthree\tfour\n")
    assert choose_columns(file, TextRequest(("source",))).fields == ("1",)
    file.write_text("x\ty\ny\tx\n")
    if labels:
        with pytest.raises(InputError, match="column 1, which the recipe reads, seems to contain labels"):
            choose_columns(file, TextRequest(("source",), labels=labels))


def test_columns_as_many_as_texts_are_the_texts_in_their_order(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text("w1 w2\tw3\n")
    assert choose_columns(file, TextRequest(("source", "pair"))).fields == ("1", "2")
    assert choose_columns(write(tmp_path, {"xyz": "123"}, ".jsonl"), TextRequest(("source",))).fields == ("xyz",)
