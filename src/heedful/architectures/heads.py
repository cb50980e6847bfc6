"""Models of a backbone and a head: language models such as GPT (Radford et al. 2018), classifiers, sentence encoders.

B batch, N inputs, R rows of a search, S or T tokens, C outputs, D model, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from heedful.architectures.backbone import Backbone, BackboneModel, text_backbone
from heedful.architectures.model import all_real
from heedful.architectures.parameters import initialise
from heedful.config.schema import TextModelConfig
from heedful.nn.dropout import Dropout
from heedful.nn.embedding import Embedding, OutputProjection
from heedful.nn.masks import AttentionMask
from heedful.nn.named_stacks import GeneratingStack, StackState


class LanguageModel(BackboneModel):
    """Causal language model, such as GPT: a causal backbone and an output projection to the vocabulary."""

    def __init__(self, config: TextModelConfig, vocab: int) -> None:
        super().__init__()
        self.backbone = text_backbone(replace(config, family="decoder"), vocab)
        self.output = OutputProjection(config.d_model, vocab, bias=config.output_bias)
        initialise(self, config)
        if config.tie != "none":
            self.output.weight = self.backbone.embedding.weight

    def forward(
        self, tokens: Int[Tensor, "B T"], padding_mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """Compute the logits of the next token at each position; without a padding mask all tokens are real."""
        padding_mask = all_real(tokens, padding_mask)
        return self.output(self.hidden(tokens, AttentionMask(padding_mask, tokens.size(1), causal=True)))

    def hidden(
        self, tokens: Int[Tensor, "B T"], mask: AttentionMask, cache: StackState | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states, under an attention mask; the cache of the stack holds earlier tokens."""
        # Not `backbone.encode`, which makes its own mask: packed documents and a cache need another one.
        x = self.backbone.segments(self.backbone.embedding(tokens), torch.zeros_like(tokens))
        return self.backbone.stack(x, mask, cache)

    @torch.no_grad()
    def start(self, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> "LanguageModelState":
        """Begin to generate text: read the prompts, and return the decoding state.

        Args:
            prompts: token ids, padded on the left: the last column is real.
            padding_mask: True for real tokens.
        """
        return LanguageModelState(self, prompts, padding_mask)


class LanguageModelState:
    """Decoding state of a language model: the cache of its stack during generation. It has no gradients.

    Attributes:
        begin: the last token of each prompt, to be fed first; the model has read all tokens before it.
    """

    def __init__(self, model: LanguageModel, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> None:
        self.model = model
        self.begin = prompts[:, -1]
        self.padding_mask = padding_mask[:, :-1]
        self.cache = cast("GeneratingStack", model.backbone.stack).begin(len(prompts))
        # The prompt but for its last token is read at once; the last one is the first that a search feeds.
        if self.padding_mask.size(1):
            self.read(prompts[:, :-1])

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, " R"]) -> Float[Tensor, "R V"]:
        """Feed one token to each row; return the logits of the next token."""
        self.padding_mask = torch.cat([self.padding_mask, self.padding_mask.new_ones(len(self.padding_mask), 1)], dim=1)
        return self.model.output(self.read(tokens[:, None])[:, -1])

    def read(self, tokens: Int[Tensor, "R T"]) -> Float[Tensor, "R T D"]:
        """Compute the hidden states of the next tokens of each row, which the padding mask includes already."""
        mask = AttentionMask(self.padding_mask, tokens.size(1), causal=True)
        return self.model.hidden(tokens, mask, self.cache)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the decoding state."""
        self.padding_mask = self.padding_mask[rows]
        self.cache.select(rows)


Pooling = Callable[[Tensor, Tensor], Tensor]  # hidden states (B S D) and padding mask (B S) to (B D)


def first(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the hidden state of the first real token, BERT's [CLS]."""
    # argmax finds the first of equal values: the first True.
    return states[torch.arange(len(states), device=states.device), padding_mask.int().argmax(1)]


def mean(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the mean hidden state of all real tokens (Reimers & Gurevych 2019, section 3)."""
    real = padding_mask[:, :, None].to(states.dtype)
    return (states * real).sum(1) / real.sum(1)


def last(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the hidden state of the last real token, which in GPT attends to all (Radford et al. 2018)."""
    # The largest place of a real token, as padding may be on either side.
    places = torch.arange(padding_mask.size(1), device=padding_mask.device)
    return states[torch.arange(len(states), device=states.device), (padding_mask * places).argmax(1)]


def maximum(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the largest value of each dimension over all real tokens (Collobert et al. 2011, section 3.3)."""
    # A feature counts once, however long the text is and wherever it is found.
    return states.masked_fill(~padding_mask[:, :, None], -torch.inf).amax(1)


def total(states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
    """Pool by the sum of the hidden states of all real tokens."""
    return (states * padding_mask[:, :, None]).sum(1)


POOLINGS: dict[str, Pooling] = {"first": first, "mean": mean, "max": maximum, "last": last, "sum": total}


class Pooler(nn.Module):
    """Pooler of BERT: the vector of a text, tanh(pool(states) W + b)."""

    parameter_kind = "pooler"

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        self.pool = POOLINGS[pooling]
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        return torch.tanh(self.dense(self.pool(states, padding_mask)))


class PlainPooler(nn.Module):
    """Pooler without parameters: the vector of a text is its pooled hidden state."""

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        del config
        self.pool = POOLINGS[pooling]

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        return self.pool(states, padding_mask)


class AttentionPooler(nn.Module):
    """Pooler with attention: the mean of the hidden states, weighted by their dot product with one learned query.

    It learns what to leave out, such as silence (Safari et al. 2020, "Self-attention encoding and pooling for speaker
    recognition", section 2).
    """

    parameter_kind = "pooler"

    def __init__(self, config: TextModelConfig, pooling: str) -> None:
        super().__init__()
        del pooling
        self.query = nn.Parameter(torch.zeros(config.hidden_size))  # at first all count alike

    def forward(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B D"]:
        # One query for all texts: B S D times D.
        scores = (states @ self.query).masked_fill(~padding_mask, -torch.inf)
        return (scores.softmax(1)[:, None] @ states).squeeze(1)


POOLERS: dict[str, type[Pooler | AttentionPooler | PlainPooler]] = {
    "dense": Pooler,
    "attention": AttentionPooler,
    "none": PlainPooler,
}


def add_classifier(model: BackboneModel, config: TextModelConfig, outputs: int) -> None:
    """Put a pooler and a linear layer on the backbone of a model, and draw all weights."""
    model.pooler = POOLERS[config.pooler](config, config.pooling or model.backbone.pooling)
    model.dropout = Dropout(config.dropout)
    model.output = nn.Linear(config.hidden_size, outputs)
    initialise(model, config)


class SequenceClassifier(BackboneModel):
    """Classifier or regressor of sequences: a backbone, a pooler and a linear layer (Devlin et al. 2019, section 4.1).

    The sequences are what the input layer of the backbone takes.
    """

    logit_axes = ("class",)
    predicts_tokens = False

    pooler: nn.Module
    dropout: Dropout
    output: nn.Linear

    def __init__(self, config: TextModelConfig, backbone: Backbone[Any], outputs: int) -> None:
        super().__init__()
        self.backbone = backbone
        add_classifier(self, config, outputs)

    def forward(
        self,
        inputs: Shaped[Tensor, "B N *F"],
        padding_mask: Bool[Tensor, "B N"] | None = None,
        segments: Int[Tensor, "B S"] | None = None,
    ) -> Float[Tensor, "B C"]:
        """Compute the outputs of each sequence: logits of classes, or numbers; without a mask all inputs are real."""
        states, real = self.backbone.encode(inputs, all_real(inputs, padding_mask), segments)
        return self.output(self.dropout(self.pooler(states, real)))


class TextClassifier(BackboneModel):
    """Text classifier or regressor: a sequence classifier over token ids."""

    logit_axes = ("class",)
    predicts_tokens = False

    output: nn.Linear

    def __init__(self, config: TextModelConfig, vocab: int, outputs: int) -> None:
        super().__init__()
        self.backbone = text_backbone(config, vocab)
        add_classifier(self, config, outputs)

    forward = SequenceClassifier.forward


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
        """Compute the logits of each token."""
        return self.output(self.dropout(self.backbone(tokens, all_real(tokens, padding_mask), segments)))


class SentenceEncoder(BackboneModel):
    """Sentence encoder: a backbone with pooling, by default the mean, to one vector of length 1 for each text.

    The mean of the hidden states is the choice of Reimers & Gurevych (2019, section 3).

    A trained backbone may be given, which is then shared.
    """

    predicts_tokens = False

    def __init__(self, config: TextModelConfig, vocab: int, backbone: Backbone[Embedding] | None = None) -> None:
        super().__init__()
        self.backbone = backbone or text_backbone(config, vocab)
        self.pool = POOLINGS[config.pooling or "mean"]
        self.size = config.hidden_size  # of the vectors
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
