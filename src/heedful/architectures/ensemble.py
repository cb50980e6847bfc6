"""Ensembles: several models that write text together. The probability of a token is the mean of the models' own.

The models may differ in architecture and size, but must have the same vocabularies. An ensemble has the interface of a
single model, so that every search, and every score, works with it; its hidden state is that of all models in a row.

B batch, N source tokens, R rows of a search, S or T tokens, D the sum of the models' widths, V vocabulary.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.heads import CausalModel
from heedful.architectures.model import DecodingState, EmbeddingTable, Model, SourceToTarget
from heedful.nn.masks import AttentionMask


def ensemble(models: Sequence[Any]) -> "TranslatorEnsemble | LanguageModelEnsemble":
    """Combine encoder-decoders, or language models, that have the same vocabularies."""
    kind = LanguageModelEnsemble if isinstance(models[0], CausalModel) else TranslatorEnsemble
    return kind(models)


def mean_probabilities(logits: Sequence[Float[Tensor, "... V"]]) -> Float[Tensor, "... V"]:
    """Return the logarithm of the mean of the probabilities that each of the logits stands for, in float32."""
    log_probs = torch.stack([each.float().log_softmax(-1) for each in logits])
    return log_probs.logsumexp(0) - math.log(len(logits))


class MeanOutput(nn.Module):
    """Output layer of an ensemble: each model projects its own part of the hidden state."""

    def __init__(self, outputs: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.outputs = nn.ModuleList(outputs)
        self.widths = [output.in_features for output in outputs]

    def forward(self, hidden: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        parts = zip(self.outputs, hidden.split(self.widths, dim=-1), strict=True)
        return mean_probabilities([output(part) for output, part in parts])


class EnsembleState:
    """Decoding state of an ensemble: those of its models, which are fed the same tokens."""

    def __init__(self, states: Sequence[DecodingState]) -> None:
        self.states = states
        self.begin = states[0].begin

    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        return mean_probabilities([state.step(tokens) for state in self.states])

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        for state in self.states:
            state.select(rows)


class Ensemble(Model):
    """Base class of ensembles; the models have the same vocabularies."""

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__()
        self.models: Any = nn.ModuleList(models)
        self.add_module("output", MeanOutput([model.output for model in models]))

    def embedding_of(self, line: str) -> EmbeddingTable | None:
        return self.models[0].embedding_of(line)

    def max_positions(self) -> int | None:
        return smallest([model.max_positions() for model in self.models])


class TranslatorEnsemble(Ensemble, SourceToTarget):
    """Encoder-decoders that write an output together."""

    def max_target_positions(self) -> int | None:
        return smallest([model.max_target_positions() for model in self.models])

    def hidden(
        self,
        source: Shaped[Tensor, "B N *F"],
        source_padding_mask: Bool[Tensor, "B N"],
        target: Int[Tensor, "B T"],
        target_padding_mask: Bool[Tensor, "B T"],
    ) -> Float[Tensor, "B T D"]:
        inputs = source, source_padding_mask, target, target_padding_mask
        return torch.cat([model.hidden(*inputs) for model in self.models], dim=-1)

    def start(self, source: Shaped[Tensor, "B N *F"], padding_mask: Bool[Tensor, "B N"]) -> EnsembleState:
        return EnsembleState([model.start(source, padding_mask) for model in self.models])


class LanguageModelEnsemble(Ensemble, CausalModel):
    """Language models that continue a text together."""

    def hidden(self, tokens: Int[Tensor, "B T"], mask: AttentionMask) -> Float[Tensor, "B T D"]:
        return torch.cat([model.hidden(tokens, mask) for model in self.models], dim=-1)

    def start(self, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> EnsembleState:
        return EnsembleState([model.start(prompts, padding_mask) for model in self.models])


def smallest(limits: Sequence[int | None]) -> int | None:
    """Return the smallest limit; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)
