"""Language modelling task (causal, GPT): learns to predict each token of running text (Radford et al. 2018).

B batch, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.architectures.heads import CausalModel, LanguageModel
from heedful.config.schema import Recipe
from heedful.data.preparation.text import prepare_running_text
from heedful.data.stream import TokenStream, windows
from heedful.losses import Loss, output_cross_entropy, perplexity
from heedful.nn.masks import AttentionMask
from heedful.tasks.dataset import Report
from heedful.tasks.parts.running_text import RunningText
from heedful.tasks.specs import SPECS
from heedful.tasks.task import ALONE, Evaluation, Mean, Results, Scores, Task
from heedful.text.tokenizer import PAD, UNK
from heedful.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from heedful.predictors.generator import Generator


@dataclass(frozen=True)
class CausalBatch:
    """Batch for a causal language model: input tokens, and targets shifted by one token."""

    inputs: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]
    mask: AttentionMask
    tokens: int  # real tokens among the targets
    counts: tuple[int, ...]  # the same number


def collate(ids: np.ndarray, documents: np.ndarray, device: torch.device, *, cross: bool) -> CausalBatch:
    """Collate windows of running text into a batch for a causal language model."""
    rows = torch.from_numpy(ids).to(device)
    # (B, T + 1) -> (B, T) twice: each target is the token after its input.
    inputs, targets = rows[:, :-1], rows[:, 1:]
    mask = AttentionMask(inputs != PAD, inputs.size(1), causal=True)
    if not cross:
        # Each token attends only to tokens of the same document.
        mask = mask.within(torch.from_numpy(documents[:, :-1]).to(device))
    tokens = int((ids[:, 1:] != PAD).sum())
    return CausalBatch(inputs, targets, mask, tokens, (tokens,))


def loss(model: CausalModel, batch: CausalBatch, smoothing: float) -> Loss:
    real = batch.targets != PAD
    hidden = model.hidden(batch.inputs, batch.mask)
    # (B, T, D) -> (N, D), without padding
    return output_cross_entropy(hidden[real], model.output, batch.targets[real], smoothing)


def scored_loss(generator: Any, batch: CausalBatch) -> tuple[Loss, ...]:
    """Compute the loss, without smoothing, from the scores of a generator, which attends across documents."""
    # The first input and all targets are the window that `collate` has split.
    rows = torch.cat([batch.inputs[:, :1], batch.targets], dim=1).tolist()
    windows = [[token for token in row if token != PAD] for row in rows]
    log_probs = generator.score_windows(windows, [0] * len(windows))
    nll = -torch.tensor([score for row in log_probs for score in row], dtype=torch.float64).sum()
    return (Loss(nll, nll, batch.tokens),)


class TextWindows(RunningText[CausalBatch]):
    """Running text in windows, in which each token is predicted from the tokens before it."""

    @classmethod
    def prepare(cls, recipe: Recipe, folder: Path, report: Report, tokenizers: TokenizerPair | None = None) -> Any:
        return cls(recipe, prepare_running_text(recipe, folder, report, tokenizers))

    def read(
        self, streams: Sequence[TokenStream], starts: np.ndarray, epoch: int | None, device: torch.device
    ) -> CausalBatch:
        ids, documents = windows(streams[0], starts, self.recipe.data.max_length)
        return collate(ids, documents, device, cross=self.recipe.data.cross_documents)


class CausalLanguageModelling(Task[CausalBatch]):
    """Causal language modelling task: learns to predict the next token of running text, for GPT models."""

    spec = SPECS["language_model"]
    dataset = TextWindows

    @staticmethod
    def build(recipe: Recipe, tokenizers: TokenizerPair) -> LanguageModel:
        return LanguageModel(recipe.model, len(tokenizers.source))

    @staticmethod
    def use(model: CausalModel, recipe: Recipe, tokenizers: TokenizerPair) -> "Generator":
        from heedful.predictors.generator import Generator

        return Generator(model, tokenizers.source, recipe.generate, recipe.data.max_length)

    def loss(self, model: CausalModel, batch: CausalBatch) -> tuple[Loss, ...]:
        return (loss(model, batch, self.recipe.train.label_smoothing),)

    def summary(self, means: Sequence[Mean]) -> Scores:
        return {"loss": means[0].loss, "perplexity": perplexity(means[0].nll)}

    def evaluate(self, model: CausalModel, run: Evaluation = ALONE) -> Results | None:
        """Score a model on the validation text, in windows that do not overlap: loss and perplexities.

        Every token is predicted once, from the tokens before it in its window, of which there are at most
        `data.max_length`.
        """
        text = self.data.examples.valid
        if text is None:
            return None
        if unknown := np.count_nonzero(text.ids == UNK):
            run.warn(
                f"{unknown / len(text):.1%} of the tokens are <unk>, whose characters the model does not predict: "
                "byte_perplexity is lower than for a model that spells them out"
            )
        batches = run.batches(self.data, model)
        means = run.mean_losses(*((scored_loss, run.predictor) if run.predictor else (self.loss, model)), batches)
        # Losses per byte can be compared between models with different tokenizers.
        per_byte = perplexity(means[0].nll * len(text) / max(1, text.bytes))
        return Results(self.summary(means) | {"byte_perplexity": per_byte})
