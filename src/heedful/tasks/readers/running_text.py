"""Readers of running text."""

from collections.abc import Iterator
from dataclasses import replace

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.text import check_documents, check_passages, min_document_count
from heedful.data.readers.documents import check_files, document_lines
from heedful.tasks.readers import ExampleReader


class RunningTextReader(ExampleReader):
    """Reader of running text."""

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_documents(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Return the recipe unchanged after checking that the training and validation texts are not empty."""
        # One line shows that there is text, without reading a document that may be a whole file.
        min_document_count(replace(recipe, data=replace(recipe.data, documents="line")), most=1)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)


class PassageReader(RunningTextReader):
    """Reader of passages of running text, or of pairs of them."""

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_passages(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Return the recipe unchanged after checking that its training and validation texts have enough documents."""
        from heedful.data.passages import check_document_count

        check_document_count(min_document_count(recipe, most=2), recipe.masking)
        return recipe
