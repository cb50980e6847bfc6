"""Data sets are recognised by their first lines whatever their names, and running text is left alone."""

import csv
import io
import json
from pathlib import Path

import pytest

from heedful.errors import InputError
from heedful.tools.proposals.text_shapes import TextShape, records_of, shape_of

QUESTIONS = {"data": [{"paragraphs": [{"context": "A dog runs.", "qas": [{"id": "1", "question": "Who?"}]}]}]}
OBJECTS = [{"text": f"text {number}", "label": "pos"} for number in range(7)]
ROWS = [["id", "text", "score"], *([str(n), f'a "text", {n}', f"{n}.5"] for n in range(7))]


def quoted(separator: str, quoting: int) -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(ROWS)
    return stream.getvalue()


SHAPES = {
    "conll-tabs.txt": ("Ann\tB-PER\nruns\tO\n\n" * 5, "tagged"),
    "conll-columns.txt": ("-DOCSTART- -X- -X- O\n\n" + "Ann NNP B-NP B-PER\nruns VBZ B-VP O\n\n" * 5, "tagged"),
    "conll-comments.conll": ("# text = Ann runs\nAnn B-PER\nruns O\n\n" * 5, "tagged"),
    "conll.tsv": ("Ann\tB-PER\nruns\tO\n\n" * 5, "tagged"),
    "conll": ("Ann B-PER\nruns O\n\n" * 5, "tagged"),
    "parts-of-speech.txt": ("Ann NNP\nruns VBZ\n\n" * 5, "parts of speech"),
    "treebank.conllu": (
        "1\tAnn\tAnn\tN\tN\t_\t2\tnsubj\t_\t_\n2\truns\trun\tV\tV\t_\t0\troot\t_\t_\n\n" * 3,
        "tagged",
    ),
    "fasttext.train": ("__label__good __label__long a fine day\n__label__bad rain\n" * 5, "fasttext"),
    "trec.label": ("DESC:manner How did it end ?\nHUM:ind Who ran ?\n" * 5, "labels"),
    "labels.txt": ("POS a fine day\nNEG it rained\n" * 5, "labels"),
    "polarity.txt": ("1 a fine day\n0 it rained\n" * 15, "first words"),
    "spam.txt": ("ham see you at home\nspam win a prize\n" * 15, "first words"),
    "anki.txt": ("Go.\tGeh.\tCC-BY 2.0\n" * 5, "tabs"),
    "ragged.txt": ("news\t2.5\tA dog.\tA cat.\nnews\t1.5\tA dog.\tA man.\thttp://a\n" * 5, "tabs"),
    "words.txt": ("car\tauto\t3.92\ngem\tjewel\t3.84\n" * 5, "tabs"),
    "tabs.csv": ("a text, of words\t1\nanother one\t0\n" * 5, "tabs"),
    "semicolons.txt": ('id;text;score\n1;"A dog runs";4,5\n2;"A cat runs";3,5\n' * 5, "semicolons"),
    "ragged.csv": ('news\t2.5\tA "dog.\tA cat.\nnews\t1.5\tA dog.\tA man.\thttp://a\n' * 5, "tabs"),
    "all-quoted.tsv": (quoted("\t", csv.QUOTE_ALL), "tabs"),
    "some-quoted.tsv": (quoted("\t", csv.QUOTE_MINIMAL), "tabs"),
    "squad.json": (json.dumps(QUESTIONS), "questions"),
    "squad-indented.json": (json.dumps(QUESTIONS, indent=2), "questions"),
    "array.json": (json.dumps(OBJECTS), "json"),
    "array-indented.txt": (json.dumps(OBJECTS, indent=2), "json"),
    "objects.json": ("".join(f"{json.dumps(values)}\n" for values in OBJECTS), "objects"),
    "deep.jsonl": ('{"id": 1, "translation": {"en": "a dog", "de": "ein Hund"}}\n' * 3, "objects"),
    "words-and-tags.jsonl": ('{"tokens": ["Ann", "runs"], "ner_tags": ["B-PER", "O"]}\n' * 3, "objects"),
    "vectors.txt": (f"the {'0.5 ' * 25}\nof {'-1.5 ' * 25}\n" * 3, "foreign"),
    "analogies.txt": (": capital\nAthens Greece Paris France\n" * 5, "foreign"),
}
RUNNING = {
    "prose": "It was a fine day. Ann ran.\n\nThen it rained.\n" * 5,
    "drama": "ROMEO:\nBut soft!\n\nJULIET:\nAy me!\n\n" * 5,
    "speakers": "ANN. I ran home.\nBEN. You did not run.\n" * 5,
    "chat": "ann: I ran home.\nben: you did not run.\n" * 15,
    "capitals": "THE DOG RAN\nA CAT SLEPT\n" * 5,
    "brackets": "[Scene one.]\nAnn runs.\n" * 5,
    "quoted-brackets": '["Hello," he said.]\nAnn runs.\n' * 5,
    "indented": "\tIt was a day.\nAnn ran.\n" * 5,
    "pairs of words": "Ann runs\nBen sleeps\n\n" * 5,
    "semicolons": "It rained; Ann ran.\nIt snowed; Ben slept.\n" * 5,
    "commas": "It rained, Ann ran.\nIt snowed, Ben slept.\n" * 5,
    "one column": "A dog.\nA cat.\n" * 5,
    "empty": "",
}
HONEST = {
    "a.tsv": "text\tlabel\na dog\t1\na cat\t0\n",
    "quotes.tsv": 'text\tlabel\n"Go!" he said\t1\nShe said "go!"\t0\n"No."\t1\n',
    "a.csv": quoted(",", csv.QUOTE_MINIMAL),
    "semicolons.csv": "text;score\nA dog runs;4,5\nA cat runs;3,5\n" * 5,
    "commas.tsv": "text,score\nA dog runs,4.5\nA cat runs,3.5\n" * 5,
    "tabs in cells.csv": '"a\tb",1\n"c\td",2\n' * 5,
    "a.jsonl": "".join(f"{json.dumps(values)}\n" for values in OBJECTS),
    "lists.jsonl": '{"text": "a dog", "tags": ["x"]}\n' * 5,
    "one.csv": "text\na dog\na cat\n",
}


def shape_in(folder: Path, name: str, text: str) -> TextShape | None:
    (folder / name).write_text(text, encoding="utf-8")
    return shape_of(folder / name, "error")


@pytest.mark.parametrize("name", SHAPES)
def test_a_data_set_is_recognised(tmp_path: Path, name: str) -> None:
    text, kind = SHAPES[name]
    shape = shape_in(tmp_path, name, text)
    assert shape is not None
    assert shape.kind == kind
    assert shape.content
    assert shape.remedy or kind != "foreign"


@pytest.mark.parametrize("name", RUNNING)
def test_running_text_is_left_alone(tmp_path: Path, name: str) -> None:
    assert shape_in(tmp_path, "file.txt", RUNNING[name]) is None


@pytest.mark.parametrize("name", HONEST)
def test_a_table_that_its_readers_read_as_it_is_is_left_alone(tmp_path: Path, name: str) -> None:
    assert shape_in(tmp_path, name, HONEST[name]) is None


RECORDS = {
    "fasttext.txt": ("__label__a, __label__b a day\n\n__label__c rain\n" * 3, {"text": "a day", "label": "a"}),
    "trec.txt": (
        "DESC:how How was it ?\nHUM:ind Who ran ?\n" * 5,
        {"text": "How was it ?", "label": "DESC:how"},
    ),
    "some-quoted.tsv": (quoted("\t", csv.QUOTE_MINIMAL), {"id": "0", "text": 'a "text", 0', "score": "0.5"}),
    "ragged.txt": (SHAPES["ragged.txt"][0], {"1": "news", "2": "2.5", "3": "A dog.", "4": "A cat."}),
    "bom.txt": ("\ufeffQuality\t#1 ID\n1\t7\n0\t8\n" * 1, {"Quality": "1", "#1 ID": "7"}),
    "array.json": ('[{"text": "a", "label": 1}, {"text": null, "label": true}]', {"text": "a", "label": "1"}),
    "below-a-key.json": ('{"version": 1, "rows": [{"text": "a", "label": "x"}]}', {"text": "a", "label": "x"}),
    "columns.json": ('{"text": ["a", "b"], "label": [0, 1]}', {"text": "a", "label": "0"}),
    "pandas.json": (
        '{"text": {"5": "a", "6": "b", "7": ""}, "x": {"5": 0, "6": 1, "7": 1}}',
        {"text": "a", "x": "0"},
    ),
    "by-id.json": ('{"7": {"text": "a", "label": 0}, "8": {"text": "b", "label": 1}}', {"text": "a", "label": "0"}),
    "rows.json": ('[["text", "label"], ["a", 0], ["b", 1]]', {"text": "a", "label": "0"}),
    "strings.json": ('["a dog", "a cat"]', {"text": "a dog"}),
    "deep.jsonl": (SHAPES["deep.jsonl"][0], {"id": "1", "en": "a dog", "de": "ein Hund"}),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_are_read_as_objects_with_names(tmp_path: Path, name: str) -> None:
    text, expected = RECORDS[name]
    shape = shape_in(tmp_path, name, text) or TextShape("tabs", "")
    ending, lines = records_of(tmp_path / name, shape, "error")
    first = json.loads(next(lines))
    assert (ending, first) == (".jsonl", expected)


def test_words_with_tags_and_questions_in_objects_become_their_usual_formats(tmp_path: Path) -> None:
    shape = shape_in(tmp_path, "tags.jsonl", SHAPES["words-and-tags.jsonl"][0])
    assert shape is not None
    ending, lines = records_of(tmp_path / "tags.jsonl", shape, "error")
    assert (ending, list(lines)[:3]) == (".conll", ["Ann\tB-PER", "runs\tO", ""])
    answers = {"text": ["dog"], "answer_start": [2]}
    row = {"id": "7", "title": "t", "context": "A dog runs.", "question": "Who?", "answers": answers}
    shape = shape_in(tmp_path, "rows.jsonl", f"{json.dumps(row)}\n" * 2)
    assert shape is not None
    ending, lines = records_of(tmp_path / "rows.jsonl", shape, "error")
    [paragraph] = json.loads(next(lines))["data"][0]["paragraphs"]
    assert ending == ".json"
    assert paragraph["qas"][0]["answers"] == [{"text": "dog", "answer_start": 2}]


BROKEN = {
    "broken.json": ('[{"text": "a", "label": "b"},\n{"text": \n', r"broken.json: not JSON \("),
    "object.json": (
        '{"name": "a", "size": 7,\n"more": {"a": 1}}',
        "the keys 'name', 'size', 'more', but no",
    ),
    "fasttext.txt": (
        "__label__a a day\n" * 30 + "no label\n",
        "fasttext.txt, line 31: 'no label' does not start",
    ),
    "trec.txt": ("AB a day\nCD a night\n" * 30 + "Mr. Hill ran\n", "trec.txt, line 61: 'Mr. Hill ran' does not start"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_data_set_is_refused_with_the_place(tmp_path: Path, name: str) -> None:
    text, message = BROKEN[name]
    shape = shape_in(tmp_path, name, text)
    assert shape is not None
    with pytest.raises(InputError, match=message):
        list(records_of(tmp_path / name, shape, "error")[1])


def test_objects_that_only_annotate_a_row_leave_it_a_row(tmp_path: Path) -> None:
    rows = [{"picture": f"{i}.png", "en": "a dog", "boxes": {"en": [[0, 1, [2, 3, 4, 5]]]}} for i in range(5)]
    assert shape_in(tmp_path, "boxes.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows)) is None
