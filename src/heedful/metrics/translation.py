"""Translation metrics from sacrebleu (BLEU, chrF, TER), and paired bootstrap tests between two systems.

Scores are comparable only if their settings are the same, so each has sacrebleu's signature (Post 2018, "A Call for
Clarity in Reporting BLEU Scores"). A score equals the output of the `sacrebleu` command with these settings, to all
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

LOWER_CASED = ("bleu-lc", "chrf-lc")  # metrics that lower-case both sides; TER always ignores case
METRICS = ("bleu", "chrf", "ter", "tokenised-bleu", *LOWER_CASED)

MIN_LOWER_CASED_LINES = 10  # minimum number of lines with lower-case letters to decide that a text is lower-cased
MIN_KANA = 0.05  # share of kana among the letters above which a text with Chinese characters is Japanese

NormalForm = Literal["NFC", "NFKC"]

TOKENIZERS = {  # sacrebleu's tokenizers by language; all other languages use its default, 13a
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

TOKENIZER_SCRIPTS = {  # scripts that a tokenizer is made for; other tokenizers split words at spaces
    "zh": {"CJK"},
    "ja-mecab": {"CJK", "HIRAGANA", "KATAKANA"},
    "ko-mecab": {"HANGUL"},
    "char": {"THAI", "LAO", "KHMER", "MYANMAR"},
}


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Settings of translation scores: metrics, target language, lower-casing and Unicode normal form.

    If any text is not in the normal form `form`, both sides are normalised, so that letters that look alike are equal.
    The signature then contains the form. TER ignores case in every setting.
    """

    metrics: tuple[str, ...] = ("bleu", "chrf", "ter")
    language: str = ""  # target language, such as "de" or "zh-Hans"; determines how text is split into words
    lowercase: bool = False
    form: NormalForm = "NFC"  # "NFKC" for a model that learns text in this form

    def __post_init__(self) -> None:
        """Raise an InputError if a metric is unknown."""
        for name in self.metrics:
            if name not in METRICS:
                raise InputError(f'unknown metric "{name}"; choose one of {", ".join(METRICS)}')

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
    """Score N translations against one or more lists of N reference translations: one score for each metric."""
    check_aligned({"the hypotheses": hypotheses, **_numbered(references)})
    (hypotheses, *references), form = normalised([hypotheses, *references], scoring.form)
    scores = []
    for name in scoring.metrics:
        metric = _metric(name, scoring)
        result = metric.corpus_score(hypotheses, references)
        scores.append(Score(_title(name, result.name), result.score, f"{metric.get_signature()}{form}"))
    return scores


def normalised(texts: Sequence[Sequence[str]], form: NormalForm) -> tuple[list[Sequence[str]], str]:
    """Convert all texts to a Unicode normal form; return them with a suffix for the signature, "" if none changed."""
    if all(is_normalized(form, line) for lines in texts for line in lines):
        return list(texts), ""
    return [[normalize(form, line) for line in lines] for lines in texts], f"|form:{form.lower()}"


def is_lower_cased(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> bool:
    """Return True if references have upper-case letters but no hypothesis does: the model generates lower-cased text.

    The result is False if there are too few lines to decide, or if the script has no case.
    """
    # Only lines with lower-case letters count: Chinese has no case, and would look lower-cased.
    lower = sum(line != line.upper() for line in hypotheses) >= MIN_LOWER_CASED_LINES and not has_capitals([hypotheses])
    return lower and has_capitals(references)


def has_capitals(texts: Sequence[Sequence[str]]) -> bool:
    """Return True if any line has an upper-case letter."""
    return any(line != line.lower() for lines in texts for line in lines)


def script_warning(lines: Iterable[str], tokenizer: str) -> str | None:
    """Return a warning if most letters of a text are in a script that a BLEU tokenizer is not made for; else None.

    Without spaces between words, such a tokenizer takes a whole line for one word. `tokenizer` is sacrebleu's name for
    it, such as "13a" or "zh".
    """
    letters = count_letters(lines)
    unfit_scripts = set(letters) - TOKENIZER_SCRIPTS[tokenizer] if tokenizer in TOKENIZER_SCRIPTS else SCRIPT_LANGUAGES
    unfit = {script: count for script, count in letters.items() if script in unfit_scripts}
    if 2 * sum(unfit.values()) <= letters.total():
        return None
    script = max(unfit, key=lambda script: unfit[script])
    language = SCRIPT_LANGUAGES.get(script)
    if language == "zh" and letters["HIRAGANA"] + letters["KATAKANA"] > MIN_KANA * letters.total():
        language = "ja"
    advice = f"language {language}" if language else "the language of the text"
    return f"most letters are {script}, which tok:{tokenizer} does not split into words; set {advice}"


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
    """Compare two translation systems on the same resamples of a test set: one comparison per metric.

    The scores are sacrebleu's, but the bootstrap is not: sacrebleu's p-values are too small, so that two equally good
    systems differ "significantly" twice as often as they should.

    Args:
        baseline: N translations by the baseline system.
        system: N translations of the same text by another system.
        references: R lists of N reference translations each.
        scoring: The metrics and their settings.
        samples: The number of resamples; the smallest possible p-value is 2 / (samples + 1).
        seed: The random seed.
    """
    check_aligned({"the baseline": baseline, "the system": system, **_numbered(references)})
    (baseline, system, *references), form = normalised([baseline, system, *references], scoring.form)
    comparisons = []
    for name in scoring.metrics:
        system_scores, signature = resampled(name, system, references, scoring)
        baseline_scores, _ = resampled(name, baseline, references, scoring)
        [comparison] = compare_scores(baseline_scores, system_scores, samples, seed)
        comparison = replace(comparison, signature=f"{signature}{form}", lower_is_better=lower_is_better(name))
        comparisons.append(comparison)
    return comparisons


def resampled(
    name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], scoring: Scoring
) -> tuple[ExampleScores, str]:
    """Compute sacrebleu's counts for each sentence, whose sums give the score of any resample.

    Returns the scores and sacrebleu's signature. Texts must be in the Unicode normal form of `scoring`.
    """
    metric = _metric(name, scoring)
    # Only a sacrebleu result has the full name, such as "chrF2"; one sentence is enough to get it.
    title = _title(name, metric.corpus_score(hypotheses[:1], [lines[:1] for lines in references]).name)
    counts = np.array(metric._extract_corpus_statistics(hypotheses, references))

    def measure(sentences: np.ndarray) -> dict[str, float]:
        return {title: float(metric._aggregate_and_compute([counts[sentences].sum(axis=0).tolist()]).score)}

    return ExampleScores(len(hypotheses), measure), str(metric.get_signature())


def check_aligned(texts: Mapping[str, Sequence[str]]) -> None:
    """Check that texts, by name, have at least one line and equal numbers of lines."""
    (first, lines), *others = texts.items()
    for name, text in texts.items():
        if not text:
            raise InputError(f"{name}: no lines to score; give texts with at least one line")
    for name, text in others:
        if len(text) != len(lines):
            raise InputError(
                f"{first} has {counted(len(lines), 'lines')}, but {name} has {len(text):,}: "
                "line n of both must correspond to the same sentence"
            )


def _numbered(references: Sequence[Sequence[str]]) -> dict[str, Sequence[str]]:
    if not references:
        raise InputError("reference translations are missing; give at least one list")
    return {f"reference {number}": lines for number, lines in enumerate(references, start=1)}


def _metric(name: str, scoring: Scoring) -> SacreMetric:
    tokenizer, lowercase = scoring.tokenizer, scoring.lowercase or name in LOWER_CASED
    by_characters = tokenizer in ("zh", "ja-mecab", "char")
    match name:
        case "bleu" | "bleu-lc":
            try:
                # `force` accepts text that looks tokenised, with separate full stops, about which sacrebleu would warn.
                return BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)
            except RuntimeError:  # MeCab, which sacrebleu's Japanese and Korean tokenizers need, is not installed
                return BLEU(lowercase=lowercase, tokenize="char", force=True)
        case "chrf" | "chrf-lc":
            return CHRF(lowercase=lowercase)
        case "ter":
            # TER edits words between spaces; with these settings each character of Chinese or Japanese is a word.
            return TER(normalized=by_characters, asian_support=by_characters)
    # Tokenised BLEU, as in Moses' multi-bleu.perl -lc and fairseq-score: without smoothing.
    return BLEU(lowercase=True, tokenize="none", smooth_method="none", force=True)


def _title(name: str, name_in_sacrebleu: str) -> str:
    if name in LOWER_CASED:
        return f"{name_in_sacrebleu} (lower-cased)"
    return "BLEU (tokenised, lower-cased)" if name == "tokenised-bleu" else name_in_sacrebleu


def _of_texts(name: str) -> Metric:
    # A sacrebleu metric as a metric of outputs: its counts for each text add up to the counts of any resample.
    def counts(texts: Texts) -> np.ndarray:
        metric = _metric(name, Scoring(language=texts.language, lowercase=texts.lowercase))
        (outputs, references), _ = normalised(texts.compared, "NFC")
        return np.array(metric._extract_corpus_statistics(outputs, [references]))

    def total(rows: np.ndarray) -> float:
        return float(_metric(name, Scoring())._aggregate_and_compute([rows.sum(axis=0).tolist()]).score)

    return Metric(counts, total, lower_is_better=name == "ter")


BLEU_METRIC, CHRF_METRIC, TER_METRIC = map(_of_texts, ("bleu", "chrf", "ter"))
