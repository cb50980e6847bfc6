"""Masked language modelling task (BERT): predicts masked tokens and next sentences (Devlin et al. 2019, section 3.1).

B batch, S tokens.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures import MaskedLanguageModel
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.masking import mask_tokens
from heedful.data.passages import PassagePlan, SentenceStore, assemble, cells, check_count
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.preparation.text import check_passages, fewest_documents, prepare_passages
from heedful.data.readers.documents import check_files, document_lines
from heedful.losses import Loss, cross_entropy, label_cross_entropy, perplexity
from heedful.predictors.filler import Filler
from heedful.tasks.dataset import Dataset
from heedful.tasks.task import ALONE, Evaluation, Mean, Results, Scores, Task
from heedful.text.tokenizer import PAD
from heedful.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class MaskedBatch:
    """Batch for a masked language model: padded passages with some of their tokens masked."""

    inputs: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    chosen: Bool[Tensor, "B S"]  # the tokens to be predicted
    targets: Int[Tensor, "B S"]
    not_next: Int[Tensor, " B"]  # 0 if the second passage follows the first in the text, 1 if not
    pairs: bool
    tokens: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Divisors of the two losses: the number of masked tokens, and the number of passage pairs."""
        chosen = int(self.chosen.sum())
        return (chosen, len(self.inputs)) if self.pairs else (chosen,)


@dataclass
class Accuracy:
    """Counter of right decisions, for the accuracy of predictions."""

    right: int = 0
    count: int = 0

    @classmethod
    def total(cls, counts: Iterable[Sequence[int]]) -> "Accuracy":
        """Sum counters, each given by its right decisions and its count."""
        right, count = zip(*counts, strict=True)
        return cls(sum(right), sum(count))

    def add(self, logits: Float[Tensor, "N C"], wanted: Int[Tensor, " N"]) -> None:
        """Count the rows whose most probable class is the wanted one."""
        self.right += int((logits.argmax(-1) == wanted).sum())
        self.count += len(wanted)

    @property
    def value(self) -> float:
        """Accuracy as a share from 0 to 1; NaN if nothing was predicted."""
        return self.right / self.count if self.count else math.nan


class Passages(Dataset[MaskedBatch]):
    """Passages of running text, or pairs of them, with some tokens masked."""

    def __init__(self, recipe: Recipe, passages: PreparedData[SentenceStore]) -> None:
        super().__init__(recipe, passages.tokenizers, passages.digest)
        self.passages = passages
        plans = [self.plan_of(store, recipe.train.seed) for store in passages.train]
        self.plan = plans[0] if plans else None
        self.held_out = None if passages.valid is None else self.plan_of(passages.valid, seed=0)

    @classmethod
    def check(cls, recipe: Recipe) -> None:
        """Check that a recipe has what passages need; see `heedful.data.preparation.text.check_passages`."""
        check_passages(recipe)

    @classmethod
    def resolve(cls, recipe: Recipe) -> Recipe:
        """Return the recipe unchanged after checking that its training and validation texts have enough documents."""
        check_count(fewest_documents(recipe, most=2), recipe.masking)
        return recipe

    @classmethod
    def peek(cls, corpus: CorpusConfig, recipe: Recipe, /) -> Iterator[object]:
        """Iterate over the lines of a corpus, to find errors in its files early."""
        check_files(corpus, recipe.data)
        return document_lines(corpus, recipe.data)

    @classmethod
    def prepare(
        cls, recipe: Recipe, folder: Path, report: Callable[[str], None], tokenizers: TokenizerPair | None = None
    ) -> Any:
        """Prepare the passages of a recipe, or open them if prepared before."""
        return cls(recipe, prepare_passages(recipe, folder, report, tokenizers))

    def plan_of(self, store: SentenceStore, seed: int) -> PassagePlan:
        """Plan the passages into which a text is cut for batches."""
        recipe = self.recipe
        return PassagePlan(store, recipe.masking, recipe.data.max_length, recipe.train.batch_tokens, seed)

    def epoch(self, number: int) -> list[np.ndarray]:
        """List the batches of an epoch; the text is cut into passages anew in each epoch."""
        return self.plan.epoch(number) if self.plan else []

    def cells(self, ids: np.ndarray) -> int:
        """Return the size of a batch in tokens, padding included."""
        return cells(ids)

    def batch(self, ids: np.ndarray, epoch: int, device: torch.device) -> MaskedBatch:
        """Read the passages of one batch, with masks that are drawn anew in each epoch."""
        return self.hide(self.passages.train[0], ids, (self.recipe.train.seed, epoch), device)

    def valid_plan(self) -> list[np.ndarray] | None:
        """List the batches of the validation text, which is always cut into the same passages."""
        return self.held_out and self.held_out.epoch(0)

    def valid_batch(self, ids: np.ndarray, device: torch.device) -> MaskedBatch:
        """Read the passages of one batch of the validation text, with masks that are always the same."""
        return self.hide(self.passages.stores[-1], ids, (0, 0), device)

    def hide(self, store: SentenceStore, rows: np.ndarray, key: tuple[int, int], device: torch.device) -> MaskedBatch:
        """Read passages and mask some of their tokens; `key` is a seed and an epoch."""
        masking, tokenizer = self.recipe.masking, self.tokenizers.source
        ids, segments, is_next = assemble(store, rows)
        words = self.words(ids) if masking.whole_words else None
        keys = [(*key, int(number)) for number in rows["number"]]
        inputs, chosen = mask_tokens(ids, words, masking, len(tokenizer), tokenizer.first_word, keys)
        return MaskedBatch(
            inputs=torch.from_numpy(inputs).to(device),
            padding_mask=torch.from_numpy(ids != PAD).to(device),
            segments=torch.from_numpy(segments).to(device),
            chosen=torch.from_numpy(chosen).to(device),
            targets=torch.from_numpy(ids).to(device),
            not_next=torch.from_numpy(~is_next).long().to(device),
            pairs=masking.next_sentence,
            tokens=int((ids != PAD).sum()),
        )

    def words(self, ids: np.ndarray) -> np.ndarray:
        """Map each token to the number of its word, for whole-word masking."""
        return np.array([self.tokenizers.source.word_of_piece(row) for row in ids.tolist()])

    def check_unchanged(self) -> None:
        """Check that the prepared data has not changed since it was opened."""
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
        """Build a masked language model: an encoder with its prediction heads."""
        return MaskedLanguageModel(recipe.model, len(tokenizers.source), pairs=recipe.masking.next_sentence)

    @staticmethod
    def use(model: MaskedLanguageModel, recipe: Recipe, tokenizers: TokenizerPair) -> Filler:
        """Create the predictor that fills gaps in texts with the model."""
        return Filler(model, tokenizers.source, recipe.data.max_length)

    def loss(self, model: MaskedLanguageModel, batch: MaskedBatch) -> tuple[Loss, ...]:
        """Compute the loss of the masked tokens and, of passage pairs, the loss of next-sentence prediction."""
        states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
        hidden = model.transform(states[batch.chosen])
        smoothing = self.recipe.train.label_smoothing
        tokens = cross_entropy(hidden, model.output.weight, batch.targets[batch.chosen], smoothing, model.output.bias)
        if model.next_sentence is None:
            return (tokens,)
        return tokens, label_cross_entropy(model.next_sentence(states, batch.padding_mask), batch.not_next)

    def summary(self, means: Sequence[Mean]) -> Scores:
        """Compute the total loss, the perplexity of masked tokens, and the next-sentence loss from mean losses."""
        neighbours = {"next_sentence_loss": means[1].loss} if len(means) > 1 else {}
        return {"loss": sum(mean.loss for mean in means), "perplexity": perplexity(means[0].nll), **neighbours}

    def evaluate(self, model: MaskedLanguageModel, run: Evaluation = ALONE) -> Results | None:
        """Score a model on the validation text: losses, and the accuracy of masked tokens and next sentences."""
        results = super().evaluate(model, run)
        if results is None or not all(map(math.isfinite, results.scores.values())):
            return results
        return Results(results.scores | self.accuracies(model, run))

    def accuracies(self, model: MaskedLanguageModel, run: Evaluation) -> Scores:
        """Compute the accuracy of the masked tokens and, of passage pairs, of next-sentence prediction."""
        tokens, pairs = Accuracy(), Accuracy()
        for batch in run.reducer.shard(run.batches(self.data, model)):
            states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
            tokens.add(model.output(model.transform(states[batch.chosen])), batch.targets[batch.chosen])
            if model.next_sentence is not None:
                pairs.add(model.next_sentence(states, batch.padding_mask), batch.not_next)
        tokens, pairs = (Accuracy.total(run.reducer.all_gather([one.right, one.count])) for one in (tokens, pairs))
        neighbours = {"next_sentence_accuracy": pairs.value} if pairs.count else {}
        return {"accuracy": tokens.value, **neighbours}
