"""Tagging task: predicts a tag for each word, as in named entity recognition (Devlin et al. 2019, section 5.3).

B batch, S tokens.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from heedful.architectures import TokenClassifier
from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.tagged import read_tagged
from heedful.data.stores import Rows
from heedful.errors import InputError
from heedful.losses import Loss, label_cross_entropy
from heedful.metrics.spans import TaggedSentences
from heedful.predictors.tagger import Tagger
from heedful.tasks.parts.classes import class_remarks, class_weights
from heedful.tasks.parts.texts import TextBatch, TextRows, collate
from heedful.tasks.readers.texts import TaggedReader, checked_tags
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.words import rows_of_words

IGNORE = 0  # the target of a token that does not represent a word; tags are numbered from 1


class TaggedWords(TextRows[TextBatch]):
    """Sentences split into words, each word with one of the tags in `data.labels`."""

    reader = TaggedReader

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each window of a sentence, with the tags of those words that have the most context in this window."""
        numbers = {tag: number for number, tag in enumerate(recipe.data.labels, start=1)}
        causal = FAMILIES[recipe.model.family].causal
        for sentence in read_tagged(corpus, recipe.data, drops):
            tags = checked_tags(sentence, corpus, recipe)
            for ids, positions in rows_of_words(tokenizer, sentence.words, recipe.data.max_length, causal=causal):
                targets = [IGNORE] * len(ids)
                for word, position in positions:
                    targets[position] = numbers[tags[word]]
                if positions:
                    yield ids, targets

    @staticmethod
    def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> TextBatch:
        return replace(collate(ids, targets, device), counts=(int((targets != IGNORE).sum()),))

    def remarks(self) -> list[str]:
        return class_remarks(self.examples, self.recipe.data, first=1)


class Tagging(Task[TextBatch]):
    """Tagging task: each word gets a tag from `data.labels`, predicted from a single subword in a single window."""

    spec = SPECS["tagging"]
    dataset = TaggedWords

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TokenClassifier:
        if not recipe.data.labels:
            raise InputError('the tags are unknown; list them: data.labels = ["O", "B-...", "I-..."]')
        return TokenClassifier(recipe.model, len(tokenizers.source), len(recipe.data.labels))

    @staticmethod
    def use(model: TokenClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Tagger:
        return Tagger(model, tokenizers.source, recipe.data)

    def loss(self, model: TokenClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        # The target of one token of each word is the word's tag; all other tokens, and padding, do not count.
        has_tag = batch.targets != IGNORE
        logits = model(batch.ids, batch.padding_mask, batch.segments)[has_tag]
        weights = class_weights(self.recipe, logits.device)
        return (label_cross_entropy(logits, batch.targets[has_tag] - 1, self.recipe.train.label_smoothing, weights),)

    def outputs(self, model: TokenClassifier, run: Evaluation) -> TaggedSentences:
        corpus = self.data.valid_corpus
        sentences = list(read_tagged(corpus, self.recipe.data))
        expected = [checked_tags(sentence, corpus, self.recipe) for sentence in sentences]
        tagger = self.use(model, self.recipe, self.tokenizers)
        run.progress.begin("sentences", len(sentences))
        tagged = run.progress.over(tagger.tag(sentence.words for sentence in sentences))
        return TaggedSentences([answer.tags for answer in tagged], expected, self.recipe.data.labels)
