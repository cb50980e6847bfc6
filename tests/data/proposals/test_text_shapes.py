"""Data sets in text files are recognised by their first lines, and running text is left alone."""

import json
from pathlib import Path

import pytest

from heedful.data.proposals.text_shapes import shape_of

QUESTIONS = {"data": [{"paragraphs": [{"context": "A dog runs.", "qas": [{"id": "1", "question": "Who?"}]}]}]}
OBJECTS = [{"text": f"text {number}", "label": "pos"} for number in range(7)]
SHAPES = {
    "conll-tabs": ("Ann\tB-PER\nruns\tO\n\n" * 5, "words with tags"),
    "conll-columns": ("-DOCSTART- -X- -X- O\n\n" + "Ann NNP B-NP B-PER\nruns VBZ B-VP O\n\n" * 5, "words with tags"),
    "conll-comments": ("# text = Ann runs\nAnn B-PER\nruns O\n\n" * 5, "words with tags"),
    "fasttext": ("__label__good __label__long a fine day\n__label__bad rain\n" * 5, "fastText"),
    "trec": ("DESC:manner How did it end ?\nHUM:ind Who ran ?\n" * 5, "a label before each text"),
    "labels": ("POS a fine day\nNEG it rained\n" * 5, "a label before each text"),
    "anki": ("Go.\tGeh.\tCC-BY 2.0\n" * 5, "3 columns"),
    "squad": (json.dumps(QUESTIONS), "SQuAD"),
    "squad-indented": (json.dumps(QUESTIONS, indent=2), "SQuAD"),
    "array": (json.dumps(OBJECTS), "JSON"),
    "array-indented": (json.dumps(OBJECTS, indent=2), "JSON"),
}
RUNNING = {
    "prose": "It was a fine day. Ann ran.\n\nThen it rained.\n" * 5,
    "drama": "ROMEO:\nBut soft!\n\nJULIET:\nAy me!\n\n" * 5,
    "speakers": "ANN. I ran home.\nBEN. You did not run.\n" * 5,
    "capitals": "THE DOG RAN\nA CAT SLEPT\n" * 5,
    "brackets": "[Scene one.]\nAnn runs.\n" * 5,
    "indented": "\tIt was a day.\nAnn ran.\n" * 5,
    "empty": "",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_data_set_is_recognised(tmp_path: Path, name: str) -> None:
    text, content = SHAPES[name]
    (tmp_path / "file.txt").write_text(text)
    shape = shape_of(tmp_path / "file.txt", "error")
    assert shape is not None
    assert content in shape.content
    assert "[data]" in shape.remedy or "file.tsv" in shape.remedy or "file.jsonl" in shape.remedy


@pytest.mark.parametrize("name", RUNNING)
def test_running_text_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text(RUNNING[name])
    assert shape_of(tmp_path / "file.txt", "error") is None
