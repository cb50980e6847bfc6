"""Ranking task (semantic search): learns vectors by which a query finds its passage among all others.

B batch, S tokens of a query, T tokens of a passage, D model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.architectures import SentenceEncoder
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.corpus import read_pairs
from heedful.data.readers.filters import DropReport
from heedful.data.stores import PairStore, Rows
from heedful.losses import Loss
from heedful.metrics.retrieval import Rankings, ranked
from heedful.predictors.retriever import Retriever
from heedful.predictors.text_predictor import BatchedModel
from heedful.tasks.parts.matching import PaddedTexts, kinds, pairs_of_kinds, ranking_loss, texts_of
from heedful.tasks.parts.texts import TextRows
from heedful.tasks.task import Evaluation, Task
from heedful.text.sequences import is_cut, sequence
from heedful.text.tokenizer import PAD, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

TEMPERATURE = 0.05  # as in SimCSE (Gao et al. 2021, section 3), and usual for sentence encoders
QUERIES = 256  # queries that are ranked at a time


@dataclass(frozen=True)
class RankingBatch:
    """Batch for the ranking task: queries, and the passages that answer them."""

    queries: PaddedTexts
    passages: PaddedTexts
    answers: Bool[Tensor, "B B"]  # True if a passage answers a query: some pair holds both
    tokens: int

    @property
    def counts(self) -> tuple[int, ...]:
        return (len(self.answers),)


class QueriesAndPassages(TextRows[RankingBatch]):
    """Pairs of a query and a passage that answers it."""

    @staticmethod
    def texts(corpus: CorpusConfig, recipe: Recipe) -> Iterator[str]:
        return (text for pair in read_pairs(corpus, recipe.data) for text in (pair.source, pair.target) if text)

    @staticmethod
    def rows(corpus: CorpusConfig, recipe: Recipe, tokenizer: Tokenizer, drops: DropReport) -> Iterator[Rows]:
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

    @staticmethod
    def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> RankingBatch:
        answers = torch.from_numpy(pairs_of_kinds(*(kinds(row.tobytes() for row in rows) for rows in (ids, targets))))
        tokens = int((ids != PAD).sum() + (targets != PAD).sum())
        return RankingBatch(texts_of(ids, device), texts_of(targets, device), answers.to(device), tokens)

    def lengths(self, store: PairStore) -> np.ndarray:
        return store.lengths  # of both sides: the model reads queries and passages


class Ranking(Task[RankingBatch]):
    """Ranking task: examples are pairs of a query and a passage that answers it.

    A query's negatives are the passages of the other queries of its batch (Henderson et al. 2017, section 4.4). So the
    loss depends, by definition, on which pairs form a batch; `train.batch_tokens` is more than a matter of speed here,
    and `train.accumulate` adds up the gradients of such batches without making any of them larger.
    """

    families = ("encoder", "decoder")
    command = "heedful search"
    example = "--corpus FILE 'Some text.'"
    dataset = QueriesAndPassages
    metrics = ("mrr", "recall@1", "recall@10", "ndcg@10", "loss")
    predicts = Rankings

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SentenceEncoder:
        return SentenceEncoder(recipe.model, len(tokenizers.source))

    @staticmethod
    def use(model: SentenceEncoder, recipe: Recipe, tokenizers: TokenizerPair) -> Retriever:
        return Retriever(model, tokenizers.source, recipe.data)

    def loss(self, model: SentenceEncoder, batch: RankingBatch) -> tuple[Loss, ...]:
        """Compute the cross-entropy over cosine similarities divided by the temperature, with in-batch negatives."""
        queries, passages = (model(x.ids, x.padding_mask, x.segments).float() for x in (batch.queries, batch.passages))
        # Vectors have length 1, so products are cosines; they are in float32, as the temperature magnifies rounding.
        scores = queries @ passages.T / TEMPERATURE
        return (ranking_loss(scores, batch.answers, self.recipe.train.label_smoothing),)

    def outputs(self, model: SentenceEncoder, run: Evaluation) -> Rankings:
        queries, passages, answers = judgements(self.data.examples.valid)
        reader = BatchedModel(model, self.tokenizers.source, self.recipe.data.max_length)
        run.progress.begin("texts", len(queries) + len(passages))
        of_queries, of_passages = (
            torch.stack(reader.read_rows(rows, model, run.progress.advance)).numpy() for rows in (queries, passages)
        )
        return retrieval(of_queries, of_passages, answers)


def judgements(store: PairStore) -> tuple[list[list[int]], list[list[int]], list[set[int]]]:
    """List the distinct queries of a store, its distinct passages, and for each query the numbers of its passages."""
    queries: dict[tuple[int, ...], set[int]] = {}
    passages: dict[tuple[int, ...], int] = {}
    for number in range(len(store)):
        passage = passages.setdefault(tuple(store.target(number).tolist()), len(passages))
        queries.setdefault(tuple(store.source(number).tolist()), set()).add(passage)
    return [list(row) for row in queries], [list(row) for row in passages], list(queries.values())


def retrieval(queries: np.ndarray, passages: np.ndarray, answers: Sequence[set[int]]) -> Rankings:
    """Rank all passages (M, D) for each query (N, D) by cosine similarity."""
    places = []
    for start in range(0, len(queries), QUERIES):
        cosines = queries[start : start + QUERIES] @ passages.T
        for scores, right in zip(cosines, answers[start:], strict=False):
            gains = np.zeros_like(scores)
            gains[list(right)] = 1
            places.append(np.flatnonzero(ranked(scores, gains)))
    return Rankings(places, len(passages))
