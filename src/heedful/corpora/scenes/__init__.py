"""Scenes: an endless parallel corpus, generated from a small grammar, with gold word alignments and roles.

Each sentence pair describes one random scene in English and in German, in Chinese or as a constituency tree. The word
alignment and the syntactic role of every word are known, and every English sentence has exactly one translation, so a
model that has learned the grammar scores BLEU 100. `grammar` samples a scene as a tree, which `english`, `german`,
`chinese` and `brackets` put into words.
"""

import itertools
import random
from collections.abc import Callable, Iterator

from heedful.corpora.sampling import divide
from heedful.corpora.scenes import brackets, chinese, english, german
from heedful.corpora.scenes.grammar import draw
from heedful.corpora.scenes.sentence import ROLES, ScenePair, Sentence, align, sentence
from heedful.errors import InputError
from heedful.wording import either

__all__ = ["LANGUAGES", "ROLES", "ScenePair", "Sentence", "check_languages", "generate", "pair", "split"]

LANGUAGES = {"en-de": german, "en-zh": chinese, "en-tree": brackets}
LENGTHS = range(4, 21)  # number of English words, including punctuation


def check_languages(languages: str) -> None:
    if languages not in LANGUAGES:
        raise InputError(f'unknown language pair "{languages}"; choose {either(LANGUAGES)}')


def pair(languages: str, seed: int, index: int) -> ScenePair:
    """Generate sentence pair `index` of the scenes corpus with seed `seed`; it depends on these arguments alone.

    The English sentence does not depend on the languages: en-de and en-zh have the same scenes.
    """
    check_languages(languages)
    target = LANGUAGES[languages]
    rng = random.Random(f"scenes {seed} {index}")
    while True:
        scene = draw(rng)
        source_words = english.realise(scene)
        if len(source_words) in LENGTHS:
            words = target.realise(scene)
            source = sentence(source_words, english.SPACE, english.ATTACHED)
            translation = sentence(words, target.SPACE, target.ATTACHED)
            return ScenePair(source, translation, align(source_words, words))


def generate(languages: str, count: int, seed: int, start: int = 0) -> Iterator[ScenePair]:
    """Yield `count` sentence pairs of the corpus with seed `seed`, from number `start` on. Sentences may repeat."""
    for index in range(start, start + count):
        yield pair(languages, seed, index)


def split(
    languages: str, train: int, valid: int, test: int, seed: int, done: Callable[[int], object] = lambda _: None
) -> dict[str, list[ScenePair]]:
    """Generate distinct sentence pairs for training, validation and testing; for `done` see `divide`."""
    pairs = (pair(languages, seed, index) for index in itertools.count())
    return divide(pairs, lambda item: item.source.text, {"train": train, "valid": valid, "test": test}, done)
