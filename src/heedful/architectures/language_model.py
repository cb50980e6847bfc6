"""Causal language models, which predict the next token from the tokens before it: GPT (Radford et al. 2018) and others.

B batch, R rows of a search, T tokens, D model, V vocabulary.
"""

from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.architectures.backbone import BackboneModel, GeneratingStack, StackState, text_backbone
from heedful.architectures.initialization import initialise
from heedful.architectures.model import all_real
from heedful.config.schema import TextModelConfig
from heedful.nn.embedding import OutputProjection
from heedful.nn.masks import AttentionMask


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
