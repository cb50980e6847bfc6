"""Metrics of translation by sacrebleu (BLEU, chrF, TER), and paired bootstrap tests between two systems.

A figure without its settings cannot be compared, so each carries sacrebleu's signature (Post 2018, "A Call for
Clarity in Reporting BLEU Scores") and equals what the `sacrebleu` command prints with these settings, to all
digits.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from unicodedata import is_normalized, normalize

import numpy as np
from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from heedful.errors import InputError
from heedful.metrics.bootstrap import Comparison, ExampleScores, compare_scores
from heedful.metrics.metric import Metric, lower_is_better
from heedful.metrics.texts import Texts
from heedful.text.languages import CHINESE, base_language
from heedful.wording import counted

LOWER_CASED = ("bleu-lc", "chrf-lc")  # of lower-cased text on both sides; TER ignores case anyway
METRICS = ("bleu", "chrf", "ter", "tokenised-bleu", *LOWER_CASED)

MIN_LOWER_CASED = 10  # lines without upper-case letters that show that a text is lower-cased
MIN_KANA = 0.05  # the share of letters above which a text with Chinese characters is Japanese

NormalForm = Literal["NFC", "NFKC"]

TOKENIZERS = {  # languages that 13a, sacrebleu's usual tokenizer, does not split into words
    **dict.fromkeys(CHINESE, "zh"),
    **dict.fromkeys(("ja", "jpn"), "ja-mecab"),
    **dict.fromkeys(("ko", "kor"), "ko-mecab"),
    **dict.fromkeys(("th", "lo", "km", "my"), "char"),
}

SCRIPT_LANGUAGES = {  # language code of a script, by the first word of the Unicode names of the script's letters
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
}

TOKENIZER_SCRIPTS = {  # scripts that a tokenizer of sacrebleu is made for; other tokenizers split words at spaces
    "zh": {"CJK"},
    "ja-mecab": {"CJK", "HIRAGANA", "KATAKANA"},
    "ko-mecab": {"HANGUL"},
    "char": {"THAI", "LAO", "KHMER", "MYANMAR"},
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
    """Score N translations against one or more lists of N reference translations: one score for each metric.

    Raises:
        InputError: There is nothing to score, or line counts differ.
    """
    check_aligned({"the hypotheses": hypotheses, **_numbered(references)})
    (hypotheses, *references), form = normalised([hypotheses, *references], scoring.form)
    scores = []
    for name in scoring.metrics:
        metric = _metric(name, scoring)
        result = metric.corpus_score(hypotheses, references)
        scores.append(Score(_title(name, result.name), result.score, f"{metric.get_signature()}{form}"))
    return scores


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
    lower = sum(line != line.upper() for line in hypotheses) >= MIN_LOWER_CASED and not has_capitals([hypotheses])
    return lower and has_capitals(references)


def has_capitals(texts: Sequence[Sequence[str]]) -> bool:
    """True if any line has an upper-case letter."""
    return any(line != line.lower() for lines in texts for line in lines)


def script_warning(lines: Iterable[str], tokenizer: str) -> str | None:
    """Return a warning if most letters of a text are in a script that the tokenizer of BLEU is not made for; else None.

    Some scripts put no space between words. The tokenizer is given by sacrebleu's name, such as "13a" or "zh".
    """
    letters = count_letters(lines)
    expected = TOKENIZER_SCRIPTS.get(tokenizer)
    if expected is None:
        unfit = {script: count for script, count in letters.items() if script in SCRIPT_LANGUAGES}
    else:
        unfit = {script: count for script, count in letters.items() if script not in expected}
    if 2 * sum(unfit.values()) <= letters.total():
        return None
    script = max(unfit, key=lambda script: unfit[script])
    language = SCRIPT_LANGUAGES.get(script)
    if language == "zh" and letters["HIRAGANA"] + letters["KATAKANA"] > MIN_KANA * letters.total():
        language = "ja"
    advice = f"language {language}" if language else "the language of the text"
    return f"most letters are {script}, which tok:{tokenizer} does not cut into words; set {advice}"


def count_letters(lines: Iterable[str]) -> Counter[str]:
    """Count the letters of a text by script, named by the first word of the letters' Unicode names."""
    characters = Counter(character for line in lines for character in line if character.isalpha())
    scripts: Counter[str] = Counter()
    for character, count in characters.items():
        letter = unicodedata.name(character, "UNKNOWN").removeprefix("HALFWIDTH ").removeprefix("FULLWIDTH ")
        scripts[letter.split()[0].split("-")[0]] += count
    return scripts


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    scoring: Scoring = Scoring(),
    samples: int = 1000,
    seed: int = 1,
) -> list[Comparison]:
    """Compare two translation systems on the same resamples of a test set: one comparison for each metric.

    The scores are sacrebleu's; its own paired bootstrap reports p-values that are too small, so that two equally good
    systems differ "significantly" twice as often as they should.

    Args:
        baseline: N translations by the baseline system.
        system: N translations of the same text by another system.
        references: R lists of N reference translations each.
        scoring: The metrics and their settings.
        samples: The number of test sets to draw; the smallest possible p-value is 2 / (samples + 1).
        seed: The seed of the draws.

    Raises:
        InputError: There is nothing to score, line counts differ, or `samples` is below 1.
    """
    check_aligned({"the baseline": baseline, "the system": system, **_numbered(references)})
    (baseline, system, *references), form = normalised([baseline, system, *references], scoring.form)
    comparisons = []
    for name in scoring.metrics:
        (ours, signature), (theirs, _) = (resampled(name, x, references, scoring) for x in (system, baseline))
        [comparison] = compare_scores(theirs, ours, samples, seed)
        comparison = replace(comparison, signature=f"{signature}{form}", lower_is_better=lower_is_better(name))
        comparisons.append(comparison)
    return comparisons


def resampled(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], scoring: Scoring
) -> tuple[ExampleScores, str]:
    """Compute sacrebleu's counts for each sentence, whose sums make the score of any resample, and its signature.

    Texts are in the normal form of `scoring`.
    """
    metric = _metric(name, scoring)
    title = _title(name, metric.corpus_score(hypotheses[:1], [lines[:1] for lines in references]).name)
    counts = np.array(metric._extract_corpus_statistics(hypotheses, references))

    def measure(sentences: np.ndarray) -> dict[str, float]:
        return {title: float(metric._aggregate_and_compute([counts[sentences].sum(axis=0).tolist()]).score)}

    return ExampleScores(len(hypotheses), measure), str(metric.get_signature())


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
    tokenizer, lowercase = scoring.tokenizer, scoring.lowercase or name in LOWER_CASED
    by_characters = tokenizer in ("zh", "ja-mecab", "char")
    match name:
        case "bleu" | "bleu-lc":
            try:
                return BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)
            except RuntimeError:  # sacrebleu found no MeCab, which its Japanese and Korean tokenizers need
                return BLEU(lowercase=lowercase, tokenize="char", force=True)
        case "chrf" | "chrf-lc":
            return CHRF(lowercase=lowercase)
        case "ter":
            return TER(normalized=by_characters, asian_support=by_characters)
    # What is left is tokenised BLEU, as Moses' multi-bleu.perl -lc and fairseq-score have it: without smoothing.
    return BLEU(lowercase=True, tokenize="none", smooth_method="none", force=True)


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
