"""Ranking task (semantic search): learns vectors by which a query finds its passage among all others.

B batch, S tokens of a query, T tokens of a passage, D model.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.corpus import read_pairs
from heedful.data.readers.filters import DropReport
from heedful.data.stores.pair_store import PairStore, Rows
from heedful.evaluate.retrieval import mean_reciprocal_rank, ndcg_at, ranked, recall_at
from heedful.evaluate.significance import Outcomes, mean_outcomes
from heedful.losses import Loss
from heedful.models import SentenceEncoder
from heedful.predict.batching import BatchedModel
from heedful.predict.retriever import Retriever
from heedful.tasks.examples import RowTask
from heedful.text.sequence import is_cut, segments, sequence
from heedful.text.tokenizer import PAD, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

TEMPERATURE = 0.05  # as in SimCSE (Gao et al. 2021, section 3), and usual for sentence encoders
QUERIES = 256  # queries that are ranked at a time
MEASURES = {
    "mrr": mean_reciprocal_rank,
    "recall@1": partial(recall_at, k=1),
    "recall@10": partial(recall_at, k=10),
    "ndcg@10": partial(ndcg_at, k=10),
}


@dataclass(frozen=True)
class PaddedTexts:
    """Batch of padded texts: token ids, padding mask and segments."""

    ids: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]


@dataclass(frozen=True)
class RankingBatch:
    """Batch for the ranking task: queries, and the passages that answer them."""

    queries: PaddedTexts
    passages: PaddedTexts
    answers: Bool[Tensor, "B B"]  # True if a passage answers a query: some pair holds both
    tokens: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Divisor of the loss: the number of queries in the batch."""
        return (len(self.answers),)


def texts_of(ids: np.ndarray, device: torch.device) -> PaddedTexts:
    """Create a batch of padded texts from rows of ids, on a device."""
    return PaddedTexts(*(torch.from_numpy(x).to(device) for x in (ids, ids != PAD, segments(ids))))


def kinds(items: Iterable[Hashable]) -> np.ndarray:
    """Number the items by their values, in the order of their first occurrence: equal items have equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(item, len(numbers)) for item in items])


def pairs_of_kinds(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mark at (i, j) if the first side of pair i and the second side of pair j stand together in some pair of a batch.

    Args:
        first: (B,), numbers from 0 of the first sides, equal for equal ones.
        second: (B,), those of the second sides.
    """
    together = np.zeros((first.max() + 1, second.max() + 1), dtype=np.bool_)
    together[first, second] = True
    return together[first][:, second]


def ranking_loss(scores: Float[Tensor, "B B"], answers: Bool[Tensor, "B B"], smoothing: float) -> Loss:
    """Cross-entropy of each query's own passage, on the diagonal, against passages that do not answer the query."""
    own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
    candidates = own | ~answers
    logs = scores.masked_fill(~candidates, -torch.inf).log_softmax(-1)
    nll = -logs.diagonal()
    mean = -logs.masked_fill(~candidates, 0.0).sum(-1) / candidates.sum(-1)
    total = ((1 - smoothing) * nll + smoothing * mean).sum()
    return Loss(total, nll.sum().detach(), len(scores))


class Ranking(RowTask[RankingBatch]):
    """Ranking task: examples are pairs of a query and a passage that answers it.

    A query's negatives are the passages of the other queries of its batch (Henderson et al. 2017, section 4.4). So the
    loss depends, by definition, on which pairs form a batch; `train.batch_tokens` is more than a matter of speed here,
    and `train.accumulate` adds up the gradients of such batches without making any of them larger.
    """

    command = "heedful search"
    example = "--corpus FILE 'Some text.'"
    scores = (*MEASURES, "loss")

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        """Iterate over queries and passages, for the training of a tokenizer."""
        return (text for pair in read_pairs(corpus, recipe.data) for text in (pair.source, pair.target) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
        """Encode each pair of query and passage as two rows of token ids."""
        for line, *texts in read_pairs(corpus, recipe.data, drops):
            if not texts[0].strip():
                drops.drop("empty source", corpus.source, line)
            elif not texts[1].strip():
                drops.drop("empty target", corpus.source, line)
            else:
                ids = [tokenizer.encode(text) for text in texts]
                query, passage = (sequence(row, longest=recipe.data.max_length) for row in ids)
                if is_cut(query, ids[0]) or is_cut(passage, ids[1]):
                    drops.remark("cut", corpus.source, line)
                yield query, passage

    @classmethod
    def build(cls, recipe: Recipe, tokenizers: TokenizerPair) -> SentenceEncoder:
        """Build a sentence encoder: a backbone whose hidden states are pooled into one vector."""
        return SentenceEncoder(recipe.model, len(tokenizers.source))

    @classmethod
    def use(cls, model: SentenceEncoder, recipe: Recipe, tokenizers: TokenizerPair) -> Retriever:
        """Create the predictor that encodes texts as vectors and searches for the nearest."""
        return Retriever(model, tokenizers.source, recipe.data)

    def collate(self, first: np.ndarray, second: np.ndarray, device: torch.device) -> RankingBatch:
        """Collate queries and their passages into a batch."""
        answers = torch.from_numpy(
            pairs_of_kinds(*(kinds(row.tobytes() for row in rows) for rows in (first, second)))
        ).to(device)
        tokens = int((first != PAD).sum() + (second != PAD).sum())
        return RankingBatch(texts_of(first, device), texts_of(second, device), answers, tokens)

    def loss(self, model: SentenceEncoder, batch: RankingBatch) -> tuple[Loss, ...]:
        """Compute the cross-entropy over cosine similarities divided by the temperature, with in-batch negatives."""
        queries, passages = (model(x.ids, x.padding_mask, x.segments).float() for x in (batch.queries, batch.passages))
        scores = queries @ passages.T / TEMPERATURE
        return (ranking_loss(scores, batch.answers, self.recipe.train.label_smoothing),)

    def outcomes(self, model: SentenceEncoder) -> Outcomes:
        """Rank all passages of the validation set for each query; scores are MRR, recall@k and nDCG."""
        _, store = self.valid
        queries, passages, answers = judgements(store)
        reader = BatchedModel(model, self.tokenizers.source, self.recipe.data.max_length)
        self.progress.begin("texts", len(queries) + len(passages))
        asked, found = (
            torch.stack(reader.read_rows(rows, model, self.progress.advance)).numpy() for rows in (queries, passages)
        )
        return retrieval(asked, found, answers)


def judgements(store: PairStore) -> tuple[list[list[int]], list[list[int]], list[set[int]]]:
    """List the distinct queries of a store, its distinct passages, and for each query the numbers of its passages."""
    queries: dict[tuple[int, ...], set[int]] = {}
    passages: dict[tuple[int, ...], int] = {}
    for number in range(len(store)):
        passage = passages.setdefault(tuple(store.target(number).tolist()), len(passages))
        queries.setdefault(tuple(store.source(number).tolist()), set()).add(passage)
    return [list(row) for row in queries], [list(row) for row in passages], list(queries.values())


def retrieval(queries: np.ndarray, passages: np.ndarray, answers: Sequence[set[int]]) -> Outcomes:
    """Rank all passages (M, D) for each query (N, D) by cosine similarity, and compute the retrieval measures."""
    figures = []
    for start in range(0, len(queries), QUERIES):
        cosines = queries[start : start + QUERIES] @ passages.T
        gains = np.zeros_like(cosines)
        for row, right in zip(gains, answers[start:], strict=False):
            row[list(right)] = 1
        rankings = (ranked(scores, right) for scores, right in zip(cosines, gains, strict=True))
        figures += [[measure([ranking]) for measure in MEASURES.values()] for ranking in rankings]
    return mean_outcomes(dict(zip(MEASURES, np.array(figures).T, strict=True)))
