from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.schema import DecodeConfig
from heedful.search.beam import beam_search
from heedful.search.hypothesis import LENGTH_PENALTIES, Hypothesis
from heedful.text.tokenizer import EOS
from toy_states import (
    VOCABULARY,
    ToyState,
    all_outputs,
    logits_after,
    plain_beam_search,
    scored,
    token_scores,
)

CONFIGS = [
    DecodeConfig(beam=width, penalty=penalty, alpha=alpha, n_best=n_best, max_extra=extra)
    for width, n_best in ((2, 1), (5, 3))
    for penalty, alpha, extra in (("gnmt", 0.6, 0), ("average", 1.0, 4), ("gnmt", 0.0, 4), ("average", 2.5, 0))
]


def search(seeds: list[int], lengths: list[int], config: DecodeConfig, logits=logits_after) -> list[list[Hypothesis]]:
    return beam_search(ToyState(seeds, logits), [length + config.extra for length in lengths], config)


def output(hypothesis: Hypothesis) -> tuple[int, ...]:
    """The tokens of a hypothesis as they were fed: with <eos>, if it has one."""
    return (*hypothesis.tokens, EOS) if hypothesis.complete else tuple(hypothesis.tokens)


@pytest.mark.parametrize("penalty", LENGTH_PENALTIES)
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_the_language_finds_the_best_of_all_outputs(penalty, alpha):
    config = DecodeConfig(beam=400, penalty=penalty, alpha=alpha, n_best=11, max_extra=1, patience=0.0)
    for seed, found in enumerate(search(list(range(5)), [3] * 5, config)):
        every = {o: scored(seed, o, config) for o in all_outputs(4)}
        best = sorted(every, key=lambda o: -every[o])[:11]
        assert [output(h) for h in found] == best
        assert [h.score for h in found] == pytest.approx([every[o] for o in best], abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    length=st.integers(1, 9),
    width=st.integers(1, 7),
    penalty=st.sampled_from(sorted(LENGTH_PENALTIES)),
    alpha=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    data=st.data(),
)
def test_stopping_early_finds_what_a_search_without_shortcuts_finds(seed, length, width, penalty, alpha, data):
    n_best, patience = data.draw(st.integers(1, width)), data.draw(st.sampled_from([0.0, 0.5, 1.0, 1.7]))
    config = DecodeConfig(beam=width, penalty=penalty, alpha=alpha, n_best=n_best, max_extra=2, patience=patience)
    (found,) = search([seed], [length], config)
    expected = plain_beam_search(seed, length + 2, config)
    assert [output(h) for h in found] == [o for o, _ in expected]
    assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=1e-6)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_sentence_is_decoded_alike_alone_in_a_batch_of_64_and_in_reverse(config):
    seeds, lengths = list(range(64)), [1 + 7 * seed % 11 for seed in range(64)]
    together = search(seeds, lengths, config)
    assert search(seeds[::-1], lengths[::-1], config)[::-1] == together
    assert [search([s], [n], config)[0] for s, n in zip(seeds, lengths, strict=True)] == together


@pytest.mark.parametrize("config", CONFIGS)
def test_hypotheses_are_different_sorted_and_their_scores_can_be_recomputed(config):
    found = search(list(range(13)), [5] * 13, config)
    for seed, hypotheses in enumerate(found):
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses) == config.n_best
        assert hypotheses == sorted(hypotheses, key=lambda h: -h.score)
        for h in hypotheses:
            assert h.token_scores == pytest.approx(token_scores(seed, output(h)), abs=1e-6)
            assert h.score == pytest.approx(scored(seed, output(h), config), abs=1e-6)


def test_a_wider_beam_without_penalty_is_at_least_as_probable_as_greedy():
    config = DecodeConfig(beam=1, alpha=0.0)
    narrow = search(list(range(17)), [7] * 17, config)
    wide = search(list(range(17)), [7] * 17, replace(config, beam=400))
    assert all(w[0].score >= n[0].score for n, w in zip(narrow, wide, strict=True))
    assert any(w[0].score > n[0].score for n, w in zip(narrow, wide, strict=True))


def test_finished_sentences_leave_the_batch():
    state = ToyState(list(range(23)))
    beam_search(state, [1 + seed for seed in range(23)], DecodeConfig(beam=3, max_extra=0))
    first, *later = state.rows_per_step
    assert first == 23
    assert later == sorted(later, reverse=True)
    assert all(rows % 3 == 0 and rows <= 3 * (22 - step) for step, rows in enumerate(later))  # one more limit each step
    assert later[-1] > 0


def test_no_output_is_longer_than_the_limit():
    def never_ends(seed: int, prefix: tuple[int, ...]) -> torch.Tensor:
        return logits_after(seed, prefix).index_fill(0, torch.tensor(EOS), -50.0)

    found = search([1, 2, 3], [1, 4, 9], DecodeConfig(beam=3, n_best=3, max_extra=2), never_ends)
    assert [[len(h.tokens) for h in hypotheses] for hypotheses in found] == [[3] * 3, [6] * 3, [11] * 3]
    assert not any(h.complete for hypotheses in found for h in hypotheses)
    for seed, hypotheses in zip([1, 2, 3], found, strict=True):
        for h in hypotheses:
            assert h.token_scores == pytest.approx(token_scores(seed, tuple(h.tokens), never_ends), abs=1e-6)


def test_padding_and_the_first_token_are_never_produced():
    def favours_them(seed: int, prefix: tuple[int, ...]) -> torch.Tensor:
        return logits_after(seed, prefix).index_fill(0, torch.tensor([0, 2]), 5.0)

    found = search(list(range(7)), [5] * 7, DecodeConfig(beam=4, n_best=4), favours_them)
    assert not {0, 2} & {token for hypotheses in found for h in hypotheses for token in h.tokens}
    assert found[0][0].token_scores == pytest.approx(token_scores(0, output(found[0][0]), favours_them), abs=1e-6)


def test_equally_good_outputs_come_in_the_order_of_their_tokens():
    def no_opinion(seed: int, prefix: tuple[int, ...]) -> torch.Tensor:
        return torch.zeros(VOCABULARY)

    (found,) = search([0], [2], DecodeConfig(beam=4, n_best=4, alpha=1.0, penalty="average", max_extra=0), no_opinion)
    assert [output(h) for h in found] == [(EOS,), (1, 1), (1, EOS), (1, 4)]


def test_a_language_smaller_than_the_beam_is_said_whole():
    def one_word(seed: int, prefix: tuple[int, ...]) -> torch.Tensor:
        return torch.full((VOCABULARY,), -torch.inf).index_fill(0, torch.tensor([EOS, 5]), 0.0)

    (found,) = search([0], [3], DecodeConfig(beam=31, n_best=31, alpha=0.0, max_extra=0), one_word)
    assert [output(h) for h in found] == [(EOS,), (5, EOS), (5, 5, EOS), (5, 5, 5)]
