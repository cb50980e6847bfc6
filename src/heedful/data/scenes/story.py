"""Stories: an endless corpus of texts, each a few scenes in a row about one small cast, for GPT and for BERT.

The text shows which sentences belong together, so that BERT can learn to tell next passages from others: what a next
passage calls "the old king" was "an old king" before, while another passage names others, or nobody yet known.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from heedful.data.scenes import chinese, english, german
from heedful.data.scenes.narrator import Narrator, NobodyLeft
from heedful.data.scenes.parts import divide
from heedful.data.scenes.sentence import sentence
from heedful.data.scenes.tree import Scene
from heedful.errors import InputError

LANGUAGES = {"en": english, "de": german, "zh": chinese}
SENTENCES = range(4, 10)


def stories(
    language: str, count: int, seed: int, start: int = 0, sentences: Sequence[int] = SENTENCES
) -> Iterator[list[str]]:
    """Yield `count` stories of the corpus `seed` from story number `start` on, each as a list of sentences.

    A story is a function of the seed, its number and the choice of lengths; all languages tell the same stories.

    Raises:
        InputError: The language is not among LANGUAGES.
    """
    check(language)
    for index in range(start, start + count):
        yield tell(language, story(seed, index, sentences))


def split_stories(
    language: str,
    train: int,
    valid: int,
    test: int,
    seed: int,
    sentences: Sequence[int] = SENTENCES,
    done: Callable[[int], object] = lambda _: None,
) -> dict[str, list[list[str]]]:
    """Generate distinct stories, the given numbers of them for training, validation and testing.

    `sentences` are the lengths that stories may have.

    The purpose of a story follows from its English text, whatever the seed and the sizes: what is in one corpus for
    training is in no corpus for validation or testing. `done` is called with the number of stories that are added.

    Raises:
        InputError: The language is not among LANGUAGES.
    """
    check(language)
    drawn = (story(seed, index, sentences) for index in itertools.count())
    sizes = {"train": train, "valid": valid, "test": test}
    parts = divide(drawn, lambda scenes: " ".join(tell("en", scenes)), sizes, done)
    return {part: [tell(language, scenes) for scenes in kept] for part, kept in parts.items()}


def story_files(language: str, parts: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, str]:
    """Return text files of stories, contents by name such as "train.txt": a line a story, a blank line between two."""
    space = LANGUAGES[language].SPACE
    return {f"{part}.txt": "\n".join(space.join(story) + "\n" for story in told) for part, told in parts.items()}


def story(seed: int, index: int, sentences: Sequence[int] = SENTENCES) -> list[Scene]:
    """Draw the scenes of story number `index` of the corpus `seed`, a function of these arguments alone."""
    chance = random.Random(f"stories {seed} {index}")
    while True:
        narrator = Narrator(chance)
        try:
            return [narrator.scene() for _ in range(narrator.one(sentences))]
        except NobodyLeft:  # another cast will find more to do
            continue


def tell(language: str, scenes: Sequence[Scene]) -> list[str]:
    """Express each scene of a story as a sentence of a language."""
    tongue = LANGUAGES[language]
    return [sentence(tongue.realise(scene), tongue.SPACE).text for scene in scenes]


def check(language: str) -> None:
    """Check that stories come in a language.

    Raises:
        InputError: The language is not among LANGUAGES.
    """
    if language not in LANGUAGES:
        raise InputError(f"unknown language {language!r}: stories come in {', '.join(LANGUAGES)}")
