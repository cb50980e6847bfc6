"""A task on something else than text, that of a how-to page: trained, interrupted, tested and used like any other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.checkpoint import load_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import Recipe
from heedful.errors import InputError
from interrupted import train
from resumed import check_resumes_exactly
from shown_modules import rows


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    rng = np.random.default_rng(1)
    for name, count in (("train", 97), ("valid", 31), ("test", 29)):
        lengths = rng.integers(1, 12, size=count)
        numbers = rng.normal(size=(count, 11, 3)).astype(np.float32)
        numbers[np.arange(11) >= lengths[:, None]] = np.nan
        np.save(tmp_path / f"{name}.npy", numbers)
        np.save(tmp_path / f"{name}-classes.npy", rng.integers(2, size=count))
    files = {name: {"source": f"{name}.npy", "target": f"{name}-classes.npy"} for name in ("train", "valid", "test")}
    values = {
        "task": "rows:RowClassification",
        "data": {**files, "train": [files["train"]], "labels": ["no", "yes"], "max_length": 11, "root": str(tmp_path)},
        "model": {"architecture": "rows:RowClassifier", "features": 3, "d_model": 14, "d_ff": 23, "heads": 2},
        "optimizer": {"lr": 0.01, "schedule": "constant", "warmup": 5},
        "train": {"max_updates": 13, "batch_tokens": 61, "save_every": 4, "validate_every": 6, "threads": 1},
    }
    values["model"] |= {"encoder_layers": 1, "pooling": "mean"}
    values["train"] |= {"precision": "float32", "device": "cpu", "average_last": 2, "accumulate": 2}
    return recipe_from_dict(values, "test")


def test_a_run_that_is_interrupted_equals_a_whole_run_bit_for_bit(recipe, tmp_path, monkeypatch):
    check_resumes_exactly(recipe, tmp_path, monkeypatch)


def test_a_trained_model_is_tested_and_used(recipe, tmp_path):
    train(recipe, tmp_path / "run")
    scores = load_model(tmp_path / "run").test(recipe.data, print)
    assert set(scores) == {"loss", "accuracy"}
    predictor: Any = heedful.load(tmp_path / "run")
    assert isinstance(predictor, rows.RowPredictor)
    assert predictor.predict([np.ones((5, 3), np.float32)])[0] in ("no", "yes")


def test_files_that_do_not_fit_are_refused_by_name(recipe, tmp_path):
    np.save(tmp_path / "train-classes.npy", np.zeros(3))
    with pytest.raises(InputError, match=r"train\.npy: has shape \(97, 11, 3\) for 3 classes"):
        train(recipe, tmp_path / "run")
