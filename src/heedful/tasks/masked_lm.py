"""Masked language modelling task (BERT): predicts masked tokens and next sentences (Devlin et al. 2019, section 3.1).

B batch, S tokens.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.architectures import MaskedLanguageModel
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.passages import PassagePlan, SentenceStore, assemble, cells, check_count, mask_tokens
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.preparation.text import check_passages, fewest_documents, prepare_passages
from heedful.data.readers.documents import check_files, document_lines
from heedful.losses import Loss, cross_entropy, label_cross_entropy, perplexity
from heedful.predictors.filler import Filler
from heedful.tasks.dataset import Dataset, Report
from heedful.tasks.task import ALONE, Evaluation, Mean, Results, Scores, Task
from heedful.text.tokenizer import PAD
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class MaskedBatch:
    """Batch for a masked language model: padded passages with some of their tokens masked."""

    inputs: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    masked: Bool[Tensor, "B S"]  # the tokens to be predicted
    targets: Int[Tensor, "B S"]
    not_next: Int[Tensor, " B"]  # 0 if the second passage follows the first in the text, 1 if not
    pairs: bool
    tokens: int

    @property
    def counts(self) -> tuple[int, ...]:
        tokens = int(self.masked.sum())
        return (tokens, len(self.inputs)) if self.pairs else (tokens,)


class Passages(Dataset[MaskedBatch]):
    """Passages of running text, or pairs of them, with some tokens masked."""

    def __init__(self, recipe: Recipe, passages: PreparedData[SentenceStore]) -> None:
        super().__init__(recipe, passages.tokenizers, passages.digest)
        self.passages = passages

        def plan(store: SentenceStore, seed: int) -> PassagePlan:
            return PassagePlan(store, recipe.masking, recipe.data.max_length, recipe.train.batch_tokens, seed)

        self.train_plan = plan(passages.train[0], recipe.train.seed) if passages.train else None
        self.held_out = None if passages.valid is None else plan(passages.valid, seed=0)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        check_passages(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Return the recipe unchanged after checking that its training and validation texts have enough documents."""
        check_count(fewest_documents(recipe, most=2), recipe.masking)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        return cls(recipe, prepare_passages(recipe, folder, report, tokenizers))

    def epoch(self, number: int) -> list[np.ndarray]:
        return self.train_plan.epoch(number) if self.train_plan else []

    def cells(self, ids: np.ndarray) -> int:
        return cells(ids)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> MaskedBatch:
        return self.hide(self.passages.train[0], ids, (self.recipe.train.seed, epoch), device)

    def valid_plan(self) -> list[np.ndarray] | None:
        return self.held_out and self.held_out.epoch(0)

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> MaskedBatch:
        return self.hide(self.passages.stores[-1], ids, (0, 0), device)

    def hide(self, store: SentenceStore, rows: np.ndarray, key: tuple[int, int], device: torch.device) -> MaskedBatch:
        """Read passages and mask some of their tokens; `key` is a seed and an epoch."""
        masking, tokenizer = self.recipe.masking, self.tokenizers.source
        ids, segments, is_next = assemble(store, rows)
        words = None  # the number of the word of each token
        if masking.whole_words:
            words = np.array([tokenizer.word_of_piece(row) for row in ids.tolist()])
        keys = [(*key, int(number)) for number in rows["number"]]
        inputs, masked = mask_tokens(ids, words, masking, len(tokenizer), tokenizer.first_word, keys)
        return MaskedBatch(
            inputs=torch.from_numpy(inputs).to(device),
            padding_mask=torch.from_numpy(ids != PAD).to(device),
            segments=torch.from_numpy(segments).to(device),
            masked=torch.from_numpy(masked).to(device),
            targets=torch.from_numpy(ids).to(device),
            not_next=torch.from_numpy(~is_next).long().to(device),
            pairs=masking.next_sentence,
            tokens=int((ids != PAD).sum()),
        )

    def check_unchanged(self) -> None:
        self.passages.check_unchanged()


class MaskedLanguageModelling(Task[MaskedBatch]):
    """Masked language modelling task for BERT: predicts masked tokens and, for passage pairs, next sentences."""

    families = ("encoder",)
    command = "heedful fill"
    example = "'The man [MASK] a bike.'"
    dataset = Passages
    metrics = ("loss", "perplexity", "accuracy", "next_sentence_loss", "next_sentence_accuracy")

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> MaskedLanguageModel:
        return MaskedLanguageModel(recipe.model, len(tokenizers.source), pairs=recipe.masking.next_sentence)

    @staticmethod
    def use(model: MaskedLanguageModel, recipe: Recipe, tokenizers: TokenizerPair) -> Filler:
        return Filler(model, tokenizers.source, recipe.data.max_length)

    def loss(self, model: MaskedLanguageModel, batch: MaskedBatch) -> tuple[Loss, ...]:
        """Compute the loss of the masked tokens and, of passage pairs, the loss of next-sentence prediction."""
        states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
        # Only masked tokens are predicted: the others never meet the projection to the vocabulary, which costs most.
        hidden = model.transform(states[batch.masked])
        smoothing = self.recipe.train.label_smoothing
        tokens = cross_entropy(hidden, model.output.weight, batch.targets[batch.masked], smoothing, model.output.bias)
        if model.next_sentence is None:
            return (tokens,)
        return tokens, label_cross_entropy(model.next_sentence(states, batch.padding_mask), batch.not_next)

    def summary(self, means: Sequence[Mean]) -> Scores:
        neighbours = {"next_sentence_loss": means[1].loss} if len(means) > 1 else {}
        return {"loss": sum(mean.loss for mean in means), "perplexity": perplexity(means[0].nll), **neighbours}

    def evaluate(self, model: MaskedLanguageModel, run: Evaluation = ALONE) -> Results | None:
        results = super().evaluate(model, run)
        if results is None or not all(map(math.isfinite, results.scores.values())):
            return results
        return Results(results.scores | self.accuracies(model, run))

    def accuracies(self, model: MaskedLanguageModel, run: Evaluation) -> Scores:
        counts = np.zeros((2, 2), np.int64)  # right predictions and all of them: of tokens, and of next sentences
        for batch in run.reducer.shard(run.batches(self.data, model)):
            states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
            predictions = [(model.output(model.transform(states[batch.masked])), batch.targets[batch.masked])]
            if model.next_sentence is not None:
                predictions.append((model.next_sentence(states, batch.padding_mask), batch.not_next))
            for row, (logits, targets) in enumerate(predictions):
                counts[row] += int((logits.argmax(-1) == targets).sum()), len(targets)

        processes = np.array(run.reducer.all_gather(counts.ravel().tolist()))
        tokens, pairs = processes.sum(axis=0).reshape(2, 2).tolist()
        scores = {"accuracy": tokens[0] / tokens[1] if tokens[1] else math.nan}
        return scores | ({"next_sentence_accuracy": pairs[0] / pairs[1]} if pairs[1] else {})
