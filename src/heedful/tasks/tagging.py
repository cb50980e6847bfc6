"""Tagging task: learns a tag for each word, such as named entities (Devlin et al. 2019, section 5.3).

B batch, S tokens.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from heedful.architectures import TokenClassifier
from heedful.config.families import FAMILIES
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import at_least_one
from heedful.data.readers.documents import check_files
from heedful.data.readers.filters import DropReport
from heedful.data.readers.tagged import Tagged, read_tagged, tags_of, with_beginnings
from heedful.data.stores import Rows
from heedful.errors import InputError
from heedful.losses import Loss, label_cross_entropy
from heedful.metrics.spans import TaggedSentences
from heedful.predictors.tagger import Tagger
from heedful.tasks.parts.classes import class_weights, remarks_on_classes, with_class_weights
from heedful.tasks.parts.texts import TextBatch, TextRows, collate
from heedful.tasks.task import Evaluation, Task
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.words import rows_of_words, special_words

IGNORE = 0  # the target of a token that stands for no word; tags are counted from 1


class TaggedWords(TextRows[TextBatch]):
    """Sentences in words, each word with one of the tags in `data.labels`."""

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Fill in the tags of the training data and the words that stay whole, unless the recipe names them.

        Weights of the tags become numbers.
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
                yield from known_tags(sentence, corpus, recipe)

        return with_class_weights(recipe, tags_in)

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        sentences = at_least_one(read_tagged(corpus, recipe.data), corpus.source, DropReport())
        return (known_tags(sentence, corpus, recipe) for sentence in sentences) if recipe.data.labels else sentences

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (" ".join(sentence.words) for sentence in read_tagged(corpus, recipe.data))

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each window of a sentence, with the tags of the words that this window shows best."""
        numbers = {tag: number for number, tag in enumerate(recipe.data.labels, start=1)}
        causal = FAMILIES[recipe.model.family].causal
        for sentence in read_tagged(corpus, recipe.data, drops):
            tags = known_tags(sentence, corpus, recipe)
            for ids, places in rows_of_words(tokenizer, sentence.words, recipe.data.max_length, causal=causal):
                targets = [IGNORE] * len(ids)
                for word, place in places:
                    targets[place] = numbers[tags[word]]
                if places:
                    yield ids, targets

    @staticmethod
    def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> TextBatch:
        return replace(collate(ids, targets, device), counts=(int((targets != IGNORE).sum()),))

    def remarks(self) -> list[str]:
        return remarks_on_classes(self.examples, self.recipe.data, first=1)


class Tagging(Task[TextBatch]):
    """Tagging task: each word has one of the tags in `data.labels`, predicted at one of its subwords in one window."""

    families = ("encoder", "decoder")
    command = "heedful predict"
    dataset = TaggedWords
    metrics = ("f1", "precision", "recall", "accuracy", "loss")
    predicts = TaggedSentences

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> TokenClassifier:
        if not recipe.data.labels:
            raise InputError('the tags are not known; name them: data.labels = ["O", "B-...", "I-..."]')
        return TokenClassifier(recipe.model, len(tokenizers.source), len(recipe.data.labels))

    @staticmethod
    def use(model: TokenClassifier, recipe: Recipe, tokenizers: TokenizerPair) -> Tagger:
        return Tagger(model, tokenizers.source, recipe.data)

    def loss(self, model: TokenClassifier, batch: TextBatch) -> tuple[Loss, ...]:
        # Of the tokens of a word one has its tag as target; all others, and padding, do not count.
        of_word = batch.targets != IGNORE
        logits = model(batch.ids, batch.padding_mask, batch.segments)[of_word]
        weights = class_weights(self.recipe, logits.device)
        return (label_cross_entropy(logits, batch.targets[of_word] - 1, self.recipe.train.label_smoothing, weights),)

    def outputs(self, model: TokenClassifier, run: Evaluation) -> TaggedSentences:
        corpus = self.data.valid_corpus
        sentences = list(read_tagged(corpus, self.recipe.data))
        expected = [known_tags(sentence, corpus, self.recipe) for sentence in sentences]
        tagger = self.use(model, self.recipe, self.tokenizers)
        run.progress.begin("sentences", len(sentences))
        tagged = run.progress.over(tagger.tag(sentence.words for sentence in sentences))
        return TaggedSentences([answer.tags for answer in tagged], expected, self.recipe.data.labels)


def known_tags(sentence: Tagged, corpus: CorpusConfig, recipe: Recipe) -> list[str]:
    """Get the tags of a sentence in the scheme of `data.labels`, and check them."""
    labels = recipe.data.labels
    if unknown := set(sentence.tags).difference(labels):
        raise InputError(
            f"{corpus.source}, sentence at line {sentence.line}: {min(unknown)!r} is none of the tags "
            f"{', '.join(labels)}; mend it, or name all of them in data.labels"
        )
    return with_beginnings(sentence.tags, labels)
