"""Tags of a segment are in its translation: all of them, nested as in the source, around the words that they mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.document import Segment, Tag
from heedful.documents.tags import Link, Sentence, project_tags, with_stand_ins, without_stand_ins


def parsed(markup):
    """Read a text with tags of one letter, such as "a <b>c</b>"; <x> is an empty tag, and <w> is a word."""
    text, tags = "", []
    for part in markup.replace("<", "\0<").replace(">", ">\0").split("\0"):
        if part.startswith("<"):
            kinds = {"<x>": "empty", "<w>": "word"}
            tags.append(Tag(len(text), part, kinds.get(part, "close" if part[1] == "/" else "open")))
        else:
            text += part
    return Segment(text, tuple(tags))


def written(segment):
    text = segment.text
    for tag in reversed(segment.tags):
        text = text[: tag.position] + tag.markup + text[tag.position :]
    return text


def placed(markup, translation, words=()):
    source = parsed(markup)
    return written(project_tags(source, translation, [Sentence((0, len(source.text)), (0, len(translation)), words)]))


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("<b>A small dog.</b>", "Ein kleiner Hund.", "<b>Ein kleiner Hund.</b>"),
        ("A <b>small</b> dog.", "Ein kleiner Hund.", "Ein <b>kleiner</b> Hund."),
        ("A small <b>dog</b>.", "Ein kleiner Hund.", "Ein kleiner <b>Hund</b>."),
        ("A <b><i>small</i> dog</b>.", "Ein kleiner Hund.", "Ein <b><i>kleiner</i> Hund</b>."),
        ("One <b>two</b> three four.", "一二三四。", "一<b>二</b>三四。"),
        ("<x>A dog.<x>", "Ein Hund.", "<x>Ein Hund.<x>"),
        ("A dog</b> runs", "Ein Hund läuft", "Ein Hund</b> läuft"),
        ("A <b>dog runs", "Ein Hund läuft", "Ein<b> Hund läuft"),
        ("A<b></b> dog", "Ein Hund", "Ein<b></b> Hund"),
        ("<b>A dog</b>", "", "<b></b>"),
        ("<b></b>", "", "<b></b>"),
    ],
)
def test_tags_go_around_the_same_share_of_the_words(source, translation, expected):
    assert placed(source, translation) == expected


def test_tags_go_around_the_words_that_are_linked():
    words = [Link((0, 2), (0, 3)), Link((3, 6), (4, 7)), Link((7, 11), (13, 18)), Link((12, 16), (8, 12))]
    assert placed("we <b>saw</b> <i>them here</i>", "wir han hier sahen", words) == "wir <b>han</b> <i>hier sahen</i>"


def test_pairs_change_places_with_their_words():
    words = [Link((0, 4), (5, 8)), Link((5, 8), (0, 4))]
    assert placed("<b>chat</b> <i>big</i>", "gros cha", words) == "<i>gros</i> <b>cha</b>"


def test_tags_around_a_sentence_stay_around_its_translation():
    source = parsed("One. <b>Two and three.</b> Four.")
    sentences = [Sentence((0, 4), (0, 6)), Sentence((5, 19), (7, 12)), Sentence((20, 25), (13, 18))]
    assert written(project_tags(source, "Eins.. Zwei. Vier.", sentences)) == "Eins.. <b>Zwei.</b> Vier."


MARKUP = st.lists(st.sampled_from(["a ", "bc", ". ", "我", "<b>", "</b>", "<i>", "</i>", "<x>"]), max_size=14)


def depth_is_valid(tags):
    """Whether each closing tag closes the last open one of its name, as far as the tags are paired."""
    stack = []
    for tag in tags:
        if tag.kind == "open":
            stack.append(tag.markup)
        elif tag.kind == "close" and (not stack or stack.pop()[1:] != tag.markup[2:]):
            return False
    return not stack


@given(MARKUP, st.text(st.sampled_from("xy z.我"), max_size=30), st.data())
def test_every_tag_is_in_the_translation_and_pairs_stay_nested(parts, translation, data):
    source = parsed("".join(parts))
    ranges = st.tuples(*[st.integers(0, 30)] * 4).map(
        lambda n: Link((min(n[:2]), max(n[:2])), tuple(min(x, len(translation)) for x in sorted(n[2:])))
    )
    words = data.draw(st.lists(ranges, max_size=5))
    result = project_tags(source, translation, [Sentence((0, len(source.text)), (0, len(translation)), words)])
    assert result.text == translation
    assert sorted(tag.markup for tag in result.tags) == sorted(tag.markup for tag in source.tags)
    positions = [tag.position for tag in result.tags]
    assert positions == sorted(positions)
    assert all(0 <= position <= len(translation) for position in positions)
    if depth_is_valid(source.tags):
        assert depth_is_valid(result.tags)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Run <x> now.", "Run {1} now."),
        ("See (<x>), {1} and <x>, please", "See ({2}), {1} and {3}, please"),
        ("<x>A<x> dog: <x>B<x>", "A dog: B"),  # an image, a note, a line break
        ("Open <b><x></b> and <x>.", "Open {1} and {2}."),
        ("<w> runs in a<w>", "{1} runs in a{2}"),
    ],
)
def test_a_single_tag_in_the_place_of_a_word_is_a_placeholder(source, text):
    assert with_stand_ins(parsed(source))[0].text == text


@given(st.lists(st.sampled_from(["a ", "{1}", "bc", "<b>", "</b>", "<x>", "<w>", " ", "."]), max_size=14))
def test_placeholders_become_their_tags_again(parts):
    source = parsed("".join(parts))
    replaced, words = with_stand_ins(source)
    assert all(replaced.text.count(placeholder) == 1 for placeholder in words)
    back = without_stand_ins(replaced, words)
    assert back.text == source.text
    assert written(back) == written(source)
    assert [tag.kind for tag in back.tags] == [tag.kind for tag in source.tags]
