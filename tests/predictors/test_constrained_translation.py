"""Translations with constraints: satisfied on both engines, unchanged where they are satisfied anyway."""

import logging

import pytest

import heedful
from engine_models import LINES as ALL_LINES
from engine_models import WORDS, write_random_model
from heedful.errors import InputError
from heedful.predictors import Constraints
from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator
from heedful.predictors.translator import UnmetConstraints

pytest.importorskip("ctranslate2")

LINES = ALL_LINES[::4] + ALL_LINES[3::9]
CASES = [
    Constraints(prefix="three fo"),
    Constraints(prefix="ten ten "),
    Constraints(terms=["nine"]),
    Constraints(terms=["two", "nine ten", ["eleven", "twelve"], "one"]),
    Constraints(forbidden=WORDS[:4]),
    Constraints("one", [["six", "seven"]], WORDS[2:5]),
]
RULES = [
    {"beam": 1, "min_tokens": 4},
    {"beam": 1, "no_repeat_ngram": 1},
    {"beam": 1, "min_tokens": 5, "no_repeat_ngram": 2},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder of a model whose outputs end at many lengths."""
    model = {"encoder_layers": 1, "decoder_layers": 2, "tie": "none", "output_bias": True}
    data = {"max_length": 24, "filters": {"max_tokens": 24}}
    path = tmp_path_factory.mktemp("model") / "m"
    return write_random_model(path, "translation", model, 8.0, data=data, decode={"max_extra": 6})


@pytest.fixture(scope="module")
def translators(folder):
    return heedful.load(folder, engine="torch"), heedful.load(folder, engine="ctranslate2")


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("constraints", CASES, ids=str)
def test_both_engines_satisfy_constraints_alike(translators, constraints, beam):
    ours, theirs = (
        list(each.translate_lines([*LINES, ""], constraints=constraints, beam=beam)) for each in translators
    )
    assert [each.text for each in ours] == [each.text for each in theirs]
    assert all(constraints.are_met(each.text) for each in ours[:-1])
    assert ours[-1].text == ""


def test_a_line_that_satisfies_its_constraints_anyway_is_translated_as_without_them(translators):
    for translator in translators:
        free = list(translator.translate_lines(LINES, n_best=2))
        prefixes = [Constraints(prefix=each.text[:4], forbidden=["nothing"]) for each in free]
        # Both alternatives have to satisfy the constraints.
        same = [
            each if all(each.are_met(other.text) for other in line.alternatives) else None
            for each, line in zip(prefixes, free, strict=True)
        ]
        assert any(same)
        lines = list(translator.translate_lines(LINES, n_best=2, constraints=same))
        assert [each.text for each in lines] == [each.text for each in free]
        assert [a.hypothesis.score for each in lines for a in each.alternatives] == [
            a.hypothesis.score for each in free for a in each.alternatives
        ]


@pytest.mark.parametrize("beam", [1, 4])
def test_the_score_is_that_of_the_model_for_the_whole_output(translators, beam):
    for translator in translators:
        for number, line in enumerate(translator.translate_lines(LINES, constraints=CASES[3], beam=beam)):
            [scores] = translator.score([(LINES[number], line.text)])
            if scores.tokens[:-1] == line.alternatives[0].hypothesis.tokens and line.complete:
                assert list(line.alternatives[0].hypothesis.token_scores) == pytest.approx(scores.log_probs, abs=1e-4)


def test_a_line_is_translated_alike_alone_and_among_others(translators):
    constraints = [CASES[number % len(CASES)] for number, _ in enumerate(LINES)]
    together = translators[0].translate(LINES, constraints=constraints)
    for line, each, text in zip(LINES[::5], constraints[::5], together[::5], strict=True):
        assert translators[0].translate(line, constraints=each) == text
    assert translators[0].translate(LINES[::-1], constraints=constraints[::-1], batch_tokens=40)[::-1] == together


@pytest.mark.parametrize("options", RULES, ids=str)
def test_rules_of_the_settings_give_the_same_outputs_on_both_engines(translators, options):
    ours, theirs = (list(each.translate_lines(LINES, **options)) for each in translators)
    assert [each.text for each in ours] == [each.text for each in theirs]
    assert [each.text for each in ours] != translators[0].translate(LINES, beam=1)
    for here, there in zip(ours, theirs, strict=True):
        tokens = here.alternatives[0].hypothesis.tokens
        assert len(tokens) >= options.get("min_tokens", 0) or not here.complete
        assert there.alternatives[0].hypothesis.score == pytest.approx(here.alternatives[0].hypothesis.score, abs=1e-4)


def test_rules_in_a_beam_are_left_to_torch(translators):
    with pytest.raises(InputError, match=r"decode\.min_tokens = 2: must be 0, or decode\.beam = 1"):
        translators[1].translate("one", min_tokens=2)
    with pytest.raises(InputError, match=r"decode\.no_repeat_ngram = 2: must not be set"):
        translators[1].translate("one", no_repeat_ngram=2)


def test_the_text_whose_constraints_cannot_be_satisfied_is_named(translators):
    constraints = [None, Constraints(terms=["two"]), Constraints(terms=["two"], forbidden=["two"])]
    for translator in translators:
        with pytest.raises(UnmetConstraints, match="text 3: the term 'two' contains something forbidden"):
            list(translator.translate_lines(LINES[:3], window=2, constraints=constraints))
        long = Constraints(terms=[WORDS[:4], " ".join(WORDS)])
        with pytest.raises(
            UnmetConstraints, match=r"text 1: the constraints .* need \d+ tokens, but the output has at most"
        ):
            translator.translate("one", constraints=long)


def test_a_search_by_torch_is_announced(translators, caplog):
    with caplog.at_level(logging.INFO, "heedful"):
        translators[1].translate(LINES[:2], constraints=[None, Constraints(prefix="ten ten ten")])
    assert "1 of 2 texts do not satisfy their constraints: torch searches again" in caplog.text


@pytest.mark.parametrize("constraints", [*CASES, Constraints(prefix="- "), Constraints(prefix="* ten")], ids=str)
def test_constraints_apply_to_whole_lines_with_literals(translators, constraints):
    lines = [
        "- one two three. Four five.",
        "  seven https://example.org eight",
        "ONE TWO",
        "12345 678901",
        "two, two, two, two",
    ]
    translator = LiteralPreservingTranslator(translators[0])
    for line, translation in zip(lines, translator.translate_lines(lines, 2, constraints=constraints), strict=True):
        assert constraints.are_met(translation.text), line
