"""GPT: what it may not see, and that remembering what was read changes nothing."""

from functools import partial

import pytest
import torch
from children import SHAPES, VOCABULARY, ids, ones, padded, shape, stirred

from heedful.models import LanguageModel
from heedful.models.language_model import LanguageModelState
from heedful.nn.masks import AttentionMask
from heedful.nn.positions import POSITIONS

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
every_shape = pytest.mark.parametrize(("positions", "norm", "normalization", "kv_heads"), SHAPES)


def model(*given, **more) -> LanguageModel:
    return stirred(LanguageModel(shape(*given, family="decoder", **more), VOCABULARY))


def steps(state: LanguageModelState, tokens: torch.Tensor) -> torch.Tensor:
    """The logits after each column of tokens."""
    return torch.stack([state.step(column) for column in tokens.T], dim=1)


@every_shape
def test_the_future_does_not_matter(positions, norm, normalization, kv_heads):
    built, tokens = model(positions, norm, normalization, kv_heads), ids(3, 11)
    other = tokens.clone()
    other[:, 5:] = (tokens[:, 5:] - 4) % (VOCABULARY - 5) + 5
    first, second = (built(x, ones(x)) for x in (tokens, other))
    assert torch.equal(first[:, :5], second[:, :5])
    assert not torch.allclose(first[:, 5:], second[:, 5:], atol=1e-3)


@every_shape
def test_padding_does_not_matter(positions, norm, normalization, kv_heads):
    built, rows = model(positions, norm, normalization, kv_heads), [ids(1, n)[0] for n in (5, 13, 2)]
    wants = [built(row[None], ones(row[None]))[0] for row in rows]
    for side in ("left", "right"):
        tokens, padding_mask = padded(rows, side)
        for row, real, want in zip(built(tokens, padding_mask), padding_mask, wants, strict=True):
            close(row[real], want)


@every_shape
def test_going_on_from_prompts_of_any_length_equals_reading_all_at_once(positions, norm, normalization, kv_heads):
    built, said = model(positions, norm, normalization, kv_heads), ids(4, 5)
    prompts = [ids(1, n)[0] for n in (7, 1, 2, 11)]
    state = built.start(*padded(prompts, "left"))
    assert state.begin.tolist() == [int(prompt[-1]) for prompt in prompts]
    got = steps(state, torch.cat([state.begin[:, None], said], dim=1))
    for row, prompt, more in zip(got, prompts, said, strict=True):
        whole = torch.cat([prompt, more])[None]
        close(row, built(whole, ones(whole))[0, len(prompt) - 1 :])


@every_shape
def test_selected_rows_go_on_as_if_they_had_always_stood_there(positions, norm, normalization, kv_heads):
    built, said, order = model(positions, norm, normalization, kv_heads), ids(3, 7), torch.tensor([2, 0, 0, 1, 2])
    prompts = [ids(1, n)[0] for n in (5, 1, 3)]
    state = built.start(*padded(prompts, "left"))
    steps(state, torch.cat([state.begin[:, None], said[:, :2]], dim=1))
    state.select(order)
    got = steps(state, said[order, 2:])
    fresh = built.start(*padded([prompts[i] for i in order], "left"))
    close(got, steps(fresh, torch.cat([fresh.begin[:, None], said[order]], dim=1))[:, 3:])


@pytest.mark.parametrize("positions", POSITIONS)
def test_prompts_of_one_token_can_be_chosen_before_anything_is_read(positions):
    built, prompts = model(positions, "pre", "layer", 2), ids(3, 1)
    state = built.start(prompts, ones(prompts))
    state.select(torch.tensor([2, 2, 0, 1]))
    close(state.step(prompts[[2, 2, 0, 1], 0]), built(prompts, ones(prompts))[[2, 2, 0, 1], 0])


@every_shape
def test_documents_in_one_sequence_are_each_alone(positions, norm, normalization, kv_heads):
    built, rows = model(positions, norm, normalization, kv_heads), [ids(1, n)[0] for n in (5, 1, 7, 3)]
    packed = torch.cat([*rows, torch.zeros(2, dtype=torch.long)])[None]
    lengths = [len(row) for row in rows] + [2]
    documents = torch.repeat_interleave(torch.tensor([2, 3, 7, 8, 11]), torch.tensor(lengths))[None]
    mask = AttentionMask(packed > 0, packed.size(1), causal=True)
    got = built.hidden(packed, mask.within(documents))[0].split(lengths)[:-1]
    for part, alone in zip(got, rows, strict=True):
        close(part, built.hidden(alone[None], AttentionMask(ones(alone[None]), len(alone), causal=True))[0])
    assert not torch.allclose(built.hidden(packed, mask)[0, 5:16], torch.cat(got)[5:], atol=1e-3)


def test_a_tied_model_has_one_matrix_for_both_ends():
    assert (tied := model("none", "pre", "layer", None)).output.weight is tied.backbone.embedding.weight
    assert (
        apart := model("none", "pre", "layer", None, tie="none")
    ).output.weight is not apart.backbone.embedding.weight


def test_learned_positions_say_when_they_end():
    built = model("learned", "pre", "layer", None, max_positions=7)
    with pytest.raises(IndexError, match=r"8 tokens, but model\.max_positions is 7"):
        built(ids(1, 8), ones(ids(1, 8)))
