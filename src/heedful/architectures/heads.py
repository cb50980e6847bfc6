"""Backbones with a head: language models such as GPT (Radford et al. 2018), classifiers and sentence encoders.

B batch, N inputs, R rows of a search, S or T tokens, C outputs, D model, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone, BackboneModel, text_backbone
from heedful.architectures.model import DecodingState, Model, all_real
from heedful.architectures.parameters import initialise
from heedful.config.schema import TextModelConfig
from heedful.nn.dropout import Dropout
from heedful.nn.embedding import Embedding, OutputProjection
from heedful.nn.masks import AttentionMask


class CausalModel(Model, ABC):
    """Base class of models that predict the next token of a text: a language model, or an ensemble of them.

    Attributes:
        output: The projection of hidden states to the vocabulary.
    """

    output: nn.Linear

    def forward(
        self, tokens: Int[Tensor, "B T"], padding_mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the next token at each position; without a padding mask, all tokens are real."""
        padding_mask = all_real(tokens, padding_mask)
        return self.output(self.hidden(tokens, AttentionMask(padding_mask, tokens.size(1), causal=True)))

    @abstractmethod
    def hidden(self, tokens: Int[Tensor, "B T"], mask: AttentionMask) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states under an attention mask."""

    @abstractmethod
    def start(self, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> DecodingState:
        """Compute the decoding state for generating text after the prompts.

        Args:
            prompts: Token ids, padded on the left, so that no token of the last column is padding.
            padding_mask: True for real tokens.
        """


class LanguageModel(CausalModel, BackboneModel):
    """Causal language model, such as GPT: a causal backbone and an output projection to the vocabulary."""

    def __init__(self, config: TextModelConfig, vocab: int) -> None:
        super().__init__()
        # The family selects the class of the backbone, and a language model needs a causal one.
        self.backbone = text_backbone(replace(config, family="decoder"), vocab)
        self.output = OutputProjection(config.d_model, vocab, bias=config.output_bias)
        initialise(self, config)
        # Tied last: otherwise `initialise` would initialise the embeddings again, as a linear layer.
        if config.tie != "none":
            self.output.weight = self.backbone.embedding.weight

    def hidden(self, tokens: Int[Tensor, "B T"], mask: AttentionMask, cache: Any = None) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states under an attention mask; the cache of the stack contains earlier tokens."""
        # `backbone.encode` creates a mask of padding only; packed documents and a cache need others.
        x = self.backbone.segments(self.backbone.embedding(tokens), torch.zeros_like(tokens))
        return self.backbone.stack(x, mask, cache)

    @torch.no_grad()
    def start(self, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> "LanguageModelState":
        return LanguageModelState(self, prompts, padding_mask)


class LanguageModelState:
    """Decoding state of a language model: the cache of its stack during generation, without gradients.

    Attributes:
        begin: The last token of each prompt, which a search feeds first; the cache contains the tokens before it.
    """

    def __init__(self, model: LanguageModel, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> None:
        self.model = model
        self.begin = prompts[:, -1]
        self.padding_mask = padding_mask[:, :-1]
        self.cache = model.backbone.stack.begin(len(prompts))
        # All tokens of the prompts except the last are processed at once.
        if self.padding_mask.size(1):
            self.advance(prompts[:, :-1])

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        self.padding_mask = torch.cat([self.padding_mask, self.padding_mask.new_ones(len(self.padding_mask), 1)], dim=1)
        # (R,) -> (R, 1), one new token in each row -> (R, 1, D) -> (R, D) -> (R, V)
        return self.model.output(self.advance(tokens[:, None])[:, -1])

    def advance(self, tokens: Int[Tensor, "R T"]) -> Float[Tensor, "R T D"]:
        """Compute the hidden states of the next T tokens of each row; `padding_mask` must already include them."""
        mask = AttentionMask(self.padding_mask, tokens.size(1), causal=True)
        return self.model.hidden(tokens, mask, self.cache)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        self.padding_mask = self.padding_mask[rows]
        self.cache.select(rows)


Pooling = Callable[[Tensor, Tensor], Tensor]  # hidden states (B S D) and padding mask (B S) to (B D)


def first(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Return the hidden state of the first real token, BERT's [CLS]."""
    # argmax returns the first of equal values: the first True.
    return states[torch.arange(states.size(0), device=states.device), padding_mask.int().argmax(1)]


def mean(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Return the mean hidden state of all real tokens (Reimers & Gurevych 2019, section 3)."""
    real = padding_mask[:, :, None].to(states.dtype)
    return (states * real).sum(1) / real.sum(1)


def last(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Return the hidden state of the last real token, which attends to all others in GPT (Radford et al. 2018)."""
    # Padding may be on either side: the last real token is the one with the largest index.
    indices = torch.arange(padding_mask.size(1), device=padding_mask.device)
    return states[torch.arange(states.size(0), device=states.device), (padding_mask * indices).argmax(1)]


def maximum(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Return the largest value of each dimension over all real tokens (Collobert et al. 2011, section 3.3)."""
    # A feature counts once, wherever and however often it occurs in a text.
    return states.masked_fill(~padding_mask[:, :, None], -torch.inf).amax(1)


def total(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    return (states * padding_mask[:, :, None]).sum(1)


POOLINGS: dict[str, Pooling] = {"first": first, "mean": mean, "max": maximum, "last": last, "sum": total}


class Pooler(nn.Module):
    """BERT's pooler: the vector of a text is tanh(pool(states) W + b)."""

    parameter_kind = "pooler"

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        self.pool = POOLINGS[pooling]
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        return torch.tanh(self.dense(self.pool(states, padding_mask)))


class PlainPooler(nn.Module):
    """Pooler without parameters: the vector of a text is the pooled hidden state."""

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        del config
        self.pool = POOLINGS[pooling]

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        return self.pool(states, padding_mask)


class AttentionPooler(nn.Module):
    """Pooler with attention: the mean of the hidden states, weighted by the softmax of their products with a query.

    The query is learned, so that the pooler can ignore inputs such as silence (Safari et al. 2020, "Self-attention
    encoding and pooling for speaker recognition", section 2).
    """

    parameter_kind = "pooler"

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        del pooling
        self.query = nn.Parameter(torch.zeros(config.hidden_size))  # at first all weights are equal

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        scores = (states @ self.query).masked_fill(~padding_mask, -torch.inf)  # B S D times D to B S
        return (scores.softmax(1)[:, None] @ states).squeeze(1)


POOLERS: dict[str, type[Pooler | AttentionPooler | PlainPooler]] = {
    "dense": Pooler,
    "attention": AttentionPooler,
    "none": PlainPooler,
}


class SequenceClassifier(BackboneModel):
    """Sequence classifier or regressor: a backbone, a pooler and a linear layer (Devlin et al. 2019, section 4.1).

    The backbone's input layer determines what a sequence consists of.
    """

    logit_axes = ("class",)
    predicts_tokens = False

    def __init__(self, config: TextModelConfig, backbone: Backbone[Any], outputs: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooler = POOLERS[config.pooler](config, config.pooling or backbone.pooling)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.hidden_size, outputs)
        initialise(self, config)

    def forward(
        self,
        inputs: Shaped[Tensor, "B N *F"],
        padding_mask: Bool[Tensor, "B N"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Compute the class logits, or predicted numbers, of each sequence; without a mask, all inputs are real."""
        states, real = self.backbone.encode(inputs, all_real(inputs, padding_mask), segments)
        return self.output(self.dropout(self.pooler(states, real)))


class TextClassifier(BackboneModel):
    """Text classifier or regressor: a backbone over token ids, a pooler and a linear layer."""

    logit_axes = ("class",)
    predicts_tokens = False

    def __init__(self, config: TextModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.backbone = text_backbone(config, vocab)
        self.pooler = POOLERS[config.pooler](config, config.pooling or self.backbone.pooling)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.hidden_size, outputs)
        initialise(self, config)

    def forward(
        self,
        inputs: Int[Tensor, "B S"],
        padding_mask: Bool[Tensor, "B S"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Compute the class logits, or predicted numbers, of each text; without a mask, all tokens are real."""
        states, real = self.backbone.encode(inputs, all_real(inputs, padding_mask), segments)
        return self.output(self.dropout(self.pooler(states, real)))


class TokenClassifier(BackboneModel):
    """Token classifier: a backbone and a linear layer over each hidden state (Devlin et al. 2019, section 5.3)."""

    logit_axes = ("token", "class")
    predicts_tokens = False

    def __init__(self, config: TextModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.backbone = text_backbone(config, vocab)
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(config.hidden_size, outputs)
        initialise(self, config)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        padding_mask: Bool[Tensor, "B S"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B S C"]:
        return self.output(self.dropout(self.backbone(tokens, all_real(tokens, padding_mask), segments)))


class SentenceEncoder(BackboneModel):
    """Sentence encoder: a backbone whose hidden states are pooled into one unit vector for each text.

    The default pooling is the mean (Reimers & Gurevych 2019, section 3). If `backbone` is given, the encoder shares its
    weights and does not initialise them.
    """

    predicts_tokens = False

    def __init__(self, config: TextModelConfig, vocab: int, backbone: Backbone[Embedding] | None = None) -> None:
        super().__init__()
        self.backbone = backbone or text_backbone(config, vocab)
        self.pool = POOLINGS[config.pooling or "mean"]
        self.size = config.hidden_size  # size of the vectors
        if backbone is None:
            initialise(self, config)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        padding_mask: Bool[Tensor, "B S"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B D"]:
        """Compute the vector of each text; the dot product of two vectors is their cosine similarity."""
        padding_mask = all_real(tokens, padding_mask)
        return F.normalize(self.pool(self.backbone(tokens, padding_mask, segments), padding_mask), dim=-1)
