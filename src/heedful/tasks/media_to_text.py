"""Tasks that write a text about a picture or a sound: captioning (Xu et al. 2015) and speech recognition.

B batch, N rows of pixels or frames, F features of a row, T target tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, DecodeConfig, Recipe
from heedful.data.media.media_files import MediaFile, media_files
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.stores.media_store import MediaStore
from heedful.decode.captioner import Captioner
from heedful.decode.transcriber import Transcriber
from heedful.errors import InputError
from heedful.evaluate import Scoring, score
from heedful.evaluate.error_rate import character_errors, word_errors
from heedful.evaluate.significance import Outcomes
from heedful.models.input_layers import media_to_text
from heedful.models.model import SourceToTarget
from heedful.tasks.media import MediaTextTask, places
from heedful.tasks.sequence_to_sequence import PairBatch, WritingTask, exact_match, pair_batch
from heedful.tasks.task import Scores
from heedful.text.padding import pad
from heedful.text.speech_tokens import SpeechTokens
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


@lru_cache(maxsize=1)
def speech_tokens(tokenizer: Tokenizer) -> SpeechTokens:
    """Find the tokens of speech in a vocabulary, once for all files."""
    return SpeechTokens.of(tokenizer)


class MediaToText(WritingTask, MediaTextTask[PairBatch]):
    """Base class of tasks that write a text about a picture or a sound; a subclass defines `measure`."""

    command = "heedful caption"
    example = "FILE"
    means = ("exact_match",)

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        lengths = [store.lengths for store in examples.train]
        super().__init__(self.with_length_limit(recipe, lengths), examples)
        valid = recipe.data.valid
        self.references = [file.target for file in media_files(valid, recipe.data)] if valid else []

    @classmethod
    def extra_tokens(cls, lengths: np.ndarray) -> np.ndarray:
        """Return the lengths of the targets (n,): a caption may have `decode.max_extra` tokens, whatever it is of."""
        return lengths[:, 1].astype(np.int64)

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text that belongs to a file."""
        return [*tokenizers.target.encode(file.target), EOS]

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """Build an encoder-decoder: the input layer of the medium before its encoder, and a decoder of tokens."""
        return media_to_text(recipe, len(tokenizers.target))

    def read(self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> PairBatch:
        """Read the examples of a batch: inputs, in training augmented, and the tokens of their texts."""
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        target, _ = pad([store.target(index).tolist() for store, index in places(stores, ids)])
        batch = pair_batch(inputs, padding_mask, torch.from_numpy(target), device)
        return replace(batch, source_tokens=self.positions(stores, ids))

    def given(self, model: SourceToTarget) -> Scores | None:
        """Compute loss and perplexity of the texts of the validation files by teacher forcing; None without them."""
        store = self.examples.valid
        return self.summary(self.mean_losses(model, self.batches_of(store, model))) if store is not None else None

    def outputs(self, model: SourceToTarget, config: DecodeConfig) -> list[tuple[str, str]]:
        """Write the text about each validation file; return it with its reference."""
        _, store = self.valid
        own = list(self.reducer.share(range(len(store))))
        self.progress.begin("files", len(own))
        found = []
        for output in self.written(model, config, (self.medium.read(store.content(index)) for index in own)):
            found.append(output)
            self.progress.advance(1)
        found = self.reducer.in_order(found)
        self.tell_cut(model, [complete for _, complete in found])
        return [(text, reference) for (text, _), reference in zip(found, self.references, strict=True)]

    def write(self, model: SourceToTarget, config: DecodeConfig, number: int) -> str:
        """Write the text about one validation file, by its number from 0."""
        _, store = self.valid
        return next(self.written(model, config, iter([self.medium.read(store.content(number))])))[0]

    def written(
        self, model: SourceToTarget, config: DecodeConfig, decoded: Iterator[np.ndarray]
    ) -> Iterator[tuple[str, bool]]:
        """Write the text about each decoded input, as the settings say; False if a text was cut at the length limit."""
        captioner = Captioner(model, self.tokenizers, replace(self.recipe, decode=config))
        return ((found[0].text, found[0].hypothesis.complete) for found in captioner.alternatives(decoded))


class Captioning(MediaToText):
    """Captioning task: a text about each picture."""

    modality = "image"
    scores = ("exact_match", "bleu", "loss", "perplexity")

    @classmethod
    def use(cls, model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Captioner:
        """Create the predictor that writes a caption of each picture."""
        return Captioner(model, tokenizers, recipe)

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score captions by exact match, and by SacreBLEU from 0 to 100."""
        scoring = Scoring(metrics=("bleu",), language=self.recipe.data.target_language)
        outputs, references = self.alike(outputs), self.alike(references)
        return {
            "exact_match": exact_match(outputs, references),
            "bleu": score(outputs, [references], scoring)[0].value,
        }


class SpeechRecognition(MediaToText):
    """Speech recognition task: the words that are spoken in each sound."""

    modality = "audio"
    command = "heedful transcribe"
    scores = ("wer", "cer", "exact_match", "loss", "perplexity")

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check a recipe as other media tasks do, and that a model of several languages is told which it learns."""
        super().check_recipe(recipe)
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

    @classmethod
    def extra_tokens(cls, lengths: np.ndarray) -> np.ndarray:
        """Compute how many tokens each target (n,) is longer than what the encoder makes of its sound."""
        return lengths[:, 1].astype(np.int64) - lengths[:, 0]

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the words that are spoken in a file, behind the prompt of a Whisper if the vocabulary is one's."""
        speech = recipe.transcribe
        prompt = speech_tokens(tokenizers.target).prompt(speech.language if speech.languages else None)
        return [*prompt, *MediaToText.target(file, corpus, recipe, tokenizers)]

    @classmethod
    def use(cls, model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Transcriber:
        """Create the predictor that writes down the speech of recordings."""
        return Transcriber(model, tokenizers.target, recipe)

    def written(
        self, model: SourceToTarget, config: DecodeConfig, decoded: Iterator[np.ndarray]
    ) -> Iterator[tuple[str, bool]]:
        """Write down the speech of each recording; False if a transcript was cut at the length limit."""
        transcriber = Transcriber(model, self.tokenizers.target, replace(self.recipe, decode=config))
        return ((transcript.text, transcript.complete) for transcript in transcriber.transcribe_each(decoded))

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score transcripts by word error rate, character error rate and exact match."""
        return self.resampled(outputs, references).scores

    def resampled(self, outputs: Sequence[str], references: Sequence[str]) -> Outcomes:
        """Count the errors of each transcript, so that the error rates of any resample can be computed."""
        outputs, references = self.alike(outputs), self.alike(references)
        words, characters = word_errors(outputs, references), character_errors(outputs, references)
        right = np.array([exact_match([text], [wanted]) for text, wanted in zip(outputs, references, strict=True)])
        return Outcomes(
            len(outputs),
            lambda chosen: {
                "wer": words.rate(chosen),
                "cer": characters.rate(chosen),
                "exact_match": float(right[chosen].mean()),
            },
        )
