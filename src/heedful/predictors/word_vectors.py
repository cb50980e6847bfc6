"""Word vectors of a trained model: neighbours, analogies and similarities of words.

D vector size.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import overload

import torch

from heedful.architectures.word2vec.data import join_all, vocabulary_phrases, word_numbers, words_of
from heedful.architectures.word2vec.model import Word2Vec
from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.schema import TokenizerConfig
from heedful.data.word_vectors import Neighbour, VectorSpace, VectorTable
from heedful.errors import InputError
from heedful.predictors.outputs import MAX_OPTIONS, Answer, Option
from heedful.predictors.predictor import TEXTS, ModelInputs, Predictor
from heedful.predictors.retriever import Vectors, stacked
from heedful.text.tokenizer import Tokenizer


class WordVectors(Predictor[Word2Vec, Vectors]):
    """Word vectors with their vocabulary: a vector for each word, whatever its context."""

    tokenizer: Tokenizer

    def __init__(
        self, model: Word2Vec, tokenizer: Tokenizer, options: Word2VecConfig, cutting: TokenizerConfig
    ) -> None:
        super().__init__(model)
        self.tokenizer = tokenizer
        self.options = options
        self.cutting = cutting  # determines how a text is split into words

    @property
    def table(self) -> VectorTable:
        """Words in order of descending frequency, with their vectors."""
        numbers = word_numbers(self.tokenizer)
        matrix = self.model.embedding.weight.detach().float().cpu().numpy()
        return VectorTable(list(numbers), matrix[list(numbers.values())])

    @cached_property
    def space(self) -> VectorSpace:
        """Words in order of descending frequency, with their vectors, for comparison by cosine similarity."""
        return VectorSpace(self.table)

    @overload
    def vectors(self, words: str) -> Vectors: ...
    @overload
    def vectors(self, words: Iterable[str]) -> Vectors: ...
    def vectors(self, words: object) -> Vectors:
        """Return the vector of a word, (D,), or of an iterable of words, (N, D)."""
        return self._stacked(
            TEXTS.one_or_all(lambda each: (self.space.matrix[self.space.row(word)] for word in each), words)
        )

    __call__ = predict = vectors

    @overload
    def encode(self, texts: str) -> Vectors: ...
    @overload
    def encode(self, texts: Iterable[str]) -> Vectors: ...
    def encode(self, texts: object) -> Vectors:
        """Encode a text as the mean vector of its words, (D,), or several texts, (N, D); the word order is ignored.

        Words without a vector are left out; a text with only such words gives a vector of zeros.
        """

        def mean(text: str) -> Vectors:
            rows = sorted(self.rows(text))  # so that the sum does not depend on the order of the words
            return self.space.matrix[rows].sum(0) / max(1, len(rows))

        return self._stacked(TEXTS.one_or_all(lambda each: map(mean, each), texts))

    def _stacked(self, vectors: Vectors | list[Vectors]) -> Vectors:
        return stacked(vectors, self.space.matrix.shape[1]) if isinstance(vectors, list) else vectors

    def words(self, text: str) -> list[str]:
        """Split a text into words and phrases in the same way as the training text."""
        [words] = join_all([words_of(text, self.cutting)], vocabulary_phrases(self.tokenizer, self.options))
        return list(words)

    def unknown(self, text: str) -> list[str]:
        """List the words of a text that have no vector."""
        return [word for word in self.words(text) if self.space.find(word) is None]

    def rows(self, text: str) -> list[int]:
        """Return the row indices in `space` of the words of a text, in order; words without a vector are left out."""
        return [row for word in self.words(text) if (row := self.space.find(word)) is not None]

    def model_inputs(self, value: str, second: str | None) -> ModelInputs:
        if second is not None:
            raise InputError("word vectors generate no text; leave the target out")
        # Special tokens and bytes come before the words in the vocabulary, and have no row in `space`.
        ids = [self.tokenizer.first_word + row for row in self.rows(value)]
        if not ids:
            raise InputError("no word of the text has a vector; give other words")
        return ModelInputs([torch.tensor([ids], device=self.model.embedding.weight.device)], ids)

    def ranked_options(self, value: str, second: str | None) -> list[Answer]:
        """Return the neighbours of each word of a text, nearest first."""
        del second  # `model_inputs` rejects one
        nearest = [self.nearest(self.space.words[row], MAX_OPTIONS) for row in self.rows(value)]
        return [
            Answer([Option(neighbour.word, score=neighbour.similarity) for neighbour in neighbours], position)
            for position, neighbours in enumerate(nearest)
        ]

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine similarity of the vectors of two words."""
        return self.space.similarity(first, second)

    def nearest(self, word: str, k: int = 10) -> list[Neighbour]:
        """Find the k words nearest to a word by cosine similarity, nearest first."""
        return self.space.nearest(word, k)

    def analogy(self, a: str, b: str, c: str, k: int = 10) -> list[Neighbour]:
        """Find the k words nearest to a - b + c, such as king - man + woman, excluding the three words.

        The vectors of the three words are first scaled to length 1.
        """
        return self.space.analogy(a, b, c, k)
