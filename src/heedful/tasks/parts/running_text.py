"""Data of running text, in windows."""

from collections.abc import Sequence

import numpy as np

from heedful.data.stream import TokenStream, WindowPlan
from heedful.tasks.dataset import B, Dataset
from heedful.tasks.readers.running_text import RunningTextReader


class RunningText(Dataset[B]):
    """Base class for running text in windows; a subclass defines `prepare` and `read`."""

    reader = RunningTextReader

    def plan(self, stores: Sequence[TokenStream], weights: Sequence[float], seed: int) -> WindowPlan:
        del weights  # running text is read once per epoch
        return WindowPlan(stores[0], self.recipe.data.max_length, self.recipe.train.batch_tokens, seed)

    def valid_plan(self) -> list[np.ndarray] | None:
        """List the batches of the validation text, in windows that do not overlap: each token is predicted once."""
        valid = self.examples.valid
        return None if valid is None else self.plan((valid,), (1.0,), seed=0).cover()
