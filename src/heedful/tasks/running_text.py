"""Running-text tasks: base class for learning from text that is cut into windows, whatever is predicted there."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.preparation.text import check_documents, fewest_documents
from heedful.data.readers.documents import check_files, document_lines
from heedful.data.stream import TokenStream, WindowPlan
from heedful.tasks.task import Batch, Task

B = TypeVar("B", bound=Batch)


class RunningText(Task[B]):
    """Base class of tasks on running text, whose examples are windows of a stream of tokens."""

    def __init__(self, recipe: Recipe, text: PreparedData[TokenStream]) -> None:
        super().__init__(recipe, text.tokenizers, text.digest)
        self.text = text
        self.plan = self.plan_of(text.train[0])

    def check_data(self) -> None:
        """Check that the prepared data has not changed since it was opened."""
        self.text.check_unchanged()

    @classmethod
    def check_recipe(cls, recipe: Recipe) -> None:
        """Check that a recipe has what running text needs; see `heedful.data.preparation.text.check_documents`."""
        check_documents(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Return the recipe unchanged after checking that its training and validation texts are not empty."""
        fewest_documents(replace(recipe, data=replace(recipe.data, documents="line")), most=1)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the lines of a corpus, to find errors in its files early."""
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)

    def plan_of(self, stream: TokenStream) -> WindowPlan:
        """Plan the windows into which a text is cut for batches."""
        return WindowPlan(stream, self.recipe.data.max_length, self.recipe.train.batch_tokens, self.recipe.train.seed)

    def epoch(self, number: int) -> list[np.ndarray]:
        """List the batches of an epoch, each as the starts of its windows."""
        return self.plan.epoch(number)
