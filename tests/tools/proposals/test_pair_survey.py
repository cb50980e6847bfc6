"""What is found out about a text, and that no sentence is trained on and tested as well."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.readers.corpus import SentencePair
from heedful.errors import InputError
from heedful.tools.proposals.pairs import can_be_held_out, survey_parallel
from heedful.tools.proposals.splits import classes_not_held_out, near_hash, split, split_by_class, text_hash
from heedful.tools.proposals.text_statistics import main_script

PARTS = ("train", "valid", "test")


def numbered(count: int) -> list[SentencePair]:
    return [SentencePair(line, f"the {line} cats", f"die {line} Katzen") for line in range(1, count + 1)]


def test_a_survey_counts_lines_words_and_oddities() -> None:
    found = survey_parallel(
        [
            SentencePair(1, "a b c", "ä  b"),
            SentencePair(2, "same", "same"),
            SentencePair(3, "a b c", "ä  b"),
            SentencePair(4, "  ", "x"),
            SentencePair(5, "a b c", "other"),
        ]
    )
    assert (found.pairs, found.empty, found.copies, found.repeated) == (5, 1, 1, 1)
    assert found.source.words.tolist() == [3, 1, 3, 0, 3]
    assert found.target.characters.tolist() == [4, 4, 4, 1, 5]
    assert len(found.source_hashes) == 2
    assert found.source.tokens.tolist() == [5, 3, 5, 1, 5]
    assert found.tokens.tolist() == [5, 3, 5, 3, 5]


def test_chinese_is_counted_in_characters() -> None:
    found = survey_parallel([SentencePair(1, "she reads", "她在读一本书。"), SentencePair(2, "he sleeps", "他睡觉。")])
    assert (found.source.script, found.target.script) == ("latin", "han")
    assert (found.source.is_spaceless, found.target.is_spaceless) == (False, True)
    assert found.target.tokens.tolist() == [np.ceil(0.7 * 7) + 1, np.ceil(0.7 * 4) + 1]
    assert found.target.alphabet == 10


def test_a_script_without_a_name_can_be_spaceless_too() -> None:
    found = survey_parallel([SentencePair(1, "good morning", "สวัสดีตอนเช้าครับทุกคน")])
    assert found.target.script is None
    assert found.target.is_spaceless


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Straße, 123!", "latin"),
        ("Привет, world", "cyrillic"),
        ("漢字とかな", "kana"),
        ("中文" * 13 + "の", "han"),
        ("中文", "han"),
        ("한국어", "hangul"),
        ("12 + 3", None),
        ("नमस्ते", None),
    ],
)
def test_the_main_script_has_most_letters(text: str, script: str | None) -> None:
    assert main_script(Counter(text)) == script


def test_one_line_that_training_leaves_out_counts_for_nothing() -> None:
    pairs = [SentencePair(line, "a house", "ein Haus") for line in range(1, 211)]
    found = survey_parallel([*pairs[:106], SentencePair(107, "字" * 3_000_017, "lang"), *pairs[107:]])
    assert (found.source.script, found.source.alphabet, found.source.is_spaceless) == ("latin", 7, False)
    assert found.too_long.nonzero()[0].tolist() == [106]
    assert found.lines[106] == 107
    assert found.trained_tokens.sum() == 209 * 4


def test_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="no lines"):
        survey_parallel([])


def parts(pairs: list[SentencePair], *, valid: bool = True, test: bool = True) -> dict[str, list[SentencePair]]:
    divided = {"train": [], "valid": [], "test": []}
    division = split(survey_parallel(pairs).source_hashes, valid, test, source="a")
    for part, pair in division.divide(pairs, lambda pair: pair.source, can_be_held_out):
        divided[part].append(pair)
    return divided


def test_a_twentieth_is_held_out_for_each_part() -> None:
    divided = parts(numbered(241))
    assert {part: len(pairs) for part, pairs in divided.items()} == {"train": 217, "valid": 12, "test": 12}
    assert sorted(pair.line for pairs in divided.values() for pair in pairs) == list(range(1, 242))
    assert {part: len(pairs) for part, pairs in parts(numbered(241), test=False).items()} == {
        "train": 229,
        "valid": 12,
        "test": 0,
    }


def test_a_thousand_is_enough() -> None:
    divided = parts(numbered(30_011))
    assert (len(divided["valid"]), len(divided["test"])) == (1000, 1000)


def test_a_held_out_sentence_is_nowhere_else() -> None:
    pairs = numbered(97)
    repeated = pairs + [SentencePair(pair.line + 97, pair.source, pair.target + "!") for pair in pairs]
    divided = parts(repeated)
    sources = {part: [pair.source for pair in pairs] for part, pairs in divided.items()}
    assert len(sources["train"]) == 2 * (97 - 8)
    for part, other in (("valid", "train"), ("test", "train"), ("valid", "test")):
        assert len(sources[part]) == len(set(sources[part])) or part == "train"
        assert not set(sources[part]) & set(sources[other])


def test_a_held_out_pair_can_be_judged() -> None:
    pairs = [SentencePair(line, f"sentence {line}", "" if line % 3 else f"Satz {line}") for line in range(1, 301)]
    divided = parts(pairs)
    assert len(divided["valid"]) == len(divided["test"]) == 5
    assert all(pair.target for part in ("valid", "test") for pair in divided[part])


@given(st.permutations(numbered(43)))
@settings(max_examples=20)
def test_the_split_does_not_depend_on_the_order(pairs: list[SentencePair]) -> None:
    assert {pair.source for pair in parts(pairs)["test"]} == {pair.source for pair in parts(numbered(43))["test"]}


def test_a_sentence_keeps_its_part_when_text_is_added() -> None:
    before, after = (
        split(survey_parallel(numbered(count)).source_hashes, True, True, source="a") for count in (2000, 2003)
    )
    hashes = [text_hash(pair.source) for pair in numbered(2000)]
    assert sum(before.part(hashed) != after.part(hashed) for hashed in hashes) <= 6


def test_too_little_text_cannot_be_split() -> None:
    with pytest.raises(InputError, match=r"a: too few distinct inputs to hold some out .*: 19;"):
        split(survey_parallel(numbered(19)).source_hashes, True, True, source="a")
    assert parts(numbered(20))["test"]


@pytest.mark.parametrize("sizes", [(192, 8), (200, 3), (3, 3, 3, 3, 3, 3, 3), (50_000, 3, 40)])
def test_a_class_of_three_examples_or_more_is_in_every_part(sizes: tuple[int, ...]) -> None:
    labels = [f"class {number}" for number, size in enumerate(sizes) for _ in range(size)]
    members = {text_hash(f"text {number}"): (label,) for number, label in enumerate(labels)}
    division = split_by_class(members, share=20, source="a")
    parts = {
        part: Counter(label for group, (label,) in members.items() if division.part(group) == part) for part in PARTS
    }
    assert all(set(counts) == set(labels) for counts in parts.values())
    assert classes_not_held_out(members, division) == []


@pytest.mark.parametrize("few", [1, 2])
def test_a_class_of_fewer_examples_is_only_trained_and_is_named(few: int) -> None:
    members = {text_hash(f"text {number}"): ("rare" if number < few else "common",) for number in range(101)}
    division = split_by_class(members, share=20, source="a")
    assert {division.part(group) for group, labels in members.items() if labels == ("rare",)} == {"train"}
    assert classes_not_held_out(members, division) == ["rare"]


def test_near_copies_of_a_text_are_in_one_part() -> None:
    texts = [f"{'no ' * (number % 7)}dog {number}" for number in range(211)]
    copies = [f" {text.upper()}!" for text in texts]
    pairs = [SentencePair(line, text, "Hund") for line, text in enumerate([*texts, *copies], start=1)]
    division = split(survey_parallel(pairs).source_hashes, valid=True, test=True, source="a")
    assert [division.part(near_hash(text)) for text in texts] == [division.part(near_hash(copy)) for copy in copies]
    assert {division.part(near_hash(text)) for text in texts} == set(PARTS)
    assert near_hash("dog 1") != near_hash("dog 2")


def test_the_split_does_not_depend_on_the_order_of_the_classes_of_a_group() -> None:
    labels = [(f"class {number % 5}", f"class {(number + 1) % 5}") for number in range(41)]
    splits = [
        split_by_class({n: pair[::step] for n, pair in enumerate(labels)}, share=10, source="a") for step in (1, -1)
    ]
    assert splits[0] == splits[1]
