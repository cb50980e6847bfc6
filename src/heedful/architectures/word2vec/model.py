"""word2vec: a vector for each word, learned by predicting words from those around them (Mikolov et al. 2013a, b).

V vocabulary, D model.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.architectures.model import EmbeddingTable, Model, Names
from heedful.architectures.word2vec.settings import Word2VecConfig


class WordTable(nn.Module):
    """Table of word vectors with sparse gradients, initialised uniformly in (-bound, bound)."""

    parameter_kind = "embeddings"

    def __init__(self, vocab: int, size: int, bound: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab, size).uniform_(-bound, bound))

    def forward(self, words: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        # A batch has a few thousand words, but a vocabulary up to a million: a dense gradient would be mostly zeros.
        return F.embedding(words, self.weight, sparse=True)


class Word2Vec(Model):
    """word2vec model: each word has a word vector, in `embedding`, and a vector for predicting it, in `output`.

    In skip-gram, a centre word predicts each word of its context; in CBOW, the mean of a context predicts the centre
    word. With hierarchical softmax, the rows of `output` belong to the inner nodes of the Huffman tree.
    """

    predicts_tokens = False
    has_segments = False

    def __init__(self, config: Word2VecConfig, vocab: int) -> None:
        super().__init__()
        # Initialised as in the authors' program. With an output of 0, all words are equally likely at first.
        self.embedding = WordTable(vocab, config.d_model, 0.5 / config.d_model)
        self.output = WordTable(vocab, config.d_model, 0.0)

    def forward(self, words: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        return self.embedding(words)

    @property
    def line(self) -> str:
        return "src"

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        return self.embedding if line == "src" else None

    def token_rows(self) -> Names:
        return {"embedding.weight": "source", "output.weight": "source"}
