"""Tasks that write a text about a picture or a sound: captioning (Xu et al. 2015) and speech recognition.

B batch, N rows of pixels or frames, F features of a row, T target tokens.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, DecodeConfig, Recipe
from heedful.data.media.media_files import MediaFile, media_files
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.stores.media_store import MediaStore
from heedful.decode.captioner import Captioner
from heedful.decode.transcriber import Transcriber
from heedful.evaluate import Scoring, score
from heedful.evaluate.error_rate import character_error_rate, word_error_rate
from heedful.evaluate.significance import Outcomes, mean_outcomes
from heedful.losses import Loss, perplexity
from heedful.models.input_layers import media_to_text
from heedful.models.model import SourceToTarget
from heedful.tasks.media import MediaTextTask, places
from heedful.tasks.sequence_to_sequence import WITHOUT_DECODING, PairBatch, exact_match, loss, pair_batch
from heedful.tasks.task import Mean, Scores
from heedful.text.padding import pad
from heedful.text.tokenizer import EOS
from heedful.text.tokenizer_pair import TokenizerPair


class MediaToText(MediaTextTask[PairBatch]):
    """Base class of tasks that write a text about a picture or a sound; a subclass defines `measure`.

    Attributes:
        means: the names of the scores that are means over outputs.
    """

    families = ("encoder_decoder",)
    command = "heedful caption"
    example = "FILE"
    means: ClassVar[tuple[str, ...]] = ("exact_match",)

    def __init__(self, recipe: Recipe, examples: PreparedData[MediaStore]) -> None:
        super().__init__(recipe, examples)
        valid = recipe.data.valid
        self.references = [file.target for file in media_files(valid, recipe.data)] if valid else []

    @staticmethod
    def target(file: MediaFile, corpus: CorpusConfig, recipe: Recipe, tokenizers: TokenizerPair) -> list[int]:
        """Encode the text that belongs to a file."""
        return [*tokenizers.target.encode(file.target), EOS]

    @abstractmethod
    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score output texts against their references, with the metrics of the task."""

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """Build an encoder-decoder: the input layer of the medium before its encoder, and a decoder of tokens."""
        return media_to_text(recipe, len(tokenizers.target))

    @property
    def best(self) -> str:
        """Name of the score that selects the best checkpoint: that of the recipe, else the first that is measured."""
        measured = self.scores if self.recipe.train.validate_decoding else WITHOUT_DECODING
        return self.recipe.train.best or measured[0]

    def read(self, stores: Sequence[MediaStore], ids: np.ndarray, epoch: int | None, device: torch.device) -> PairBatch:
        """Read the examples of a batch: inputs, in training augmented, and the tokens of their texts."""
        inputs, padding_mask = self.inputs(stores, ids, epoch)
        target, _ = pad([store.target(index).tolist() for store, index in places(stores, ids)])
        batch = pair_batch(inputs, padding_mask, torch.from_numpy(target), device)
        return replace(batch, source_tokens=self.positions(stores, ids))

    def loss(self, model: SourceToTarget, batch: PairBatch) -> tuple[Loss, ...]:
        """Compute the loss of the target tokens of a batch."""
        return (loss(model, batch, self.recipe.train.label_smoothing),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute loss and perplexity per target token from mean losses."""
        return {"loss": means[0].loss, "perplexity": perplexity(means[0].nll)}

    def validate(self, model: Any) -> Scores | None:
        """Score a model on the validation set: loss, perplexity and, if the recipe asks for them, greedy outputs."""
        greedy = replace(self.recipe.decode, beam=1, n_best=1)
        return self.scored(model, greedy, decoding=self.recipe.train.validate_decoding)

    def test(self, model: Any) -> Scores | None:
        """Score a model on the test set, with outputs decoded as the recipe says."""
        return self.scored(model, replace(self.recipe.decode, n_best=1), decoding=True)

    def scored(self, model: SourceToTarget, config: DecodeConfig, *, decoding: bool) -> Scores | None:
        """Compute loss and perplexity of the validation set by teacher forcing and, if asked for, scores of outputs."""
        store = self.examples.valid
        if store is None:
            return None
        given = self.summary(self.mean_losses(model, self.batches_of(store, model)))
        if not decoding:
            return given
        return self.scores_of_nan(given) or given | self.measure(self.outputs(model, config), self.references)

    def outcomes(self, model: SourceToTarget) -> Outcomes:
        """Score each output separately by the scores that are means over outputs."""
        outputs = self.outputs(model, replace(self.recipe.decode, n_best=1))
        found = [self.measure([output], [wanted]) for output, wanted in zip(outputs, self.references, strict=True)]
        return mean_outcomes({name: [scores[name] for scores in found] for name in self.means})

    def outputs(self, model: SourceToTarget, config: DecodeConfig) -> list[str]:
        """Write the text about each validation file."""
        _, store = self.valid
        own = list(self.reducer.share(range(len(store))))
        self.progress.begin("files", len(own))
        found = []
        for text in self.written(model, config, (self.medium.read(store.content(index)) for index in own)):
            found.append(text)
            self.progress.advance(1)
        return self.reducer.in_order(found)

    def written(self, model: SourceToTarget, config: DecodeConfig, decoded: Iterator[np.ndarray]) -> Iterator[str]:
        """Write the text about each decoded input, decoded as the settings say."""
        return Captioner(model, self.tokenizers, replace(self.recipe, decode=config)).texts(decoded)


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
    def use(cls, model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Transcriber:
        """Create the predictor that writes down the speech of recordings."""
        return Transcriber(model, tokenizers.target, recipe)

    def written(self, model: SourceToTarget, config: DecodeConfig, decoded: Iterator[np.ndarray]) -> Iterator[str]:
        """Write down the speech of each recording."""
        transcriber = Transcriber(model, self.tokenizers.target, replace(self.recipe, decode=config))
        return (transcript.text for transcript in transcriber.transcribe_each(decoded))

    def measure(self, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score transcripts by word error rate, character error rate and exact match."""
        return {
            "wer": word_error_rate(outputs, references),
            "cer": character_error_rate(outputs, references),
            "exact_match": exact_match(outputs, references),
        }
