"""`heedful train`, then `generate`, `fill` or `predict`, as a user would; and each with the model of another task."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from invocation import invoke

from heedful.checkpoint import load_model
from heedful.config.load import recipe_to_dict, to_toml
from heedful.config.schema import CorpusConfig, Recipe
from heedful.convert.safetensors_export import without_paths
from heedful.errors import InputError
from heedful.predictors.classifier import Classifier
from heedful.predictors.scorer import Scorer
from heedful.predictors.text_predictor import Text
from toy_tasks import TASKS, recipe, write_text

COMMANDS = {"language_model": "generate", "masked_lm": "fill", "classification": "predict", "regression": "predict"}
GAPS = "T3a [MASK] T3c"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each task, and what was said of it."""
    folder = tmp_path_factory.mktemp("runs")
    text = write_text(folder / "text")
    for task in TASKS:
        settings = recipe(task, text, train={"max_updates": 2})
        (folder / f"{task}.toml").write_text(to_toml(recipe_to_dict(settings)), encoding="utf-8")
        result = invoke("train", folder / f"{task}.toml", "--out", folder / task)
        assert (result.exit_code, result.stdout) == (0, "")
        (folder / f"{task}.err").write_text(result.stderr)
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_training_tells_the_command_for_its_model(runs, task):
    assert f"try: heedful {COMMANDS[task]} --model {runs / task}" in (runs / f"{task}.err").read_text()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("command", ["generate", "fill", "predict", "translate"])
def test_a_model_is_used_by_the_command_of_its_task_and_by_no_other(runs, task, command):
    if COMMANDS[task] == command:
        assert invoke(command, "--model", runs / task, GAPS).stdout
    else:
        with pytest.raises(InputError, match=f"model; use it with `heedful {COMMANDS[task]}`"):
            invoke(command, "--model", runs / task, GAPS)


def test_a_line_without_a_gap_is_named(runs, tmp_path):
    (tmp_path / "gaps.txt").write_text(f"{GAPS}\nT1a\n")
    with pytest.raises(InputError, match=r"gaps\.txt, line 2: 'T1a' has no gap"):
        invoke("fill", "--model", runs / "masked_lm", "--input", tmp_path / "gaps.txt")


def test_gaps_are_filled_with_words_and_their_probabilities(runs):
    filler = load_model(runs / "masked_lm").use()
    (gap,) = filler.fill(GAPS, 3)
    shown = invoke("fill", "--model", runs / "masked_lm", "--count", 3, GAPS).stdout
    first, *lines, last = shown.splitlines()
    assert (first, last) == (GAPS, "")
    assert [line.split() for line in lines] == [[f"{c.probability:.2%}", c.text] for c in gap]
    lines = invoke(
        "fill", "--model", runs / "masked_lm", "--json", stdin=f"{GAPS}\n[MASK] [MASK]\n"
    ).stdout.splitlines()
    first, second = map(json.loads, lines)
    assert [list(candidate) for candidate in first[0]] == [["text", "token", "probability"]] * 5
    assert [c["token"] for c in first[0][:3]] == [c.token for c in gap]
    assert (len(first), len(second)) == (1, 2)


def test_each_line_is_classified_in_order(runs, tmp_path):
    texts = ["good w1 red", "blue", "w1 w2 green w3"]
    classifier = load_model(runs / "classification").use_as(Classifier)
    want = [*classifier.predict(map(Text, texts))]
    (tmp_path / "texts").write_text("\n".join(texts))
    shown = invoke("predict", "--model", runs / "classification", "--input", tmp_path / "texts")
    assert shown.stdout.splitlines() == [answer.label for answer in want]
    as_json = invoke("predict", "--model", runs / "classification", "--json", *texts).stdout.splitlines()
    for line, answer in zip(as_json, want, strict=True):
        found = json.loads(line)
        assert found["label"] == answer.label
        assert found["probabilities"] == pytest.approx(answer.probabilities, abs=1e-5)


def test_every_text_is_counted(runs, tmp_path, reporters):
    (tmp_path / "texts").write_text(f"{GAPS}\n" * 5)
    for task in ("masked_lm", "classification"):
        invoke(COMMANDS[task], "--model", runs / task, "--input", tmp_path / "texts")
    found = [(reporter.work, reporter.total, reporter.done) for reporter in reporters]
    assert found == [("filling", 5, 5), ("predicting", 5, 5)]


@pytest.mark.parametrize("task", TASKS)
def test_an_exported_model_is_used_by_the_command_of_its_task(runs, tmp_path, task):
    output = invoke("export", runs / task, tmp_path / "out").stdout
    assert f"\ntry: heedful {COMMANDS[task]} --model {tmp_path / 'out'} '" in output
    assert "in place of" not in output
    assert "replacing the model that was there\ntry:" in invoke("export", runs / task, tmp_path / "out").stdout


def test_an_exported_recipe_names_no_place_of_this_machine():
    corpus = CorpusConfig(source="/data/me/texts/a.tsv", target="texts/b.tsv")
    recipe = Recipe()
    data = replace(recipe.data, train=(corpus,), valid=corpus, test=corpus, root="/data/me")
    told = without_paths(replace(recipe, data=data, train=replace(recipe.train, start="/data/me/run")))
    assert {told.data.train[0], told.data.valid, told.data.test} == {CorpusConfig(source="a.tsv", target="texts/b.tsv")}
    assert (told.data.root, told.train.start, told.train.start_decoder) == (".", None, None)


def test_files_of_one_name_stay_apart_in_an_exported_recipe():
    corpus = CorpusConfig(source="/data/me/en/test.txt", target="/data/me/de/test.txt")
    told = without_paths(replace(Recipe(), data=replace(Recipe().data, train=(corpus,))))
    assert told.data.train == (CorpusConfig(source="en/test.txt", target="de/test.txt"),)


def test_pairs_stand_in_one_line_with_a_tab_between(runs, tmp_path):
    scorer = load_model(runs / "regression").use_as(Scorer)
    want = [str(answer) for answer in scorer.predict([Text("good w1", "bad"), Text("good w1")])]
    out = tmp_path / "scores"
    invoke("predict", "--model", runs / "regression", "--output", out, stdin="good w1\tbad\ngood w1\n")
    assert out.read_text().splitlines() == want
    assert want[0] != want[1]


MISTAKES = {
    "no gap": (("fill", "--model", "masked_lm", "T1a T1b"), r"'T1a T1b' has no gap; write \[MASK\]"),
    "too long": (("fill", "--model", "masked_lm", "[MASK]" + " T1a" * 19), "20 tokens|22 tokens"),
    "two tabs": (("predict", "--model", "regression", "a\tb\tc"), "input 1: 3 texts separated by tabs"),
    "text and a file": (("predict", "--model", "regression", "a", "--input", "regression.toml"), "one of them"),
    "gaps and a file": (("fill", "--model", "masked_lm", GAPS, "--input", "regression.toml"), "one of them"),
    "text from a BERT": (("generate", "--model", "masked_lm", "T1a"), "masked language model.*`heedful fill`"),
    "no such file": (("predict", "--model", "regression", "--input", "nowhere"), "nowhere: no such file"),
    "no such model": (("predict", "--model", "nowhere", "a"), 'no model "nowhere"'),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_message(runs, monkeypatch, arguments, message):
    monkeypatch.chdir(runs)
    with pytest.raises(InputError, match=message):
        invoke(*arguments)


@pytest.mark.parametrize("gaps", ["[MASK]", "<mask>"])
def test_gaps_do_not_count_as_unknown_text(runs, gaps):
    shown = invoke("fill", "--model", runs / "masked_lm", f"T1a {gaps} T1b {gaps} {gaps} {gaps}")
    assert "unknown" not in shown.stderr
