"""Shapes: an endless corpus of our own of drawn pictures, with captions in three languages and a box for each word.

A picture shows one to three shapes on a light background. Each picture has exactly one right caption in English, German
and Chinese, so that a model that has learned to see can be exact. `scene` has the shapes with their words and
draws a scene at random, `captions` describes it, and `corpus` makes the files.
"""

import itertools
import random
from collections.abc import Callable

from heedful.corpora.scenes.corpus import divide
from heedful.corpora.shapes.captions import LANGUAGES, caption
from heedful.corpora.shapes.scene import Scene, draw

__all__ = ["LANGUAGES", "Scene", "caption", "scene", "split"]


def scene(seed: int, index: int) -> Scene:
    """Draw scene number `index` of the shapes corpus `seed`, a function of these arguments alone."""
    return draw(random.Random(f"shapes {seed} {index}"))


def split(
    train: int, valid: int, test: int, seed: int, done: Callable[[int], object] = lambda _: None
) -> dict[str, list[Scene]]:
    """Draw scenes with distinct captions: the given numbers of them for training, validation and testing.

    The purpose of a scene follows from its English caption, whatever the seed and the sizes: what is in one corpus for
    training is in no corpus for validation or testing. `done` is called with the number of scenes that are added.
    """
    scenes = (scene(seed, index) for index in itertools.count())
    sizes = {"train": train, "valid": valid, "test": test}
    return divide(scenes, lambda item: caption("en", item).text, sizes, done)
