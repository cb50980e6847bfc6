"""Captions of scenes in English, German and Chinese, with the object that each word describes.

A caption is a function of the scene's facts. It states where a single object is in the image or, for several objects,
where the first is relative to the second, and where a third is relative to both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from heedful.corpora.scenes.german import MIXED, MIXED_ARTICLE
from heedful.corpora.shapes.scene import Scene


class Word(NamedTuple):
    """A word of a caption, and the index of the object that it describes, or None."""

    text: str
    about: int | None = None


class Span(NamedTuple):
    """The character range of a word in a caption, `end` excluded, and the index of its object, if any."""

    begin: int
    end: int
    about: int | None


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and its words in order; whether spaces separate the words depends on the language."""

    text: str
    spans: tuple[Span, ...]


class Phrase(NamedTuple):
    """A position in the image or a relation, in three languages, each as words separated by spaces."""

    english: str
    german: str
    chinese: str


PLACES = {
    "top left": Phrase("in the top left corner", "oben links", "左上角"),
    "top": Phrase("at the top", "oben", "上边"),
    "top right": Phrase("in the top right corner", "oben rechts", "右上角"),
    "left": Phrase("on the left", "links", "左边"),
    "middle": Phrase("in the middle", "in der Mitte", "中间"),
    "right": Phrase("on the right", "rechts", "右边"),
    "bottom left": Phrase("in the bottom left corner", "unten links", "左下角"),
    "bottom": Phrase("at the bottom", "unten", "下边"),
    "bottom right": Phrase("in the bottom right corner", "unten rechts", "右下角"),
}
RELATIONS = {
    "left": Phrase("to the left of", "links von", "左边"),
    "right": Phrase("to the right of", "rechts von", "右边"),
    "above": Phrase("above", "über", "上方"),
    "below": Phrase("below", "unter", "下方"),
}
MARKS = ",，"


def caption(language: str, scene: Scene) -> Caption:
    """Describe a scene in a language, a key of LANGUAGES."""
    describe, space = LANGUAGES[language]
    text, spans = "", []
    for word in describe(scene):
        text += space if text and word.text not in MARKS else ""
        spans.append(Span(len(text), len(text) + len(word.text), word.about))
        text += word.text
    return Caption(text, tuple(spans))


def boxes(caption: Caption, scene: Scene) -> list[list[Any]]:
    """Return [begin, end, box] for each word of a caption: its character range, `end` excluded, and its object's box.

    The box is [left, top, right, bottom] in pixels, or None for a word without an object.
    """
    object_boxes = [list(item.box) for item in scene.objects]
    return [[begin, end, None if about is None else object_boxes[about]] for begin, end, about in caption.spans]


def english(scene: Scene) -> list[Word]:
    first = [*_english(scene, 0), Word("is")]
    if len(scene.objects) == 1:
        return [*first, *_words(PLACES[scene.where].english)]
    words = [*first, *_words(RELATIONS[scene.where].english), *_english(scene, 1)]
    if scene.third:
        third = _words(f"is {RELATIONS[scene.third].english} them")
        words += [Word(","), Word("and"), *_english(scene, 2), *third]
    return words


def german(scene: Scene) -> list[Word]:
    """Return the words of the German caption. All relations take the dative."""
    first = [*_german(scene, 0, "nominative"), Word("ist")]
    if len(scene.objects) == 1:
        return [*first, *_words(PLACES[scene.where].german)]
    words = [*first, *_words(RELATIONS[scene.where].german), *_german(scene, 1, "dative")]
    if scene.third:
        words += [*_words(f", und {RELATIONS[scene.third].german} beiden ist"), *_german(scene, 2, "nominative")]
    return words


def chinese(scene: Scene) -> list[Word]:
    first = [*_chinese(scene, 0), Word("在")]
    if len(scene.objects) == 1:
        return [*first, *_words(PLACES[scene.where].chinese)]
    words = [*first, *_chinese(scene, 1), Word("的"), *_words(RELATIONS[scene.where].chinese)]
    if scene.third:
        words += [*_words(f"， 它们 的 {RELATIONS[scene.third].chinese} 有"), *_chinese(scene, 2)]
    return words


def _words(text: str) -> list[Word]:
    return [Word(word) for word in text.split(" ")]


def _english(scene: Scene, number: int) -> list[Word]:
    figure = scene.objects[number].figure
    return _about(number, "a", figure.size.english, figure.colour.english, figure.shape.english)


def _german(scene: Scene, number: int, case: Literal["nominative", "dative"]) -> list[Word]:
    figure = scene.objects[number].figure
    form = case, figure.shape.gender
    noun = figure.shape.german[case == "dative"]
    adjectives = (figure.size.german + MIXED[form], figure.colour.german + MIXED[form])
    return _about(number, "ein" + MIXED_ARTICLE[form], *adjectives, noun)


def _chinese(scene: Scene, number: int) -> list[Word]:
    figure = scene.objects[number].figure
    described = (figure.colour.chinese, "的", figure.size.chinese, figure.shape.chinese)
    return _about(number, "一", figure.shape.classifier, *described)


def _about(number: int, *texts: str) -> list[Word]:
    return [Word(text, number) for text in texts]


# For each language, the function that describes a scene, and the word separator.
LANGUAGES: dict[str, tuple[Callable[[Scene], list[Word]], str]] = {
    "en": (english, " "),
    "de": (german, " "),
    "zh": (chinese, ""),
}
