"""`heedful evaluate` of models for any task: what their validation says of the same text."""

import json
from pathlib import Path

import pytest
from invocation import invoke
from rich.console import Console

from heedful.config.load import recipe_from_dict
from heedful.errors import InputError
from heedful.tasks import TASKS
from heedful.train.loop import train
from toy_spans import write_questions, write_tagged

FILES = {
    "pairs.tsv": "".join(f"w{i % 7} w{i % 5}\tw{i % 3} w{i % 7} w2\n" for i in range(31)),
    "classes.tsv": "".join(f"w{i % 7} w{i % 5}\t{'no' if i % 2 else 'yes'}\n" for i in range(31)),
    "numbers.tsv": "".join(f"w{i % 7} w{i % 5}\t{i % 3 - i % 2}\n" for i in range(31)),
    "talk.jsonl": "".join(f'{{"source": ["w{i % 7}", "w{i % 5} w1", "w2"]}}\n' for i in range(31)),
    "text.txt": "".join(f"w{i % 7} w{i % 5}. w{i % 3} w1.\n\n" for i in range(31)),
}
READ = {"max_length": 13, "documents": "paragraph"}
LEARNED = {
    "classification": ("encoder", "classes.tsv"),
    "dialogue": ("encoder_decoder", "talk.jsonl"),
    "language_model": ("decoder", "text.txt"),
    "masked_lm": ("encoder", "text.txt"),
    "ranking": ("decoder", "pairs.tsv"),
    "regression": ("encoder", "numbers.tsv"),
    "span_qa": ("encoder", "squad.json"),
    "summarisation": ("encoder_decoder", "pairs.tsv"),
    "tagging": ("encoder", "tagged"),
    "text_to_text": ("encoder_decoder", "pairs.tsv"),
}
LAST_COUNTED = {  # where what comes after the loss is no pass over the same batches
    "dialogue": "texts",
    "span_qa": "questions",
    "summarisation": "texts",
    "tagging": "sentences",
    "text_to_text": "texts",
}


def write_files(folder: Path) -> None:
    for file, text in FILES.items():
        (folder / file).write_text(text)
    write_tagged(folder / "tagged", 31, seed=1)
    write_questions(folder / "squad.json", 31, seed=1)


def trained(folder: Path, task: str, **data: object) -> Path:
    """A run of two updates whose recipe names one file for all."""
    family, name = LEARNED[task]
    write_files(folder)
    corpus = {"source": name}
    shape = {"d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    recipe = {
        "task": task,
        "data": {"root": str(folder), "train": [corpus], "valid": corpus, "test": corpus, **READ, **data},
        "tokenizer": {"kind": "word", "byte_fallback": False, "mask": True},
        "model": {"family": family, **shape},
        "train": {"max_updates": 2, "batch_tokens": 307, "device": "cpu", "threads": 1},
        "decode": {"beam": 1, "max_extra": 3},
    }
    train(recipe_from_dict(recipe, "test"), folder / "run", Console(quiet=True))
    return folder / "run"


@pytest.mark.parametrize("task", LEARNED)
def test_a_test_set_that_was_the_validation_set_has_the_same_scores(task, tmp_path, reporters):
    run = trained(tmp_path, task)
    expected = json.loads((run / "result.json").read_text())
    del expected["update"]
    found = json.loads(invoke("evaluate", run, "--json", "--device", "cpu").stdout)
    assert found == {"system": str(run), "task": task, "scores": pytest.approx(expected, rel=1e-5)}
    assert set(expected) <= set(TASKS[task].scores)
    [reporter] = reporters[-1:]
    assert (reporter.work, reporter.unit) == (f"evaluating {run}", LAST_COUNTED.get(task, "batches"))
    assert reporter.total == reporter.done > 0


def test_every_task_is_looked_at():
    assert LEARNED.keys() | {"translation"} == TASKS.keys()


def test_a_line_is_a_score(tmp_path):
    run = trained(tmp_path, "classification")
    scores = json.loads(invoke("evaluate", run, "--json").stdout)["scores"]
    assert invoke("evaluate", run).stdout.splitlines() == [f"{name:8}  {scores[name]:9.4f}" for name in scores]


def test_data_moves_the_recipes_paths(tmp_path):
    run = trained(tmp_path, "ranking")
    before = invoke("evaluate", run).stdout
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "pairs.tsv").write_text("w1 w2\tw3\nw2\tw5 w1\n")
    assert invoke("evaluate", run, "--data", tmp_path / "elsewhere").stdout != before


def test_no_example_of_a_test_set_is_left_out(tmp_path):
    run = trained(tmp_path, "text_to_text", filters={"max_tokens": 7})
    before = invoke("evaluate", run).stdout
    (tmp_path / "pairs.tsv").write_text("w1 w2 w3 w4 w5 w6 w0\tw1\n")
    assert invoke("evaluate", run).stdout != before


def test_beam_is_the_width_of_a_search(tmp_path):
    run = trained(tmp_path, "text_to_text")
    assert "exact_match" in invoke("evaluate", run, "--beam", 3).stdout
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(InputError, match="--beam is the beam size of a search"):
        invoke("evaluate", trained(other, "regression"), "--beam", 3)


def test_options_of_translations_are_refused(tmp_path):
    run = trained(tmp_path, "classification")
    with pytest.raises(InputError, match=r'--language is for translations, and \S+ is for the task "classification"'):
        invoke("evaluate", run, "--language", "de")
    with pytest.raises(InputError, match="--metrics is for translations"):
        invoke("evaluate", run, "--metrics", "bleu")
    with pytest.raises(InputError, match="--precision is for translations"):
        invoke("evaluate", run, "--precision", "int8")


def test_a_recipe_without_a_test_set_is_told(tmp_path):
    run = trained(tmp_path, "classification", test=None)
    with pytest.raises(InputError, match=r"names no data\.test"):
        invoke("evaluate", run)


def test_files_come_before_the_recipe(tmp_path):
    run = trained(tmp_path, "summarisation", test=None)
    (tmp_path / "pairs.src").write_text("w1 w2\nw3\n")
    (tmp_path / "pairs.tgt").write_text("w1\nw5 w2\n")
    (tmp_path / "other.tsv").write_text("w1 w2\tw1\nw3\tw5 w2\n")
    two = invoke("evaluate", run, "--source", tmp_path / "pairs.src", "--reference", tmp_path / "pairs.tgt").stdout
    assert invoke("evaluate", run, "--source", tmp_path / "other.tsv").stdout == two
    assert invoke("evaluate", run, "--source", tmp_path / "pairs.tsv").stdout != two


def test_labels_of_the_training_data_are_kept_when_a_run_goes_on(tmp_path):
    trained(tmp_path, "classification")
    assert trained(tmp_path, "classification").is_dir()


def test_write_is_translate_by_another_name(tmp_path):
    run = trained(tmp_path, "summarisation")
    assert invoke("write", "--model", run, "w1 w2").stdout == invoke("translate", "--model", run, "w1 w2").stdout
