"""Data of running text that is cut into windows, whatever is predicted there."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.preparation.text import check_documents, fewest_documents
from heedful.data.readers.documents import check_files, document_lines
from heedful.data.stream import TokenStream, WindowPlan
from heedful.tasks.dataset import B, Dataset


class RunningText(Dataset[B]):
    """Base class of data of running text; a subclass prepares it, and reads windows of it as a batch."""

    def __init__(self, recipe: Recipe, text: PreparedData[TokenStream]) -> None:
        super().__init__(recipe, text.tokenizers, text.digest)
        self.text = text

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_documents(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Check that the training and validation texts are not empty."""
        fewest_documents(replace(recipe, data=replace(recipe.data, documents="line")), most=1)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)

    @abstractmethod
    def read(self, stream: TokenStream, starts: np.ndarray, key: tuple[int, int], device: torch.device) -> B:
        """Read the windows that begin at `starts`; `key`, a seed and an epoch, is for what is random in the batch."""

    def plan_of(self, stream: TokenStream) -> WindowPlan:
        return WindowPlan(stream, self.recipe.data.max_length, self.recipe.train.batch_tokens, self.recipe.train.seed)

    def epoch(self, number: int) -> list[np.ndarray]:
        return self.plan_of(self.text.train[0]).epoch(number)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> B:
        return self.read(self.text.train[0], ids, (self.recipe.train.seed, epoch), device)

    def valid_plan(self) -> list[np.ndarray] | None:
        """List the batches of the validation text, whose windows do not overlap: each token is predicted once."""
        return None if self.text.valid is None else self.plan_of(self.text.valid).cover()

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> B:
        """Read the windows of one batch from the validation text; what is drawn in it is always the same."""
        return self.read(self.text.stores[-1], ids, (0, 0), device)

    def check_unchanged(self) -> None:
        self.text.check_unchanged()
