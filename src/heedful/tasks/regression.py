"""Regression task: learns a number for a text or a pair of texts, such as their similarity (Devlin et al. 2019, 4.1).

B batch.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import read_scored
from heedful.data.stores.pair_store import Rows
from heedful.evaluate.correlation import pearson, spearman
from heedful.evaluate.significance import Outcomes
from heedful.losses import Loss
from heedful.models import TextClassifier
from heedful.predict.scorer import Scorer
from heedful.tasks.task import Scores
from heedful.tasks.texts import TextBatch, TextTask, row_of
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class Regression(TextTask):
    """Regression task: a text or a pair of texts has a number, in the units of the training data."""

    scores = ("spearman", "pearson", "loss")

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Iterate over the text, and the second text if any, of each scored example, to train a tokenizer."""
        return (text for example in read_scored(corpus, recipe.data) for text in (example.text, example.pair) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each scored example as token ids and its number, stored as two 16-bit halves of a float32."""
        for example in read_scored(corpus, recipe.data, drops):
            row = row_of(example, corpus, recipe, tokenizer, drops)
            yield row, np.array([example.score], "<f4").view("<u2").tolist()

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        """Build a regression model: a backbone with one output."""
        return TextClassifier(recipe.model, len(tokenizers.source), 1)

    @classmethod
    def use(cls, model: TextClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Scorer:
        """Create the predictor that predicts a number for each text with the model."""
        return Scorer(model, tokenizers.source, recipe.data)

    def loss(self, model: TextClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        """Compute the squared error of the predicted numbers for a batch."""
        error = model(batch.ids, batch.padding_mask, batch.segments)[:, 0].float() - numbers(batch.targets)
        total = error.square().sum()
        return (Loss(total, total.detach(), len(error)),)

    def outcomes(self, model: TextClassifier) -> Outcomes:
        """Predict the numbers of the validation examples; scores are Spearman and Pearson correlation.

        A correlation is undefined if all predictions are equal or there is only one, and then counts as 0.
        """

        def predict(batch: TextBatch) -> Tensor:
            predicted = model(batch.ids, batch.padding_mask, batch.segments)[:, 0].float()
            return torch.stack([predicted, numbers(batch.targets)], dim=1)

        predicted, expected = self.results_of(model, predict).T

        def measure(chosen: np.ndarray) -> Scores:
            if len(chosen) < 2:
                return dict.fromkeys(CORRELATIONS, 0.0)
            found = {name: correlate(predicted[chosen], expected[chosen]) for name, correlate in CORRELATIONS.items()}
            return {name: 0.0 if math.isnan(r) else r for name, r in found.items()}

        return Outcomes(len(expected), measure)


def numbers(halves: Int[Tensor, "B 2"]) -> Float[Tensor, " B"]:
    """Join the lower and upper 16 bits of float32 numbers."""
    bits = halves[:, 0] + (halves[:, 1] << 16)
    return bits.to(torch.uint32).view(torch.float32)


CORRELATIONS = {"spearman": spearman, "pearson": pearson}
