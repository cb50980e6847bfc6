"""Blocks that are computed again in the backward pass give the same gradients to the last bit, dropout included."""

from dataclasses import replace

import pytest
import torch
from toy_step import CPU, learner, rows

from every_architecture import LANGUAGE_MODELS, TRANSFORMERS, language_model
from heedful.architectures import LanguageModel
from heedful.config.load import make_recipe
from heedful.config.schema import ModelConfig
from heedful.errors import InputError
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import stacks
from heedful.tasks.parts.sequence_to_sequence import collate
from heedful.training.training_step import checkpoint_activations


def gradients(name: str, again: bool) -> tuple[list[torch.Tensor], int]:
    """The gradients of a language model with dropout, and how often the feed-forward network of a block was called."""
    config = LANGUAGE_MODELS[name]
    assert isinstance(config, ModelConfig)
    torch.manual_seed(3)
    model = LanguageModel(replace(config, dropout=0.3, attention_dropout=0.2), 11).train()
    calls = []
    stacks(model)[0].blocks[0].get_submodule("feed_forward").register_forward_hook(lambda *_: calls.append(1))
    if again:
        checkpoint_activations(model)
    ids = torch.tensor([[4, 7, 5, 3, 0], [9, 8, 4, 7, 3]])
    torch.manual_seed(5)
    model.hidden(ids, AttentionMask(ids != 0, 5, causal=True)).square().sum().backward()
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return found, len(calls)


SHAPES = [*TRANSFORMERS, "transformer of latents and experts", "transformer of linear attention"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_block_that_is_computed_again_has_the_same_gradients(name):
    plain, once = gradients(name, again=False)
    again, twice = gradients(name, again=True)
    assert (once, twice) == (1, 2)
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "autocast"])
def test_an_update_of_an_encoder_decoder_is_the_same(precision):
    steps = [learner(precision, dropout=0.1, activation_checkpointing=again) for again in (False, True)]
    batches = [collate(rows(3, 5, 2), rows(4, 2, 5), CPU), collate(rows(7, 2), rows(3, 5), CPU)]
    for number in (1, 2):
        assert len({str(step.update(batches, number)) for step in steps}) == 1
    pairs = zip(*(step.model.parameters() for step in steps), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_without_gradients_nothing_is_computed_again():
    model = language_model(next(iter(TRANSFORMERS))).eval()
    ids = torch.tensor([[4, 7, 5]])
    mask = AttentionMask(ids != 0, 3, causal=True)
    with torch.no_grad():
        plain = model.hidden(ids, mask)
        checkpoint_activations(model)
        assert torch.equal(model.hidden(ids, mask), plain)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"train": {"activation_checkpointing": True}, "model": {"architecture": "recurrent"}}, "has none"),
        ({"parallel": {"shard": "full", "shard_processes": 2}}, 'set parallel.shard = "hybrid"'),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(tables, reason):
    with pytest.raises(InputError, match=reason):
        make_recipe(tables)
