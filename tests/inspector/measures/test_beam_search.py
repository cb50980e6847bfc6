"""The log of a search tells what it found, why every other candidate died, and whose fault a wrong answer is."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.schema import DecodeConfig
from heedful.errors import InputError
from heedful.inspector.measures.beam_search import Fate, after_prefix, explain_search, follow_reference, logged, lost_at
from heedful.search.beam import beam_search
from heedful.search.hypothesis import LENGTH_PENALTIES
from heedful.text.tokenizer import BOS, EOS, PAD
from subjects import GERMAN, TEXT, translator
from toy_states import ToyState, scored, token_scores

CONFIG = DecodeConfig(beam=3, n_best=2, penalty="average", alpha=1.0)


def configs():
    return st.builds(
        lambda beam, n_best, alpha, penalty, patience: DecodeConfig(
            beam=beam, n_best=min(n_best, beam), alpha=alpha, penalty=penalty, patience=patience
        ),
        st.integers(1, 7),
        st.integers(1, 7),
        st.sampled_from([0.0, 0.6, 1.0, 1.7]),
        st.sampled_from(list(LENGTH_PENALTIES)),
        st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    )


@pytest.mark.parametrize("penalty", LENGTH_PENALTIES)
def test_the_page_knows_every_length_penalty(penalty):
    view = Path(__file__).parents[3] / "web" / "src" / "views" / "search"
    assert f"  {penalty}: (length, alpha) =>" in (view / "search.ts").read_text(encoding="utf-8")
    assert f'"search.penalty.{penalty}"' in (view / "search.json").read_text(encoding="utf-8")


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), limit=st.integers(1, 9), config=configs())
def test_replaying_the_log_finds_what_the_search_found(seed, limit, config):
    log = logged(ToyState([seed]), limit, config)
    assert log.replay() == beam_search(ToyState([seed]), [limit], config)[0]


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), limit=st.integers(1, 9), config=configs())
def test_every_candidate_died_for_the_reason_that_is_named(seed, limit, config):
    log = logged(ToyState([seed]), limit, config)
    last = log.nodes[-1].step
    for step in range(1, last + 1):
        nodes = [node for node in log.nodes if node.step == step]
        assert [node.rank for node in nodes] == list(range(len(nodes)))
        assert [node.total for node in nodes] == sorted((node.total for node in nodes), reverse=True)
        fates = Counter(node.fate for node in nodes)
        assert (fates[Fate.KEPT] == 0) == (step == last)
        assert fates[Fate.STOPPED] == 0 or step == last
        assert fates[Fate.KEPT] + fates[Fate.STOPPED] <= config.beam
        for node in nodes:
            if node.fate is Fate.CUT:
                assert not node.end
                assert sum(n.rank < node.rank and not n.end for n in nodes) >= config.beam
                assert node.total <= log.threshold(step)
            if node.fate is Fate.OUTRANKED:
                assert node.end
                assert node.rank >= config.beam
            if node.fate is Fate.FORBIDDEN:
                assert node.token in (PAD, BOS)
            if node.fate in (Fate.FINISHED, Fate.BEATEN):
                assert node.end
                assert node.rank < config.beam
    beaten = [log.hypothesis(i).score for i, node in enumerate(log.nodes) if node.fate is Fate.BEATEN]
    finished = [h.score for h in log.replay()]
    assert len(finished) <= config.n_best
    assert not beaten or (len(finished) == config.n_best and max(beaten) <= min(finished))


@pytest.mark.parametrize("seed", range(7))
def test_numbers_of_a_candidate_are_those_of_its_tokens(seed):
    log = logged(ToyState([seed]), 5, CONFIG)
    for number, node in enumerate(log.nodes):
        if node.fate is not Fate.FORBIDDEN:
            tokens = tuple(n.token for n in log.path(number))[::-1]
            assert len(tokens) == node.step
            assert node.log_prob == pytest.approx(token_scores(seed, tokens)[-1], abs=1e-6)
            assert node.total == pytest.approx(sum(token_scores(seed, tokens)), abs=1e-5)
            assert node.score == pytest.approx(scored(seed, tokens, CONFIG), abs=1e-5)
            assert node.end == (tokens[-1] == EOS or len(tokens) == 5)


def garden_path(seed, prefix):
    """ "5" looks best, and leads nowhere; "4" is a little worse, and then certain."""
    said = prefix[1:]
    if said == ():
        return peaked({4: 0.4, 5: 0.6})
    if said == (4,):
        return peaked({EOS: 0.99, 6: 0.01})
    return peaked({4: 0.25, 5: 0.25, 6: 0.25, EOS: 0.25})


def peaked(shares):
    probabilities = torch.full((7,), 1e-9)
    for token, share in shares.items():
        probabilities[token] = share
    return probabilities.log()


@pytest.mark.parametrize("width", [1, 2])
def test_a_search_error_is_told_from_an_error_of_the_model(width):
    config = replace(CONFIG, beam=width, n_best=1, alpha=0.0)
    log = logged(ToyState([1], garden_path), 4, config)
    better = follow_reference(log, ToyState([1], garden_path), [4, EOS], 99)
    worse = follow_reference(log, ToyState([1], garden_path), [5, 6, EOS], 99)
    assert better.hypothesis.score == pytest.approx(torch.tensor(0.4 * 0.99).log().item(), abs=1e-4)
    assert (better.search_error, better.lost) == ((True, 1) if width == 1 else (False, None))
    assert not worse.search_error
    assert worse.lost is None or worse.lost >= 2


def test_what_no_beam_has_room_for_is_no_search_error():
    log = logged(ToyState([1], garden_path), 4, replace(CONFIG, beam=1, n_best=1, alpha=0.0))
    found = [follow_reference(log, ToyState([1], garden_path), [4, EOS], limit).search_error for limit in (1, 2)]
    assert found == [False, True]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_found_is_never_lost(seed):
    log = logged(ToyState([seed]), 6, CONFIG)
    for found in log.replay():
        tokens = [*found.tokens, EOS] if found.complete else found.tokens
        followed = follow_reference(log, ToyState([seed]), tokens, 99)
        assert followed.lost is None
        assert not followed.search_error
        assert followed.hypothesis.score == pytest.approx(found.score, abs=1e-6)
    assert lost_at(log, [PAD]) == 1


@pytest.mark.parametrize("scale", [1 - 1e-5, 1 + 1e-5])
def test_rounding_makes_no_search_error_of_what_was_found(scale):
    log = logged(ToyState([1], garden_path), 4, CONFIG)
    [best, *_] = log.replay()
    followed = follow_reference(log, ToyState([1], lambda *said: garden_path(*said) * scale), [*best.tokens, EOS], 99)
    assert followed.hypothesis.score != best.score
    assert followed.lost is None
    assert not followed.search_error


def test_what_the_given_beginning_leaves_out_is_no_search_error():
    config = replace(CONFIG, beam=2, n_best=1, alpha=0.0)
    log = logged(ToyState([1], garden_path), 4, config, prefix=[5])
    followed = follow_reference(log, ToyState([1], garden_path), [4, EOS], 99)
    assert followed.hypothesis.score > log.replay()[0].score
    assert followed.lost == 1
    assert not followed.search_error


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("prefix", [(4,), (5, 4, 6)])
def test_a_search_goes_on_from_a_beginning_that_is_given(seed, prefix):
    log = logged(ToyState([seed]), 6, CONFIG, prefix)
    state = ToyState([seed])
    found = beam_search(state, [6], CONFIG, beam=after_prefix(state, prefix, 6, CONFIG))[0]
    assert log.replay() == found
    for hypothesis in found:
        tokens = (*hypothesis.tokens, EOS) if hypothesis.complete else tuple(hypothesis.tokens)
        assert tokens[: len(prefix)] == prefix
        assert hypothesis.token_scores == pytest.approx(token_scores(seed, tokens), abs=1e-6)
        assert hypothesis.score == pytest.approx(scored(seed, tokens, CONFIG), abs=1e-6)
    assert [node.token for node in log.nodes if node.fate is Fate.FORCED] == list(prefix)


def test_a_translation_begins_as_it_is_told_to():
    subject = translator()
    tokenizer = subject.tokenizers.target
    [first, *_] = explain_search(subject, TEXT, prefix="den alte")[0].replay()
    assert first.tokens[:2] == tokenizer.encode("den alte")[:2]
    assert tokenizer.decode(first.tokens).startswith("den alte")
    with pytest.raises(InputError, match="give fewer words"):
        explain_search(subject, "dog", prefix=GERMAN * 9)


def test_a_watcher_is_told_of_every_step_of_a_batch():
    steps = []
    beam_search(ToyState([1, 2]), [3, 5], CONFIG, lambda *step: steps.append(step))
    assert steps[0][0].sentences == [0, 1]
    assert steps[-1][2].sentences == []


def test_a_translation_is_explained_as_it_was_found():
    subject = translator()
    [translation] = subject.translate_lines([TEXT])
    log, followed = explain_search(subject, TEXT, GERMAN)
    assert log.replay()[0] == translation.alternatives[0].hypothesis
    assert followed
    assert subject.tokenizers.target.decode(followed.tokens) == GERMAN
    assert followed.hypothesis.complete
    assert explain_search(subject, TEXT)[1] is None
