"""A small recipe over made-up data for every task that comes with heedful, for what must hold for all of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import reversal
import toy_captions
import toy_media
import toy_patches
import toy_retrieval
import toy_spans
import toy_tasks
import toy_vectors
from heedful.config.schema import Recipe


def of_pairs(task: str, folder: Path) -> Recipe:
    reversal.write_texts(folder)
    return replace(reversal.recipe(folder, train={"accumulate": 2}), task=task)


def of_text(task: str, folder: Path) -> Recipe:
    return toy_tasks.recipe(task, toy_tasks.write_text(folder), train={"accumulate": 2})


def of_ranking(folder: Path) -> Recipe:
    reversal.write_texts(folder)
    settings = {"data": {"max_length": 17}, "model": {"family": "encoder"}, "train": {"accumulate": 2}}
    return replace(reversal.recipe(folder, **settings), task="ranking")


def of_spans(task: str, folder: Path) -> Recipe:
    write = {"tagging": toy_spans.write_tagged, "span_qa": toy_spans.write_questions}[task]
    for name, count in (("train", 61), ("valid", 7)):
        write(folder / name, count, seed=count)
    often = {"max_updates": 11, "validate_every": 4, "save_every": 3, "accumulate": 2}
    return toy_spans.recipe(task, folder, train=often)


def of_files(task: str, folder: Path) -> Recipe:
    return toy_media.recipe(task, toy_media.write_files(task, folder))


def of_captions(task: str, folder: Path) -> Recipe:
    return toy_captions.recipe(task, toy_captions.write_table(task, folder))


def of_hidden_patches(folder: Path) -> Recipe:
    image = {"size": [16, 24], "patch": 4, "channels": 1, "stem": "convolutional", "shift": 2, "flip": True}
    settings = {"image": image, "train": {"accumulate": 2, "batch_tokens": 131}}
    return toy_patches.recipe("masked_patches", toy_patches.write_pictures(folder), **settings)


def of_pictures_and_texts(folder: Path) -> Recipe:
    return toy_retrieval.recipe(toy_retrieval.write_tables(folder))


RECIPES: dict[str, Callable[[Path], Recipe]] = {  # by task; each writes the data into an empty folder
    **{task: partial(of_pairs, task) for task in ("translation", "text_to_text", "summarisation", "dialogue")},
    **{task: partial(of_text, task) for task in toy_tasks.TASKS},
    "ranking": of_ranking,
    **{task: partial(of_spans, task) for task in ("tagging", "span_qa")},
    "word_vectors": toy_vectors.toy_recipe,
    **{task: partial(of_files, task) for task in toy_media.TASKS},
    **{task: partial(of_captions, task) for task in toy_captions.TASKS},
    "masked_patches": of_hidden_patches,
    "image_text_retrieval": of_pictures_and_texts,
}
