"""Tasks from images or audio to text: captioning (Xu et al. 2015) and speech recognition (Radford et al. 2022).

B batch, N rows of pixels or frames.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from heedful.architectures.input_layers import media_to_text
from heedful.architectures.model import SourceToTarget
from heedful.config.schema import CorpusConfig, DecodeConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.media_files import MediaFile, media_files
from heedful.data.stores import MediaStore
from heedful.predictors.captioner import Captioner
from heedful.predictors.transcriber import Transcriber
from heedful.tasks.parts.media import MediaFiles, places
from heedful.tasks.parts.sequence_to_sequence import (
    Output,
    PairBatch,
    SequenceToSequence,
    pair_batch,
    with_length_limit,
)
from heedful.tasks.readers.media import FileWithTextReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation
from heedful.text.sequences import pad
from heedful.text.speech_tokens import SpeechTokens
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class FilesWithTexts(MediaFiles[PairBatch]):
    """Images or audio, each with its text: a caption, or the spoken words.

    Attributes:
        references: The texts of the validation or test set.
    """

    reader = FileWithTextReader

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        super().__init__(with_length_limit(recipe, [store.lengths for store in examples.train]), examples)
        valid = recipe.data.valid
        self.references = [file.target for file in media_files(valid, recipe.data)] if valid else []

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text of a file; with a Whisper vocabulary, the text of speech begins with Whisper's prompt."""
        prompt = []
        if recipe.data.modality == "audio":
            speech = recipe.transcribe
            prompt = speech_tokens(tokenizers.target).prompt(speech.language if speech.languages else None)
        return [*prompt, *tokenizers.target.encode(file.target), EOS]

    def read(self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> PairBatch:
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        target, _ = pad([store.target(index).tolist() for store, index in places(stores, ids)])
        batch = pair_batch(inputs, padding_mask, torch.from_numpy(target), device)
        # The padding mask counts rows of pixels or frames, not positions in the layers.
        return replace(batch, source_tokens=self.positions(stores, ids))

    def decoded(self, numbers: Sequence[int]) -> Iterator[np.ndarray]:
        """Decode the files of the validation or test examples with these numbers, counted from 0."""
        return (self.modality.read(self.valid.content(number)) for number in numbers)


@lru_cache(maxsize=1)
def speech_tokens(tokenizer: Tokenizer) -> SpeechTokens:
    """Find the speech tokens of a vocabulary; they are cached, because each file needs them."""
    return SpeechTokens.of(tokenizer)


def build(recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
    """Build an image-to-text or audio-to-text model."""
    return media_to_text(recipe, len(tokenizers.target))


class Captioning(SequenceToSequence):
    """Captioning task: generates a text about each image."""

    spec = SPECS["captioning"]
    dataset = FilesWithTexts
    build = staticmethod(build)

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Captioner:
        return Captioner(model, tokenizers, recipe)

    def decode(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Output]:
        captioner = self.use(model, replace(self.recipe, decode=config), self.tokenizers)
        for captions in captioner.alternatives(self.data.decoded(numbers)):
            yield Output(captions[0].text, captions[0].hypothesis.complete)
            run.progress.advance()


class SpeechRecognition(SequenceToSequence):
    """Speech recognition task: transcribes the words spoken in each audio file."""

    spec = SPECS["speech_recognition"]
    dataset = FilesWithTexts
    build = staticmethod(build)

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Transcriber:
        return Transcriber(model, tokenizers.target, recipe)

    def decode(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Output]:
        transcriber = self.use(model, replace(self.recipe, decode=config), self.tokenizers)
        for transcript in transcriber.transcribe_each(self.data.decoded(numbers)):
            yield Output(transcript.text, transcript.complete)
            run.progress.advance()
