"""Regression: a number for a text, or for a pair of texts, such as how similar they are (Devlin et al. 2019, 4.1).

B batch.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.filters import DropReport
from heedful.data.labelled import read_scored
from heedful.data.pair_store import Rows
from heedful.evaluate.correlation import pearson, spearman
from heedful.evaluate.resampling import Outcomes
from heedful.losses import Loss
from heedful.models import TextClassifier
from heedful.predict.scorer import Scorer
from heedful.tasks.task import Scores
from heedful.tasks.texts import TextBatch, TextTask, row_of
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class Regression(TextTask):
    """A number in the units of the training data."""

    scores = ("spearman", "pearson", "loss")

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Both texts of each example."""
        return (text for example in read_scored(corpus, recipe.data) for text in (example.text, example.pair) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Each text with its number, as both halves of a float32."""
        for example in read_scored(corpus, recipe.data, drops):
            row = row_of(example, corpus, recipe, tokenizer, drops)
            yield row, np.array([example.score], "<f4").view("<u2").tolist()

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        """A backbone with one output."""
        return TextClassifier(recipe.model, len(tokenizers.source), 1)

    @classmethod
    def use(cls, model: TextClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Scorer:
        """What gives texts numbers."""
        return Scorer(model, tokenizers.source, recipe.data)

    def loss(self, model: TextClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        """The squared error."""
        error = model(batch.ids, batch.padding_mask, batch.segments)[:, 0].float() - numbers(batch.targets)
        total = error.square().sum()
        return (Loss(total, total.detach(), len(error)),)

    def outcomes(self, model: TextClassifier) -> Outcomes:
        """Predictions, of which rank correlation (Spearman) and linear correlation (Pearson) are made.

        A correlation is undefined where all predictions are the same; that counts as 0, as they tell nothing.
        """

        def predict(batch: TextBatch) -> Tensor:
            predicted = model(batch.ids, batch.padding_mask, batch.segments)[:, 0].float()
            return torch.stack([predicted, numbers(batch.targets)], dim=1)

        predicted, expected = self.results_of(model, predict).T

        def measure(chosen: np.ndarray) -> Scores:
            found = {name: correlate(predicted[chosen], expected[chosen]) for name, correlate in CORRELATIONS.items()}
            return {name: 0.0 if math.isnan(r) else r for name, r in found.items()}

        return Outcomes(len(expected), measure)


def numbers(halves: Int[Tensor, "B 2"]) -> Float[Tensor, " B"]:
    """The float32 whose lower and upper 16 bits are given."""
    bits = halves[:, 0] + (halves[:, 1] << 16)
    return bits.to(torch.uint32).view(torch.float32)


CORRELATIONS = {"spearman": spearman, "pearson": pearson}
