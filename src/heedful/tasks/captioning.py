"""Captioning task: learns to write a text about each picture (Xu et al. 2015)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from heedful.architectures.input_layers import media_to_text
from heedful.architectures.model import SourceToTarget
from heedful.config.schema import DecodeConfig, Recipe
from heedful.predictors.captioner import Captioner
from heedful.tasks.parts.sequence_to_sequence import SequenceToSequence, Written
from heedful.tasks.parts.written_files import WrittenFiles
from heedful.tasks.task import Evaluation
from heedful.text.tokenizer_pair import TokenizerPair


class Captioning(SequenceToSequence):
    """Captioning task: a text about each picture."""

    modality = "image"
    command = "heedful caption"
    example = "FILE"
    dataset = WrittenFiles
    metrics = ("exact_match", "bleu", "loss", "perplexity")

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """Build an encoder-decoder: the input layer of pictures before its encoder, and a decoder of tokens."""
        return media_to_text(recipe, len(tokenizers.target))

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Captioner:
        """Create the predictor that writes a caption of each picture."""
        return Captioner(model, tokenizers, recipe)

    def write(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Written]:
        """Write a caption of each picture of the validation set, given by their numbers, as the settings say."""
        captioner = self.use(model, replace(self.recipe, decode=config), self.tokenizers)
        for found in captioner.alternatives(self.data.decoded(numbers)):
            yield Written(found[0].text, found[0].hypothesis.complete)
            run.progress.advance()
