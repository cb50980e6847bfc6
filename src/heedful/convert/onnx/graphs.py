"""Model graphs for ONNX: modules that map tensors to tensors, each with example inputs for tracing.

B batch, N source tokens or other inputs, T new tokens, P tokens in the cache, L blocks, G key and value heads, K key
size, U value size, D model, V vocabulary, H query heads or image height, W width, C channels, F features of a frame, S
keys or samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from heedful.architectures.heads import LanguageModel
from heedful.architectures.transformer.layers import StackCache
from heedful.architectures.transformer.model import EncoderDecoder
from heedful.config.modalities import AudioConfig, ImageConfig
from heedful.media.log_mel import FLOOR, RANGE, mel_bands
from heedful.nn.attention import Attention, mix, scaled_scores
from heedful.nn.kv_cache import KeysValues, KVCache
from heedful.nn.masks import AttentionMask, attention_bias

# Sizes of the examples, which become the dynamic dimensions: at least 2, because torch.export treats 1 as a constant.
BATCH, LENGTH, NEW, PAST = 2, 3, 2, 2


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Graph to write as an ONNX file.

    Attributes:
        module: Computes the outputs.
        inputs: Example inputs by name, in the order of the module's arguments.
        axes: Names of the dynamic dimensions of each input, by index.
        outputs: Names of the outputs.
    """

    module: nn.Module
    inputs: Mapping[str, Tensor]
    axes: Mapping[str, Mapping[int, str]]
    outputs: tuple[str, ...]


def plain_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S U"],
    bias: Float[Tensor, "#B #H #T S"],
    p: float = 0.0,
) -> Float[Tensor, "B H T U"]:
    """Compute attention with one formula for any number of keys, because a graph has no branches."""
    del p
    return mix(torch.softmax(scaled_scores(q, k) + bias, dim=-1), v)


def without_branches(model: nn.Module) -> nn.Module:
    """Make the attention of a model use a single formula, and freeze its parameters; return the model."""
    for module in model.modules():
        if isinstance(module, Attention):
            module.attention_fn = plain_attention
    return model.eval().requires_grad_(False)


class CachedBlock(KVCache):
    """KV cache of one block whose previous keys and values are inputs of the graph."""

    def __init__(self, keys: Float[Tensor, "B G P K"], values: Float[Tensor, "B G P U"]) -> None:
        super().__init__()
        self.all: KeysValues = (keys, values)

    def update(self, keys: Float[Tensor, "B G T K"], values: Float[Tensor, "B G T U"]) -> KeysValues:
        # A graph cannot write to its inputs: unlike in `KVCache`, the longer cache is a new tensor, (B, G, P + T, K).
        self.all = torch.cat([self.all[0], keys], dim=2), torch.cat([self.all[1], values], dim=2)
        return self.all


class GraphCache(StackCache):
    """Cache of a stack as two tensors, the keys (L B G P K) and the values (L B G P U) of all blocks."""

    def __init__(self, keys: Float[Tensor, "L B G P K"], values: Float[Tensor, "L B G P U"]) -> None:
        self.blocks: list[Any] = [CachedBlock(*pair) for pair in zip(keys.unbind(), values.unbind(), strict=True)]

    def tensors(self) -> KeysValues:
        keys, values = zip(*(block.all for block in self.blocks), strict=True)
        return torch.stack(keys), torch.stack(values)


class EncoderGraph(nn.Module):
    """Encoder of an encoder-decoder, with the cross-attention keys and values of each decoder block."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Int[Tensor, "B N"], attention_mask: Int[Tensor, "B N"]) -> tuple[Tensor, ...]:
        encoded = self.model.encode(input_ids, attention_mask.bool())
        # Project the source once per text, not in the graph that runs for every token.
        keys, values = zip(*self.model.decoder.keys_values(encoded), strict=True)
        return torch.stack(keys), torch.stack(values), encoded.padding_mask.long()


class DecoderGraph(nn.Module):
    """Decoder of an encoder-decoder: it extends the cache by T new tokens, and computes the logits after each one."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        cross_keys: Float[Tensor, "L B G N K"],
        cross_values: Float[Tensor, "L B G N U"],
        cross_mask: Int[Tensor, "B N"],
        past_keys: Float[Tensor, "L B G P K"],
        past_values: Float[Tensor, "L B G P U"],
    ) -> tuple[Tensor, ...]:
        decoder, cache = self.model.decoder, GraphCache(past_keys, past_values)
        # All outputs of a batch begin in the same step, so none of their tokens is padding.
        real = input_ids.new_ones(input_ids.size(0), past_keys.size(3) + input_ids.size(1), dtype=torch.bool)
        mask = AttentionMask(real, input_ids.size(1), causal=True)
        x = decoder.embed(self.model.target_embedding(input_ids), mask.query_positions, mask.length)
        inputs, source_bias = mask.inputs(decoder.positions, x), attention_bias(cross_mask.bool()[:, None], x)
        sources = zip(cross_keys.unbind(), cross_values.unbind(), strict=True)
        # This is the loop of `Decoder.step`, except that the cache is an input and an output of the graph.
        for block, source, target in zip(decoder.blocks, sources, cache.blocks, strict=True):
            x = block(x, inputs, source, source_bias, target)
        return self.model.output(decoder.norm(x)), *cache.tensors()


class LanguageModelGraph(nn.Module):
    """GPT: it extends the cache by T new tokens, and computes the logits after each one.

    Prompts are padded on the left.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Int[Tensor, "B S"],
        past_keys: Float[Tensor, "L B G P K"],
        past_values: Float[Tensor, "L B G P U"],
    ) -> tuple[Tensor, ...]:
        """Compute the logits and the extended cache. S = P + T, because the mask covers all tokens so far."""
        cache = GraphCache(past_keys, past_values)
        mask = AttentionMask(attention_mask.bool(), input_ids.size(1), causal=True)
        return self.model.output(self.model.hidden(input_ids, mask, cache)), *cache.tensors()


class TextGraph(nn.Module):
    """Model that reads token ids: a BERT with any head, a classifier, or a sentence encoder."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: Int[Tensor, "B N"],
        attention_mask: Int[Tensor, "B N"],
        token_type_ids: Int[Tensor, "B N"] | None = None,
    ) -> Tensor:
        segments = () if token_type_ids is None else (token_type_ids,)
        return self.model.forward(input_ids, attention_mask.bool(), *segments)


class Restored(nn.Module):
    """Regression model whose outputs are in the unit of the labels."""

    def __init__(self, model: nn.Module, mean: float, scale: float) -> None:
        super().__init__()
        self.model, self.mean, self.scale = model, mean, scale

    def forward(self, *inputs: Tensor) -> Float[Tensor, "B 1"]:
        return self.model.forward(*inputs) * self.scale + self.mean


class ImageGraph(nn.Module):
    """Model that reads images, given as pixels from 0 to 255, with the channels last."""

    mean: Float[Tensor, " C"]
    std: Float[Tensor, " C"]

    def __init__(self, model: nn.Module, config: ImageConfig) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor(config.mean), persistent=False)
        self.register_buffer("std", torch.tensor(config.std), persistent=False)

    def forward(self, pixels: UInt8[Tensor, "B H W C"]) -> Tensor:
        # The graph normalises pixels, so that a program can pass bytes. All H rows are real: (B, H, W, C) -> (B, H).
        inputs = (pixels.float() / 255 - self.mean) / self.std
        return self.model.forward(inputs, torch.ones_like(pixels[:, :, 0, 0], dtype=torch.bool))


class AudioGraph(nn.Module):
    """Model that reads audio frames."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, frames: Float[Tensor, "B N F"], attention_mask: Int[Tensor, "B N"]) -> Tensor:
        return self.model.forward(frames, attention_mask.bool())


class SampleFrames(nn.Module):
    """Frames of a clip's samples, as `heedful.media.modality.sample_frames` computes them."""

    def __init__(self, config: AudioConfig) -> None:
        super().__init__()
        self.hop = config.hop

    def forward(self, samples: Float[Tensor, " S"]) -> Float[Tensor, "N F"]:
        return samples[: samples.size(0) // self.hop * self.hop].unflatten(0, (-1, self.hop))


class LogMel(nn.Module):
    """Log-mel spectrum of a clip, as `heedful.media.log_mel` computes it, with the Fourier transform as a matrix.

    R samples of a window, K frequencies, K2 = 2 K real and imaginary parts, M mel bands.
    """

    transform: Float[Tensor, "K2 R"]
    bands: Float[Tensor, "M K"]

    def __init__(self, config: AudioConfig) -> None:
        super().__init__()
        self.window, self.hop = config.window, config.hop
        window = torch.hann_window(config.window, dtype=torch.float64)
        spectrum = torch.fft.rfft(torch.diag(window), dim=0)  # the transform of each sample of a window
        self.register_buffer("transform", torch.cat([spectrum.real, spectrum.imag]), persistent=False)
        self.register_buffer("bands", mel_bands(config.mels, config.window, config.rate), persistent=False)

    def forward(self, samples: Float[Tensor, " S"]) -> Float[Tensor, "N F"]:
        x, half = samples.double(), self.window // 2
        # Reflect the ends as torch.stft does, without repeating the first and last samples.
        x = torch.cat([x[1 : half + 1].flip(0), x, x[-half - 1 : -1].flip(0)])
        first = torch.arange(samples.size(0) // self.hop) * self.hop
        windows = x[first[:, None] + torch.arange(self.window)]  # N R
        # (N, R) @ (R, 2 K) -> (N, 2 K) -> real and imaginary parts, (N, K) each
        real, imaginary = (windows @ self.transform.T).chunk(2, dim=1)
        # (N, K) @ (K, M) -> (N, M), then log10 and the clamping and scaling of `log_mel`.
        logarithms = ((real.square() + imaginary.square()) @ self.bands.T).clamp(min=FLOOR).log10()
        return ((torch.maximum(logarithms, logarithms.amax((0, 1)) - RANGE) + 4) / 4).float()


def attention_sizes(stack: nn.Module) -> tuple[int, int, int, int]:
    """Return the number of blocks of a stack, the number of key and value heads, and the key and value sizes."""
    blocks = cast("Any", stack).blocks
    attention = blocks[0].self_attention
    heads = attention.kv_heads
    return len(blocks), heads, attention.k.out_features // heads, attention.v.out_features // heads


def cache_example(stack: nn.Module, length: int) -> KeysValues:
    layers, heads, key, value = attention_sizes(stack)
    return torch.zeros(layers, BATCH, heads, length, key), torch.zeros(layers, BATCH, heads, length, value)


def ids_example(length: int) -> Int[Tensor, "B N"]:
    return torch.ones(BATCH, length, dtype=torch.long)


ROWS = {0: "batch", 1: "length"}


def encoder_decoder_graphs(model: EncoderDecoder) -> dict[str, Graph]:
    cross, past = {1: "batch", 3: "source"}, {1: "batch", 3: "past"}
    keys, values = cache_example(model.decoder, LENGTH)
    past_keys, past_values = cache_example(model.decoder, PAST)
    encoder = Graph(
        module=EncoderGraph(model),
        inputs={"input_ids": ids_example(LENGTH), "attention_mask": ids_example(LENGTH)},
        axes={"input_ids": ROWS, "attention_mask": ROWS},
        outputs=("cross_keys", "cross_values", "cross_mask"),
    )
    decoder = Graph(
        module=DecoderGraph(model),
        inputs={
            "input_ids": ids_example(NEW),
            "cross_keys": keys,
            "cross_values": values,
            "cross_mask": ids_example(LENGTH),
            "past_keys": past_keys,
            "past_values": past_values,
        },
        axes={
            "input_ids": {0: "batch", 1: "new"},
            "cross_keys": cross,
            "cross_values": cross,
            "cross_mask": {0: "batch", 1: "source"},
            "past_keys": past,
            "past_values": past,
        },
        outputs=("logits", "keys", "values"),
    )
    return {"encoder": encoder, "decoder": decoder}


def language_model_graph(model: LanguageModel) -> Graph:
    past = {1: "batch", 3: "past"}
    keys, values = cache_example(model.backbone.stack, PAST)
    return Graph(
        module=LanguageModelGraph(model),
        inputs={
            "input_ids": ids_example(NEW),
            "attention_mask": ids_example(PAST + NEW),
            "past_keys": keys,
            "past_values": values,
        },
        axes={
            "input_ids": {0: "batch", 1: "new"},
            "attention_mask": {0: "batch", 1: "length"},
            "past_keys": past,
            "past_values": past,
        },
        outputs=("logits", "keys", "values"),
    )


def text_graph(model: nn.Module, output: str, *, segments: bool) -> Graph:
    names: list[str] = ["input_ids", "attention_mask"] + (["token_type_ids"] if segments else [])
    inputs, axes = {name: ids_example(LENGTH) for name in names}, dict.fromkeys(names, ROWS)
    return Graph(module=TextGraph(model), inputs=inputs, axes=axes, outputs=(output,))


def image_graph(model: nn.Module, config: ImageConfig, output: str) -> Graph:
    pixels = torch.zeros(BATCH, *config.size, config.channels, dtype=torch.uint8)
    module = ImageGraph(model, config)
    return Graph(module=module, inputs={"pixels": pixels}, axes={"pixels": {0: "batch"}}, outputs=(output,))


def audio_graphs(model: nn.Module, config: AudioConfig) -> dict[str, Graph]:
    # Features are computed for one clip at a time, because its loudest band sets the level at which it is clamped.
    samples = torch.zeros(config.window + LENGTH * config.hop)
    features = Graph(
        module=LogMel(config) if config.features == "log_mel" else SampleFrames(config),
        inputs={"samples": samples},
        axes={"samples": {0: "samples"}},
        outputs=("frames",),
    )
    frames = torch.zeros(BATCH, 2 * LENGTH, config.width)
    classifier = Graph(
        module=AudioGraph(model),
        inputs={"frames": frames, "attention_mask": ids_example(2 * LENGTH)},
        axes={"frames": ROWS, "attention_mask": ROWS},
        outputs=("logits",),
    )
    return {"features": features, "model": classifier}
