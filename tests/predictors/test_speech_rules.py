"""The rules for time stamps are those of transformers, and no search breaks them."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.modalities import TranscribeConfig
from heedful.config.schema import DecodeConfig
from heedful.predictors.speech import SpeechRules, SpeechState
from heedful.search.beam import search
from heedful.text.pipeline import BOS, EOS, PAD, UNK
from heedful.text.speech_tokens import SpeechTokens

TEXT, WITHOUT, TIMES = 23, 23, range(24, 24 + 61)  # text ids below 23
VOCABULARY = TIMES.stop
TOKENS = SpeechTokens(
    languages={},
    transcribe=None,
    without_times=WITHOUT,
    silence=None,
    times=TIMES,
    controls=frozenset([WITHOUT, *TIMES]),
)
CONFIG = TranscribeConfig(suppress=(7, 11), suppress_first=(13, EOS))
RULES = SpeechRules.of(TOKENS, CONFIG, TIMES, VOCABULARY)
THEIR_ORDER = [*(i for i in range(TEXT) if i != EOS), EOS, WITHOUT, *TIMES]  # <eos> after all text


class RandomState:
    """Logits that depend on what a row was fed, and favour time stamps, text or the end as it comes."""

    def __init__(self, rows, seed, bias):
        self.begin = torch.full((rows,), BOS)
        self.fed = torch.zeros(rows, 0, dtype=torch.long)
        self.seed, self.bias = seed, bias

    def step(self, tokens):
        self.fed = torch.cat([self.fed, tokens[:, None]], dim=1)
        return torch.stack([self.logits(row) for row in self.fed.tolist()])

    def logits(self, row):
        chance = torch.Generator().manual_seed(hash((self.seed, *row)) % 2**31)
        logits = 3 * torch.randn(VOCABULARY, generator=chance)
        logits[TIMES.start :] += self.bias
        return logits

    def select(self, rows):
        self.fed = self.fed[rows]


def random_prefix(length):
    """What may have been written: found by drawing from what the rules allow."""
    written = torch.zeros(1, 0, dtype=torch.long)
    while written.size(1) < length:
        logits = RULES.apply(torch.zeros(1, VOCABULARY), written)
        logits[:, EOS] = -torch.inf
        if logits.isinf().all():
            break
        written = torch.cat([written, logits.softmax(1).multinomial(1)], dim=1)
    return written


def test_they_forbid_what_transformers_forbids():
    """Whatever was written before, and whatever the logits are."""
    transformers = pytest.importorskip("transformers")
    place = {ours: theirs for theirs, ours in enumerate(THEIR_ORDER)}
    config = transformers.GenerationConfig(eos_token_id=place[EOS], no_timestamps_token_id=place[WITHOUT])
    config.max_initial_timestamp_index = 50
    processor = transformers.generation.WhisperTimeStampLogitsProcessor(config, begin_index=1)
    torch.manual_seed(1)
    seen = set()
    for number in range(211):
        written = random_prefix(number % 13)
        logits = 3 * torch.randn(1, VOCABULARY) + torch.where(
            torch.arange(VOCABULARY) >= TIMES.start, number % 5 - 3, 0
        )
        found = RULES.apply(logits, written)
        never = [PAD, BOS, 7, 11, WITHOUT] + ([13, EOS] if not written.size(1) else [])
        theirs = logits.index_fill(1, torch.tensor(never), -torch.inf)[:, THEIR_ORDER]
        ids = torch.tensor([[place[BOS], *(place[i] for i in written[0].tolist())]])
        expected = processor(ids, theirs)
        assert torch.equal(found[:, THEIR_ORDER], expected)
        seen.add(tuple(found.isinf()[0].tolist()))
    assert len(seen) > 50


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([-3.0, 0.0, 2.0]), st.sampled_from([1, 3, 5]))
def test_no_search_breaks_them(seed, bias, beam):
    config = DecodeConfig(beam=beam, n_best=beam, penalty="average")
    for hypotheses in search(SpeechState(RandomState(3, seed, bias), RULES), [17, 29, 5], config):
        for found in hypotheses:
            check_order(found.tokens)


def check_order(tokens):
    times = [token for token in tokens if token in TIMES]
    assert tokens[0] in TIMES
    assert tokens[0] <= TIMES[50]
    assert times == sorted(times)
    assert not {PAD, BOS, 7, 11, WITHOUT} & set(tokens)
    places = [i for i, token in enumerate(tokens) if token in TIMES]
    for i in places[1:]:
        alone = i - 1 not in places and i + 1 not in places
        assert not alone or i == len(tokens) - 1
        assert not (i - 1 in places and i + 1 in places)
    segments = [(a, b) for a, b in pairwise(places) if b > a + 1]
    assert all(tokens[a] < tokens[b] for a, b in segments)


def test_time_stamps_that_are_likelier_together_than_any_other_token_win():
    written = torch.tensor([[TIMES[3], 5]])
    logits = torch.full((1, VOCABULARY), -20.0)
    logits[0, 9] = 1.0
    logits[0, TIMES[4] :] = -2.0
    together = RULES.apply(logits, written)
    assert together.argmax() in TIMES
    assert together[0, : TIMES.start].isinf().all()
    logits[0, TIMES[4] :] = -4.0
    assert RULES.apply(logits, written).argmax() == 9


def test_without_time_stamps_none_are_written_and_the_text_is_free():
    rules = SpeechRules.of(TOKENS, CONFIG, range(0), VOCABULARY)
    for written in (torch.zeros(2, 0, dtype=torch.long), torch.full((2, 3), 5)):
        allowed = rules.apply(torch.randn(2, VOCABULARY), written).isfinite()
        assert not allowed[:, [*TIMES, WITHOUT, PAD, BOS, 7, 11]].any()
        assert allowed[:, [UNK, 5, 17]].all()
        assert allowed[:, [13, EOS]].all() == bool(written.size(1))


def test_a_prompt_is_fed_before_the_search_and_counts_for_no_rule():
    plain, state = RandomState(2, 1, 0.0), SpeechState(RandomState(2, 1, 0.0), RULES)
    first = state.prompt()
    assert torch.equal(state.first_logits, first)
    state.begin = torch.tensor([17, 19])
    plain.step(plain.begin)
    expected = plain.step(state.begin)
    found = state.step(state.begin)
    kept = found.isfinite()
    assert torch.equal(found[kept], expected[kept])
    assert kept[:, : TIMES.start].sum() == 0
    assert torch.equal(state.first_logits, first)
