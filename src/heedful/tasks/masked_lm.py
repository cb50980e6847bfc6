"""Masked language modelling task: predicts masked tokens and next sentences (BERT, Devlin et al. 2019, section 3.1).

B batch, S tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.architectures import MaskedLanguageModel
from heedful.config.schema import MaskingConfig, Recipe
from heedful.data.passages import PassagePlan, SentenceStore, read_passages
from heedful.data.preparation.text import prepare_passages
from heedful.losses import Loss, cross_entropy, label_cross_entropy, perplexity
from heedful.predictors.filler import Filler
from heedful.random_numbers import MASKS, draw
from heedful.tasks.dataset import Dataset, Report
from heedful.tasks.readers.running_text import PassageReader
from heedful.tasks.specs import SPECS
from heedful.tasks.task import ALONE, Evaluation, Mean, Results, Scores, Task
from heedful.text.tokenizer import MASK, PAD
from heedful.text.tokenizer_pair import TokenizerPair

Key = tuple[int, int, int]  # seed, epoch and sequence number


def mask_tokens(
    ids: np.ndarray,
    words: np.ndarray | None,
    masking: MaskingConfig,
    vocab_size: int,
    first_piece: int,
    keys: Sequence[Key],
) -> tuple[np.ndarray, np.ndarray]:
    """Select tokens of each sequence at random; replace most of these with <mask>, and some with random tokens.

    Of the tokens that are not special, max(1, round(rate x their number)) are selected, one by one or, with
    `whole_words`, word by word; the last word may then take the selection beyond this number. The result for a
    sequence depends on its tokens and its key, not on the batch, its padding or its row.

    Args:
        ids: Token ids, padded at the end, shape (B, S).
        words: The index of each token's word in its sequence, shape (B, S); used only with `whole_words`.
        masking: The share of the tokens to select, and the shares of the selected tokens that become <mask> or random.
        vocab_size: The size of the vocabulary; random tokens have ids below it.
        first_piece: The lowest id of random tokens, which excludes special tokens and bytes.
        keys: The seed, epoch and number of each sequence, on which its random choices depend.

    Returns:
        The inputs of the model, (B, S), and a mask of the tokens to predict, bool, (B, S).
    """
    if first_piece >= vocab_size:
        raise ValueError(f"a vocabulary of {vocab_size} has no token ids from {first_piece} up")
    if masking.whole_words and words is None:
        raise ValueError("whole_words needs the word of each token")
    inputs, mask = ids.copy(), np.zeros(ids.shape, bool)
    columns = np.arange(ids.shape[1])
    for row, (seed, epoch, number) in enumerate(keys):
        candidates = columns[ids[row] > MASK]  # special tokens have the lowest ids
        order, action, piece = draw(3 * len(candidates), seed, MASKS, epoch, number).reshape(3, -1)

        # Units, which are words or tokens, are selected in random order until they have the share `rate` of the tokens.
        units = words[row, candidates] if words is not None and masking.whole_words else candidates
        _, unit, sizes = np.unique(units, return_inverse=True, return_counts=True)
        shuffled = np.argsort(order[: len(sizes)], kind="stable")
        count = 1 + np.searchsorted(np.cumsum(sizes[shuffled]), round(masking.rate * len(units)))
        selection = np.isin(unit, shuffled[:count])

        # Most become <mask>, some a random token, and the rest stay the same, so that the model cannot rely on any
        # token that it reads.
        masked = candidates[selection]
        random = first_piece + (piece[selection] % (vocab_size - first_piece)).astype(ids.dtype)
        # 64 random bits as a number from 0 to 1.
        share = action[selection] * 2.0**-64
        visible = np.where(share < masking.mask + masking.random, random, ids[row, masked])
        inputs[row, masked] = np.where(share < masking.mask, MASK, visible)
        mask[row, masked] = True
    return inputs, mask


@dataclass(frozen=True)
class MaskedBatch:
    """Batch for a masked language model: padded passages with some of their tokens masked."""

    inputs: Int[Tensor, "B S"]
    padding_mask: Bool[Tensor, "B S"]
    segments: Int[Tensor, "B S"]
    masked: Bool[Tensor, "B S"]  # the tokens to be predicted
    targets: Int[Tensor, "B S"]
    not_next: Int[Tensor, " B"]  # 0 if the second passage follows the first in the text, 1 if not
    tokens: int
    counts: tuple[int, ...]  # the numbers of masked tokens and, with next-sentence prediction, of passage pairs


class Passages(Dataset[MaskedBatch]):
    """Passages of running text, or pairs of them, with some tokens masked."""

    reader = PassageReader

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        return cls(recipe, prepare_passages(recipe, folder, report, tokenizers))

    def plan(self, stores: Sequence[SentenceStore], weights: Sequence[float], seed: int) -> PassagePlan:
        del weights  # running text is read once per epoch
        recipe = self.recipe
        return PassagePlan(stores[0], recipe.masking, recipe.data.max_length, recipe.train.batch_tokens, seed)

    def read(
        self, stores: Sequence[SentenceStore], rows: np.ndarray, epoch: int | None, device: torch.device
    ) -> MaskedBatch:
        """Read passages and mask some of their tokens."""
        masking, tokenizer = self.recipe.masking, self.tokenizers.source
        ids, segments, is_next = read_passages(stores[0], rows)
        # (B, S): the number of the word that each token is part of
        words = np.array([tokenizer.word_of_piece(row) for row in ids.tolist()]) if masking.whole_words else None
        keys = [(*self.key(epoch), int(number)) for number in rows["number"]]
        inputs, masked = mask_tokens(ids, words, masking, len(tokenizer), tokenizer.first_word, keys)
        return MaskedBatch(
            inputs=torch.from_numpy(inputs).to(device),
            padding_mask=torch.from_numpy(ids != PAD).to(device),
            segments=torch.from_numpy(segments).to(device),
            masked=torch.from_numpy(masked).to(device),
            targets=torch.from_numpy(ids).to(device),
            not_next=torch.from_numpy(~is_next).long().to(device),
            tokens=int((ids != PAD).sum()),
            counts=(int(masked.sum()), *([len(ids)] if masking.next_sentence else [])),
        )


class MaskedLanguageModelling(Task[MaskedBatch]):
    """Masked language modelling task for BERT: predicts masked tokens and, for passage pairs, next sentences."""

    spec = SPECS["masked_lm"]
    dataset = Passages

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> MaskedLanguageModel:
        return MaskedLanguageModel(recipe.model, len(tokenizers.source), pairs=recipe.masking.next_sentence)

    @staticmethod
    def use(model: MaskedLanguageModel, recipe: Recipe, tokenizers: TokenizerPair) -> Filler:
        return Filler(model, tokenizers.source, recipe.data.max_length)

    def loss(self, model: MaskedLanguageModel, batch: MaskedBatch) -> tuple[Loss, ...]:
        """Compute the loss of the masked tokens and, for passage pairs, the loss of next-sentence prediction."""
        states = model.backbone(batch.inputs, batch.padding_mask, batch.segments)
        # Only masked tokens are predicted, (B, S, D) -> (N, D), because the projection to the vocabulary costs most.
        hidden = model.transform(states[batch.masked])
        smoothing = self.recipe.train.label_smoothing
        tokens = cross_entropy(hidden, model.output.weight, batch.targets[batch.masked], smoothing, model.output.bias)
        if model.next_sentence is None:
            return (tokens,)
        return tokens, label_cross_entropy(model.next_sentence(states, batch.padding_mask), batch.not_next)

    def summary(self, means: Sequence[Mean]) -> Scores:
        next_sentence = {"next_sentence_loss": means[1].loss} if len(means) > 1 else {}
        return {"loss": sum(mean.loss for mean in means), "perplexity": perplexity(means[0].nll), **next_sentence}

    def evaluate(self, model: MaskedLanguageModel, run: Evaluation = ALONE) -> Results | None:
        results = super().evaluate(model, run)
        if results is None or not all(map(math.isfinite, results.scores.values())):
            return results
        # Accuracies are ratios of counts, which a second pass adds up: rows are tokens and next sentences, columns the
        # correct predictions and all predictions.
        counts = np.zeros((2, 2), np.int64)
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
        if pairs[1]:
            scores["next_sentence_accuracy"] = pairs[0] / pairs[1]
        return Results(results.scores | scores)
