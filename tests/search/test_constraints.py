"""Outputs that satisfy constraints: compared with all outputs of a tiny language, alone and in batches."""

import zlib
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.schema import DecodeConfig, TokenizerConfig
from heedful.errors import InputError
from heedful.search.beam import search
from heedful.search.constrained import constrained_search
from heedful.search.constraints import Constraints, Guide, each_constraint, has_phrase, repeats_ngram, text_of
from heedful.search.hypothesis import Hypothesis
from heedful.text.tokenizer import BOS, EOS, UNK
from heedful.text.training import train_tokenizer
from toy_states import ToyState

# Its pieces are " ", "a", "b", " a" and " ab", so that a text has several spellings.
TOKENIZER = train_tokenizer(["ab ba a b aab ab ab"] * 3, TokenizerConfig(kind="bpe", vocab_size=9, byte_fallback=False))
PIECES = [UNK, *range(4, len(TOKENIZER))]
PHRASES = ["a", "b", "ab", "ba", "aa", "a b", "ab a", "bb", "aab"]
LIMIT = 3

# Values, not `Constraints`: the checks of types at run time draw random numbers, which a strategy must not.
values_of_a_line = st.tuples(
    st.sampled_from(["", "", "a", "ab", "a b", "b", "ab ", " a", "ba"]),
    st.lists(st.lists(st.sampled_from(PHRASES), min_size=1, max_size=2), max_size=2),
    st.lists(st.sampled_from(PHRASES), max_size=2),
)


@cache
def logits_after(seed: int, prefix: tuple[int, ...]) -> torch.Tensor:
    generator = np.random.default_rng(zlib.crc32(repr((seed, prefix)).encode()))
    return torch.from_numpy(generator.normal(size=len(TOKENIZER)) * 2.0).float()


@cache
def all_outputs() -> list[tuple[int, ...]]:
    ended = [(*tokens, EOS) for length in range(LIMIT) for tokens in product(PIECES, repeat=length)]
    return ended + list(product(PIECES, repeat=LIMIT))


def score(seed: int, output: tuple[int, ...], config: DecodeConfig) -> float:
    log_probs = (logits_after(seed, (BOS, *output[:i])).log_softmax(-1)[token] for i, token in enumerate(output))
    return sum(map(float, log_probs)) / ((5 + len(output)) / 6) ** config.alpha


def is_valid(output: tuple[int, ...], constraints: Constraints, config: DecodeConfig) -> bool:
    tokens = [token for token in output if token != EOS]
    too_short = output[-1:] == (EOS,) and len(tokens) < config.min_tokens
    repeats = config.no_repeat_ngram is not None and repeats_ngram(tokens, config.no_repeat_ngram)
    return constraints.are_met(TOKENIZER.decode(tokens)) and not too_short and not repeats


def find(seeds: list[int], limit: int, config: DecodeConfig, lines: list[Constraints]) -> list[list[Hypothesis]]:
    guides = [Guide(each, TOKENIZER, config) for each in lines]
    return constrained_search(ToyState(seeds, logits_after), [limit] * len(seeds), config, guides)


def output(hypothesis: Hypothesis) -> tuple[int, ...]:
    return (*hypothesis.tokens, EOS) if hypothesis.complete else tuple(hypothesis.tokens)


@settings(max_examples=6)
@given(
    seed=st.integers(0, 10**6),
    values=values_of_a_line,
    min_tokens=st.sampled_from([0, 2]),
    no_repeat_ngram=st.sampled_from([None, None, 1, 2]),
)
def test_a_beam_as_wide_as_the_language_finds_the_best_of_all_outputs_that_satisfy_the_constraints(
    seed, values, min_tokens, no_repeat_ngram
):
    constraints = Constraints(*values)
    config = DecodeConfig(beam=300, n_best=2, patience=0.0, min_tokens=min_tokens, no_repeat_ngram=no_repeat_ngram)
    valid = [each for each in all_outputs() if is_valid(each, constraints, config)]
    best = sorted(valid, key=lambda each: -score(seed, each, config))[:2]
    [hypotheses] = find([seed], LIMIT, config, [constraints])
    assert [output(each) for each in hypotheses] == best
    assert [each.score for each in hypotheses] == pytest.approx([score(seed, each, config) for each in best], abs=1e-5)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), values=values_of_a_line, beam=st.sampled_from([1, 2, 5]))
def test_outputs_satisfy_the_constraints_or_a_reason_is_given(seed, values, beam):
    constraints = Constraints(*values)
    config = DecodeConfig(beam=beam)
    [hypotheses] = find([seed], 12, config, [constraints])
    if hypotheses:
        assert constraints.are_met(TOKENIZER.decode(hypotheses[0].tokens))
    else:
        assert Guide(constraints, TOKENIZER, config).problem()


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    prefix=st.sampled_from(["", "a", "ab ", "b", "ba"]),
    terms=st.lists(st.sampled_from(PHRASES), min_size=1, max_size=4),
    room=st.integers(0, 3),
    beam=st.sampled_from([1, 5]),
)
def test_a_prefix_and_terms_that_fit_are_always_written(seed, prefix, terms, room, beam):
    constraints, config = Constraints(prefix, terms), DecodeConfig(beam=beam)
    limit = Guide(constraints, TOKENIZER, config).needed(b"") + 1 + room
    [[hypothesis, *_]] = find([seed], limit, config, [constraints])
    assert constraints.are_met(TOKENIZER.decode(hypothesis.tokens))


@pytest.mark.parametrize("beam", [1, 5])
@pytest.mark.parametrize("phrase", ["a", "ab", "a b", "ba"])
def test_forbidden_text_is_never_searched(phrase, beam, monkeypatch):
    constraints, config, seeds = Constraints(terms=["b"], forbidden=[phrase]), DecodeConfig(beam=beam), list(range(20))
    monkeypatch.setattr(Guide, "are_met", lambda *_: True)  # the check of whole outputs would hide it
    outputs = find(seeds, 12, config, [constraints] * len(seeds))
    texts = [TOKENIZER.decode(each.tokens) for [each, *_] in outputs if each.complete]
    assert texts
    assert all(map(constraints.are_met, texts))


@settings(max_examples=40)
@given(
    prefix=st.sampled_from(["", "a", "ab ", "b", " a"]),
    terms=st.lists(st.sampled_from(PHRASES), min_size=1, max_size=4),
    tokens=st.lists(st.sampled_from(PIECES[1:]), max_size=4),
)
def test_one_of_the_forced_tokens_always_leads_closer_to_complete_constraints(prefix, terms, tokens):
    guide = Guide(Constraints(prefix, terms), TOKENIZER, DecodeConfig())
    output = TOKENIZER.spell(tokens if not prefix else [])
    while needed := guide.needed(output):
        following = [output + TOKENIZER.spell([each]) for each in guide.place(output, text_of(output)).forced]
        output = min(following, key=guide.needed)
        assert guide.needed(output) < needed
    assert guide.place(output, text_of(output)).complete


@settings(max_examples=6)
@given(lines=st.lists(values_of_a_line, min_size=2, max_size=6), beam=st.sampled_from([1, 4]))
def test_a_line_is_searched_alike_alone_and_among_others(lines, beam):
    lines = [Constraints(*values) for values in lines]
    config = DecodeConfig(beam=beam)
    seeds = list(range(len(lines)))
    together = find(seeds, 9, config, lines)
    assert find(seeds[::-1], 9, config, lines[::-1])[::-1] == together
    assert [find([seed], 9, config, [line])[0] for seed, line in zip(seeds, lines, strict=True)] == together


@pytest.mark.parametrize("beam", [1, 3])
def test_rules_of_the_settings_apply_to_every_search(beam):
    seeds, config = list(range(30)), DecodeConfig(beam=beam)
    strict = replace(config, min_tokens=3, no_repeat_ngram=2)
    outputs = search(ToyState(seeds, logits_after), [8] * 30, strict)
    assert not all(
        is_valid(output(h), Constraints(), strict) for [h] in search(ToyState(seeds, logits_after), [8] * 30, config)
    )
    for seed, [hypothesis] in zip(seeds, outputs, strict=True):
        assert is_valid(output(hypothesis), Constraints(), strict)
        assert hypothesis.score == pytest.approx(score(seed, output(hypothesis), config), abs=1e-5)


def test_greedy_search_takes_the_most_probable_token_that_the_rules_allow():
    config = DecodeConfig(beam=1, min_tokens=3, no_repeat_ngram=1)
    [[hypothesis]] = search(ToyState([4], logits_after), [8], config)
    tokens: list[int] = []
    for token in output(hypothesis):
        logits = logits_after(4, (BOS, *tokens)).clone()
        logits[[0, BOS, *tokens, *([EOS] if len(tokens) < 3 else [])]] = -torch.inf
        assert token == int(logits.argmax())
        tokens.append(token)


@pytest.mark.parametrize(
    ("text", "phrase", "occurs"),
    [
        ("Der Hund schläft.", "Hund", True),
        ("Die Hundehütte", "Hund", False),
        ("Der Hund", "hund", False),
        ("ein Bernhardiner-Hund", "Hund", True),
        ("喜欢狗", "狗", True),
        ("喜欢Python吗", "Python", True),
        ("Er sagt: „Ja!“", "„Ja!“", True),
        ("Hunde Hund", "Hund", True),
        ("cafe\u0301", "cafe", False),
        ("", "a", False),
    ],
)
def test_a_phrase_is_found_as_whole_words(text, phrase, occurs):
    assert has_phrase(text, phrase) is occurs


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (Constraints(terms=["ax"]), "the vocabulary cannot write the term 'ax'"),
        (Constraints(prefix="x"), "the vocabulary cannot write the prefix 'x'"),
        (Constraints(terms=["a b"], forbidden=["b"]), "the term 'a b' contains something forbidden"),
        (Constraints(prefix="a b ", forbidden=["b"]), "the prefix 'a b ' contains something forbidden"),
    ],
)
def test_constraints_that_no_output_satisfies_are_named(constraints, words):
    assert words in str(Guide(constraints, TOKENIZER, DecodeConfig()).problem())
    assert find([1], 8, DecodeConfig(), [constraints]) == [[]]


def test_constraints_that_do_not_fit_are_named():
    guide = Guide(Constraints(terms=["ab ab ab"]), TOKENIZER, DecodeConfig())
    assert guide.length_problem(4) is None
    assert "need 4 tokens, but the output has at most 3" in str(guide.length_problem(3))
    assert "no_repeat_ngram = 1" in str(replace_config(guide, no_repeat_ngram=1).problem())


def replace_config(guide: Guide, **changes) -> Guide:
    return Guide(guide.constraints, TOKENIZER, DecodeConfig(**changes))


@pytest.mark.parametrize(
    "values", [{"terms": [""]}, {"terms": [[]]}, {"forbidden": [" "]}, {"terms": 3}, {"terms": [3]}, {"prefix": 3}]
)
def test_values_that_are_not_texts_are_refused(values):
    with pytest.raises(InputError, match="constraints: "):
        Constraints(**values)


def test_a_text_is_one_term_and_spaces_around_it_do_not_count():
    assert Constraints(terms="a b", forbidden=" a ") == Constraints(terms=[["a b"]], forbidden=["a"])
    assert Constraints(prefix="x", terms=["a"]) + Constraints(terms=["b", "a"]) == Constraints("x", ["a", "b"])


def test_constraints_are_as_many_as_texts():
    one = Constraints(prefix="a")
    assert list(each_constraint(one, iter("xy"))) == [("x", one), ("y", one)]
    assert list(each_constraint([None, one], iter("xy"))) == [("x", None), ("y", one)]
    for constraints in ([one], [one] * 3, 5, ["a", "b"]):
        with pytest.raises(InputError, match="constraints"):
            list(each_constraint(constraints, iter("xy")))
