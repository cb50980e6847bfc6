"""Captioning (Xu et al. 2015) and speech recognition (Radford et al. 2022): a text is written about an image or audio.

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
from heedful.errors import InputError
from heedful.predictors.captioner import Captioner
from heedful.predictors.transcriber import Transcriber
from heedful.tasks.parts.media import MediaFiles, places, tokenizer_of_texts
from heedful.tasks.parts.sequence_to_sequence import (
    PairBatch,
    SequenceToSequence,
    Written,
    pair_batch,
    with_length_limit,
)
from heedful.tasks.task import Evaluation
from heedful.text.sequences import pad
from heedful.text.speech_tokens import SpeechTokens
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer


class WrittenFiles(MediaFiles[PairBatch]):
    """Images or audio, each with its text: a caption, or the words spoken.

    Attributes:
        references: the texts of the validation or test set.
    """

    new_tokenizers = staticmethod(tokenizer_of_texts)
    load_tokenizers = staticmethod(TokenizerPair.load)

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        super().__init__(with_length_limit(recipe, [store.lengths for store in examples.train]), examples)
        valid = recipe.data.valid
        self.references = [file.target for file in media_files(valid, recipe.data)] if valid else []

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        """Check that a recipe names training data and a tokenizer, and of several languages the one that is spoken."""
        super().check(recipe)
        given_tokenizer(recipe)
        speech, target_language = recipe.transcribe, recipe.data.target_language
        languages = speech.languages
        if (speech.language or target_language) in languages or (speech.language is None and not languages):
            return
        if not languages:
            raise InputError(f'transcribe.language = "{speech.language}": the model knows one language; leave it out')
        raise InputError(
            f"transcribe.language: the model tells {len(languages)} languages apart; set it to the one that is "
            f"spoken, such as {languages[0]}"
        )

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the language that is spoken, for a model that distinguishes several."""
        speech, target_language = recipe.transcribe, recipe.data.target_language
        if speech.language is not None or target_language not in speech.languages:
            return recipe
        return replace(recipe, transcribe=replace(speech, language=target_language))

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text that belongs to a file; of speech after the prompt of a Whisper, if it is its vocabulary."""
        prompt = []
        if recipe.data.modality == "audio":
            speech = recipe.transcribe
            prompt = speech_tokens(tokenizers.target).prompt(speech.language if speech.languages else None)
        return [*prompt, *tokenizers.target.encode(file.target), EOS]

    def read(self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> PairBatch:
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        target, _ = pad([store.target(index).tolist() for store, index in places(stores, ids)])
        batch = pair_batch(inputs, padding_mask, torch.from_numpy(target), device)
        return replace(batch, source_tokens=self.positions(stores, ids))

    def decoded(self, numbers: Sequence[int]) -> Iterator[np.ndarray]:
        """Decode the files of validation examples, given by their numbers from 0."""
        return (self.medium.read(self.valid.content(number)) for number in numbers)


@lru_cache(maxsize=1)
def speech_tokens(tokenizer: Tokenizer) -> SpeechTokens:
    """Find the tokens of speech in a vocabulary, once for all files."""
    return SpeechTokens.of(tokenizer)


class Captioning(SequenceToSequence):
    """Captioning task: a text about each image."""

    modality = "image"
    command = "heedful caption"
    example = "FILE"
    dataset = WrittenFiles
    metrics = ("exact_match", "bleu", "loss", "perplexity")

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        return media_to_text(recipe, len(tokenizers.target))

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Captioner:
        return Captioner(model, tokenizers, recipe)

    def write(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Written]:
        captioner = self.use(model, replace(self.recipe, decode=config), self.tokenizers)
        for captions in captioner.alternatives(self.data.decoded(numbers)):
            yield Written(captions[0].text, captions[0].hypothesis.complete)
            run.progress.advance()


class SpeechRecognition(SequenceToSequence):
    """Speech recognition task: the words that are spoken in each audio file."""

    modality = "audio"
    command = "heedful transcribe"
    example = "FILE"
    dataset = WrittenFiles
    metrics = ("wer", "cer", "exact_match", "loss", "perplexity")

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        return media_to_text(recipe, len(tokenizers.target))

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Transcriber:
        return Transcriber(model, tokenizers.target, recipe)

    def write(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Written]:
        transcriber = self.use(model, replace(self.recipe, decode=config), self.tokenizers)
        for transcript in transcriber.transcribe_each(self.data.decoded(numbers)):
            yield Written(transcript.text, transcript.complete)
            run.progress.advance()
