"""Text classification task: learns the class of a text or of a pair of texts (Devlin et al. 2019, section 4.1).

B batch, C classes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from heedful.architectures import TextClassifier
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import at_least_one
from heedful.data.readers.corpus import WHOLE
from heedful.data.readers.documents import check_files
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import Example, labels_of, read_labelled
from heedful.data.stores import Rows
from heedful.errors import InputError
from heedful.losses import Loss, label_cross_entropy
from heedful.metrics.classes import Classes
from heedful.predictors.classifier import Classifier
from heedful.tasks.parts.classes import class_weights, remarks_on_classes, with_class_weights
from heedful.tasks.parts.texts import TextBatch, TextRows, row_of
from heedful.tasks.task import Evaluation, Task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class LabelledTexts(TextRows[TextBatch]):
    """Texts, or pairs of texts, each with one of the classes in `data.labels`."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the classes of the training data in a recipe, unless the recipe names them, and their weights."""
        recipe = replace(recipe, data=replace(recipe.data, labels=labels_of(recipe.data)))
        return with_class_weights(recipe, lambda corpus: (one.label for one in read_labelled(corpus, recipe.data)))

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the labelled examples of a corpus; if the classes are known, each label is checked."""
        check_files(corpus, recipe.data)
        drops = DropReport()
        examples = at_least_one(read_labelled(corpus, recipe.data, drops), corpus.source, drops)
        return known_labels(examples, corpus, recipe) if recipe.data.labels else examples

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (text for example in read_labelled(corpus, recipe.data) for text in (example.text, example.pair) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        numbers = {label: number for number, label in enumerate(recipe.data.labels)}
        for example in known_labels(read_labelled(corpus, recipe.data, drops), corpus, recipe):
            yield row_of(example, corpus, recipe, tokenizer, drops), [numbers[example.label]]

    def remarks(self) -> list[str]:
        return remarks_on_classes(self.examples, self.recipe.data)


class Classification(Task[TextBatch]):
    """Text classification task: a text or a pair of texts belongs to one of the classes in `data.labels`."""

    families = ("encoder", "decoder")
    command = "heedful predict"
    dataset = LabelledTexts
    metrics = ("accuracy", "macro_f1", "f1", "matthews", "loss")
    predicts = Classes

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        if not recipe.data.labels:
            raise InputError('the classes are not known; name them: data.labels = ["...", "..."]')
        return TextClassifier(recipe.model, len(tokenizers.source), len(recipe.data.labels))

    @staticmethod
    def use(model: TextClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Classifier:
        return Classifier(model, tokenizers.source, recipe.data)

    def loss(self, model: TextClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        logits = model(batch.ids, batch.padding_mask, batch.segments)
        weights = class_weights(self.recipe, logits.device)
        return (label_cross_entropy(logits, batch.targets[:, 0], self.recipe.train.label_smoothing, weights),)

    def outputs(self, model: TextClassifier, run: Evaluation) -> Classes:
        def decide(batch: TextBatch) -> Tensor:
            classes = model(batch.ids, batch.padding_mask, batch.segments).argmax(-1)
            return torch.stack([classes, batch.targets[:, 0]], dim=1)

        predicted, expected = run.per_example(self.data, model, decide).T
        return Classes(predicted, expected, self.recipe.data.labels)


def known_labels(examples: Iterable[Example], corpus: CorpusConfig, recipe: Recipe) -> Iterator[Example]:
    """Iterate over the examples of a corpus, and check that each label is one of the classes in `data.labels`."""
    for example in examples:
        if example.label not in recipe.data.labels:
            sorted_rows = "; where rows are sorted by class, shuffle them, as part takes a piece of them"
            raise InputError(
                f"{corpus.target or corpus.source}, line {example.line}: {example.label!r} is none of the classes "
                f"{', '.join(recipe.data.labels)}; mend it, take the line out, or train with all of them in data.labels"
                f"{sorted_rows if corpus.part != WHOLE else ''}"
            )
        yield example
