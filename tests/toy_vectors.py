"""Toy text for word vectors: sentences about kings, queens, men and women, food and fruit."""

from pathlib import Path
from typing import Any

import numpy as np

from heedful.config.load import make_recipe
from heedful.config.schema import Recipe

RANKS = {"royal": ("crown", "throne", "palace", "reigns"), "common": ("field", "plough", "village", "works")}
SEXES = {"male": ("he", "his", "beard", "brother"), "female": ("she", "her", "dress", "sister")}
PEOPLE = {
    "king": ("royal", "male"),
    "queen": ("royal", "female"),
    "man": ("common", "male"),
    "woman": ("common", "female"),
}
VERBS, FRUIT = ("eat", "consume"), ("apple", "pear", "plum")


def sentences(count: int, seed: int = 1) -> list[str]:
    """Sentences in which people stand among words of their rank and sex, and verbs before fruit."""
    chance = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        person = str(chance.choice(list(PEOPLE)))
        rank, sex = PEOPLE[person]
        words = [person, *chance.choice(RANKS[rank], 2, replace=False), *chance.choice(SEXES[sex], 2, replace=False)]
        made.append(" ".join(map(str, chance.permutation(words))))
        made.append(f"we {chance.choice(VERBS)} with joy")
        made.append(f"the ripe {chance.choice(FRUIT)} fell down")
    return made


def toy_recipe(folder: Path, text: str | None = None, **tables: dict[str, Any]) -> Recipe:
    """A recipe for word vectors of a small text, which is written to a folder."""
    (folder / "text.txt").write_text("\n".join(sentences(400)) if text is None else text)
    values = {
        "task": "word_vectors",
        "name": "toy",
        "data": {"train": [{"source": "text.txt"}], "documents": "line", "max_length": 64},
        "tokenizer": {"vocab_size": 101},
        "model": {"d_model": 13, "subsample": 0.0, **tables.get("model", {})},
        "optimizer": tables.get("optimizer", {}),
        "train": {
            "batch_tokens": 512,
            "max_updates": 17,
            "save_every": 5,
            "validate_every": 7,
            "log_every": 1,
            **tables.get("train", {}),
        },
    }
    return make_recipe(values, data_root=folder)
