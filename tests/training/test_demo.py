"""The demo's training on whatever processor this is; `make avx2` runs it once more as on an AVX2 laptop."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.architectures import EncoderDecoder
from heedful.config.load import load_recipe
from heedful.machine import choose_precision
from heedful.tasks.parts.sequence_to_sequence import collate, loss
from heedful.training.training_step import TrainingStep
from timing import times_as_long

RECIPE = Path(__file__).parents[2] / "recipes" / "scenes-en-de"
CPU = torch.device("cpu")
VOCABULARY = 1709

pytestmark = pytest.mark.slow


def heedful(*arguments: object) -> str:
    """Run a command of its own process, as `make demo` does; return what it said."""
    code = "from heedful.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stderr


def test_twenty_updates_of_the_demo_learn_in_the_precision_that_suits_the_processor(tmp_path):
    heedful("scenes", "en-de", "--out", tmp_path / "text", "--train", 3001)
    every = [f"--set=train.{key}=10" for key in ("validate_every", "save_every", "log_every")]
    updates = ["--set=train.max_updates=20", "--set=optimizer.warmup=5"]
    said = heedful("train", RECIPE, "--data", tmp_path / "text", "--out", tmp_path / "run", *updates, *every)
    chosen = choose_precision(CPU).precision
    assert f"precision: {chosen} (" in said
    assert "tokens/s" in said
    stored = json.loads((tmp_path / "run" / "model" / "recipe.json").read_text())
    assert stored["recipe"]["train"]["precision"] == chosen
    records = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    first, last = (record["loss"] for record in records if "loss" in record)
    assert last < first < np.log(VOCABULARY)


def test_an_update_in_the_precision_that_is_chosen_takes_no_longer_than_in_the_other():
    rng = np.random.default_rng(1)
    source, target = (rng.integers(4, VOCABULARY, (53, length)) for length in (13, 17))
    batch = collate(source, target, CPU)
    chosen = choose_precision(CPU).precision
    other = {"float32": "bfloat16", "bfloat16": "float32"}[chosen]
    ours, theirs = learner(chosen), learner(other)
    ratio = times_as_long(lambda: ours.update([batch], 1), lambda: theirs.update([batch], 1))
    assert ratio < 1 / 0.9


def learner(precision: str) -> TrainingStep:
    recipe = load_recipe(RECIPE)
    recipe = replace(recipe, train=replace(recipe.train, precision=precision))
    model = EncoderDecoder(recipe.model, VOCABULARY, VOCABULARY)
    return TrainingStep(model, lambda model, batch: [loss(model, batch, recipe.train.label_smoothing)], recipe)
