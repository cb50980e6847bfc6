"""Classification: the class of a text, or of a pair of texts (Devlin et al. 2019, section 4.1).

B batch, C classes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.corpus_stores import at_least_one
from heedful.data.documents import check_files
from heedful.data.filters import DropReport
from heedful.data.labelled import Example, labels_of, read_labelled
from heedful.data.pair_store import Rows
from heedful.errors import InputError
from heedful.evaluate.labels import accuracy, class_tallies, confusion_matrix, macro_f1, matthews
from heedful.evaluate.resampling import Outcomes
from heedful.losses import Loss, label_cross_entropy
from heedful.models import TextClassifier
from heedful.predict.classifier import Classifier
from heedful.tasks.task import Scores
from heedful.tasks.texts import TextBatch, TextTask, row_of
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class Classification(TextTask):
    """One of the classes in `data.labels`."""

    scores = ("accuracy", "macro_f1", "f1", "matthews", "loss")

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """The classes are those of the training data, unless the recipe names them."""
        return replace(recipe, data=replace(recipe.data, labels=labels_of(recipe.data)))

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """The examples of a corpus; where the classes are known, each has one of them."""
        check_files(corpus, recipe.data)
        examples = at_least_one(read_labelled(corpus, recipe.data), corpus.source, DropReport())
        return known_labels(examples, corpus, recipe) if recipe.data.labels else examples

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Both texts of each example."""
        return (text for example in read_labelled(corpus, recipe.data) for text in (example.text, example.pair) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Each text with the number of its class.

        Raises:
            InputError: a label is none of the classes.
        """
        numbers = {label: number for number, label in enumerate(recipe.data.labels)}
        for example in known_labels(read_labelled(corpus, recipe.data, drops), corpus, recipe):
            yield row_of(example, corpus, recipe, tokenizer, drops), [numbers[example.label]]

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        """A backbone with an output for each class.

        Raises:
            InputError: the classes are not known, as in a recipe whose data was not read.
        """
        if not recipe.data.labels:
            raise InputError('the classes are not known; name them: data.labels = ["...", "..."]')
        return TextClassifier(recipe.model, len(tokenizers.source), len(recipe.data.labels))

    @classmethod
    def use(cls, model: TextClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Classifier:
        """What classifies texts."""
        return Classifier(model, tokenizers.source, recipe.data)

    def loss(self, model: TextClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        """The cross-entropy of the classes."""
        logits = model(batch.ids, batch.padding_mask, batch.segments)
        return (label_cross_entropy(logits, batch.targets[:, 0], self.recipe.train.label_smoothing),)

    def outcomes(self, model: TextClassifier) -> Outcomes:
        """Decisions, of which accuracy, F1 (of two classes that of the second) and correlation (Matthews) are made."""

        def decide(batch: TextBatch) -> Tensor:
            decided = model(batch.ids, batch.padding_mask, batch.segments).argmax(-1)
            return torch.stack([decided, batch.targets[:, 0]], dim=1)

        predicted, expected = self.results_of(model, decide).T
        classes = len(self.recipe.data.labels)

        def measure(chosen: np.ndarray) -> Scores:
            return label_scores(confusion_matrix(predicted[chosen], expected[chosen], classes))

        return Outcomes(len(expected), measure)


def label_scores(matrix: np.ndarray) -> Scores:
    """The scores of a confusion matrix (C, C)."""
    f1 = {"f1": class_tallies(matrix)[1].f1} if len(matrix) == 2 else {}
    return {"accuracy": accuracy(matrix), "macro_f1": macro_f1(matrix), **f1, "matthews": matthews(matrix)}


def known_labels(examples: Iterable[Example], corpus: CorpusConfig, recipe: Recipe) -> Iterator[Example]:
    """The examples of a corpus, each of which has one of the classes in `data.labels`.

    Raises:
        InputError: one has not.
    """
    for example in examples:
        if example.label not in recipe.data.labels:
            raise InputError(
                f"{corpus.source}, line {example.line}: {example.label!r} is none of the classes "
                f"{', '.join(recipe.data.labels)}; mend it, or name all of them in data.labels"
            )
        yield example
