"""`--to huggingface` chooses the layout that fits a model."""

import json
from dataclasses import replace

import pytest
from test_gpt2 import random_model as random_gpt2
from test_llama import random_model as random_llama

import foreign_models
from heedful.architectures import weights
from heedful.config.schema import DataConfig, Recipe
from heedful.convert import FORMATS, Model
from heedful.convert.exporter import export_model
from heedful.errors import InputError
from heedful.registry import EXPORTERS
from subjects import gated

transformers = pytest.importorskip("transformers")

exporter = EXPORTERS["huggingface"]


@pytest.mark.parametrize("kind", ["bert", "clip", "gpt2", "llama", "marian", "whisper"])
def test_a_model_that_came_in_goes_out_in_its_layout(kind, tmp_path):
    getattr(foreign_models, kind)(tmp_path / "theirs")
    model = FORMATS[kind].read(tmp_path / "theirs")
    exporter.write(model, tmp_path / "again")
    assert json.loads((tmp_path / "again/config.json").read_text())["model_type"] == kind
    assert exporter.changes(model)[0] == f"the layout is {kind}"


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (lambda: random_gpt2(norm="post"), 'gpt2 model: .*\n  model.norm = "pre", not "post"$'),
        (lambda: random_llama(normalization="layer"), 'llama model: .*\n  model.normalization = "rms", not "layer"$'),
    ],
)
def test_the_closest_layout_lists_what_differs(model, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        exporter.write(model()[0], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_inputs_of_a_model_that_reads_files_are_rejected_before_anything_is_written(tmp_path):
    recipe = Recipe(task="image_classification", data=DataConfig(modality="image"))
    with pytest.raises(InputError, match="--inputs: in the format huggingface, only text models are compared"):
        export_model(replace(gated(), recipe=recipe), "huggingface", tmp_path / "out", inputs=["a.png"])
    assert not (tmp_path / "out").exists()


def test_a_model_that_no_layout_has_is_refused(tmp_path):
    loaded = gated()
    model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
    with pytest.raises(InputError, match='its architecture is "gated:GatedRecurrent"'):
        exporter.write(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_task_that_no_layout_has_is_refused(tmp_path):
    model, _ = random_gpt2()
    with pytest.raises(InputError, match=r'none of the layouts bert, .* supports the task "tagging"'):
        exporter.write(replace(model, recipe=replace(model.recipe, task="tagging")), tmp_path / "out")
