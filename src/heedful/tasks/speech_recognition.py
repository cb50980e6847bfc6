"""Speech recognition task: learns to write the words that are spoken (Radford et al. 2022)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from heedful.architectures.input_layers import media_to_text
from heedful.architectures.model import SourceToTarget
from heedful.config.schema import DecodeConfig, Recipe
from heedful.predictors.transcriber import Transcriber
from heedful.tasks.parts.sequence_to_sequence import SequenceToSequence, Written
from heedful.tasks.parts.written_files import WrittenFiles
from heedful.tasks.task import Evaluation
from heedful.text.tokenizer_pair import TokenizerPair


class SpeechRecognition(SequenceToSequence):
    """Speech recognition task: the words that are spoken in each sound."""

    modality = "audio"
    command = "heedful transcribe"
    example = "FILE"
    dataset = WrittenFiles
    metrics = ("wer", "cer", "exact_match", "loss", "perplexity")

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SourceToTarget:
        """Build an encoder-decoder: the input layer of sound before its encoder, and a decoder of tokens."""
        return media_to_text(recipe, len(tokenizers.target))

    @staticmethod
    def use(model: SourceToTarget, recipe: Recipe, tokenizers: TokenizerPair) -> Transcriber:
        """Create the predictor that writes down the speech of recordings."""
        return Transcriber(model, tokenizers.target, recipe)

    def write(
        self, model: SourceToTarget, config: DecodeConfig, numbers: Sequence[int], run: Evaluation
    ) -> Iterator[Written]:
        """Write down the speech of each sound of the validation set, given by their numbers, as the settings say."""
        transcriber = self.use(model, replace(self.recipe, decode=config), self.tokenizers)
        for transcript in transcriber.transcribe_each(self.data.decoded(numbers)):
            yield Written(transcript.text, transcript.complete)
            run.progress.advance()
