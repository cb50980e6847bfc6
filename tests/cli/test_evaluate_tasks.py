"""`heedful evaluate` of models for any task: what their validation says of the same text."""

import json
import math
from pathlib import Path

import pytest
import torch
from invocation import invoke
from rich.console import Console

from heedful.checkpoint import load_model
from heedful.config.load import recipe_from_dict
from heedful.errors import InputError
from heedful.tasks import TASKS
from heedful.tasks.specs import SPECS
from heedful.training.loop import train
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
    "ranking": "texts",
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


def trained(folder: Path, task: str, seed: int = 1, name: str = "run", **data: object) -> Path:
    """A run of two updates whose recipe names one file for all."""
    family, file = LEARNED[task]
    write_files(folder)
    corpus = {"source": file}
    shape = {"d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    recipe = {
        "task": task,
        "data": {"root": str(folder), "train": [corpus], "valid": corpus, "test": corpus, **READ, **data},
        "tokenizer": {"kind": "word", "byte_fallback": False, "mask": True},
        "model": {"family": family, **shape},
        "train": {"max_updates": 2, "seed": seed, "batch_tokens": 307, "device": "cpu", "threads": 1},
        "decode": {"beam": 1, "max_extra": 3},
    }
    train(recipe_from_dict(recipe, "test"), folder / name, Console(quiet=True))
    return folder / name


@pytest.mark.sampled(4)
@pytest.mark.parametrize("task", LEARNED)
def test_a_test_set_that_was_the_validation_set_has_the_same_scores(task, tmp_path, reporters):
    run = trained(tmp_path, task)
    expected = json.loads((run / "result.json").read_text())
    del expected["update"]
    found = json.loads(invoke("evaluate", run, "--json", "--device", "cpu").stdout)
    assert (found["system"], found["task"]) == (str(run), task)
    assert found["scores"] == pytest.approx(expected, rel=1e-5)
    assert ("classes" in found) == (task in ("classification", "tagging"))  # tests/cli/test_evaluate_classes.py
    assert set(expected) <= set(TASKS[task].spec.metrics)
    [reporter] = reporters[-1:]
    assert (reporter.work, reporter.unit) == (f"evaluating {run}", LAST_COUNTED.get(task, "batches"))
    assert reporter.total == reporter.done > 0


def test_every_task_is_looked_at():
    elsewhere = {"translation", "word_vectors"}  # the latter has no test set: `heedful vectors` measures it
    files = {name for name, spec in SPECS.items() if spec.modality != "text"}  # in tests/tasks, and test_media_commands
    assert LEARNED.keys() | elsewhere | files == TASKS.keys()


def test_a_line_is_a_score(tmp_path):
    run = trained(tmp_path, "regression")
    scores = json.loads(invoke("evaluate", run, "--json").stdout)["scores"]
    width = max(map(len, scores))
    assert invoke("evaluate", run).stdout.splitlines() == [f"{name:{width}}  {scores[name]:9.4f}" for name in scores]


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
    with pytest.raises(InputError, match=r"--language is for translations, but \S+ is a classification model"):
        invoke("evaluate", run, "--language", "de")
    with pytest.raises(InputError, match="--metrics is for translations"):
        invoke("evaluate", run, "--metrics", "bleu")
    with pytest.raises(InputError, match="--precision is for translations"):
        invoke("evaluate", run, "--precision", "int8")


def test_a_recipe_without_a_test_set_is_told(tmp_path):
    run = trained(tmp_path, "classification", test=None)
    with pytest.raises(InputError, match=r"the model's recipe has no data\.test; give a test set as --source FILE"):
        invoke("evaluate", run)
    with pytest.raises(InputError, match="--reference is the second file of a test set") as caught:
        invoke("evaluate", run, "--reference", tmp_path / "pairs.tsv")
    assert "recipe" not in str(caught.value)


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


@pytest.mark.parametrize("task", LEARNED)
def test_what_is_said_of_a_test_set_is_said_once_and_is_not_of_training(task, tmp_path):
    run = trained(tmp_path, task)
    said = invoke("evaluate", run, "--device", "cpu").stderr.splitlines()
    kinds = {"language_model": "test: 31 documents", "masked_lm": "test: 31 documents"}
    assert [line for line in said if "dropped" in line] == said[:1]
    assert said[0].startswith(kinds.get(task, f"{LEARNED[task][1]}: "))


def test_own_columns_can_be_named(tmp_path):
    run = trained(tmp_path, "classification")
    expected = invoke("evaluate", run, "--source", tmp_path / "classes.tsv").stdout
    lines = [line.split("\t") for line in FILES["classes.tsv"].splitlines()]
    own = tmp_path / "own.csv"
    own.write_text("verdict,id,review\n" + "".join(f"{label},{i},{text}\n" for i, (text, label) in enumerate(lines)))
    fields = ["--source-field", "review", "--target-field", "verdict"]
    assert invoke("evaluate", run, "--source", own, *fields).stdout == expected
    with pytest.raises(InputError, match=r"are for tables; give a table as --source FILE, without --reference"):
        invoke("evaluate", run, *fields)
    with pytest.raises(InputError, match=r"own\.csv: no column is named 'text'; .*'verdict', 'id', 'review'"):
        invoke("evaluate", run, "--source", own, "--source-field", "text", "--target-field", "verdict")


def test_a_pair_can_be_named(tmp_path):
    run = trained(tmp_path, "regression")
    own = tmp_path / "own.tsv"
    own.write_text("a\tb\tscore\n" + "".join(f"w{i % 7}\tw{i % 5}\t{i % 3}\n" for i in range(31)))
    fields = ["--source-field", "a", "--target-field", "score"]
    one = invoke("evaluate", run, "--source", own, *fields).stdout
    assert invoke("evaluate", run, "--source", own, *fields, "--pair-field", "b").stdout != one


COMPARED = {
    "classification": ["accuracy", "macro_f1", "f1", "matthews"],
    "dialogue": ["rougeL"],
    "ranking": ["mrr", "recall@1", "recall@10", "ndcg@10"],
    "regression": ["spearman", "pearson"],
    "span_qa": ["f1", "exact_match"],
    "summarisation": ["rougeL", "rouge1", "rouge2"],
    "tagging": ["f1", "precision", "recall", "accuracy"],
    "text_to_text": ["exact_match"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("task", COMPARED)
def test_two_models_are_compared_by_the_scores_of_their_task(task, tmp_path):
    run = trained(tmp_path, task)
    other = trained(tmp_path, task, seed=2, name="other")
    found = json.loads(invoke("evaluate", run, "--against", other, "--json", "--device", "cpu").stdout)
    assert [entry["name"] for entry in found["comparisons"]] == COMPARED[task]
    assert (found["system"], found["baseline"], found["task"]) == (str(run), str(other), task)
    for side, model in (("system", run), ("baseline", other)):
        alone = json.loads(invoke("evaluate", model, "--json", "--device", "cpu").stdout)["scores"]
        scores = {entry["name"]: entry[side]["value"] for entry in found["comparisons"]}
        assert scores == pytest.approx({name: alone[name] for name in scores})


def test_a_comparison_names_both_models_and_gives_a_verdict(tmp_path):
    run = trained(tmp_path, "classification")
    other = trained(tmp_path, "classification", seed=2, name="other")
    result = invoke("evaluate", run, "--against", other, "--device", "cpu")
    heading, first, *_ = lines = result.stdout.splitlines()
    assert heading.split() == [str(other), "(baseline)", str(run), "p-value"]
    assert first.startswith("accuracy ")
    assert all(str(run) in line and str(other) in line for line in lines[-4:])
    assert "heedful: scores of a test set as a whole, such as loss, are not compared" in result.stderr
    assert result.stderr.count("31 examples, 0 dropped") == 1
    same = invoke("evaluate", run, "--against", run).stdout.splitlines()
    assert same[-4] == f"accuracy: {run} and {run} are equal"


@pytest.mark.parametrize("task", sorted(LEARNED.keys() - COMPARED))
def test_scores_that_cannot_be_resampled_are_said_to_be_so(task, tmp_path):
    run = trained(tmp_path, task)
    with pytest.raises(InputError, match=f'two models for the task "{task}" cannot be compared by resampling'):
        invoke("evaluate", run, "--against", run)


def test_only_models_for_the_same_are_compared(tmp_path):
    run = trained(tmp_path, "classification")
    with pytest.raises(InputError, match=r"other is a regression model, but \S+ is a classification model"):
        invoke("evaluate", run, "--against", trained(tmp_path, "regression", name="other"))
    three = trained(tmp_path, "classification", name="three", labels=["no", "yes", "maybe"])
    with pytest.raises(
        InputError, match=r"three predicts no, yes, maybe, but \S+ predicts no, yes; compare two models with"
    ):
        invoke("evaluate", run, "--against", three)


def test_a_few_examples_are_said_to_tell_little(tmp_path):
    run = trained(tmp_path, "classification")
    (tmp_path / "few.tsv").write_text("w1 w2\tno\nw3\tyes\n")
    told = invoke("evaluate", run, "--against", run, "--source", tmp_path / "few.tsv").stderr
    assert "heedful: p-values from 2 examples are unreliable; use at least 100" in told


def test_texts_that_are_cut_or_empty_are_told(tmp_path):
    run = trained(tmp_path, "classification")
    own = tmp_path / "own.tsv"
    own.write_text("w1 w2\tno\n" + "w1 " * 12 + "\tyes\n \tno\n")
    told = invoke("evaluate", run, "--source", own).stderr.splitlines()
    assert told[1:3] == [
        f"texts longer than data.max_length = 13 tokens, truncated to that length: 1 of 3 (first: {own}, line 2)",
        f"empty texts, which say nothing about their labels: 1 of 3 (first: {own}, line 3)",
    ]


def test_texts_that_a_translator_cuts_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("heedful.predictors.translator.MAX_SOURCE_TOKENS", 11)
    run = trained(tmp_path, "summarisation")
    own = tmp_path / "own.tsv"
    own.write_text("w1 w2\tw1\n" + "w1 " * 11 + "\tw1\n")
    told = invoke("evaluate", run, "--source", own).stderr
    assert "1 of 2 texts was truncated to the 10 tokens that the model reads" in told


def test_a_text_without_a_token_to_predict_has_no_loss_and_says_why(tmp_path):
    run = trained(tmp_path, "masked_lm")
    (tmp_path / "text.txt").write_text("zz yy! xx!\n\n" * 7)
    said = invoke("evaluate", run, "--json", "--device", "cpu")
    scores = json.loads(said.stdout)["scores"]
    assert [scores[name] for name in ("loss", "perplexity", "accuracy")] == [None] * 3
    assert "nothing in this text can be predicted" in said.stderr


def test_one_number_is_scored_as_uncorrelated(tmp_path):
    run = trained(tmp_path, "regression")
    (tmp_path / "numbers.tsv").write_text("w1 w2\t0.5\n")
    scores = json.loads(invoke("evaluate", run, "--json", "--device", "cpu").stdout)["scores"]
    assert (scores["spearman"], scores["pearson"]) == (0, 0)


@pytest.mark.parametrize("task", ["regression", "ranking", "classification", "summarisation", "masked_lm"])
def test_a_model_that_has_diverged_is_validated_as_nan(tmp_path, task):
    loaded = load_model(trained(tmp_path, task))
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.fill_(math.nan)
    scores = loaded.test(loaded.recipe.data, lambda _: None)
    assert math.isnan(scores["loss"])
    assert set(scores) >= set(TASKS[task].spec.metrics) - {"next_sentence_accuracy"}
