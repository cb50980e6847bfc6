"""Readers of texts: pairs of a source and a target, and texts with labels, numbers, tags, answers or passages."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import ClassVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.pairs import check_examples, check_pairs, some_pairs
from heedful.data.preparation.prepared_data import at_least_one
from heedful.data.readers.corpus import WHOLE, SentencePair, read_pairs, read_replies
from heedful.data.readers.documents import check_files
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import Example, Standardisation, labels_of, read_labelled, read_scored
from heedful.data.readers.squad import read_squad
from heedful.data.readers.tagged import Tagged, read_tagged, tags_of, with_beginnings
from heedful.errors import InputError
from heedful.tasks.readers import ExampleReader
from heedful.text.words import special_words


class PairReader(ExampleReader):
    """Reader of pairs of a source text and a target text; `pairs` reads them from a corpus."""

    pairs: ClassVar[Callable[..., Iterator[SentencePair]]] = staticmethod(read_pairs)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_pairs(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        drops = DropReport()
        return some_pairs(cls.pairs(corpus, recipe.data, drops), corpus.source, drops)


class ReplyReader(PairReader):
    """Reader of pairs of a context, whose turns are separated by tabs, and a reply."""

    pairs = staticmethod(read_replies)


class TextReader(ExampleReader, ABC):
    """Base class for readers of texts, or text pairs, with targets."""

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_examples(recipe)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        return at_least_one(cls.texts(corpus, recipe), corpus.source, DropReport())

    @staticmethod
    @abstractmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Iterate over the texts of a corpus, to train a tokenizer."""


class LabelledTextReader(TextReader):
    """Reader of texts, or text pairs, each with one of the classes in `data.labels`."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the classes of the training data, unless the recipe lists them, and the weights of the classes."""
        recipe = replace(recipe, data=replace(recipe.data, labels=labels_of(recipe.data)))
        return with_class_weights(
            recipe, lambda corpus: (example.label for example in read_labelled(corpus, recipe.data))
        )

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the labelled examples of a corpus, checking each label if the recipe lists the classes."""
        check_files(corpus, recipe.data)
        drops = DropReport()
        examples = at_least_one(read_labelled(corpus, recipe.data, drops), corpus.source, drops)
        return map(partial(check_example, corpus, recipe), examples) if recipe.data.labels else examples

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (text for example in read_labelled(corpus, recipe.data) for text in (example.text, example.pair) if text)


def check_example(corpus: CorpusConfig, recipe: Recipe, example: Example) -> Example:
    """Return an example after checking that its label is one of the classes in `data.labels`."""
    where = f"{corpus.target or corpus.source}, line {example.line}"
    check_label(example.label, recipe.data, where, is_piece=corpus.part != WHOLE)
    return example


class ScoredTextReader(TextReader):
    """Reader of texts, or text pairs, each with a number."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the mean and scale of the numbers in the training data, unless the recipe has them."""
        data = recipe.data
        if data.label_scale is not None or not data.train:
            return recipe
        labels = [example.score for corpus in data.train for example in read_scored(corpus, data)]
        scale = Standardisation.of_labels(labels) if labels else Standardisation()
        return replace(recipe, data=replace(data, label_mean=scale.mean, label_scale=scale.scale))

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (text for example in read_scored(corpus, recipe.data) for text in (example.text, example.pair) if text)


class TaggedReader(TextReader):
    """Reader of sentences split into words, each word with one of the tags in `data.labels`."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the tags of the training data and the words that are kept whole, unless the recipe lists them.

        Also resolves the weights of the tags to numbers.
        """
        words = recipe.data.words or special_words(
            word
            for corpus in recipe.data.train
            for sentence in read_tagged(corpus, recipe.data)
            for word in sentence.words
        )
        recipe = replace(recipe, data=replace(recipe.data, labels=tags_of(recipe.data), words=words))

        def tags_in(corpus: CorpusConfig) -> Iterator[str]:
            for sentence in read_tagged(corpus, recipe.data):
                yield from checked_tags(sentence, corpus, recipe)

        return with_class_weights(recipe, tags_in)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        sentences = at_least_one(read_tagged(corpus, recipe.data), corpus.source, DropReport())
        return (checked_tags(sentence, corpus, recipe) for sentence in sentences) if recipe.data.labels else sentences

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (" ".join(sentence.words) for sentence in read_tagged(corpus, recipe.data))


def checked_tags(sentence: Tagged, corpus: CorpusConfig, recipe: Recipe) -> list[str]:
    """Check that the tags of a sentence are in `data.labels`, and return them in the scheme of these labels."""
    for tag in sorted(set(sentence.tags)):
        check_label(tag, recipe.data, f"{corpus.source}, sentence at line {sentence.line}")
    return with_beginnings(sentence.tags, recipe.data.labels)


class QueryReader(TextReader):
    """Reader of pairs of a query and a passage that answers it."""

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (text for pair in read_pairs(corpus, recipe.data) for text in (pair.source, pair.target) if text)


class QuestionReader(TextReader):
    """Reader of questions, each with a text and the position of the answer in it, if there is one."""

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        # A text counts once for the tokenizer, however many questions it answers.
        for context, questions in groupby(read_squad(corpus, recipe.data), attrgetter("context")):
            yield context
            yield from (question.question for question in questions)


def check_label(label: str, data: DataConfig, where: str, *, is_piece: bool = False) -> None:
    """Check that the label of an example is one of a task's classes or tags; `where` locates it in the error message.

    `is_piece` is True if `part` selects only some rows of the table with the example.
    """
    if label not in data.labels:
        # A trained model, whose test set is read without training data, has its classes for good.
        remedy = "remove the example, or add the label to data.labels" if data.train else "or remove the example"
        sorted_rows = "; if the rows are sorted by class, shuffle them, because `part` selects consecutive rows"
        raise InputError(
            f"{where}: the label {label!r} is not in data.labels ({', '.join(data.labels)}); fix it, "
            f"{remedy}{sorted_rows * is_piece}"
        )


def with_class_weights(recipe: Recipe, labels_in: Callable[[CorpusConfig], Iterable[str]]) -> Recipe:
    """Return a recipe whose `train.class_weights`, if set, is a table with a number for each class.

    With "balanced", a class that has n_c of the n training examples gets the weight n / (k n_c), for k classes with
    examples (King & Zeng 2001), so that each of these counts equally and the weights of all examples have mean 1. A
    class without examples, or one that a table leaves out, gets 1. `labels_in` returns the class of each example of a
    corpus, which counts as often as the corpus's `weight` says.
    """
    weights, labels = recipe.train.class_weights, recipe.data.labels
    if weights is None:
        return recipe
    if weights == "balanced":
        counts: dict[str, float] = {}
        for corpus in recipe.data.train:
            for label, count in Counter(labels_in(corpus)).items():
                counts[label] = counts.get(label, 0.0) + corpus.weight * count
        weights = {label: sum(counts.values()) / (len(counts) * count) for label, count in counts.items()}
    elif unknown := [label for label in weights if label not in labels]:
        raise InputError(
            f"train.class_weights lists {', '.join(map(repr, unknown))}, but the classes are {', '.join(labels)}; "
            "correct the name"
        )
    weights = {label: weights.get(label, 1.0) for label in labels}
    return replace(recipe, train=replace(recipe.train, class_weights=weights))
