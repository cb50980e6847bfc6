"""Runs with LoRA: they train the updates alone, resume to the bit, and end in a model with the updates added."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_step import CPU, learner, rows

import heedful
from every_task import RECIPES
from heedful.architectures import load_weights, weights
from heedful.checkpoint import load_model
from heedful.checkpoint.model_folder import read_weights
from heedful.cli.config import describe, trained_weights
from heedful.config.schema import LoraConfig, Recipe
from heedful.convert import engine
from heedful.errors import InputError
from heedful.nn.lora import add_updates, split_adapter
from heedful.storage.complete_folder import read_manifest
from heedful.tasks import find_task
from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.training.preflight import preflight
from heedful.training.training_step import TrainingStep
from interrupted import train, train_aloud
from resumed import check_resumes_exactly
from reversal import recipe, write_texts

LORA = {"rank": 2, "alpha": 64}
UPDATES = ("lora_a", "lora_b")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write_texts(folder)
    return folder


@pytest.fixture(scope="module")
def start(text: Path) -> Path:
    train(recipe(text, train={"max_updates": 1}), text / "start")
    return text / "start"


def tuning(text: Path, **keys: Any) -> Recipe:
    """A recipe that fine-tunes a model with LoRA."""
    last = {"max_updates": 7, "save_every": 3, "average_last": 2, "accumulate": 2}
    return recipe(text, train={"lora": LORA, **last, **keys})


def test_a_run_that_is_interrupted_equals_a_whole_run_bit_for_bit(text, start, tmp_path, monkeypatch):
    settings = preflight(tuning(text, start=str(start)))
    check_resumes_exactly(settings, tmp_path, monkeypatch)
    loaded, before = load_model(tmp_path / "whole"), weights(load_model(start).model)
    assert loaded.adapter is not None
    assert loaded.recipe.train.lora is None

    # The file has the weights of the start; in the model that is loaded the updates are added to them.
    stored, after = read_weights(read_manifest(tmp_path / "whole" / "model")), weights(loaded.model)
    assert all(torch.equal(stored[name], before[name]) for name in before)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {f"{name}.weight" for name in loaded.adapter.updates}

    # Both engines compute with the updates. A model that is hardly trained would be left to torch, for its beams.
    monkeypatch.setattr(engine, "MAX_SHARE", 1.0)
    ctranslate2, own = (heedful.load(tmp_path / "whole", engine=name) for name in ("ctranslate2", "torch"))
    lines = (text / "valid.src").read_text().splitlines()
    assert ctranslate2.translate(lines, beam=1) == own.translate(lines, beam=1)

    # Scores are those that the run has logged for the updates apart.
    task = find_task("translation").prepare(settings, tmp_path / "whole" / "data", lambda _: None)
    apart = task.build(settings, task.tokenizers).eval()
    add_updates(apart, loaded.adapter.config)
    load_weights(apart, stored)
    with torch.no_grad():
        assert task.evaluate(loaded.model).scores == pytest.approx(task.evaluate(apart).scores, rel=1e-5)


def test_a_new_head_is_trained_whole_and_a_run_says_first_how_many_weights_it_trains(tmp_path):
    for name in ("bert", "classes"):
        (tmp_path / name).mkdir()
    bert = RECIPES["masked_lm"](tmp_path / "bert")
    train(replace(bert, train=replace(bert.train, max_updates=1)), tmp_path / "start")
    classes = RECIPES["classification"](tmp_path / "classes")
    keys = replace(classes.train, start=str(tmp_path / "start"), lora=LoraConfig(rank=2), max_updates=1)
    settings = preflight(replace(classes, train=keys))
    _, said = train_aloud(settings, tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    assert loaded.adapter is not None
    assert loaded.adapter.config.also == ("output.weight", "output.bias")
    trained = sum(a.numel() + b.numel() for a, b in loaded.adapter.updates.values())
    trained += sum(value.numel() for name, value in weights(loaded.model).items() if name.startswith("output."))
    line = next(line for line in said.splitlines() if "weights are trained (" in line)
    assert line.startswith(f"{trained:,} of ")
    assert said.index(line) < said.index("starts with the weights of")
    again = replace(settings, train=replace(settings.train, max_updates=2))
    assert train(again, tmp_path / "run").update == 2
    settings, sizes = describe(str(tmp_path / "run"), [])
    assert trained_weights(settings, sizes) == line


@pytest.mark.sampled(5)
@pytest.mark.parametrize("task", sorted(RECIPES.keys() - {"word_vectors", "translation", "summarisation", "dialogue"}))
def test_an_update_of_every_task_changes_the_updates_alone(task, tmp_path):
    (tmp_path / "data").mkdir()
    settings = RECIPES[task](tmp_path / "data")
    opened = find_task(task).prepare(settings, tmp_path / "prepared", lambda _: None)
    model = opened.build(opened.recipe, opened.tokenizers)
    add_updates(model, LoraConfig(rank=2))
    before = {name: value.clone() for name, value in weights(model).items()}
    step = TrainingStep(model, opened.loss, opened.recipe)
    batch = opened.data.batch(max(opened.data.epoch(0), key=len), 0, CPU)
    for number in (1, 2):  # A has a gradient once B is not zero
        step.update([batch], number)
    assert {name for name, value in weights(model).items() if not torch.equal(value, before[name])} == {
        name for name in before if name.endswith(UPDATES)
    }


def updated(**options: Any) -> TrainingStep:
    """A training step after two updates of two batches with LoRA."""
    step = learner(lora=LoraConfig(rank=2, dropout=0.1), **options)
    for number in (1, 2):
        step.update([collate(rows(3 + number, 5, 2), rows(4, 2, 5 + place), CPU) for place in range(2)], number)
    return step


@pytest.mark.parametrize(
    "options",
    [{"activation_checkpointing": True}, {"precision": "bfloat16"}, {"precision": "autocast"}, {"name": "muon"}],
    ids=str,
)
def test_every_kind_of_step_trains_the_updates_alone(options):
    step, plain = updated(**options), updated()
    begun = learner(lora=LoraConfig(rank=2, dropout=0.1))
    for name, value in weights(step.model).items():
        assert torch.equal(value, begun.model.get_parameter(name)) != name.endswith(UPDATES)
        if "precision" not in options and "name" not in options:
            assert torch.equal(value, plain.model.get_parameter(name))
    assert {id(p) for p in step.optimizer.state} == {id(p) for p in step.model.parameters() if p.requires_grad}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"start": None}, r"train\.lora fine-tunes a trained model .*; set train\.start, or leave train\.lora out"),
        ({"freeze": ["encoder"]}, r"train\.lora freezes all weights .*leave train\.freeze out"),
        ({"vocabulary": "extend"}, r"add the embeddings to train\.lora\.also"),
        ({"lora": {"targets": ["query"]}}, r'train\.lora\.targets: "query" is not part of the name'),
        ({"lora": {"also": ["head"]}}, r'train\.lora\.also: no weight name begins with "head"'),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(keys, message, text, start):
    with pytest.raises(InputError, match=message):
        preflight(tuning(text, **{"start": str(start), **keys}))


def test_a_run_does_not_resume_with_other_updates(text, start, tmp_path):
    settings = preflight(tuning(text, start=str(start), max_updates=1))
    train(settings, tmp_path)
    for key, value in (("rank", 3), ("targets", ("q",)), ("also", ("output",))):
        lora = replace(settings.train.lora, **{key: value})
        other = replace(settings, train=replace(settings.train, lora=lora, max_updates=2))
        with pytest.raises(InputError, match=rf"train\.lora\.{key} is .*Use the old value, or start a new run"):
            train(other, tmp_path)


def test_an_adapter_is_split_off_and_added_again():
    step = updated()
    values, adapter = split_adapter(weights(step.model), LoraConfig(rank=2))
    assert not any(name.endswith(UPDATES) for name in values)
    assert adapter.merged(values).keys() == values.keys()
