"""Captions of drawn scenes: grammar, one caption a scene, and words that know their object."""

from itertools import product

import pytest

from heedful.corpora.shapes import LANGUAGES, caption, scene
from heedful.corpora.shapes.captions import MARKS, PLACES, RELATIONS, boxes
from heedful.corpora.shapes.scene import COLOURS, LARGE, SHAPES, SIZES, SMALL, Figure, Object, Scene

FIGURES = [Figure(*parts) for parts in product(SIZES, COLOURS, SHAPES)]
WHITE = (255, 255, 255)


def figure(size, colour, shape):
    return next(
        one for one in FIGURES if (one.size.english, one.colour.english, one.shape.english) == (size, colour, shape)
    )


def made(figures, where, third=""):
    """A scene as its captions see it; where its objects are drawn does not matter."""
    objects = tuple(Object(one, 40 + 80 * number, 100, 20) for number, one in enumerate(figures))
    return Scene(objects, where, third, WHITE)


def told(one):
    return [caption(language, one).text for language in ("en", "de", "zh")]


CIRCLE, SQUARE = figure("small", "red", "circle"), figure("large", "blue", "square")
STAR, HEART, DIAMOND = (
    figure(*words)
    for words in (("large", "green", "star"), ("small", "black", "heart"), ("large", "yellow", "diamond"))
)


def test_a_single_object_is_told_with_its_place():
    assert told(made([CIRCLE], "bottom right")) == [
        "a small red circle is in the bottom right corner",
        "ein kleiner roter Kreis ist unten rechts",
        "一个红色的小圆在右下角",
    ]


def test_two_objects_are_told_with_their_relation():
    assert told(made([CIRCLE, SQUARE], "left")) == [
        "a small red circle is to the left of a large blue square",
        "ein kleiner roter Kreis ist links von einem großen blauen Quadrat",
        "一个红色的小圆在一个蓝色的大正方形的左边",
    ]


def test_a_third_object_is_told_by_the_other_two():
    assert told(made([HEART, DIAMOND, STAR], "below", "right")) == [
        "a small black heart is below a large yellow diamond, and a large green star is to the right of them",
        "ein kleines schwarzes Herz ist unter einer großen gelben Raute, und rechts von beiden ist ein großer grüner "
        "Stern",
        "一颗黑色的小爱心在一个黄色的大菱形的下方，它们的右边有一颗绿色的大五角星",
    ]


GERMAN = {  # nominative and dative
    "circle": ("ein kleiner violetter Kreis", "einem kleinen violetten Kreis"),
    "square": ("ein kleines violettes Quadrat", "einem kleinen violetten Quadrat"),
    "triangle": ("ein kleines violettes Dreieck", "einem kleinen violetten Dreieck"),
    "star": ("ein kleiner violetter Stern", "einem kleinen violetten Stern"),
    "heart": ("ein kleines violettes Herz", "einem kleinen violetten Herzen"),
    "diamond": ("eine kleine violette Raute", "einer kleinen violetten Raute"),
}


@pytest.mark.parametrize("shape", [shape.english for shape in SHAPES])
def test_german_has_gender_case_and_endings(shape):
    one = figure("small", "purple", shape)
    nominative, dative = GERMAN[shape]
    assert caption("de", made([one, SQUARE, STAR], "above", "left")).text.startswith(f"{nominative} ist über einem ")
    assert caption("de", made([CIRCLE, STAR, one], "left", "below")).text.endswith(
        f", und unter beiden ist {nominative}"
    )
    assert caption("de", made([CIRCLE, one], "right")).text.endswith(f"rechts von {dative}")


def all_facts():
    """Everything that captions say of one object or two."""
    for one, place in product(FIGURES, PLACES):
        yield [one], place
    for first, second, relation in product(FIGURES, FIGURES, RELATIONS):
        smaller = (first.size, second.size) == (SMALL, LARGE)
        if first != second and (smaller or (first.size == second.size and relation in ("left", "above"))):
            yield [first, second], relation


def test_other_facts_have_another_caption_in_every_language():
    facts = [made(*one) for one in all_facts()]
    assert len(facts) == 72 * 9 + 72 * 71 // 2 * 4
    assert 72 * 9 + 72 * 71 // 2 * 4 * (1 + 70 * 2) == 1_442_232  # with a third object, any other, on one of two sides
    for language in LANGUAGES:
        assert len({caption(language, one).text for one in facts}) == len(facts)


def test_scenes_with_the_same_caption_have_the_same_facts():
    facts = {}
    for one in (scene(7, index) for index in range(5003)):
        for language in LANGUAGES:
            assert facts.setdefault(caption(language, one).text, one.facts) == one.facts
    assert len(facts) < 3 * 5003


def test_most_scenes_have_a_caption_of_their_own():
    assert len({caption("en", scene(5, index)).text for index in range(10_007)}) > 8000


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_cover_the_caption_in_order(language):
    for one in (scene(11, index) for index in range(211)):
        text, spans = caption(language, one).text, caption(language, one).spans
        words = [text[begin:end] for begin, end, _ in spans]
        assert all(words)
        assert not any(" " in word for word in words)
        assert "".join(words) == text.replace(" ", "")
        assert [span.begin for span in spans] == sorted({span.begin for span in spans})
        assert not any(f" {mark}" in text for mark in MARKS)
        assert language != "zh" or " " not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_words_about_an_object_are_its_phrase(language):
    one = made([HEART, DIAMOND, STAR], "below", "right")
    text, spans = caption(language, one).text, caption(language, one).spans
    phrases = ["".join(text[begin:end] for begin, end, about in spans if about == number) for number in range(3)]
    assert (
        phrases
        == {
            "en": ["asmallblackheart", "alargeyellowdiamond", "alargegreenstar"],
            "de": ["einkleinesschwarzesHerz", "einergroßengelbenRaute", "eingroßergrünerStern"],
            "zh": ["一颗黑色的小爱心", "一个黄色的大菱形", "一颗绿色的大五角星"],
        }[language]
    )


def test_each_word_has_the_box_of_its_object_or_none():
    one = made([CIRCLE, SQUARE], "left")
    circle, square = (list(item.box) for item in one.objects)
    found = boxes(caption("en", one), one)
    assert found[:5] == [[0, 1, circle], [2, 7, circle], [8, 11, circle], [12, 18, circle], [19, 21, None]]
    assert [box for _, _, box in found[5:]] == [None] * 4 + [square] * 4
    assert found[-1][:2] == [50, 56]
