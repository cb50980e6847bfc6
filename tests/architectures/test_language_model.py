"""A GPT's own: prompts of one token, tied ends, and learned positions that end."""

from functools import partial

import pytest
import torch

from children import VOCABULARY, ids, ones, shape, stirred
from heedful.architectures import LanguageModel
from heedful.registry import POSITIONS

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)


def model(*given, **more) -> LanguageModel:
    return stirred(LanguageModel(shape(*given, family="decoder", **more), VOCABULARY))


@pytest.mark.parametrize("positions", POSITIONS)
def test_prompts_of_one_token_can_be_chosen_before_anything_is_read(positions):
    built, prompts = model(positions, "pre", "layer", 2), ids(3, 1)
    state = built.start(prompts, ones(prompts))
    state.select(torch.tensor([2, 2, 0, 1]))
    close(state.step(prompts[[2, 2, 0, 1], 0]), built(prompts, ones(prompts))[[2, 2, 0, 1], 0])


def test_a_tied_model_has_one_matrix_for_both_ends():
    assert (tied := model("none", "pre", "layer", None)).output.weight is tied.backbone.embedding.weight
    assert (
        apart := model("none", "pre", "layer", None, tie="none")
    ).output.weight is not apart.backbone.embedding.weight


def test_learned_positions_say_when_they_end():
    built = model("learned", "pre", "layer", None, max_positions=7)
    with pytest.raises(IndexError, match=r"8 tokens, but model\.max_positions is 7"):
        built(ids(1, 8), ones(ids(1, 8)))
