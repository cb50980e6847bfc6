"""Speech recognition: a task whose models read speech and write its text (Radford et al. 2022)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config.schema import Recipe
from heedful.decode.transcriber import Transcriber
from heedful.errors import InputError
from heedful.losses import Loss
from heedful.models.input_layers import media_to_text
from heedful.models.model import SourceToTarget
from heedful.tasks.task import Batch, Scores, Task
from heedful.text.tokenizer_pair import TokenizerPair

UNTRAINED = InputError('task = "speech_recognition": models of speech can be converted and used, and not yet trained')


class SpeechRecognition(Task[Batch]):
    """Speech recognition with an encoder-decoder over frames of sound; models come from `heedful convert`."""

    families = ("encoder_decoder",)
    command = "heedful transcribe"
    example = "speech.wav"
    scores = ("loss", "perplexity")

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """Build an encoder-decoder over frames of sound, for the vocabulary of the text."""
        return media_to_text(recipe, len(tokenizers.target))

    @classmethod
    def use(cls, model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Transcriber:
        """Create the predictor that writes down the speech of recordings."""
        return Transcriber(model, tokenizers.target, recipe)

    @classmethod
    def usage(cls, model: Path) -> str:
        """Give an example of how a trained model is used: the command with a file of sound."""
        return f"{cls.command} {cls.example} --model {model}"

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Task:
        """Refuse to prepare data.

        Raises:
            InputError: Always.
        """
        del recipe, folder, report
        raise UNTRAINED

    def epoch(self, number: int) -> Sequence[np.ndarray]:
        """List no batches."""
        raise UNTRAINED

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> Batch:
        """Read no batch."""
        raise UNTRAINED

    def loss(self, model: Any, batch: Batch) -> tuple[Loss, ...]:
        """Compute no loss."""
        raise UNTRAINED

    def validate(self, model: Any) -> Scores | None:
        """Score no model."""
        raise UNTRAINED
