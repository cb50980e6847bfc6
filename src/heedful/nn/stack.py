"""Blocks of sublayers and stacks of blocks: encoder and decoder of every Transformer.

B batch, T queries, S keys, W lanes of a search, D model.
"""

from collections.abc import Iterable, Iterator
from typing import cast

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention
from heedful.nn.dropout import Dropout
from heedful.nn.feedforward import FEED_FORWARDS
from heedful.nn.kv_cache import NO_CACHE, Cache, KeysValues, KVCache
from heedful.nn.masks import AttentionMask, BeamLanes, SelfAttentionInputs, attention_bias
from heedful.nn.named_stacks import NamedStack
from heedful.nn.positions import Positions
from heedful.nn.residual import RESIDUALS, embedding_norm, final_norm


class Memory:
    """Memory for a decoder's cross-attention: the hidden states of an encoder, and their padding mask.

    Args:
        states: the hidden states of the encoder.
        padding_mask: True for real tokens.
    """

    def __init__(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> None:
        self.states = states
        self.padding_mask = padding_mask
        self.attention_bias: Float[Tensor, "B 1 1 S"] = attention_bias(padding_mask[:, None, :], states)


class DecoderCache:
    """Cache of a decoder during a search: projected memory and KV caches, so that each token is projected once.

    Attributes:
        memory_bias: the attention bias of the memory.
        memory: keys and values of the memory for each block's cross-attention.
        own: the KV cache of each block's self-attention.
    """

    def __init__(self, memory: Memory, projected: list[KeysValues]) -> None:
        self.memory_bias = memory.attention_bias
        self.memory = [(keys.contiguous(), values.contiguous()) for keys, values in projected]  # read at every step
        self.own = [KVCache() for _ in projected]

    def select(self, sentences: Int[Tensor, " B"]) -> None:
        """Keep or reorder the sentences in the decoder's cache."""
        self.memory_bias = self.memory_bias[sentences]
        self.memory = [(keys[sentences], values[sentences]) for keys, values in self.memory]
        for cache in self.own:
            cache.select(sentences)

    def prune(self, columns: Int[Tensor, "B C"]) -> None:
        """Keep only some target tokens of each sentence in the KV caches, given by their columns."""
        for cache in self.own:
            cache.prune(columns)


def self_attend(
    attention: Attention, x: Float[Tensor, "B T D"], inputs: SelfAttentionInputs, cache: Cache
) -> Float[Tensor, "B T D"]:
    """Self-attention: each token attends to the tokens that the mask allows, including those in the KV cache."""
    queries = attention.queries(x, inputs.rotate)
    keys, values = cache.update(*attention.keys_values(x, inputs.rotate))
    return attention(queries, keys, values, inputs.attention_bias)


class Block(nn.Module):
    """Encoder block: self-attention and a feed-forward network (Vaswani et al. 2017, figure 1, left)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.self_attention, self.self_residual = Attention(config), residual(config)
        self.feed_forward, self.feed_residual = FEED_FORWARDS[config.activation](config), residual(config)

    def forward(
        self, x: Float[Tensor, "B T D"], inputs: SelfAttentionInputs, cache: Cache = NO_CACHE
    ) -> Float[Tensor, "B T D"]:
        """Apply self-attention, then the feed-forward network; the KV cache holds earlier tokens."""
        x = self.self_residual(x, lambda h: self_attend(self.self_attention, h, inputs, cache))
        return self.feed_residual(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Decoder block: causal self-attention, cross-attention, feed-forward (Vaswani et al. 2017, figure 1, right)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.self_attention, self.self_residual = Attention(config), residual(config)
        self.cross_attention, self.cross_residual = Attention(config), residual(config)
        self.feed_forward, self.feed_residual = FEED_FORWARDS[config.activation](config), residual(config)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        inputs: SelfAttentionInputs,
        memory: KeysValues,
        memory_bias: Float[Tensor, "B 1 1 S"],
        cache: Cache = NO_CACHE,
    ) -> Float[Tensor, "B T D"]:
        """Apply causal self-attention, cross-attention to the projected memory, and the feed-forward network.

        Args:
            x: the hidden states of the target tokens.
            inputs: attention bias and positions of the self-attention.
            memory: keys (B G S K) and values (B G S U) of the cross-attention.
            memory_bias: attention bias that masks the padding of the memory.
            cache: the KV cache with the previous target tokens.
        """
        x = self.self_residual(x, lambda h: self_attend(self.self_attention, h, inputs, cache))
        x = self.cross_residual(
            x, lambda h: self.cross_attention(self.cross_attention.queries(h), *memory, memory_bias)
        )
        return self.feed_residual(x, self.feed_forward)


class StackCache:
    """Cache of a stack during generation: the KV cache of each block."""

    def __init__(self, blocks: int) -> None:
        self.blocks = [KVCache() for _ in range(blocks)]

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keep, reorder or repeat the rows of all KV caches."""
        for cache in self.blocks:
            cache.select(rows)


class Stack(nn.Module):
    """Stack of blocks over embedded tokens: an encoder (Vaswani et al. 2017, section 3.1), or GPT with a causal mask.

    Args:
        config: the model configuration.
        layers: the number of blocks.
        positions: the position scheme.
    """

    def __init__(self, config: ModelConfig, layers: int, positions: Positions) -> None:
        super().__init__()
        self.positions = positions
        self.embedding_norm = embedding_norm(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(layers))
        self.norm = final_norm(config)

    def forward(
        self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: StackCache | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute hidden states of embedded tokens under an attention mask; the cache holds earlier tokens."""
        x = self.dropout(self.embedding_norm(self.positions.embed(x, mask.query_positions, mask.length)))
        inputs = mask.inputs(self.positions, x)
        caches = cache.blocks if cache else [NO_CACHE] * len(self.blocks)
        for block, own in zip(self.blocks, caches, strict=True):
            x = block(x, inputs, own)
        return self.norm(x)

    def named(self, name: str, sequence: str) -> NamedStack:
        """Name the stack for the inspector."""
        return NamedStack(name, sequence, self)

    def begin(self, rows: int) -> StackCache:
        """Create the cache of rows without any token."""
        del rows
        return StackCache(len(self.blocks))


class Decoder(nn.Module):
    """Decoder: a stack of decoder blocks over embedded tokens, with cross-attention to the states of an encoder."""

    def __init__(self, config: ModelConfig, positions: Positions) -> None:
        super().__init__()
        self.positions = positions
        self.embedding_norm = embedding_norm(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        self.norm = final_norm(config)

    def forward(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"], memory: Memory
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of all target positions at once, each from earlier ones (teacher forcing)."""
        mask = AttentionMask(padding_mask, x.size(1), causal=True)
        x = self.dropout(self.embedding_norm(self.positions.embed(x, mask.query_positions, mask.length)))
        inputs = mask.inputs(self.positions, x)
        for block, keys_values in zip(self.blocks, self.keys_values(memory), strict=True):
            x = block(x, inputs, keys_values, memory.attention_bias)
        return self.norm(x)

    def keys_values(self, memory: Memory) -> Iterator[KeysValues]:
        """Project the memory to keys and values for the cross-attention of each block, one block after another."""
        for block in cast("Iterable[DecoderBlock]", self.blocks):
            yield block.cross_attention.keys_values(memory.states)

    def begin(self, memory: Memory) -> DecoderCache:
        """Create the cache of a search before its first step, with the memory projected once for each block."""
        return DecoderCache(memory, list(self.keys_values(memory)))

    def step(self, x: Float[Tensor, "B W D"], lanes: BeamLanes, cache: DecoderCache) -> Float[Tensor, "B W D"]:
        """Compute the hidden states of one new token in each lane, from the tokens in the cache."""
        x = self.dropout(self.embedding_norm(self.positions.embed(x, lanes.query_positions, lanes.length + 1)))
        inputs = lanes.append(self.positions, x)
        for block, memory, own in zip(self.blocks, cache.memory, cache.own, strict=True):
            x = block(x, inputs, memory, cache.memory_bias, own)
        return self.norm(x)


def stacks(model: nn.Module) -> list[Stack | Decoder]:
    """List the stacks of blocks in a model: an encoder, a decoder or both."""
    return [module for module in model.modules() if isinstance(module, Stack | Decoder)]
