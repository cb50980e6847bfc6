"""Training speed of GPT-2 beside other implementations: python benchmarks/gpt_step.py --device cuda [--help]

GPT-2 124M as nanoGPT trains it, 12 windows of 1,024 random tokens, no dropout, a vocabulary of 50,304, in bfloat16:
heedful, a model written out the way nanoGPT's is (torch's fused causal attention, autocast, fused AdamW, compiled on a
GPU), and HF's. `small` is for a CPU. Systems take turns, each measurement in a process of its own.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from race import Race, Size, Step, System, plain_step, run
from torch import Tensor, nn

from heedful.architectures import LanguageModel
from heedful.config.load import load_preset
from heedful.config.schema import Recipe
from heedful.tasks.language_model import CausalBatch, collate, loss
from heedful.training.training_step import TrainingStep

VOCAB = 50_304
BETAS = (0.9, 0.95)


def preset(layers: int, width: int, context: int) -> Recipe:
    settings = {
        "data.max_length": context,
        "model.max_positions": context,
        "model.decoder_layers": layers,
        "model.d_model": width,
        "model.d_ff": 4 * width,
        "model.heads": width // 64,
        "model.dropout": 0.0,
        "model.attention_dropout": 0.0,
        "train.precision": "bfloat16",
    }
    return load_preset("gpt2", [f"{key}={value}" for key, value in settings.items()])


def heedful(recipe: Recipe, device: torch.device, precision: Any = "bfloat16", compiled: bool | None = None) -> Step:
    model = LanguageModel(recipe.model, VOCAB).to(device)
    compiles = device.type == "cuda" if compiled is None else compiled
    recipe = replace(recipe, train=replace(recipe.train, precision=precision, compile=compiles))
    learner = TrainingStep(model, lambda model, batch: [loss(model, batch, 0.0)], recipe)
    return lambda batch: learner.update([batch], 1)


class CausalAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class PlainBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before_attention, self.attention = nn.LayerNorm(width), CausalAttention(width)
        self.before_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class PlainGPT(nn.Module):
    """Plain GPT-2 in torch with tied embeddings, to compare with."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        width = recipe.model.d_model
        self.tokens, self.positions = nn.Embedding(VOCAB, width), nn.Embedding(recipe.model.max_positions, width)
        self.blocks = nn.Sequential(*(PlainBlock(width) for _ in range(recipe.model.decoder_layers)))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.size(1)]
        return F.linear(self.norm(self.blocks(x)), self.tokens.weight)


def plain(recipe: Recipe, device: torch.device) -> Step:
    model = PlainGPT(recipe).to(device)
    if device.type == "cuda":
        model.compile()
    return adamw_step(model, model)


def hf(recipe: Recipe, device: torch.device) -> Step:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = recipe.model
    theirs: Any = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=config.max_positions,
            n_embd=config.d_model,
            n_layer=config.decoder_layers,
            n_head=config.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            use_cache=False,
        )
    )
    model = theirs.to(device)
    return adamw_step(model, lambda ids: model(input_ids=ids).logits)


def adamw_step(model: nn.Module, logits: Callable[[Tensor], Tensor]) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=BETAS, weight_decay=0.1, fused=True)

    def cross_entropy(batch: CausalBatch) -> Tensor:
        return F.cross_entropy(logits(batch.inputs).flatten(0, 1), batch.targets.flatten())

    return plain_step(model, cross_entropy, optimizer, autocast=True)


def windows(count: int, cells: int, seed: int, device: torch.device, context: int) -> list[CausalBatch]:
    """Make random batches of windows of `context` tokens, each window one document."""
    rng, shape = np.random.default_rng(seed), (cells // context, context + 1)
    rows = (rng.integers(5, VOCAB, shape) for _ in range(count))
    return [collate(ids, np.zeros(shape, dtype=np.int64), device, cross=True) for ids in rows]


def flops(recipe: Recipe, batch: CausalBatch) -> float:
    """Count the FLOPs of the matrix products of a step: 6 for each weight per token, and 12 for each dimension of each
    visible key; causal attention hides half of the keys."""
    config = recipe.model
    weights = config.decoder_layers * 12 * config.d_model**2 + config.d_model * VOCAB
    scores = config.decoder_layers * config.d_model * batch.inputs.size(1)
    return (6 * weights + 6 * scores) * batch.tokens


SYSTEMS = {
    "heedful": System(heedful, "bfloat16", keeps_freed=True),
    "written out": System(plain, "bfloat16"),
    "HF GPT-2": System(hf, "bfloat16"),
}
SIZES = {
    "gpt2": Size(preset(12, 768, 1024), partial(windows, context=1024), 12 * 1024, warm_up=1, steps=3),
    "small": Size(preset(4, 256, 128), partial(windows, context=128), 16 * 128, warm_up=1, steps=4),
}

if __name__ == "__main__":
    run(Race(__file__, SYSTEMS, SIZES, flops), __doc__)
