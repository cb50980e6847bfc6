"""Properties of every architecture: no future, no padding, no order of rows, and steps that equal the whole."""

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

import heedful
from children import ids, ones, padded
from every_architecture import (
    ENCODER_DECODERS,
    ENCODERS,
    LANGUAGE_MODELS,
    OWN,
    VOCABULARY,
    encoder_decoder,
    language_model,
    text_classifier,
    token_classifier,
)
from heedful.config.architecture_options import OPTIONS
from heedful.config.schema import DecodeConfig, TextModelConfig
from heedful.decode.beam import search
from heedful.models.model import DecodingState
from heedful.nn.masks import AttentionMask
from heedful.text.tokenizer import BOS, EOS
from heedful.train import loop
from interrupted import stop_after, train
from reversal import fingerprint, recipe, write_pairs

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
every_encoder_decoder = pytest.mark.parametrize("name", ENCODER_DECODERS)
every_language_model = pytest.mark.parametrize("name", LANGUAGE_MODELS)
every_encoder = pytest.mark.parametrize("name", ENCODERS)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    return folder


def rows_of(*lengths: int) -> list[Tensor]:
    return [ids(1, length)[0] for length in lengths]


def other_than(tokens: Tensor) -> Tensor:
    return (tokens - 4) % (VOCABULARY - 5) + 5


def steps(state: DecodingState, tokens: Tensor) -> Tensor:
    """The logits after each column of tokens."""
    return torch.stack([state.step(column) for column in tokens.T], dim=1)


def test_every_architecture_that_comes_with_heedful_is_tested():
    configs = [*ENCODER_DECODERS.values(), *LANGUAGE_MODELS.values(), *ENCODERS.values()]
    assert {type(config) for config in configs} >= {
        kind for kind in OPTIONS.values() if issubclass(kind, TextModelConfig)
    }


@every_encoder_decoder
def test_a_target_token_knows_no_later_one(name):
    built, source, target = encoder_decoder(name), ids(3, 7), ids(3, 11)
    other = target.clone()
    other[:, 5:] = other_than(target[:, 5:])
    first, second = (built(source, ones(source), x, ones(x)) for x in (target, other))
    close(first[:, :5], second[:, :5], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(first[:, 5:], second[:, 5:], atol=1e-3)


@every_encoder_decoder
def test_every_source_token_matters_to_a_target(name):
    built, source, target = encoder_decoder(name), ids(1, 5), ids(1, 3)
    want = built(source, ones(source), target, ones(target))
    for place in range(5):
        other = source.clone()
        other[0, place] = other_than(source[0, place])
        assert not torch.equal(built(other, ones(other), target, ones(target)), want)


@pytest.mark.parametrize(
    ("name", "side"),
    [(name, side) for name in ENCODER_DECODERS for side in ("left", "right") if (name, side) != (OWN, "left")],
)
def test_padding_and_other_rows_change_no_logits(name, side):
    built, sources, targets = encoder_decoder(name), rows_of(7, 1, 3, 5), rows_of(2, 5, 1, 7)
    masks = [padded(rows, side) for rows in (sources, targets)]
    together = built(*masks[0], *masks[1])
    for source, target, logits, real in zip(sources, targets, together, masks[1][1], strict=True):
        close(logits[real], built(source[None], ones(source[None]), target[None], ones(target[None]))[0])


@every_encoder_decoder
def test_the_order_of_rows_changes_no_logits(name):
    built, order = encoder_decoder(name), torch.tensor([2, 0, 3, 1])
    batch = (*padded(rows_of(7, 1, 3, 5), "right"), *padded(rows_of(2, 5, 1, 7), "right"))
    close(built(*(x[order] for x in batch)), built(*batch)[order])


@every_encoder_decoder
def test_a_token_at_a_time_gives_the_logits_of_all_at_once(name):
    built, sources, target = encoder_decoder(name), padded(rows_of(7, 1, 3), "right"), ids(3, 5)
    close(steps(built.start(*sources), target), built(*sources, target, ones(target)))


@every_encoder_decoder
def test_selected_rows_go_on_as_if_they_had_always_stood_there(name):
    built, target = encoder_decoder(name), ids(3, 7)
    sources, order = padded(rows_of(5, 1, 3), "right"), torch.tensor([0, 0, 1, 2, 2])
    state = built.start(*sources)
    steps(state, target[:, :3])
    state.select(order)
    whole = built(*(x[order] for x in sources), target[order], ones(target[order]))
    close(steps(state, target[order, 3:]), whole[:, 3:])


@every_encoder_decoder
def test_a_beam_as_wide_as_the_language_finds_the_best_of_all_outputs(name):
    built, source = encoder_decoder(name, vocabulary=7), torch.tensor([[4, 6, 5]])
    outputs: list[list[tuple[int, ...]]] = [
        [(*said, EOS) for said in product((1, 4, 5, 6), repeat=n)] for n in range(3)
    ]
    outputs[2] += [*product((1, 4, 5, 6), repeat=3)]
    scored = []
    for alike in outputs:  # of the same length
        target = torch.tensor(alike)
        read = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)
        sources = source.expand(len(target), -1)
        log_probs = built(sources, ones(sources), read, ones(read)).double().log_softmax(-1)
        totals = log_probs.gather(2, target[:, :, None]).sum((1, 2))
        scored += [(total / len(said) ** 0.7, said) for total, said in zip(totals.tolist(), alike, strict=True)]
    best = sorted(scored, reverse=True)[:5]
    config = DecodeConfig(beam=400, n_best=5, penalty="average", alpha=0.7)
    (found,) = search(built.start(source, ones(source)), [3], config)
    assert [(*h.tokens, EOS) if h.complete else tuple(h.tokens) for h in found] == [said for _, said in best]
    assert [h.score for h in found] == pytest.approx([score for score, _ in best], abs=1e-5)


@every_encoder_decoder
def test_a_run_that_is_interrupted_equals_a_whole_run_bit_for_bit(name, text, tmp_path, monkeypatch):
    settings = replace(recipe(text, train={"accumulate": 2}), model=ENCODER_DECODERS[name])
    with torch.enable_grad():
        assert train(settings, tmp_path / "whole") == loop.Outcome(19, 0)
        with monkeypatch.context() as patch:
            stop_after(8, patch)
            assert train(settings, tmp_path / "parts") == loop.Outcome(8, 143)
        assert train(settings, tmp_path / "parts") == loop.Outcome(19, 0)
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
    translator = heedful.load(tmp_path / "whole", task="translation")
    lines = (text / "valid.src").read_text().splitlines()
    for beam in (1, 3):
        assert translator.translate(lines, beam=beam) == [translator.translate(line, beam=beam) for line in lines]


@every_language_model
def test_a_token_of_a_text_knows_no_later_one(name):
    built, tokens = language_model(name), ids(3, 11)
    other = tokens.clone()
    other[:, 5:] = other_than(tokens[:, 5:])
    first, second = (built(x, ones(x)) for x in (tokens, other))
    close(first[:, :5], second[:, :5], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(first[:, 5:], second[:, 5:], atol=1e-3)


@every_language_model
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_no_logits_of_a_language_model(name, side):
    built, rows = language_model(name), rows_of(5, 13, 2)
    tokens, padding_mask = padded(rows, side)
    for row, real, alone in zip(built(tokens, padding_mask), padding_mask, rows, strict=True):
        close(row[real], built(alone[None], ones(alone[None]))[0])


@every_language_model
def test_going_on_from_prompts_of_any_length_equals_reading_all_at_once(name):
    built, said, order = language_model(name), ids(4, 7), torch.tensor([2, 0, 0, 1, 3])
    prompts = rows_of(7, 1, 2, 11)
    state = built.start(*padded(prompts, "left"))
    steps(state, torch.cat([state.begin[:, None], said[:, :2]], dim=1))
    state.select(order)
    got = steps(state, said[order, 2:])
    for row, place in zip(got, order.tolist(), strict=True):
        whole = torch.cat([prompts[place], said[place]])[None]
        close(row, built(whole, ones(whole))[0, len(prompts[place]) + 2 :])


@every_language_model
def test_documents_in_one_sequence_are_each_alone(name):
    built, rows = language_model(name), rows_of(5, 1, 7, 3)
    packed = torch.cat([*rows, torch.zeros(2, dtype=torch.long)])[None]
    lengths = [len(row) for row in rows] + [2]
    documents = torch.repeat_interleave(torch.tensor([2, 3, 7, 8, 11]), torch.tensor(lengths))[None]
    mask = AttentionMask(packed > 0, packed.size(1), causal=True)
    got = built.hidden(packed, mask.within(documents))[0].split(lengths)[:-1]
    for part, alone in zip(got, rows, strict=True):
        close(part, built.hidden(alone[None], AttentionMask(ones(alone[None]), len(alone), causal=True))[0])
    assert not torch.allclose(built.hidden(packed, mask)[0, 5:16], torch.cat(got)[5:], atol=1e-3)


@every_encoder
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_no_class(name, side):
    rows = rows_of(5, 13, 2)
    tokens, padding_mask = padded(rows, side)
    segments = tokens % 2
    of_texts, of_tokens = text_classifier(name, 5), token_classifier(name, 3)
    texts, words = (model(tokens, padding_mask, segments) for model in (of_texts, of_tokens))
    for row, real, text_logits, word_logits in zip(rows, padding_mask, texts, words, strict=True):
        alone = (row[None], ones(row[None]), row[None] % 2)
        close(text_logits, of_texts(*alone)[0])
        close(word_logits[real], of_tokens(*alone)[0])
