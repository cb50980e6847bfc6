"""Metrics of translation by sacrebleu (BLEU, chrF, TER), and paired bootstrap tests between two systems.

A figure without its settings cannot be compared, so each carries sacrebleu's signature (Post 2018, "A Call for
Clarity in Reporting BLEU Scores") and equals what the `sacrebleu` command prints with these settings, to all
digits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from unicodedata import is_normalized, normalize

import numpy as np
from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from heedful.errors import InputError
from heedful.evaluate.metrics import Metric, lower_is_better
from heedful.evaluate.scripts import script_warning
from heedful.evaluate.significance import Comparison, Outcomes, compare_outcomes
from heedful.evaluate.texts import Texts
from heedful.text.languages import CHINESE, base_language
from heedful.wording import counted

LOWER_CASED = ("bleu-lc", "chrf-lc")  # of lower-cased text on both sides; TER ignores case anyway
METRICS = ("bleu", "chrf", "ter", "tokenised-bleu", *LOWER_CASED)

ENOUGH = 10  # lines without upper-case letters that show that a text is lower-cased

NormalForm = Literal["NFC", "NFKC"]

TOKENIZERS = {  # languages that 13a, sacrebleu's usual tokenizer, does not split into words
    **dict.fromkeys(CHINESE, "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    **dict.fromkeys(("th", "lo", "km", "my"), "char"),
}


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Settings of translation scores: metrics, target language, lower-casing; TER ignores case in every setting.

    Text of which a part is not in the normal form is brought to it on both sides, as letters that look alike are equal;
    the signature then names the form.
    """

    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")
    language: str = ""  # target language, as in "de" or "zh-Hans"; decides how text is cut into words
    lowercase: bool = False
    form: NormalForm = "NFC"  # Unicode's; "NFKC" for a model that learns text in that form

    def __post_init__(self) -> None:
        """Raise an InputError if a metric is unknown."""
        for name in self.metrics:
            if name not in METRICS:
                raise InputError(f'metric "{name}" is unknown; known: {", ".join(METRICS)}')

    @property
    def tokenizer(self) -> str:
        """Name of the sacrebleu tokenizer for the target language, such as "13a" or "zh"."""
        return TOKENIZERS.get(base_language(self.language), "13a")

    def warning(self, references: Sequence[Sequence[str]]) -> str | None:
        """Return a warning if sacrebleu's tokenizer cannot split references into words, which BLEU needs; else None."""
        return script_warning((line for lines in references for line in lines), self.tokenizer)


@dataclass(frozen=True)
class Score:
    """Score of translations: BLEU and chrF from 0 to 100, TER in edits per 100 reference words (lower is better)."""

    name: str
    value: float
    signature: str


def score(hypotheses: Sequence[str], references: Sequence[Sequence[str]], scoring: Scoring = Scoring()) -> list[Score]:
    """Score translations against one or more reference translations.

    Args:
        hypotheses: N translations.
        references: R lists of N reference translations each.
        scoring: The metrics and their settings.

    Returns:
        One score for each of `scoring.metrics`, in that order.

    Raises:
        InputError: There is nothing to score, or line counts differ.
    """
    check_aligned({"the hypotheses": hypotheses, **_numbered(references)})
    (hypotheses, *references), form = normalised([hypotheses, *references], scoring.form)
    return [_score(name, hypotheses, references, scoring, form) for name in scoring.metrics]


def _score(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], scoring: Scoring, form: str
) -> Score:
    metric = _metric(name, scoring)
    result = metric.corpus_score(hypotheses, references)
    return Score(_title(name, result.name), result.score, f"{metric.get_signature()}{form}")


def normalised(texts: Sequence[Sequence[str]], form: NormalForm) -> tuple[list[Sequence[str]], str]:
    """Bring all texts to a normal form unless they are in it; return what a signature says about it, which may be "".

    A text that is already in this form is returned as it is.
    """
    if all(is_normalized(form, line) for lines in texts for line in lines):
        return list(texts), ""
    return [[normalize(form, line) for line in lines] for lines in texts], f"|form:{form.lower()}"


def is_lower_cased(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> bool:
    """True if references have upper-case letters and no hypothesis does: a model of lower-cased text wrote them.

    Few lines, or text in a script without case, do not show that.
    """
    lower = sum(line != line.upper() for line in hypotheses) >= ENOUGH and not has_capitals([hypotheses])
    return lower and has_capitals(references)


def has_capitals(texts: Sequence[Sequence[str]]) -> bool:
    """True if any line has an upper-case letter."""
    return any(line != line.lower() for lines in texts for line in lines)


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    scoring: Scoring = Scoring(),
    samples: int = 1000,
    seed: int = 1,
) -> list[Comparison]:
    """Compare two translation systems on the same resamples of a test set, by the test that all other tasks use.

    The scores are sacrebleu's; its own paired bootstrap reports p-values that are too small, so that two equally good
    systems differ "significantly" twice as often as they should.

    Args:
        baseline: N translations by the baseline system.
        system: N translations of the same text by another system.
        references: R lists of N reference translations each.
        scoring: The metrics and their settings.
        samples: The number of test sets to draw; the smallest possible p-value is 2 / (samples + 1).
        seed: The seed of the draws.

    Returns:
        One comparison for each of `scoring.metrics`, in that order.

    Raises:
        InputError: There is nothing to score, line counts differ, or `samples` is below 1.
    """
    check_aligned({"the baseline": baseline, "the system": system, **_numbered(references)})
    (baseline, system, *references), form = normalised([baseline, system, *references], scoring.form)
    comparisons = []
    for name in scoring.metrics:
        (ours, signature), (theirs, _) = (resampled(name, x, references, scoring) for x in (system, baseline))
        [found] = compare_outcomes(theirs, ours, samples, seed)
        comparisons.append(replace(found, signature=f"{signature}{form}", lower_is_better=lower_is_better(name)))
    return comparisons


def resampled(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], scoring: Scoring
) -> tuple[Outcomes, str]:
    """Compute sacrebleu's counts for each sentence, the sums of which make the score of any resample.

    Args:
        name: One of `METRICS`.
        hypotheses: N translations, in the normal form of `scoring`.
        references: R lists of N reference translations each, in that form.
        scoring: The settings of the metric.

    Returns:
        The outcomes, and sacrebleu's signature of the metric.
    """
    metric = _metric(name, scoring)
    title = _title(name, metric.corpus_score(hypotheses[:1], [lines[:1] for lines in references]).name)
    counts = np.array(metric._extract_corpus_statistics(hypotheses, references))

    def measure(chosen: np.ndarray) -> dict[str, float]:
        return {title: float(metric._aggregate_and_compute([counts[chosen].sum(axis=0).tolist()]).score)}

    return Outcomes(len(hypotheses), measure), str(metric.get_signature())


def check_aligned(texts: Mapping[str, Sequence[str]]) -> None:
    """Make sure that texts, given by name, have at least one line and equally many lines.

    Raises:
        InputError: A text is empty, or two texts differ in length.
    """
    (first, lines), *others = texts.items()
    for name, text in texts.items():
        if not text:
            raise InputError(f"{name}: no lines, so there is nothing to score")
    for name, text in others:
        if len(text) != len(lines):
            raise InputError(
                f"{first} has {counted(len(lines), 'lines')}, but {name} has {len(text):,}: "
                "line n of each must belong to the same sentence"
            )


def _numbered(references: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    if not references:
        raise InputError("no reference translations, so there is nothing to score against")
    return {f"reference {number}": lines for number, lines in enumerate(references, start=1)}


def _metric(name: str, scoring: Scoring) -> SacreMetric:
    characters = scoring.tokenizer in ("zh", "ja-mecab", "char")
    match name:
        case "bleu" | "bleu-lc":
            return _bleu(scoring.tokenizer, scoring.lowercase or name in LOWER_CASED)
        case "chrf" | "chrf-lc":
            return CHRF(lowercase=scoring.lowercase or name in LOWER_CASED)
        case "ter":
            return TER(normalized=characters, asian_support=characters)
    # What is left is tokenised BLEU, as Moses' multi-bleu.perl -lc and fairseq-score have it: without smoothing.
    return BLEU(lowercase=True, tokenize="none", smooth_method="none", force=True)


def _bleu(tokenizer: str, lowercase: bool) -> BLEU:
    try:
        return BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)
    except RuntimeError:  # sacrebleu found no MeCab, which its Japanese and Korean tokenizers need
        return BLEU(lowercase=lowercase, tokenize="char", force=True)


def _title(name: str, name_in_sacrebleu: str) -> str:
    if name in LOWER_CASED:
        return f"{name_in_sacrebleu} (lower-cased)"
    return "BLEU (tokenised, lower-cased)" if name == "tokenised-bleu" else name_in_sacrebleu


def _of_texts(name: str) -> Metric:
    """Make the metric of outputs that sacrebleu computes under a name: from its counts for each text, which add up."""

    def counts(texts: Texts) -> np.ndarray:
        metric = _metric(name, Scoring(language=texts.language, lowercase=texts.lowercase))
        (outputs, references), _ = normalised(texts.compared, "NFC")
        return np.array(metric._extract_corpus_statistics(outputs, [references]))

    def total(rows: np.ndarray) -> float:
        return float(_metric(name, Scoring())._aggregate_and_compute([rows.sum(axis=0).tolist()]).score)

    return Metric(counts, total, lower_is_better=name == "ter")


BLEU_METRIC, CHRF_METRIC, TER_METRIC = map(_of_texts, ("bleu", "chrf", "ter"))
