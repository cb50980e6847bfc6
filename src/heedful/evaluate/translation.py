"""Metrics of translation by sacrebleu (BLEU, chrF, TER), and paired bootstrap tests between two systems.

A figure without its settings cannot be compared, so each carries sacrebleu's signature (Post 2018, "A Call for
Clarity in Reporting BLEU Scores") and equals what the `sacrebleu` command prints with these settings, to all
digits.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from heedful.errors import InputError
from heedful.evaluate.scripts import script_warning
from heedful.evaluate.significance import Comparison, Resampled
from heedful.text.languages import CHINESE, base_language
from heedful.wording import counted

METRICS = ("bleu", "chrf", "ter", "tokenised-bleu")

TOKENIZERS = {  # languages that 13a, sacrebleu's usual tokenizer, does not split into words
    **dict.fromkeys(CHINESE, "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    **dict.fromkeys(("th", "lo", "km", "my"), "char"),
}


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Settings of translation scores: metrics, target language, lower-casing; TER ignores case in every setting."""

    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")
    language: str = ""  # target language, as in "de" or "zh-Hans"; decides how text is cut into words
    lowercase: bool = False

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
    return [_score(name, hypotheses, references, scoring) for name in scoring.metrics]


def _score(name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], scoring: Scoring) -> Score:
    metric = _metric(name, scoring)
    result = metric.corpus_score(hypotheses, references)
    return Score(_title(name, result.name), result.score, str(metric.get_signature()))


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    scoring: Scoring = Scoring(),
    samples: int = 1000,
    seed: int = 12345,
) -> list[Comparison]:
    """Compare two translation systems on the same resamples of a test set (Koehn 2004), as sacrebleu does.

    Args:
        baseline: N translations by the baseline system.
        system: N translations of the same text by another system.
        references: R lists of N reference translations each.
        scoring: The metrics and their settings.
        samples: The number of test sets to draw; the smallest possible p-value is 1 / (samples + 1).
        seed: The seed of the draws, from 1; the default is sacrebleu's own.

    Returns:
        One comparison for each of `scoring.metrics`, in that order.

    Raises:
        InputError: There is nothing to score, line counts differ, or a number is below 1.
    """
    check_aligned({"the baseline": baseline, "the system": system, **_numbered(references)})
    if samples < 1 or seed < 1:  # sacrebleu reads 0 as "use a default" and "draw a seed"
        raise InputError(f"samples is {samples} and seed is {seed}: paired bootstrap needs both to be 1 or more")
    systems = [("baseline", baseline), ("system", system)]
    with _seeded(seed):
        return [_compare(name, systems, references, scoring, samples) for name in scoring.metrics]


def _compare(
    name: str,
    systems: list[tuple[str, Sequence[str]]],
    references: Sequence[Sequence[str]],
    scoring: Scoring,
    samples: int,
) -> Comparison:
    signatures, results = PairedTest(systems, {name: _metric(name, scoring)}, references, "bs", samples)()
    [(metric, signature)] = signatures.items()
    pair: list[Any] = results[metric]
    baseline, system = (Resampled(float(x.score), float(x.mean), float(x.ci)) for x in pair)
    same = baseline.value == system.value  # sacrebleu counts draws above this difference, and none is above 0
    p_value = 1.0 if same or len(references[0]) < 2 else float(pair[1].p_value)  # of one sentence all draws are alike
    return Comparison(_title(name, metric), baseline, system, p_value, str(signature), lower_is_better=name == "ter")


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


def _metric(name: str, scoring: Scoring) -> Metric:
    characters = scoring.tokenizer in ("zh", "ja-mecab", "char")
    match name:
        case "bleu":
            return _bleu(scoring.tokenizer, scoring.lowercase)
        case "chrf":
            return CHRF(lowercase=scoring.lowercase)
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
    return "BLEU (tokenised, lower-cased)" if name == "tokenised-bleu" else name_in_sacrebleu


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    # The environment is the only place where PairedTest looks for its seed.
    before = os.environ.get("SACREBLEU_SEED")
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ["SACREBLEU_SEED"]
        else:
            os.environ["SACREBLEU_SEED"] = before
