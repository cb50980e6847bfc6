"""Scores equal sacrebleu's command and the published scripts; comparisons are repeatable and honest."""

import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec

import pytest

from heedful.errors import InputError
from heedful.metrics import METRICS, Comparison, Scoring, paired_bootstrap, score
from heedful.metrics.translation import count_letters, script_warning

WORDS = ("Der", "kleine", "Hund", ",", "und", "ein", "roter", "Ball", "liegen", "IM", "Garten", "vor", "See", ".")
SIGNS = "我你他们爱看见小猫大狗在河边吃鱼。"


def sentences(seed, count, words=WORDS, glue=" "):
    draw = random.Random(seed)
    return [glue.join(draw.choices(words, k=draw.randint(3, 19))) for _ in range(count)]


def damaged(lines, seed, rate):
    """The lines with some words left out and some neighbours swapped."""
    draw = random.Random(seed)
    result = []
    for line in lines:
        kept = [word for word in line.split() if draw.random() > rate] or ["leer"]
        if draw.random() < rate:
            kept.insert(0, kept.pop())
        result.append(" ".join(kept))
    return result


def command(folder, hypotheses, references, options):
    """What `sacrebleu` prints, as {name: (score, signature)}."""
    paths = [folder / f"reference{number}" for number in range(len(references))]
    for path, lines in zip([folder / "hypotheses", *paths], [hypotheses, *references], strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    arguments = [*map(str, paths), "-i", str(folder / "hypotheses"), "-w", "15", "-f", "json", *options]
    run = [sys.executable, "-m", "sacrebleu", *arguments]
    found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
    rows = found if isinstance(found, list) else [found]
    return {row["name"]: (row["score"], row["signature"]) for row in rows}


def ours(hypotheses, references, scoring):
    return {
        found.name: (float(f"{found.value:.15f}"), found.signature) for found in score(hypotheses, references, scoring)
    }


ALL = ["-m", "bleu", "chrf", "ter"]


def test_one_reference_equals_the_command_to_all_digits(tmp_path):
    references = [sentences(1, 53)]
    hypotheses = damaged(references[0], 2, 0.2)
    assert ours(hypotheses, references, Scoring()) == command(tmp_path, hypotheses, references, ALL)


def test_three_references_and_ignored_case_equal_the_command(tmp_path):
    references = [sentences(seed, 31) for seed in (1, 2, 3)]
    hypotheses = [line.title() for line in damaged(references[1], 4, 0.3)]
    options = [*ALL, "-lc", "--chrf-lowercase"]
    found = ours(hypotheses, references, Scoring(lowercase=True))
    assert found == command(tmp_path, hypotheses, references, options)
    assert "nrefs:3" in found["BLEU"][1]


@pytest.mark.parametrize("language", ["zh", "zh-Hans", "ZH_tw", "cmn"])
def test_chinese_is_cut_into_characters_and_the_signature_says_so(tmp_path, language):
    references = [sentences(1, 29, words=SIGNS, glue="")]
    hypotheses = [line[:5] + "X" + line[7:] for line in references[0]]
    found = ours(hypotheses, references, Scoring(language=language))
    options = [*ALL, "-tok", "zh", "--ter-asian-support", "--ter-normalized"]
    assert found == command(tmp_path, hypotheses, references, options)
    assert "tok:zh" in found["BLEU"][1]


@pytest.mark.skipif(find_spec("MeCab") is not None, reason="sacrebleu can cut Japanese into words here")
def test_japanese_without_mecab_is_cut_into_characters():
    [bleu] = score(["私は猫です。"], [["私は犬です。"]], Scoring(metrics=("bleu",), language="ja"))
    assert "tok:char" in bleu.signature
    assert 0 < bleu.value < 100


def multi_bleu(hypotheses, references):
    """Moses' multi-bleu.perl -lc, written down from its definition (Papineni et al. 2002)."""
    matches, totals, length, reference_length = [0] * 4, [0] * 4, 0, 0
    for hypothesis, *texts in zip(hypotheses, *references, strict=True):
        words = hypothesis.lower().split()
        wanted = [text.lower().split() for text in texts]
        length += len(words)
        reference_length += min((abs(len(text) - len(words)), len(text)) for text in wanted)[1]
        for n in range(1, 5):
            grams, *others = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (words, *wanted))
            matches[n - 1] += sum(min(count, max(x[gram] for x in others)) for gram, count in grams.items())
            totals[n - 1] += sum(grams.values())
    if 0 in matches:
        return 0.0
    precision = sum(math.log(match / total) for match, total in zip(matches, totals, strict=True)) / 4
    return 100 * math.exp(precision + min(0.0, 1 - reference_length / length))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_tokenised_bleu_equals_multi_bleu(count, rate):
    references = [sentences(seed, 37) for seed in range(count)]
    hypotheses = [line.upper() for line in damaged(references[0], 5, rate)]
    [found] = score(hypotheses, references, Scoring(metrics=("tokenised-bleu",)))
    assert found.value == pytest.approx(multi_bleu(hypotheses, references), abs=1e-9)
    assert found.name == "BLEU (tokenised, lower-cased)"
    assert "case:lc" in found.signature
    assert "tok:none" in found.signature


def test_tokenised_bleu_without_a_common_four_gram_is_zero_like_the_scripts():
    [found] = score(["a b c x d e f"], [["a b c y d e f"]], Scoring(metrics=("tokenised-bleu",)))
    assert found.value == multi_bleu(["a b c x d e f"], [["a b c y d e f"]]) == 0.0


def test_a_perfect_translation_scores_100_and_no_edits():
    lines = sentences(1, 7)
    found = score(lines, [lines], Scoring(metrics=METRICS))
    assert [entry.value for entry in found] == pytest.approx([100, 100, 0, 100, 100, 100])


def compared(seed, samples=199):
    reference = sentences(1, 61)
    worse, better = damaged(reference, 2, 0.3), damaged(reference, 3, 0.1)
    return paired_bootstrap(worse, better, [reference], Scoring(metrics=METRICS), samples, seed)


def test_a_comparison_repeats_by_seed():
    assert compared(seed=7) == compared(seed=7)
    assert compared(seed=7) != compared(seed=11)


def test_a_clear_difference_is_significant():
    for comparison in compared(seed=7):
        assert comparison.p_value == pytest.approx(2 / 200)
        assert "bs:" not in comparison.signature  # the score repeats by sacrebleu, its resamples do not
        assert comparison.baseline.mean == pytest.approx(comparison.baseline.value, abs=2)
        assert comparison.baseline.interval > 0


def test_a_system_does_not_differ_from_itself():
    reference = sentences(1, 61)
    same = damaged(reference, 2, 0.3)
    for found in paired_bootstrap(same, same, [reference], samples=19):
        assert found.baseline == found.system
        assert found.p_value == 1.0


def test_a_comparison_scores_each_system_as_scoring_alone_does():
    reference = sentences(1, 41)
    first, second = damaged(reference, 2, 0.3), damaged(reference, 3, 0.2)
    found = paired_bootstrap(first, second, [reference], samples=11)
    assert [entry.baseline.value for entry in found] == [x.value for x in score(first, [reference])]
    assert [entry.system.value for entry in found] == [x.value for x in score(second, [reference])]


def test_a_comparison_equals_the_command(tmp_path):
    reference = sentences(1, 43)
    systems = damaged(reference, 2, 0.3), damaged(reference, 3, 0.27)
    for name, lines in zip(("reference", "first", "second"), (reference, *systems), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = ["-i", "first", "second", "--paired-bs", "--paired-bs-n", "1001", "-w", "4", "-f", "json"]
    run = subprocess.run(
        [sys.executable, "-m", "sacrebleu", "reference", *options],
        cwd=tmp_path,
        env={**os.environ, "SACREBLEU_SEED": "13"},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [row["BLEU"] for row in json.loads(run.stdout)]
    [found] = paired_bootstrap(*systems, [reference], Scoring(metrics=("bleu",)), samples=1001, seed=13)
    for row, resampled in zip(printed, (found.baseline, found.system), strict=True):
        assert [row["score"], row["mean"], row["ci"]] == pytest.approx(
            [resampled.value, resampled.mean, resampled.interval], rel=0.05
        )
        assert row["score"] == pytest.approx(resampled.value, abs=1e-4)


def test_results_are_plain_numbers():
    [found] = paired_bootstrap(["a b c d"], ["a b c"], [["a b c d"]], Scoring(metrics=("chrf",)), samples=3)
    assert isinstance(found, Comparison)
    numbers = (found.p_value, found.baseline.mean, found.baseline.interval, found.system.value)
    assert [type(number) for number in numbers] == [float] * 4


@pytest.mark.parametrize(
    ("hypotheses", "references", "words"),
    [
        ([], [[]], "the hypotheses: no lines"),
        (["a"], [], "reference translations are missing"),
        (["a"], [[]], "reference 1: no lines"),
        (["a", "b"], [["a", "b"], ["a"]], "the hypotheses has 2 lines, but reference 2 has 1"),
    ],
)
def test_text_that_does_not_fit_together_is_refused(hypotheses, references, words):
    with pytest.raises(InputError, match=words):
        score(hypotheses, references)
    with pytest.raises(InputError, match=words.replace("hypotheses", "baseline")):
        paired_bootstrap(hypotheses, hypotheses, references)


def test_systems_of_unequal_length_are_refused():
    with pytest.raises(InputError, match="the baseline has 2 lines, but the system has 3"):
        paired_bootstrap(["a", "b"], ["a", "b", "c"], [["a", "b"]])


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r'unknown metric "bleurt"; choose one of bleu, chrf, ter, tokenised-bleu'):
        score(["a"], [["a"]], Scoring(metrics=("bleurt",)))


def test_a_number_of_samples_below_one_is_refused():
    with pytest.raises(InputError, match="0 samples"):
        paired_bootstrap(["a"], ["a"], [["a"]], samples=0)


def test_a_difference_in_one_sentence_may_be_chance():
    reference = sentences(1, 61)
    for found in paired_bootstrap(reference, ["nothing", *reference[1:]], [reference], Scoring(metrics=METRICS)):
        assert not found.is_significant


TEXTS = {
    "zh": "我们在河边吃鱼，两只小狗在跑。",
    "ja": "東京都知事選挙の投票率は前回を上回る。",
    "ko": "우리는 강가에서 생선을 먹는다.",
    "th": "เรากินปลาริมแม่น้ำ",
    "de": "Wir essen am Ufer Fisch, 3 × 5 Stück.",
    "ru": "Мы едим рыбу на берегу.",
}


@pytest.mark.parametrize("language", ["zh", "ja", "ko", "th"])
def test_text_without_spaces_needs_its_own_tokenizer(language):
    told = script_warning([TEXTS[language]], "13a")
    assert told is not None
    assert told.endswith(f"which tok:13a does not split into words; set language {language}")
    assert Scoring(language=language).warning([[TEXTS[language]]]) is None


@pytest.mark.parametrize("language", ["de", "ru"])
def test_words_between_spaces_need_none(language):
    assert script_warning([TEXTS[language]], "13a") is None


@pytest.mark.parametrize(("language", "text"), [("zh", "de"), ("ja", "ko"), ("ko", "zh"), ("th", "ru")])
def test_a_tokenizer_is_made_for_its_script(language, text):
    told = Scoring(language=language).warning([[TEXTS[text]]])
    assert told is not None
    assert "does not split into words" in told


def test_some_foreign_words_do_not_matter():
    assert script_warning([TEXTS["zh"], "BLEU"], "zh") is None
    assert script_warning([TEXTS["de"], "河边"], "13a") is None


@pytest.mark.parametrize("lines", [[], [""], ["123 !?"]])
@pytest.mark.parametrize("tokenizer", ["13a", "zh"])
def test_text_without_letters_is_in_no_script(lines, tokenizer):
    assert script_warning(lines, tokenizer) is None


def test_letters_of_half_width_are_letters():
    assert count_letters(["ｶﾅ Ａb 漢1"]) == {"KATAKANA": 2, "LATIN": 2, "CJK": 1}
