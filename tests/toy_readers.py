"""Untrained models of images, audio files or videos, as they come from a folder, and files for them: to look into."""

from pathlib import Path

import torch

import toy_captions
import toy_media
from heedful.checkpoint import LoadedModel
from heedful.config.schema import TokenizerConfig
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.text.training import train_tokenizer

PICTURE = toy_media.png(toy_media.drawn("left", 1))
SOUND = toy_media.wav(toy_media.tone("high", 1))
VIDEO = toy_media.animated(toy_media.moving("left", 1))
FILES = {
    "captioning": PICTURE,
    "image_classification": PICTURE,
    "speech_recognition": SOUND,
    "audio_classification": SOUND,
    "video_classification": VIDEO,
}
LABELS = {task: list(classes) for task, classes in toy_media.LABELS.items()}
CAPTION = toy_captions.TEXTS["left"]


def loaded(task, **tables):
    """A model of a task with random weights."""
    torch.manual_seed(1)
    if task in LABELS:
        recipe = toy_media.recipe(task, Path("here"), data={"labels": LABELS[task]}, **tables)
        tokenizers = NoTokenizers()
    else:
        recipe = toy_captions.recipe(task, Path("here"), **tables)
        words = TokenizerConfig(kind="word", vocab_size=31, byte_fallback=False)
        tokenizer = train_tokenizer(list(toy_captions.TEXTS.values()), words)
        tokenizers = TokenizerPair(tokenizer, tokenizer)
    return LoadedModel(recipe, find_task(task).build(recipe, tokenizers).eval(), tokenizers, Path("here"))


def models():
    """One of each task."""
    return {task: loaded(task) for task in FILES}
