"""Blocks of sublayers and stacks of blocks: the trunk of every model.

B batch, T queries, S keys, W lanes of a search, D model.
"""

from collections.abc import Sequence

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.attention import NO_CACHE, Attention, Cache, FixedCache, GrowingCache
from heedful.nn.dropout import Dropout
from heedful.nn.feedforward import FEED_FORWARDS
from heedful.nn.masks import Lanes, Sight, View, additive
from heedful.nn.positions import Positions
from heedful.nn.residual import RESIDUALS, embedding_norm, final_norm


class Memory:
    """What a decoder looks at: the states of an encoder, and which of them are real."""

    def __init__(self, states: Float[Tensor, "B S D"], keep: Bool[Tensor, "B S"]) -> None:
        self.states = states
        self.keep = keep
        self.bias: Float[Tensor, "B 1 1 S"] = additive(keep[:, None, :], states)

    def select(self, rows: Int[Tensor, " R"]) -> "Memory":
        """The memory of some rows of the batch, in the given order."""
        return Memory(self.states[rows], self.keep[rows])


class LayerCache:
    """What one decoder block remembers between steps."""

    def __init__(self) -> None:
        self.own = GrowingCache()
        self.memory = FixedCache()

    def select(self, sentences: Int[Tensor, " B"]) -> None:
        """Keep or reorder sentences."""
        self.own.select(sentences)
        self.memory.select(sentences)


class Block(nn.Module):
    """Self-attention and a feed-forward network (Vaswani et al. 2017, figure 1, left)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.self_attention, self.self_residual = Attention(config), residual(config)
        self.feed_forward, self.feed_residual = FEED_FORWARDS[config.activation](config), residual(config)

    def forward(self, x: Float[Tensor, "B T D"], view: View, cache: Cache = NO_CACHE) -> Float[Tensor, "B T D"]:
        """Every token looks at every token that `view` shows it, those remembered in `cache` included."""
        x = self.self_residual(x, lambda h: self.self_attention(h, h, view.bias, cache, view.rotate))
        return self.feed_residual(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network (figure 1, right)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.self_attention, self.self_residual = Attention(config), residual(config)
        self.cross_attention, self.cross_residual = Attention(config), residual(config)
        self.feed_forward, self.feed_residual = FEED_FORWARDS[config.activation](config), residual(config)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        view: View,
        memory: Memory,
        own: Cache = NO_CACHE,
        projected: Cache = NO_CACHE,
    ) -> Float[Tensor, "B T D"]:
        """Every token looks at the tokens before it, then at the memory."""
        x = self.self_residual(x, lambda h: self.self_attention(h, h, view.bias, own, view.rotate))
        x = self.cross_residual(x, lambda h: self.cross_attention(h, memory.states, memory.bias, projected))
        return self.feed_residual(x, self.feed_forward)


class Stack(nn.Module):
    """A stack of blocks over embedded tokens: an encoder (section 3.1), or GPT where tokens see only those before them.

    Args:
        config: the model.
        layers: how many blocks.
        positions: how the order of tokens is told.
    """

    def __init__(self, config: ModelConfig, layers: int, positions: Positions) -> None:
        super().__init__()
        self.positions = positions
        self.embedding_norm = embedding_norm(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(layers))
        self.norm = final_norm(config)

    def forward(
        self, x: Float[Tensor, "B T D"], sight: Sight, caches: Sequence[Cache] | None = None
    ) -> Float[Tensor, "B T D"]:
        """The states of embedded tokens, which see what `sight` lets them see, in one cache a block what was before."""
        x = self.dropout(self.embedding_norm(self.positions.embed(x, sight.position, sight.length)))
        view = sight.view(self.positions, x)
        for block, cache in zip(self.blocks, caches or [NO_CACHE] * len(self.blocks), strict=True):
            x = block(x, view, cache)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder blocks over embedded tokens and a memory (section 3.1)."""

    def __init__(self, config: ModelConfig, positions: Positions) -> None:
        super().__init__()
        self.positions = positions
        self.embedding_norm = embedding_norm(config)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        self.norm = final_norm(config)

    def forward(self, x: Float[Tensor, "B T D"], keep: Bool[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        """Decode all positions at once, each from those before it (teacher forcing)."""
        sight = Sight(keep, x.size(1), causal=True)
        x = self.dropout(self.embedding_norm(self.positions.embed(x, sight.position, sight.length)))
        view = sight.view(self.positions, x)
        for block in self.blocks:
            x = block(x, view, memory)
        return self.norm(x)

    def step(
        self, x: Float[Tensor, "B W D"], lanes: Lanes, memory: Memory, caches: list[LayerCache]
    ) -> Float[Tensor, "B W D"]:
        """Decode one position of each lane after others, whose keys and values are in `caches`."""
        x = self.dropout(self.embedding_norm(self.positions.embed(x, lanes.position, lanes.seen + 1)))
        view = lanes.feed(self.positions, x)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, view, memory, cache.own, cache.memory)
        return self.norm(x)


def stacks(model: nn.Module) -> list[Stack | Decoder]:
    """The stacks of blocks in a model: an encoder, a decoder or both."""
    return [module for module in model.modules() if isinstance(module, Stack | Decoder)]
