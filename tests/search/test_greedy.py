import pytest
import torch

from heedful.config.schema import DecodeConfig
from heedful.search.beam import MAX_COPIED_ROWS, beam_search, greedy_search
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer import BOS, EOS, PAD
from toy_states import VOCABULARY, ToyState, log_probs, scored, token_scores


def search(seeds: list[int], lengths: list[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    return greedy_search(ToyState(seeds), [length + config.extra for length in lengths], config)


def likeliest_words(seed: int, limit: int) -> tuple[int, ...]:
    output: tuple[int, ...] = ()
    while len(output) < limit and EOS not in output:
        values = log_probs(seed, (BOS, *output))
        output += (max((t for t in range(len(values)) if t not in (PAD, BOS)), key=values.__getitem__),)
    return output


def test_i_eat_apples_is_written_word_by_word_after_what_is_written_already():
    words, read = {4: "我", 5: "吃", 6: "苹果"}, []

    def logits(_, prefix):
        read.append("".join(words[token] for token in prefix[1:]))
        return torch.eye(VOCABULARY)[[*words, EOS][len(prefix) - 1]]

    [[found]] = greedy_search(ToyState([0], logits), [7], DecodeConfig(beam=1))
    assert found.tokens == list(words)
    assert read == ["", "我", "我吃", "我吃苹果"]


@pytest.mark.parametrize("penalty", ["gnmt", "average"])
def test_every_token_is_the_likeliest_after_those_before_it(penalty):
    config = DecodeConfig(beam=1, penalty=penalty, alpha=0.7, max_extra=2)
    for seed, (found,) in enumerate(search(list(range(31)), [5] * 31, config)):
        expected = likeliest_words(seed, 7)
        assert found.tokens == [token for token in expected if token != EOS]
        assert found.complete == (expected[-1] == EOS)
        assert found.token_scores == pytest.approx(token_scores(seed, expected), abs=1e-6)
        assert found.score == pytest.approx(scored(seed, expected, config), abs=1e-6)


def test_a_beam_of_one_without_penalty_is_greedy():
    config = DecodeConfig(beam=1, alpha=0.0, max_extra=3)
    seeds, lengths = list(range(64)), [1 + seed % 7 for seed in range(64)]
    limits = [length + config.extra for length in lengths]
    assert beam_search(ToyState(seeds), limits, config) == search(seeds, lengths, config)


def test_a_sentence_is_decoded_alike_alone_in_a_batch_of_64_and_in_reverse():
    config = DecodeConfig(beam=1)
    seeds, lengths = list(range(64)), [1 + seed % 11 for seed in range(64)]
    together = search(seeds, lengths, config)
    assert search(seeds[::-1], lengths[::-1], config)[::-1] == together
    assert [search([s], [n], config)[0] for s, n in zip(seeds, lengths, strict=True)] == together


def test_finished_sentences_leave_the_batch():
    state = ToyState(list(range(23)))
    found = greedy_search(state, [55] * 23, DecodeConfig(beam=1))
    lengths = [len(hypotheses[0].token_scores) for hypotheses in found]
    assert len(set(lengths)) > 3
    rows = [23]
    for step in range(1, max(lengths)):
        going = sum(n > step for n in lengths)
        rows.append(going if going <= MAX_COPIED_ROWS * rows[-1] else rows[-1])
    assert state.rows_per_step == rows
    assert len(set(rows)) > 3
