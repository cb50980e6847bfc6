"""GPT: a causal language model, which predicts the next token from the tokens before it (Radford et al. 2018).

B batch, R rows of a search, T tokens, D model, V vocabulary.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.models.backbone import BackboneModel, DecoderOnly
from heedful.models.initialization import initialise
from heedful.nn.embedding import Embedding
from heedful.nn.kv_cache import Cache, KVCache
from heedful.nn.masks import AttentionMask


class LanguageModel(BackboneModel):
    """Causal language model (GPT): a decoder-only backbone and an output projection to the vocabulary."""

    def __init__(self, config: ModelConfig, vocab: int) -> None:
        super().__init__()
        self.backbone = DecoderOnly(config, Embedding(vocab, config))
        self.output = nn.Linear(config.d_model, vocab, bias=config.output_bias)
        initialise(self, config)
        if config.tie != "none":
            self.output.weight = self.backbone.embedding.weight

    def forward(self, tokens: Int[Tensor, "B T"], padding_mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Compute the logits of the next token at each position."""
        return self.output(self.hidden(tokens, AttentionMask(padding_mask, tokens.size(1), causal=True)))

    def hidden(
        self, tokens: Int[Tensor, "B T"], mask: AttentionMask, caches: Sequence[Cache] | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute the last hidden states, under an attention mask; the KV cache of each block holds earlier tokens."""
        x = self.backbone.segments(self.backbone.embedding(tokens), torch.zeros_like(tokens))
        return self.backbone.stack(x, mask, caches)

    @torch.no_grad()
    def start(self, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> "LanguageModelState":
        """Begin to generate text: read the prompts, and return the decoding state.

        Args:
            prompts: token ids, padded on the left: the last column is real.
            padding_mask: True for real tokens.
        """
        return LanguageModelState(self, prompts, padding_mask)


class LanguageModelState:
    """Decoding state of a language model: the KV caches of each row during generation. It has no gradients.

    Attributes:
        begin: the last token of each prompt, to be fed first; the model has read all tokens before it.
    """

    def __init__(self, model: LanguageModel, prompts: Int[Tensor, "R T"], padding_mask: Bool[Tensor, "R T"]) -> None:
        self.model = model
        self.begin = prompts[:, -1]
        self.padding_mask = padding_mask[:, :-1]
        self.caches = [KVCache() for _ in model.backbone.stack.blocks]
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
        return self.model.hidden(tokens, mask, self.caches)

    def select(self, rows: Int[Tensor, " R2"]) -> None:
        """Keep, reorder or repeat the rows of the decoding state."""
        self.padding_mask = self.padding_mask[rows]
        for cache in self.caches:
            cache.select(rows)
