"""Speech for tests: a parrot that hears which level an audio file has and names it, and random models of both kinds."""

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from foreign_folders import SPOKEN, write_whisper
from heedful.architectures.input_layers import media_to_text
from heedful.architectures.model import SourceToTarget
from heedful.config.schema import Recipe
from heedful.config.validate import recipe_from_dict
from heedful.predictors.transcriber import Transcriber
from heedful.text.pipeline import BOS, EOS
from heedful.text.speech_tokens import SpeechTokens, speech_tokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.text.training import train_tokenizer

RATE, STEP = 500, 10  # samples per second, and of a time stamp
LETTERS = "abcdefghijklmnopqrs"


def speech(runs: list[tuple[str, int]]) -> np.ndarray:
    """Samples in which each letter is a level that lasts for so many time stamps."""
    levels = [np.full(count * STEP, LETTERS.index(letter) / 20 + 0.05) for letter, count in runs]
    return np.concatenate(levels).astype(np.float32)


def recipe(seconds: float = 0.5, **tables: dict) -> Recipe:
    """The recipe of a parrot that hears so many seconds at once."""
    audio = {"rate": RATE, "features": "samples", "hop": STEP, "stem": "linear", "max_seconds": seconds}
    model = {"d_model": 22, "d_ff": 31, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "tie": "output"}
    values = {"task": "speech_recognition", "data": {"modality": "audio"}, "audio": audio, "model": model}
    for name, table in tables.items():
        values[name] = values.get(name, {}) | table
    return recipe_from_dict(values, "test")


class Parrot(SourceToTarget):
    """A model that names the level of each run of equal frames; where it begins and ends, if it is to write times."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.tokenizer, self.tokens = tokenizer, SpeechTokens.of(tokenizer)
        self.weight = nn.Parameter(torch.zeros(1))
        self.batches: list[int] = []

    def hidden(self, source, source_padding_mask, target, target_padding_mask):
        raise AssertionError("it is not trained")

    def start(self, source, padding_mask):
        self.batches.append(len(source))
        return ParrotState(self, [self.script(row[mask]) for row, mask in zip(source, padding_mask, strict=True)])

    def script(self, frames: torch.Tensor) -> list[list[int]]:
        """What is written with times, and what is written without."""
        levels = ((frames.mean(1) - 0.05) * 20).round().long().tolist()
        changes = [0, *(i for i in range(1, len(levels)) if levels[i] != levels[i - 1]), len(levels)]
        stamped, plain = [], []
        for begin, end in pairwise(changes):
            letter = self.tokenizer.encode(LETTERS[levels[begin]])
            cut = end == len(levels) and self.tokens.times and len(levels) == 25
            times = [self.tokens.times[i] for i in (begin, end)] if self.tokens.times else [0, 0]
            stamped += [times[0], *letter, *([] if cut else times[1:])]
            plain += letter
        return [[*stamped, EOS], [*plain, EOS]]


@dataclass
class ParrotState:
    """The state of a parrot: after the prompt it says its script, whatever is fed."""

    parrot: Parrot
    scripts: list[list[list[int]]]

    def __post_init__(self) -> None:
        self.begin = torch.full((len(self.scripts),), BOS)
        self.said, self.plain = -1, False

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        own = self.parrot.tokens
        self.plain |= not own.times or bool((tokens == (own.without_times or -1)).all())
        prompt = own.controls - set(own.times)
        self.said += not set(tokens.tolist()) <= prompt
        logits = torch.zeros(len(tokens), len(self.parrot.tokenizer))
        logits[:, EOS] = -9.0  # else it is the next best, and a beam fills with texts that end early
        for row, script in enumerate(self.scripts):
            words = script[self.plain]
            logits[row, words[min(max(self.said, 0), len(words) - 1)]] = 9.0
        return logits

    def select(self, rows: torch.Tensor) -> None:
        self.scripts = [self.scripts[i] for i in rows.tolist()]


def stamped_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a small Whisper, with time stamps up to half a second."""
    names = write_whisper(folder, times=26)
    return speech_tokenizer(folder, len(names))[0]


def plain_tokenizer() -> Tokenizer:
    """A tokenizer of characters, as of a model that was trained in heedful."""
    settings = replace(Recipe().tokenizer, kind="character", byte_fallback=False)
    return train_tokenizer([LETTERS], settings)


def random_transcriber(tokenizer: Tokenizer, **tables: dict) -> Transcriber:
    """A transcriber whose model has random weights, and writes texts of many lengths."""
    settings = recipe(**{"decode": {"max_extra": 7, "beam": 3}, **tables})
    torch.manual_seed(3)
    model: Any = media_to_text(settings, len(tokenizer)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    model.source_embedding.project.weight.data *= 7
    for block in model.decoder.blocks:
        block.cross_attention.out.weight.data *= 5  # what is written depends on what is heard
    return Transcriber(model, tokenizer, settings)


def languages() -> dict[str, dict]:
    """The table [transcribe] of a model of several languages."""
    return {"transcribe": {"languages": list(SPOKEN)}}
