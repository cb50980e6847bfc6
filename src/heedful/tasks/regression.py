"""Regression task: learns a number for a text or text pair, such as the similarity of a pair of sentences.

B batch.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures import TextClassifier
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import Standardisation, read_scored
from heedful.data.stores import Rows
from heedful.losses import Loss
from heedful.metrics.correlation import PredictedNumbers
from heedful.predictors.scorer import Scorer
from heedful.tasks.parts.texts import TextBatch, TextRows, encode_example
from heedful.tasks.readers.texts import ScoredTextReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Mean, Scores, Task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class ScoredTexts(TextRows[TextBatch]):
    """Texts, or text pairs, each with a number."""

    reader = ScoredTextReader

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each example as token ids and its number, stored as two 16-bit halves of a float32."""
        for example in read_scored(corpus, recipe.data, drops):
            ids = encode_example(example, corpus, recipe, tokenizer, drops)
            yield ids, np.array([example.score], "<f4").view("<u2").tolist()


class Regression(Task[TextBatch]):
    """Regression task: predicts a number for a text or text pair.

    The model learns numbers standardised by the mean and scale of the training data, which its recipe stores. Scores
    and predictions are in the original unit.
    """

    spec = SPECS["regression"]
    dataset = ScoredTexts

    def __init__(self, data: ScoredTexts) -> None:
        super().__init__(data)
        self.labels = Standardisation.of(data.recipe.data)

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        return TextClassifier(recipe.model, len(tokenizers.source), 1)

    @staticmethod
    def use(model: TextClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Scorer:
        return Scorer(model, tokenizers.source, recipe.data)

    def loss(self, model: TextClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        targets = self.labels.standardised(numbers(batch.targets))
        error = model(batch.ids, batch.padding_mask, batch.segments)[:, 0].float() - targets
        total = error.square().sum()
        return (Loss(total, total.detach(), len(error)),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute the mean squared error and its root, in the original unit of the labels."""
        # The model learns standardised numbers: convert their squared error to the unit of the labels.
        loss = super().summary(means)["loss"] * self.labels.scale**2
        return {"rmse": math.sqrt(loss), "loss": loss}

    def outputs(self, model: TextClassifier, run: Evaluation) -> PredictedNumbers:
        def predict(batch: TextBatch) -> Tensor:
            predicted = model(batch.ids, batch.padding_mask, batch.segments)[:, 0].float()
            return torch.stack([predicted, numbers(batch.targets)], dim=1)

        predicted, expected = run.per_example(self.data, model, predict).astype(np.float64).T
        return PredictedNumbers(self.labels.restored(predicted), expected)


def numbers(halves: Int[Tensor, "B 2"]) -> Float[Tensor, " B"]:
    """Join the lower and upper 16 bits of float32 numbers."""
    # Joined as int64, since PyTorch has few operations on uint32.
    bits = halves[:, 0] + (halves[:, 1] << 16)
    return bits.to(torch.uint32).view(torch.float32)
