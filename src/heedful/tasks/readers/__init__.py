"""Readers of the raw examples of each task: what a recipe must specify, and what its files must contain.

The checks before a run use these readers; a `Dataset` adds what training needs. Only `media` imports torch.
"""

from collections.abc import Iterator

from heedful.config.schema import CorpusConfig, Recipe


class ExampleReader:
    """Base class for readers, which check a recipe, read its raw examples, and fill in settings derived from them."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in settings that follow from the training data, such as the classes, unless the recipe has them."""
        return recipe

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        """Check, without reading data, that a recipe has what `Dataset.prepare` needs, such as a tokenizer."""

    @classmethod
    def peek(cls, _corpus: CorpusConfig, _recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the raw examples of a corpus, before they are encoded, to find errors in its files early."""
        return iter(())
