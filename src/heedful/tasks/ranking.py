"""Ranking task (semantic search): learns vectors with which a query finds its passage among all others.

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
from heedful.data.readers.drop_report import DropReport
from heedful.data.stores import PairStore, Rows
from heedful.losses import Loss, contrastive_loss
from heedful.metrics.retrieval import Rankings, ranked
from heedful.predictors.retriever import Retriever
from heedful.predictors.text_predictor import BatchedModel
from heedful.tasks.parts.texts import PaddedTexts, TextRows, matching_pairs, number_distinct
from heedful.tasks.readers.texts import QueryReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import Evaluation, Task
from heedful.text.sequences import is_truncated, sequence
from heedful.text.tokenizer import PAD, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

TEMPERATURE = 0.05  # as in SimCSE (Gao et al. 2021, section 3), and usual for sentence encoders
QUERIES_AT_ONCE = 256  # whose scores an evaluation computes in one matrix product


@dataclass(frozen=True)
class RankingBatch:
    """Batch for the ranking task: queries, and the passages that answer them."""

    queries: PaddedTexts
    passages: PaddedTexts
    answers: Bool[Tensor, "B B"]  # (query, passage): True if some pair of the batch consists of these two
    tokens: int
    counts: tuple[int, ...]  # the number of pairs


class QueriesAndPassages(TextRows[RankingBatch]):
    """Pairs of a query and a passage that answers it."""

    reader = QueryReader

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
                if is_truncated(query, ids[0]) or is_truncated(passage, ids[1]):
                    drops.remark("cut", corpus.source, line)
                yield query, passage

    @staticmethod
    def collate(ids: np.ndarray, targets: np.ndarray, device: torch.device) -> RankingBatch:
        answers = matching_pairs(*(number_distinct(row.tobytes() for row in rows) for rows in (ids, targets)))
        queries, passages = (PaddedTexts.of(rows, device) for rows in (ids, targets))
        tokens = int((ids != PAD).sum() + (targets != PAD).sum())
        return RankingBatch(queries, passages, torch.from_numpy(answers).to(device), tokens, (len(ids),))

    def lengths(self, store: PairStore) -> np.ndarray:
        return store.lengths  # the model reads both sides


class Ranking(Task[RankingBatch]):
    """Ranking task: examples are pairs of a query and a passage that answers it.

    A query's negatives are the passages of the other queries in its batch (Henderson et al. 2017, section 4.4). So the
    loss depends, by definition, on which pairs form a batch: here `train.batch_tokens` affects more than speed, and
    `train.accumulate` adds up the gradients of batches without making any of them larger.
    """

    spec = SPECS["ranking"]
    dataset = QueriesAndPassages

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> SentenceEncoder:
        return SentenceEncoder(recipe.model, len(tokenizers.source))

    @staticmethod
    def use(model: SentenceEncoder, recipe: Recipe, tokenizers: TokenizerPair) -> Retriever:
        return Retriever(model, tokenizers.source, recipe.data)

    def loss(self, model: SentenceEncoder, batch: RankingBatch) -> tuple[Loss, ...]:
        """Compute the cross-entropy over cosine similarities divided by the temperature, with in-batch negatives."""
        queries, passages = (model(x.ids, x.padding_mask, x.segments).float() for x in (batch.queries, batch.passages))
        # Vectors have length 1, so products are cosines. They are in float32, because the division magnifies rounding
        # errors.
        scores = queries @ passages.T / TEMPERATURE
        return (contrastive_loss(scores, batch.answers, self.recipe.train.label_smoothing),)

    def outputs(self, model: SentenceEncoder, run: Evaluation) -> Rankings:
        store = self.data.examples.valid
        # `answers` has the distinct queries with the indices of their passages; `numbers` has the distinct passages.
        answers: dict[tuple[int, ...], set[int]] = {}
        numbers: dict[tuple[int, ...], int] = {}
        for index in range(len(store)):
            passage = numbers.setdefault(tuple(store.target(index).tolist()), len(numbers))
            answers.setdefault(tuple(store.source(index).tolist()), set()).add(passage)
        queries, passages = ([list(row) for row in rows] for rows in (answers, numbers))
        reader = BatchedModel(model, self.tokenizers.source, self.recipe.data.max_length)
        run.progress.begin("texts", len(queries) + len(passages))
        query_vectors, passage_vectors = (
            torch.stack(reader.read_rows(rows, model, run.progress.advance)).numpy() for rows in (queries, passages)
        )
        return retrieval(query_vectors, passage_vectors, list(answers.values()))


def retrieval(queries: np.ndarray, passages: np.ndarray, answers: Sequence[set[int]]) -> Rankings:
    """Rank all passages (M, D) for each query (N, D) by cosine similarity; `answers` has each query's own passages."""
    ranks = []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        cosines = queries[start : start + QUERIES_AT_ONCE] @ passages.T  # the vectors have length 1
        for scores, right in zip(cosines, answers[start:], strict=False):
            gains = np.zeros_like(scores)
            gains[list(right)] = 1
            ranks.append(np.flatnonzero(ranked(scores, gains)))
    return Rankings(ranks, len(passages))
