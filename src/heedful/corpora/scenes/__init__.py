"""Scenes: an endless parallel corpus from a small grammar of our own, with known word alignments and roles.

Each sentence pair tells one random scene in English and in German or Chinese. The gold word alignment and the syntactic
role of every word are known, and every English sentence has exactly one translation, so that a model that has learned
the grammar scores BLEU 100. `grammar` draws a scene as a tree, and `english`, `german` and `chinese` tell it.
"""

import itertools
import random
from collections.abc import Callable, Iterator

from heedful.corpora.scenes import chinese, english, german
from heedful.corpora.scenes.corpus import divide
from heedful.corpora.scenes.grammar import draw
from heedful.corpora.scenes.sentence import ROLES, ScenePair, Sentence, align, sentence
from heedful.errors import InputError

__all__ = ["LANGUAGES", "ROLES", "ScenePair", "Sentence", "generate", "pair", "split"]

LANGUAGES = {"en-de": german, "en-zh": chinese}
LENGTHS = range(4, 21)  # English words, punctuation included


def pair(languages: str, seed: int, index: int) -> ScenePair:
    """Generate sentence pair number `index` of the scenes corpus `seed`, a function of these arguments alone.

    The English sentence does not depend on the languages: en-de and en-zh tell the same scenes.
    """
    if languages not in LANGUAGES:
        raise InputError(f"unknown languages {languages!r}: scenes come in {' and '.join(LANGUAGES)}")
    target = LANGUAGES[languages]
    rng = random.Random(f"scenes {seed} {index}")
    while True:
        scene = draw(rng)
        ours = english.realise(scene)
        if len(ours) in LENGTHS:
            theirs = target.realise(scene)
            return ScenePair(sentence(ours, english.SPACE), sentence(theirs, target.SPACE), align(ours, theirs))


def generate(languages: str, count: int, seed: int, start: int = 0) -> Iterator[ScenePair]:
    """Yield `count` sentence pairs of the corpus `seed` from pair number `start` on; a sentence may come again."""
    for index in range(start, start + count):
        yield pair(languages, seed, index)


def split(
    languages: str, train: int, valid: int, test: int, seed: int, done: Callable[[int], object] = lambda _: None
) -> dict[str, list[ScenePair]]:
    """Generate distinct sentence pairs of scenes: the given numbers of them for training, validation and testing.

    The purpose of a sentence follows from its English text, whatever the seed and the sizes: what is in one corpus for
    training is in no corpus for validation or testing. `done` is called with the number of pairs that are added.
    """
    pairs = (pair(languages, seed, index) for index in itertools.count())
    return divide(pairs, lambda drawn: drawn.source.text, {"train": train, "valid": valid, "test": test}, done)
