import json
import random
import tracemalloc
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.schema import FilterConfig
from heedful.data.preparation.filters import LETTER_NAMES, HashSet, PairFilter, is_written_in, pair_hash
from heedful.data.readers.drop_report import DropReport

LOOSE = FilterConfig(max_characters=29, max_tokens=31, max_ratio=3.0)


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("one", "eins", None),
        ("", "eins", "empty source"),
        (" \t\u3000\u2028", "eins", "empty source"),
        ("one", "\r", "empty target"),
        ("", "", "empty source"),
        ("x" * 29, "eins", None),
        ("x" * 30, "eins", "too many characters"),
        pytest.param("one", "x" * 1_000_000, "too many characters", id="a million characters"),
    ],
)
def test_empty_and_long_text_is_dropped(source, target, reason):
    assert PairFilter(LOOSE).text_reason(source, target) == reason


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (1, 1, None),
        (31, 31, None),
        (32, 31, "too many tokens"),
        (31, 32, "too many tokens"),
        (7, 21, None),
        (7, 22, "length ratio"),
        (22, 7, "length ratio"),
        (64, 1, "too many tokens"),
    ],
)
def test_sentences_of_too_many_or_too_different_tokens_are_dropped(source, target, reason):
    assert PairFilter(LOOSE).token_reason(source, target) == reason


def test_without_a_ratio_lengths_may_differ():
    assert PairFilter(replace(LOOSE, max_ratio=None)).token_reason(1, 31) is None
    assert PairFilter(replace(LOOSE, max_ratio=None)).token_reason(1, 32) == "too many tokens"


def test_only_the_first_of_equal_pairs_is_kept():
    pair_filter = PairFilter(LOOSE)
    pairs = [("a", "b"), ("a", "b"), ("b", "a"), ("a", "c"), ("ab", "c"), ("a", "bc"), ("a ", "b"), ("a", "b")]
    reasons = [pair_filter.text_reason(*pair) for pair in pairs]
    assert reasons == [None, "duplicate", None, None, None, None, None, "duplicate"]


def test_duplicates_are_kept_on_demand():
    pair_filter = PairFilter(replace(LOOSE, duplicates=True))
    assert [pair_filter.text_reason("a", "b") for _ in range(3)] == [None, None, None]


SCRIPTS = {
    "latin": "Größe 42, ｆｕｌｌ ﬁn",
    "cyrillic": "Ёлка, 2 кг",
    "greek": "Ἑλλάς, 5",
    "arabic": "مَرْحَبًا ٣",
    "hebrew": "שָׁלוֹם",
    "han": "今天天气很好，1 度。々",
    "kana": "ひらがなとカタカナ、ｶﾅー",
    "hangul": "안녕하세요 1",
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("other", SCRIPTS)
def test_scripts_are_told_apart(script, other):
    assert is_written_in(SCRIPTS[other], script) == (script == other or (script, other) == ("kana", "han"))


def test_every_script_of_the_configuration_is_known():
    for field in ("source_script", "target_script"):
        scripts, _ = get_args(FilterConfig.__annotations__[field])
        assert set(get_args(scripts)) == set(LETTER_NAMES) == set(SCRIPTS)


def test_half_of_the_letters_decide():
    assert is_written_in("ab你好", "latin")
    assert not is_written_in("ab你好吗", "latin")
    assert is_written_in("12:30 — 🙂", "latin")
    assert is_written_in("東京大学は", "kana")


def test_half_and_full_width_letters_belong_to_their_script():
    assert is_written_in("ｶﾀｶﾅ", "kana")
    assert is_written_in("ｌａｔｉｎ", "latin")
    assert is_written_in("ﾡﾢ", "hangul")


def test_a_pair_in_the_wrong_script_is_dropped_on_either_side():
    pair_filter = PairFilter(replace(LOOSE, source_script="latin", target_script="han"))
    assert pair_filter.text_reason("hello", "你好") is None
    assert pair_filter.text_reason("你好", "你好") == "wrong script"
    assert pair_filter.text_reason("hello", "hello") == "wrong script"


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(1, 53), max_size=211))
def test_a_hash_set_is_a_set(values):
    table, reference = HashSet(), set()
    for value in values:
        assert table.add(value) == (max(value, 1) not in reference)
        reference.add(max(value, 1))
    assert len(table) == len(reference)


def test_a_hash_set_grows_and_forgets_nothing():
    rng = random.Random(5)
    values = [rng.getrandbits(64) for _ in range(10_007)]
    table = HashSet()
    tracemalloc.start()
    try:
        assert all(table.add(value) for value in values)
        assert tracemalloc.get_traced_memory()[0] <= 24 * len(values) + 1009
    finally:
        tracemalloc.stop()
    assert not any(table.add(value) for value in values)


@given(st.text(), st.text(), st.text(), st.text())
def test_different_pairs_have_different_hashes(a, b, c, d):
    assert (pair_hash(a, b) == pair_hash(c, d)) == ((a, b) == (c, d))
    assert 0 <= pair_hash(a, b) < 2**64


def test_reports_count_merge_and_keep_the_first_example():
    first, second = DropReport(), DropReport()
    first.drop("duplicate", "a.en", 7)
    first.drop("duplicate", "a.en", 11)
    second.drop("duplicate", "b.en", 2)
    second.drop("bad UTF-8", "b.en", 3)
    first.merge(second)
    assert first.rows() == [("bad UTF-8", 1, "b.en, line 3"), ("duplicate", 3, "a.en, line 7")]
    assert str(first) == "4 dropped: 1 for bad UTF-8 (first: b.en, line 3), 3 for duplication (first: a.en, line 7)"
    assert str(DropReport()) == "0 dropped"


def test_a_report_survives_json():
    report = DropReport()
    report.drop("length ratio", "a.en", 13)
    assert DropReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_what_is_remarked_upon_is_not_dropped():
    report, other = DropReport(), DropReport()
    report.drop("header", "a.tsv", 1)
    report.remark("cut", "a.tsv", 7)
    other.remark("cut", "b.tsv", 2)
    other.remark("empty", "b.tsv", 3)
    report.merge(other)
    assert str(report) == "1 dropped: 1 as a header (first: a.tsv, line 1)"
    assert report.remarks() == [("cut", 2, "a.tsv, line 7"), ("empty", 1, "b.tsv, line 3")]
    assert DropReport.from_dict(json.loads(json.dumps(report.to_dict()))) == report
