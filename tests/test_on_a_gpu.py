"""Every task and architecture on a GPU computes what it computes on a CPU, and a run goes on to the same bits."""

import copy
from dataclasses import replace

import pytest
import torch

from every_architecture import ENCODER_DECODERS, LANGUAGE_MODELS, generator, translator
from every_task import RECIPES
from heedful.architectures.word_vectors import place_vectors
from heedful.tasks import find_task
from heedful.training.training_step import TrainingStep
from resumed import check_resumes_exactly
from subjects import TEXT

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")

TEXTS = [TEXT, "a book", "two women see the old dog ."]


@pytest.fixture(params=RECIPES)
def recipe(request, tmp_path):
    (tmp_path / "data").mkdir()
    made = RECIPES[request.param](tmp_path / "data")
    return replace(made, train=replace(made.train, device="cuda"))


def test_a_run_on_a_gpu_that_is_interrupted_equals_a_whole_run_bit_for_bit(recipe, tmp_path, monkeypatch):
    check_resumes_exactly(recipe, tmp_path, monkeypatch)


def test_the_first_updates_on_a_gpu_are_those_on_a_cpu_but_for_rounding(recipe, tmp_path):
    task = find_task(recipe.task).prepare(recipe, tmp_path / "prepared", lambda _: None)
    still = replace(task.recipe, model=replace(task.recipe.model, **no_dropout(task.recipe.model)))
    torch.manual_seed(3)
    on_cpu = task.build(still, task.tokenizers)
    place_vectors(on_cpu, still, task.tokenizers)
    on_gpu, found = copy.deepcopy(on_cpu).to("cuda"), {}
    for model, device in ((on_cpu, "cpu"), (on_gpu, "cuda")):
        step = TrainingStep(model, task.loss, still)
        batches = [task.data.batch(ids, 0, torch.device(device)) for ids in task.data.epoch(0)[:2]]
        found[device] = [step.update([batch], number) for number, batch in enumerate(batches, start=1)]
    for one, other in zip(found["cpu"], found["cuda"], strict=True):
        assert other.losses == pytest.approx(one.losses, rel=1e-4)
        assert other.norm == pytest.approx(one.norm, rel=1e-3)


def no_dropout(config):
    return {name: 0.0 for name in ("dropout", "attention_dropout", "activation_dropout") if hasattr(config, name)}


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_translations_on_a_gpu_are_those_on_a_cpu(name):
    assert translator(name).to("cuda").translate(TEXTS) == translator(name).translate(TEXTS)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_continuations_on_a_gpu_are_those_on_a_cpu(name):
    found, wanted = generator(name).to("cuda").generate(TEXTS, top_k=1), generator(name).generate(TEXTS, top_k=1)
    assert [one.tokens for one in found] == [one.tokens for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-5)
