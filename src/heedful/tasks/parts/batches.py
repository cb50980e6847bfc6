"""Batches of examples of similar length, of texts and of media files alike."""

from typing import Any

import numpy as np

from heedful.config.schema import Recipe
from heedful.data.batches import BatchPlan
from heedful.data.preparation.prepared_data import PreparedData


class BatchesByLength:
    """Part of a `Dataset` that has a store of examples for each corpus: batches of examples of similar length."""

    examples: Any  # `PreparedData` of a store for each corpus
    plan: BatchPlan

    def plan_batches(self, examples: PreparedData[Any], recipe: Recipe) -> None:
        self.examples = examples
        lengths = [self.lengths(store) for store in examples.train]
        self.plan = BatchPlan(lengths, examples.weights, recipe.train.batch_tokens, recipe.train.seed)

    def lengths(self, store: Any) -> np.ndarray:
        """Numbers of positions that the model reads from both sides of each example, (n, 2)."""
        return store.lengths

    def epoch(self, number: int) -> list[np.ndarray]:
        return self.plan.epoch(number)

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a batch in positions of its longest side, padding included."""
        return self.plan.cells(ids)

    def valid_plan(self) -> list[np.ndarray] | None:
        store = self.examples.valid
        return None if store is None else BatchPlan([self.lengths(store)], [1.0], self.plan.tokens, seed=0).epoch(0)

    def check_unchanged(self) -> None:
        self.examples.check_unchanged()
