"""Text classification task: learns the class of a text or text pair (Devlin et al. 2019, section 4.1).

B batch, C classes.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from heedful.architectures import TextClassifier
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import read_labelled
from heedful.data.stores import Rows
from heedful.errors import InputError
from heedful.losses import Loss, label_cross_entropy
from heedful.metrics.classes import Classes
from heedful.predictors.classifier import Classifier
from heedful.tasks.parts.classes import class_remarks, class_weights
from heedful.tasks.parts.texts import TextBatch, TextRows, encode_example
from heedful.tasks.readers.texts import LabelledTextReader, check_example
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair


class LabelledTexts(TextRows[TextBatch]):
    """Texts, or text pairs, each with one of the classes in `data.labels`."""

    reader = LabelledTextReader

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        numbers = {label: number for number, label in enumerate(recipe.data.labels)}
        for example in read_labelled(corpus, recipe.data, drops):
            check_example(corpus, recipe, example)
            yield encode_example(example, corpus, recipe, tokenizer, drops), [numbers[example.label]]

    def remarks(self) -> list[str]:
        return class_remarks(self.examples, self.recipe.data)


class Classification(Task[TextBatch]):
    """Text classification task: a text or text pair belongs to one of the classes in `data.labels`."""

    spec = SPECS["classification"]
    dataset = LabelledTexts

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TextClassifier:
        if not recipe.data.labels:
            raise InputError('the classes are unknown; list them: data.labels = ["...", "..."]')
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
