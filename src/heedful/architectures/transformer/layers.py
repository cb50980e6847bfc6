"""Layers of the Transformer (Vaswani et al. 2017, figure 1): residual connections, feed-forward networks, and blocks.

The multi-head attention of section 3.2 is in `heedful.nn.attention`, and its masks are in `heedful.nn.masks`.

B batch, T queries, S keys, W lanes of a search, D model.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.nn.attention import Attention
from heedful.nn.dropout import Dropout
from heedful.nn.kv_cache import NO_CACHE, Cache, KeysValues, KVCache
from heedful.nn.masks import AttentionMask, BeamLanes, SelfAttentionInputs, attention_bias
from heedful.nn.named_stacks import BlockStack, NamedStack
from heedful.nn.positions import Positions

Sublayer = Callable[[Tensor], Tensor]


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Create a layer normalisation (Ba et al. 2016)."""
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.bias)


def rms_norm(config: ModelConfig) -> nn.RMSNorm:
    """Create a root mean square normalisation, RMSNorm (Zhang & Sennrich 2019)."""
    return nn.RMSNorm(config.d_model, eps=config.norm_eps)


NORMS: dict[str, Callable[[ModelConfig], nn.Module]] = {"layer": layer_norm, "rms": rms_norm}


class Residual(nn.Module):
    """Residual connection around a sublayer: x + f(x), so that gradients can bypass f (section 3.1).

    With `model.residual = false`, the result is only f(x), for experiments that show what the connection is for.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.Identity() if config.norm == "none" else NORMS[config.normalization](config)
        self.dropout = Dropout(config.dropout)
        self.adds = config.residual

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Add the output y of a sublayer to its input x."""
        return x + y if self.adds else y


class PostNorm(Residual):
    """Post-norm residual connection: Norm(x + Dropout(f(x))), as in Vaswani et al. (2017, sections 3.1 and 5.4)."""

    def forward(self, x: Float[Tensor, "B T D"], f: Sublayer) -> Float[Tensor, "B T D"]:
        # Every gradient passes through the norm, so deep stacks diverge without learning-rate warm-up.
        return self.norm(self.add(x, self.dropout(f(x))))


class PreNorm(Residual):
    """Pre-norm residual connection: x + Dropout(f(Norm(x))), which trains without warm-up (Xiong et al. 2020)."""

    def forward(self, x: Float[Tensor, "B T D"], f: Sublayer) -> Float[Tensor, "B T D"]:
        # Blocks only add to x, so the gradient of the output also reaches every block unchanged.
        return self.add(x, self.dropout(f(self.norm(x))))


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {
    "post": PostNorm,
    "pre": PreNorm,
    "none": PreNorm,  # with the identity as its norm
}


def quick_gelu(x: Tensor) -> Tensor:
    """Approximate GELU by x sigmoid(1.702 x) (Hendrycks & Gimpel 2016, section 2)."""
    return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # Vaswani et al. (2017)
    "gelu": F.gelu,  # exact (Hendrycks & Gimpel 2016), as in BERT and GPT
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # GPT-2
    "quick_gelu": quick_gelu,  # CLIP
    "silu": F.silu,  # or swish, x sigmoid(x) (Elfwing et al. 2017), as in models trained with Marian
    "identity": nn.Identity(),  # a linear network, for experiments that show what a nonlinearity is for
}


class FeedForward(nn.Module):
    """Position-wise feed-forward network, activation(x W1 + b1) W2 + b2 (Vaswani et al. 2017, section 3.3, formula 2).

    Each position is computed independently: only attention moves information between tokens.
    """

    parameter_kind = "feed-forward"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.activation_dropout)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        # B T D to B T d_ff and back. With d_ff = 4 D, these are two thirds of the weights of an encoder block.
        return self.down(self.dropout(self.activation(self.up(x))))


class SwiGLU(nn.Module):
    """Gated feed-forward network (silu(x W) * x V) W2 without biases (SwiGLU, formula 6 of Shazeer 2020)."""

    parameter_kind = "feed-forward"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.down = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        # With three matrices instead of two, 2/3 of the d_ff of `FeedForward` gives as many weights.
        return self.down(self.dropout(F.silu(self.gate(x)) * self.up(x)))


FEED_FORWARDS: dict[str, type[FeedForward] | type[SwiGLU]] = {
    **dict.fromkeys(ACTIVATIONS, FeedForward),
    "swiglu": SwiGLU,
}


def dense(config: ModelConfig) -> FeedForward | SwiGLU:
    """Create a single feed-forward network, which computes every token."""
    return FEED_FORWARDS[config.activation](config)


def experts(config: ModelConfig) -> nn.Module:
    """Create a mixture of such networks, each of which computes only some tokens."""
    from heedful.nn.experts import MixtureOfExperts  # imported only for recipes that name it

    return MixtureOfExperts(config, dense)


def latent_attention(config: ModelConfig) -> Attention:
    """Create self-attention whose keys and values, of all heads, are projections of one vector per token."""
    from heedful.nn.latent_attention import LatentAttention

    return LatentAttention(config)


def linear_attention(config: ModelConfig) -> Attention:
    """Create self-attention that sums keys and values instead of comparing each query with each key."""
    from heedful.nn.linear_attention import LinearAttention

    return LinearAttention(config)


FEED_FORWARD_KINDS: dict[str, Callable[[ModelConfig], nn.Module]] = {"dense": dense, "experts": experts}
SELF_ATTENTIONS: dict[str, Callable[[ModelConfig], Attention]] = {
    "multi_head": Attention,
    "latent": latent_attention,
    "linear": linear_attention,
}


def self_attend(
    attention: Attention, x: Float[Tensor, "B T D"], inputs: SelfAttentionInputs, cache: Cache
) -> Float[Tensor, "B T D"]:
    """Compute self-attention, whose queries, keys and values are all projections of x (section 3.2.3)."""
    queries = attention.queries(x, inputs.rotate)
    # In training, S = T. In a search, the cache prepends the keys and values of S - T earlier tokens.
    keys, values = cache.update(*attention.keys_values(x, inputs.rotate))
    return inputs.attend(attention, queries, keys, values)


class Block(nn.Module):
    """Encoder block: self-attention and a feed-forward network (figure 1, left); with a causal mask, a GPT block."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.self_attention, self.self_residual = SELF_ATTENTIONS[config.attention](config), residual(config)
        self.feed_forward, self.feed_residual = FEED_FORWARD_KINDS[config.feed_forward](config), residual(config)

    def forward(
        self, x: Float[Tensor, "B T D"], inputs: SelfAttentionInputs, cache: Cache = NO_CACHE
    ) -> Float[Tensor, "B T D"]:
        # The residual connections also apply the norm: before the sublayer (pre-norm) or after it (post-norm).
        x = self.self_residual(x, lambda h: self_attend(self.self_attention, h, inputs, cache))
        return self.feed_residual(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """Decoder block: causal self-attention, cross-attention to the encoder, feed-forward network (figure 1, right)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.self_attention, self.self_residual = SELF_ATTENTIONS[config.attention](config), residual(config)
        self.cross_attention, self.cross_residual = Attention(config), residual(config)
        self.feed_forward, self.feed_residual = FEED_FORWARD_KINDS[config.feed_forward](config), residual(config)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        inputs: SelfAttentionInputs,
        source: KeysValues,
        source_bias: Float[Tensor, "B 1 1 S"],
        cache: Cache = NO_CACHE,
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of target tokens.

        Args:
            x: The hidden states of T target tokens.
            inputs: The attention bias and the rotation of the self-attention.
            source: Keys (B G S K) and values (B G S U) of this block's cross-attention, projected from the source.
            source_bias: Attention bias that masks the padding of the source.
            cache: The KV cache of the self-attention, with the previous target tokens.
        """
        x = self.self_residual(x, lambda h: self_attend(self.self_attention, h, inputs, cache))
        # Keys and values come from the source, so a search projects them once, not at every step.
        x = self.cross_residual(
            x, lambda h: self.cross_attention(self.cross_attention.queries(h), *source, source_bias)
        )
        return self.feed_residual(x, self.feed_forward)


class TransformerStack(BlockStack):
    """Base class of encoder and decoder: positions, an optional norm and dropout before the blocks.

    A pre-norm stack also has a norm after the blocks.
    """

    def __init__(self, config: ModelConfig, positions: Positions, blocks: Iterable[nn.Module]) -> None:
        super().__init__()
        self.positions = positions
        # BERT's code normalises the sum of embedding and position (Devlin et al. 2019).
        self.embedding_norm = NORMS[config.normalization](config) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(blocks)
        # The output of the last pre-norm block is a sum that has not been normalised.
        self.norm = NORMS[config.normalization](config) if config.norm == "pre" else nn.Identity()
        self.window = config.window
        self.linear = config.attention == "linear"

    def inputs(self, mask: AttentionMask, x: Float[Tensor, "B T D"]) -> SelfAttentionInputs:
        """Compute the inputs of self-attention that are the same in every block, such as the attention bias."""
        # Both have memory that is linear in T: they never compute the bias of all queries and keys.
        if self.linear and not self.weighs_all:
            from heedful.nn.linear_attention import LinearInputs

            return LinearInputs.of(mask)
        if self.window is not None and not self.weighs_all:
            from heedful.nn.window import window_inputs

            return window_inputs(mask, self.positions, x, self.window)
        return mask.inputs(self.positions, x, self.window)

    def embed(self, x: Float[Tensor, "B T D"], position: Int[Tensor, "B T"], length: int) -> Float[Tensor, "B T D"]:
        """Add positions to embedded tokens; apply the embedding norm, if any, and dropout (sections 3.5 and 5.4)."""
        return self.dropout(self.embedding_norm(self.positions.embed(x, position, length)))


class StackCache:
    """Cache of a stack during generation: the KV cache of each block, or the sums of its linear attention."""

    def __init__(self, blocks: Iterable[KVCache]) -> None:
        self.blocks = list(blocks)

    def select(self, rows: Int[Tensor, " R"]) -> None:
        for cache in self.blocks:
            cache.select(rows)


class Stack(TransformerStack):
    """Stack of blocks over embedded tokens: an encoder (Vaswani et al. 2017, 3.1), or GPT with a causal mask."""

    def __init__(self, config: ModelConfig, layers: int, positions: Positions) -> None:
        super().__init__(config, positions, (Block(config) for _ in range(layers)))

    def forward(
        self, x: Float[Tensor, "B T D"], mask: AttentionMask, cache: StackCache | None = None
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of embedded tokens under an attention mask; the cache contains earlier tokens."""
        x = self.embed(x, mask.query_positions, mask.length)
        # Mask and rotations are the same in every block, so they are computed once.
        inputs = self.inputs(mask, x)
        caches = cache.blocks if cache else [NO_CACHE] * len(self.blocks)
        for block, block_cache in zip(self.blocks, caches, strict=True):
            x = block(x, inputs, block_cache)
        return self.norm(x)

    def named(self, name: str, sequence: str) -> NamedStack:
        return NamedStack(name, sequence, self)

    def begin(self, rows: int) -> StackCache:
        del rows  # the caches take the number of rows from the first tokens
        if self.linear and not self.weighs_all:
            from heedful.nn.linear_attention import LinearCache

            return StackCache(LinearCache() for _ in self.blocks)
        return StackCache(KVCache(self.window) for _ in self.blocks)


class EncoderOutput:
    """Output of an encoder for the cross-attention of a decoder: hidden states and their padding mask."""

    def __init__(self, states: Float[Tensor, "B S D"], padding_mask: Bool[Tensor, "B S"]) -> None:
        self.states = states
        self.padding_mask = padding_mask
        # Every target token may attend to every real source token: one row of the mask is broadcast to all queries.
        self.attention_bias: Float[Tensor, "B 1 1 S"] = attention_bias(padding_mask[:, None, :], states)


class DecoderCache:
    """Cache of a decoder during a search, so that each source and target token is projected once.

    Attributes:
        source_bias: The attention bias that masks the padding of the source.
        source: Keys and values of the source for each block's cross-attention.
        target: The KV cache of each block's self-attention.
    """

    def __init__(self, encoded: EncoderOutput, projected: list[KeysValues]) -> None:
        self.source_bias = encoded.attention_bias
        # Contiguous, because every step reads them.
        self.source = [(keys.contiguous(), values.contiguous()) for keys, values in projected]
        self.target = [KVCache() for _ in projected]

    def select(self, sentences: Int[Tensor, " B"]) -> None:
        """Keep, reorder or repeat sentences; the lanes of a sentence share its keys and values."""
        self.source_bias = self.source_bias[sentences]
        self.source = [(keys[sentences], values[sentences]) for keys, values in self.source]
        for cache in self.target:
            cache.select(sentences)

    def prune(self, columns: Int[Tensor, "B C"]) -> None:
        for cache in self.target:
            cache.prune(columns)


class Decoder(TransformerStack):
    """Decoder: a stack of decoder blocks over embedded tokens, with cross-attention to the output of an encoder."""

    def __init__(self, config: ModelConfig, positions: Positions) -> None:
        super().__init__(config, positions, (DecoderBlock(config) for _ in range(config.decoder_layers)))

    def forward(
        self, x: Float[Tensor, "B T D"], padding_mask: Bool[Tensor, "B T"], encoded: EncoderOutput
    ) -> Float[Tensor, "B T D"]:
        """Compute the hidden states of all target positions at once (teacher forcing).

        The causal mask hides later tokens, so each state equals the one that a search computes step by step.
        """
        mask = AttentionMask(padding_mask, x.size(1), causal=True)
        x = self.embed(x, mask.query_positions, mask.length)
        inputs = self.inputs(mask, x)
        # The source is projected block by block: without gradients, only one block's projection is in memory at a time.
        for block, source in zip(self.blocks, self.keys_values(encoded), strict=True):
            x = block(x, inputs, source, encoded.attention_bias)
        return self.norm(x)

    def keys_values(self, encoded: EncoderOutput) -> Iterator[KeysValues]:
        """Project the encoder output for the cross-attention of each block, one block after another."""
        for block in cast("Iterable[DecoderBlock]", self.blocks):
            yield block.cross_attention.keys_values(encoded.states)

    def begin(self, encoded: EncoderOutput) -> DecoderCache:
        return DecoderCache(encoded, list(self.keys_values(encoded)))

    def step(self, x: Float[Tensor, "B W D"], lanes: BeamLanes, cache: DecoderCache) -> Float[Tensor, "B W D"]:
        """Compute the hidden states of one new token in each lane; the cache contains the tokens before it."""
        x = self.embed(x, lanes.query_positions, lanes.length + 1)
        # The W new tokens of a sentence are queries of one attention; the mask limits each to the keys of its lane.
        inputs = lanes.append(self.positions, x, self.window)
        for block, source, target in zip(self.blocks, cache.source, cache.target, strict=True):
            x = block(x, inputs, source, cache.source_bias, target)
        return self.norm(x)
