"""Shapes: an endless corpus of generated images, with captions in three languages and the boxes of described objects.

An image shows one to three shapes on a light background. It has exactly one correct caption in English, German and
Chinese, so that captions can be scored by exact match. `scene` defines the shapes with their words and samples
scenes, `captions` describes them, and `corpus` writes the files.
"""

import itertools
import random
from collections.abc import Callable

from heedful.corpora.sampling import divide
from heedful.corpora.shapes.captions import LANGUAGES, caption
from heedful.corpora.shapes.scene import Scene, draw

__all__ = ["LANGUAGES", "Scene", "caption", "scene", "split"]


def scene(seed: int, index: int) -> Scene:
    """Sample scene `index` of the shapes corpus with seed `seed`; the scene depends on these arguments alone."""
    return draw(random.Random(f"shapes {seed} {index}"))


def split(
    train: int, valid: int, test: int, seed: int, done: Callable[[int], object] = lambda _: None
) -> dict[str, list[Scene]]:
    """Sample scenes with distinct captions for training, validation and testing; for `done` see `divide`."""
    scenes = (scene(seed, index) for index in itertools.count())
    sizes = {"train": train, "valid": valid, "test": test}
    return divide(scenes, lambda item: caption("en", item).text, sizes, done)
