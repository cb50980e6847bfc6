"""The scores of a loaded model on a test set, in each precision."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import recipe_from_dict
from heedful.tasks import find_task
from reversal import SETTINGS, write_pairs
from toy_tasks import TASKS, recipe, write_text


def settings(task: str, folder: Path):
    """The recipe of a task and its text."""
    if task == "translation":
        for name, count in (("train", 101), ("valid", 11)):
            write_pairs(folder, name, count, seed=count)
        return recipe_from_dict({**SETTINGS, "data": {**SETTINGS["data"], "root": str(folder)}}, "test")
    return recipe(task, write_text(folder))


@pytest.mark.parametrize("task", ["translation", *TASKS])
def test_a_model_in_int8_has_nearly_the_scores_of_float32(task: str, tmp_path: Path) -> None:
    prepared = find_task(task).prepare(settings(task, tmp_path), tmp_path / "prepared", str)
    model = prepared.build(prepared.recipe, prepared.tokenizers)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    write_model(tmp_path / "model", prepared.recipe, prepared.tokenizers, weights(model))
    data = replace(prepared.recipe.data, test=prepared.recipe.data.valid)
    float32, int8 = (load_model(tmp_path / "model", precision=name).test(data, str) for name in ("float32", "int8"))
    assert float32.keys() == int8.keys()
    assert float32["loss"] != int8["loss"]
    assert int8["loss"] == pytest.approx(float32["loss"], rel=0.05)
