"""Regression task: learns a number for a text or a pair of texts, such as their similarity (Devlin et al. 2019, 4.1).

B batch.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures import TextClassifier
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import read_scored
from heedful.data.stores import Rows
from heedful.losses import Loss
from heedful.metrics.correlation import PredictedNumbers
from heedful.predictors.scorer import Scorer, Standardisation
from heedful.tasks.parts.texts import TextBatch, TextRows, row_of
from heedful.tasks.task import Evaluation, Mean, Scores, Task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class ScoredTexts(TextRows[TextBatch]):
    """Texts, or pairs of texts, each with a number."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the mean and the scale of the numbers of the training data, unless the recipe has them."""
        data = recipe.data
        if data.label_scale is not None or not data.train:
            return recipe
        labels = [example.score for corpus in data.train for example in read_scored(corpus, data)]
        scale = Standardisation.of_labels(labels) if labels else Standardisation()
        return replace(recipe, data=replace(data, label_mean=scale.mean, label_scale=scale.scale))

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (text for example in read_scored(corpus, recipe.data) for text in (example.text, example.pair) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each scored example as token ids and its number, stored as two 16-bit halves of a float32."""
        for example in read_scored(corpus, recipe.data, drops):
            row = row_of(example, corpus, recipe, tokenizer, drops)
            yield row, np.array([example.score], "<f4").view("<u2").tolist()


class Regression(Task[TextBatch]):
    """Regression task: a text or a pair of texts has a number, in the units of the training data.

    The model learns the numbers standardised by mean and scale of the training data, which are stored in the recipe of
    the model; all that is reported is in the unit of the numbers.
    """

    families = ("encoder", "decoder")
    command = "heedful predict"
    dataset = ScoredTexts
    metrics = ("spearman", "pearson", "rmse", "loss")
    predicts = PredictedNumbers

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
        """Compute the mean squared error and its root, in the unit of the numbers."""
        # The model learns standardised numbers: their squared error goes back to the unit of the labels.
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
    bits = halves[:, 0] + (halves[:, 1] << 16)
    return bits.to(torch.uint32).view(torch.float32)
