"""Data of pictures or sounds, each with a text that is to be written about it: a caption, or the words spoken.

B batch, N rows of pixels or frames.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.media_files import MediaFile, media_files
from heedful.data.stores.media_store import MediaStore
from heedful.errors import InputError
from heedful.tasks.parts.media import MediaFiles, places, tokenizer_of_texts
from heedful.tasks.parts.sequence_to_sequence import PairBatch, pair_batch, with_length_limit
from heedful.text.sequences import pad
from heedful.text.speech_tokens import SpeechTokens
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer


class WrittenFiles(MediaFiles[PairBatch]):
    """Pictures or sounds, each with the text that is to be written about it.

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
        speech, written = recipe.transcribe, recipe.data.target_language
        if (speech.language or written) in speech.languages or (speech.language is None and not speech.languages):
            return
        if not speech.languages:
            raise InputError(f'transcribe.language = "{speech.language}": the model knows one language; leave it out')
        raise InputError(
            f"transcribe.language: the model tells {len(speech.languages)} languages apart; set it to the one that is "
            f"spoken, such as {speech.languages[0]}"
        )

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the language that is spoken, for a model that tells several apart."""
        speech, written = recipe.transcribe, recipe.data.target_language
        if speech.language is not None or written not in speech.languages:
            return recipe
        return replace(recipe, transcribe=replace(speech, language=written))

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text that belongs to a file; of speech after the prompt of a Whisper, if it is its vocabulary."""
        return [*prompt(recipe, tokenizers.target), *tokenizers.target.encode(file.target), EOS]

    def read(self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> PairBatch:
        """Read the examples of a batch: inputs, in training augmented, and the tokens of their texts."""
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


def prompt(recipe: Recipe, tokenizer: Tokenizer) -> list[int]:
    """The tokens before each text of speech in the vocabulary of a Whisper; none of other vocabularies, or captions."""
    if recipe.data.modality != "audio":
        return []
    speech = recipe.transcribe
    return speech_tokens(tokenizer).prompt(speech.language if speech.languages else None)
