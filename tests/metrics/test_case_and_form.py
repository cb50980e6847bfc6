"""Case that a model cannot write and normal forms do not decide a score, and signatures name what was done."""

from unicodedata import normalize

import pytest

from heedful.config.schema import Recipe, TokenizerConfig
from heedful.metrics import LOWER_CASED, METRICS, Scoring, is_lower_cased, paired_bootstrap, score
from heedful.metrics.bootstrap import example_scores
from heedful.tasks import TASKS
from heedful.tasks.parts.sequence_to_sequence import texts_of
from heedful.tasks.specs import output_metrics
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.tools.compare.statistics import Translations, metrics_of

REFERENCES = ["Die Älteste sähe Übles für uns.", "Ein Café in Zürich öffnet früh.", "Der Händler kommt spät nach Köln."]
LOWER = [line.lower() for line in REFERENCES]
NFD = [normalize("NFD", line) for line in REFERENCES]
WRITING = ("captioning", "dialogue", "speech_recognition", "summarisation", "text_to_text", "translation")
WORST = {"wer", "cer"}  # of which 0 is right


def measured(task, outputs, references, **tokenizer):
    """Scores of a task whose model has a tokenizer with some settings."""
    trained = train_tokenizer(REFERENCES, TokenizerConfig(kind="word", **tokenizer))
    texts = texts_of(outputs, references, Recipe(), TokenizerPair(trained, trained))
    return example_scores(texts, output_metrics(TASKS[task].spec, Recipe())).whole


@pytest.mark.parametrize("task", WRITING)
def test_a_model_of_lower_cased_text_is_scored_without_case(task):
    perfect = measured(task, REFERENCES, REFERENCES)
    assert measured(task, LOWER, REFERENCES, lowercase=True) == perfect
    if not task.startswith(("dialogue", "summarisation")):  # ROUGE ignores case anyway
        assert measured(task, LOWER, REFERENCES) != perfect


@pytest.mark.parametrize("task", WRITING)
@pytest.mark.parametrize("normalization", ["none", "nfc", "nfkc"])
def test_letters_that_look_alike_are_equal(task, normalization):
    perfect = measured(task, REFERENCES, REFERENCES)
    assert measured(task, REFERENCES, NFD, normalization=normalization) == perfect
    assert measured(task, NFD, REFERENCES, normalization=normalization) == perfect


def test_a_model_of_compatible_characters_is_scored_in_its_form():
    wide = ["\uff21\uff22 \uff43\u2026"]  # full width, and an ellipsis
    narrow = [normalize("NFKC", wide[0])]
    assert measured("text_to_text", narrow, wide, normalization="nfkc") == {"exact_match": 1.0}
    assert measured("text_to_text", narrow, wide) == {"exact_match": 0.0}
    [found] = score(narrow, [wide], Scoring(metrics=("chrf",), form="NFKC"))
    assert found.value == pytest.approx(100)
    assert found.signature.endswith("|form:nfkc")


@pytest.mark.parametrize("metric", METRICS)
def test_scores_compare_one_normal_form_and_the_signature_says_so_where_it_matters(metric):
    settings = Scoring(metrics=(metric,), language="de")
    [plain] = score(LOWER, [REFERENCES], settings)
    assert "form:" not in plain.signature
    for hypotheses, references in ((LOWER, NFD), ([normalize("NFD", line) for line in LOWER], REFERENCES)):
        [found] = score(hypotheses, [references], settings)
        assert found.value == plain.value
        assert found.signature == f"{plain.signature}|form:nfc"
        [compared] = paired_bootstrap(hypotheses, hypotheses, [references], settings, samples=3)
        assert compared.system.value == plain.value
        assert compared.signature == found.signature


@pytest.mark.parametrize("metric", LOWER_CASED)
def test_the_scores_without_case_have_sacrebleus_signature(metric):
    [found] = score(LOWER, [REFERENCES], Scoring(metrics=(metric,)))
    assert found.value == pytest.approx(100)
    assert "case:lc" in found.signature
    assert found.name.endswith(" (lower-cased)")


def test_lower_cased_text_is_recognised():
    assert is_lower_cased(LOWER * 4, [REFERENCES * 4])
    assert not is_lower_cased(LOWER, [REFERENCES])  # three lines may have no capital by chance
    assert not is_lower_cased(REFERENCES * 4, [REFERENCES * 4])
    assert not is_lower_cased(LOWER * 4, [LOWER * 4])
    assert not is_lower_cased(["你好"] * 10, [["Das 你好"] * 10])  # a script without case
    assert not is_lower_cased(["", "42"] * 10, [REFERENCES * 10])


def test_compare_scores_a_system_of_lower_cased_text_without_case_too():
    assert metrics_of(REFERENCES, REFERENCES) == ("bleu", "chrf")
    references = tuple(REFERENCES * 4)
    system = Translations(tuple(LOWER * 4), references, "de", metrics_of(LOWER * 4, references))
    baseline = Translations(references, references, "de")
    names = ["BLEU", "chrF2", "BLEU (lower-cased)", "chrF2 (lower-cased)"]
    for found in (system.against(baseline), baseline.against(system)):
        assert [one.name for one in found] == names
        assert found[0].system.value != found[0].baseline.value
        assert found[2].system.value == pytest.approx(found[2].baseline.value)
