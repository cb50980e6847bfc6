"""Outputs may be as long as the texts of training, and whatever is cut at the length limit is counted and reported."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from invocation import invoke
from rich.console import Console
from torch import nn

import toy_captions
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import DecodeConfig, Recipe
from heedful.predictors.outputs import CutOutputs
from heedful.tasks import TASKS
from heedful.tasks.task import Evaluation
from heedful.text.tokenizer import EOS
from heedful.training.loop import train

SHAPE = {"d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "output_bias": True}
TEXTS = {
    "dialogue": "talk.jsonl",
    "summarisation": "pairs.tsv",
    "text_to_text": "pairs.tsv",
    "translation": "pairs.tsv",
}
MEDIA = toy_captions.TASKS
LONG = 120  # words of the longest targets, far more than sources have


def text_recipe(task: str, folder: Path, decode: dict[str, object]) -> Recipe:
    """A recipe on 31 pairs, of which one has a target of 120 words."""
    answers = ["w3 w1"] * 30 + ["w2 " * (LONG - 1) + "w2"]
    (folder / "pairs.tsv").write_text("".join(f"w{i % 7} w{i}\t{answer}\n" for i, answer in enumerate(answers)))
    (folder / "talk.jsonl").write_text(
        "".join(json.dumps({"source": [f"w{i % 7} w{i}", answer]}) + "\n" for i, answer in enumerate(answers))
    )
    corpus = {"source": TEXTS[task], "source_field": "source" if task == "dialogue" else "1", "target_field": "2"}
    values = {
        "task": task,
        "data": {
            "root": str(folder),
            "train": [corpus],
            "valid": corpus,
            "test": corpus,
            "filters": {"max_ratio": None},
        },
        "tokenizer": {"kind": "word", "byte_fallback": False, "pretokenized": True},
        "model": SHAPE,
        "train": {"max_updates": 2, "batch_tokens": 1009, "device": "cpu", "threads": 1, "precision": "float32"},
        "decode": {"beam": 1, **decode},
    }
    return recipe_from_dict(values, "test")


def recipe_of(task: str, folder: Path, decode: dict[str, object]) -> Recipe:
    """A recipe of any task that writes; media have texts of `LONG` words."""
    if task in TEXTS:
        return text_recipe(task, folder, decode)
    toy_captions.write_table(task, folder / "media")
    for part in ("train", "valid"):
        table = folder / "media" / f"{part}.jsonl"
        rows = [json.loads(line) for line in table.read_text().splitlines()]
        rows[0]["text"] = "bright " * LONG
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tables = {
        "data": {"filters": {"max_tokens": 250}},
        "train": {"max_updates": 2, "validate_every": 2, "batch_tokens": 1009},
        "model": {"output_bias": True},
    }
    recipe = toy_captions.recipe(task, folder / "media", **tables)
    return replace(recipe, decode=replace(recipe.decode, max_extra=decode.get("max_extra"), beam=1))


def endless(task, recipe):
    """A model of a task whose outputs never end."""
    torch.manual_seed(1)
    model = task.build(recipe, task.tokenizers).eval()
    nn.init.constant_(model.output.bias[EOS], -100.0)
    return model


@pytest.mark.parametrize("task", [*TEXTS, *MEDIA])
def test_the_limit_has_room_for_the_longest_texts_of_training(task, tmp_path):
    recipe = recipe_of(task, tmp_path, {})
    assert recipe.decode.max_extra is None
    found = TASKS[task].prepare(recipe, tmp_path / "data", lambda _: None).recipe.decode.max_extra
    assert found is not None
    assert LONG <= found + 2 <= 2 * LONG


@pytest.mark.parametrize("task", [*TEXTS, *MEDIA])
@pytest.mark.parametrize("extra", [0, 7, 200])
def test_a_limit_of_the_recipe_stays(task, extra, tmp_path):
    recipe = recipe_of(task, tmp_path, {"max_extra": extra})
    assert TASKS[task].prepare(recipe, tmp_path / "data", lambda _: None).recipe.decode.max_extra == extra


def test_short_texts_leave_the_limit_that_models_had_before(tmp_path):
    recipe = text_recipe("translation", tmp_path, {})
    (tmp_path / "pairs.tsv").write_text("".join(f"w{i % 7} w{i}\tw3 w1\n" for i in range(31)))
    task = TASKS["translation"].prepare(recipe, tmp_path / "data", lambda _: None)
    assert task.recipe.decode.max_extra == DecodeConfig().extra == 50


def test_a_run_keeps_its_limit_and_resumes_with_it(tmp_path):
    recipe = text_recipe("text_to_text", tmp_path, {})
    train(recipe, tmp_path / "run", Console(quiet=True))
    found = load_model(tmp_path / "run").recipe.decode.max_extra
    assert found is not None
    assert found >= LONG - 2
    longer = replace(recipe, train=replace(recipe.train, max_updates=3))
    assert train(longer, tmp_path / "run", Console(quiet=True)).update == 3
    assert load_model(tmp_path / "run").recipe.decode.max_extra == found


def test_a_run_of_an_older_version_resumes_with_its_limit(tmp_path):
    recipe = text_recipe("text_to_text", tmp_path, {})
    older = replace(recipe, decode=replace(recipe.decode, max_extra=50))
    train(older, tmp_path / "run", Console(quiet=True))
    longer = replace(recipe, train=replace(recipe.train, max_updates=3))
    train(longer, tmp_path / "run", Console(quiet=True))
    assert load_model(tmp_path / "run").recipe.decode.max_extra == 50


@torch.no_grad()
@pytest.mark.parametrize("task", [*TEXTS, *MEDIA])
def test_validation_and_test_count_the_outputs_that_are_cut(task, tmp_path):
    recipe = recipe_of(task, tmp_path, {"max_extra": 3})
    prepared = TASKS[task].prepare(recipe, tmp_path / "data", lambda _: None)
    told = []
    model = endless(prepared, recipe)
    for is_test in (False, True):
        prepared.evaluate(model, Evaluation(warn=told.append, is_test=is_test))
    count = len(prepared.data.references)
    lines = [line for line in told if "cut at the length limit" in line]
    assert len(lines) == 2
    assert all(line.startswith(f"{count} of {count} outputs were cut") for line in lines)
    assert lines[0].endswith("raise decode.max_extra")
    assert lines[1].endswith("raise --max-extra")


@pytest.mark.parametrize("task", [*TEXTS, *MEDIA])
def test_commands_count_the_outputs_that_are_cut_and_json_marks_each(task, tmp_path):
    recipe = recipe_of(task, tmp_path, {"max_extra": 3})
    prepared = TASKS[task].prepare(recipe, tmp_path / "data", lambda _: None)
    model = endless(prepared, recipe)
    write_model(tmp_path / "model", prepared.recipe, prepared.tokenizers, weights(model))
    command, *given = {
        "captioning": ("caption", *sorted((tmp_path / "media" / "files").glob("valid*"))[:2]),
        "speech_recognition": ("transcribe", *sorted((tmp_path / "media" / "files").glob("valid*"))[:2]),
        "translation": ("translate", "w3 w1", "w1"),
    }.get(task, ("write", "w3 w1", "w1"))
    as_json = ["--format", "json"] if command == "transcribe" else ["--json"]
    for option in ([], ["--max-extra", 5]):
        result = invoke(command, *given, "--model", tmp_path / "model", *option, *as_json, "--device", "cpu")
        assert "heedful: 2 of 2 outputs were cut at the length limit set by decode.max_extra = " in result.stderr
        assert f"= {option[1] if option else 3}; " in result.stderr
        assert "raise --max-extra" in result.stderr
        assert [complete(json.loads(line)) for line in result.stdout.splitlines()] == [False, False]
    evaluated = invoke("evaluate", tmp_path / "model", "--device", "cpu", "--max-extra", 4)
    assert "outputs were cut at the length limit set by decode.max_extra = 4; " in evaluated.stderr


def complete(row: dict[str, Any]) -> bool:
    """The key "complete" of a line of JSON, or of its best text."""
    texts = row.get("translations") or row.get("captions") or [row]
    return texts[0]["complete"]


def test_nothing_is_said_where_nothing_is_cut():
    cut = CutOutputs()
    cut.count(complete=True)
    assert cut.line(DecodeConfig(), None) is None
    cut.count(complete=False)
    assert "1 of 2 outputs" in (cut.line(DecodeConfig(), None) or "")
    assert "never more than the model's 37 positions" in (cut.line(DecodeConfig(), 37) or "")
