"""Classification: the class of a text, or of a pair of texts (Devlin et al. 2019, section 4.1).

B batch, C classes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.documents import check_files
from heedful.data.filters import DropReport
from heedful.data.labelled import Example, labels_of, read_labelled
from heedful.data.store import Rows
from heedful.data.stores import at_least_one
from heedful.errors import InputError
from heedful.evaluate.labels import accuracy, class_tallies, confusion_matrix, macro_f1, matthews
from heedful.losses import Loss, label_cross_entropy
from heedful.models import TextClassifier
from heedful.predict.classifier import Classifier
from heedful.tasks.task import Scores
from heedful.tasks.texts import Batch, TextTask
from heedful.text.pair import TokenizerPair
from heedful.text.sequence import sequence
from heedful.text.tokenizer import Tokenizer


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
            pair = None if example.pair is None else tokenizer.encode(example.pair)
            ids = sequence(tokenizer.encode(example.text), pair, longest=recipe.data.max_length)
            yield ids, [numbers[example.label]]

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        """A trunk with an output for each class.

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

    def loss(self, model: TextClassifier, batch: Batch) -> tuple[Loss, ...]:
        """The cross-entropy of the classes."""
        logits = model(batch.ids, batch.keep, batch.segments)
        return (label_cross_entropy(logits, batch.targets[:, 0], self.recipe.train.label_smoothing),)

    def validate(self, model: TextClassifier) -> Scores | None:
        """Accuracy, F1 (of two classes that of the second), correlation (Matthews) and loss."""
        store = self.examples.valid
        if store is None:
            return None
        means = self.mean_losses(model, self.batches_of(store, model))
        decisions = [
            (model(batch.ids, batch.keep, batch.segments).argmax(-1).tolist(), batch.targets[:, 0].tolist())
            for batch in self.batches_of(store, model)
        ]
        predicted, expected = (np.concatenate(side) for side in zip(*decisions, strict=True))
        matrix = confusion_matrix(predicted, expected, len(self.recipe.data.labels))
        f1 = {"f1": class_tallies(matrix)[1].f1} if len(matrix) == 2 else {}
        scores = {"accuracy": accuracy(matrix), "macro_f1": macro_f1(matrix), **f1, "matthews": matthews(matrix)}
        return self.summary(means) | scores


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
