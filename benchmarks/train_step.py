"""Training speed beside other implementations of the same mathematics: python benchmarks/train_step.py [--help]

Random sentences with the lengths of image captions, a vocabulary of 9,712, batches of at most 4096 cells, dropout 0.1,
label smoothing 0.1, Adam. Every measurement is a process of its own and the systems take turns, so that other work on
the machine affects all alike. Each peer runs as released, and tuned: with the allocator setting that heedful makes for
itself and, given --shim (see peers/environments.sh), with the MKL kernels that an Intel processor would get; tuned also
under bfloat16 autocast. heedful runs in float32 with MKL's own choice of kernels, and tuned. Tokens are those of both
sides without padding. On a GPU: --device cuda --sizes base --cells 25000.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from race import Race, Size, Step, System, plain_step, run
from torch import Tensor, nn

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig, OptimizerConfig, Recipe, TrainConfig
from heedful.data.batches import BatchPlan
from heedful.nn.positions import sinusoids
from heedful.tasks.parts.sequence_to_sequence import PairBatch, collate, loss
from heedful.training.training_step import TrainingStep

VOCAB = 9712
CELLS = 4096


def heedful(
    config: ModelConfig, device: torch.device, precision: Any, pieces: int = 1, compiled: bool | None = None
) -> Step:
    optimizer = OptimizerConfig(lr=1e-4, schedule="constant", warmup=0)
    train = TrainConfig(precision=precision, compile=device.type == "cuda" if compiled is None else compiled)
    recipe = Recipe(model=config, optimizer=optimizer, train=train)
    smoothing = recipe.train.label_smoothing
    model = EncoderDecoder(config, VOCAB, VOCAB).to(device)
    learner = TrainingStep(model, lambda model, batch: [loss(model, batch, smoothing)], recipe)
    return lambda batch: learner.update(cut(batch, pieces), 1)


def cut(batch: PairBatch, pieces: int) -> list[PairBatch]:
    """Split a batch into several smaller batches, for gradient accumulation (train.accumulate)."""
    names = ("source", "source_padding_mask", "target_in", "target_out", "target_padding_mask")
    cuts = zip(*(getattr(batch, name).chunk(pieces) for name in names), strict=True)
    return [
        PairBatch(*tensors, source_tokens=int(tensors[1].sum()), target_tokens=int(tensors[4].sum()))
        for tensors in cuts
    ]


class TorchTransformer(nn.Module):
    """Encoder-decoder of torch.nn.Transformer with tied embeddings, to compare with."""

    positions: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, config.d_model, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.transformer = nn.Transformer(
            config.d_model,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.register_buffer("positions", sinusoids(256, config.d_model))

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * math.sqrt(self.positions.size(1)) + self.positions[: ids.size(1)]
        return F.dropout(x, 0.1)

    def forward(self, batch: PairBatch) -> Tensor:
        states = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=torch.ones(2 * (batch.target_in.size(1),), dtype=torch.bool, device=batch.source.device).triu(1),
            src_key_padding_mask=~batch.source_padding_mask,
            memory_key_padding_mask=~batch.source_padding_mask,
            tgt_is_causal=True,
        )
        return F.linear(states, self.embedding.weight)


def torch_transformer(config: ModelConfig, device: torch.device, autocast: bool) -> Step:
    model = TorchTransformer(config).to(device)
    return smoothed_step(model, model, autocast)


def marian(config: ModelConfig, device: torch.device, autocast: bool) -> Step:
    model = marian_model(config, VOCAB).to(device)
    return smoothed_step(model, partial(marian_logits, model), autocast)


def marian_model(config: ModelConfig, vocab: int) -> Any:
    from transformers import MarianConfig, MarianMTModel

    return MarianMTModel(
        MarianConfig(
            vocab_size=vocab,
            d_model=config.d_model,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            max_position_embeddings=256,
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=0,
            eos_token_id=3,
            bos_token_id=2,
            decoder_start_token_id=2,
            forced_eos_token_id=None,
        )
    )


def marian_logits(model: Any, batch: PairBatch) -> Tensor:
    mask, target = batch.source_padding_mask.long(), batch.target_in
    return model(input_ids=batch.source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits


def smoothed_step(model: nn.Module, forward: Callable[[PairBatch], Tensor], autocast: bool) -> Step:
    """Make the usual training step for a model's logits: cross-entropy with label smoothing, backward, Adam."""

    def smoothed(batch: PairBatch) -> Tensor:
        logits, target = forward(batch).flatten(0, 1), batch.target_out.flatten()
        return F.cross_entropy(logits, target, ignore_index=0, label_smoothing=0.1)

    return plain_step(
        model, smoothed, torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9), autocast
    )


def peer(make: Callable[..., Step]) -> tuple[System, System, System]:
    """Make the three variants of a peer system: as released, tuned, and tuned under autocast."""
    exact, fast = partial(make, autocast=False), partial(make, autocast=True)
    tuned = System(exact, "float32", keeps_freed=True, shimmed=True)
    return System(exact, "float32"), tuned, replace(tuned, make=fast, precision="bfloat16")


def flops(config: ModelConfig, batch: PairBatch) -> float:
    """Count the FLOPs of the matrix products of a step: 6 for each weight per token (forward 2, backward 4), and 12 for
    each dimension of each visible key; causal attention hides half of the keys."""
    d, attention, feed_forward = config.d_model, 4 * config.d_model**2, 2 * config.d_model * config.d_ff
    source = config.encoder_layers * (attention + feed_forward) + config.decoder_layers * attention // 2
    target = config.decoder_layers * (attention * 3 // 2 + feed_forward) + d * VOCAB
    read, written = (
        padding_mask.sum(1).double() for padding_mask in (batch.source_padding_mask, batch.target_padding_mask)
    )
    scores = config.encoder_layers * read @ read + config.decoder_layers * (written @ written / 2 + written @ read)
    return 6 * (source * batch.source_tokens + target * batch.target_tokens) + 12 * d * float(scores)


def batches(count: int, cells: int, seed: int, device: torch.device) -> list[PairBatch]:
    """Make batches of random sentence pairs of 3 to 40 tokens, of similar length within a batch."""
    rng, sentences = np.random.default_rng(seed), max(20_000, count * cells // 8)
    source = np.clip(rng.normal(14.7, 5, sentences).round(), 3, 40).astype(int)
    target = np.clip((source + rng.normal(0, 2, sentences)).round(), 3, 40).astype(int)
    lengths = np.stack([source, target], axis=1)
    plan = BatchPlan([lengths], [1.0], cells, seed).epoch(0)
    return [batch(rng, lengths[ids], device) for ids in plan[:count]]


def batch(rng: np.random.Generator, lengths: np.ndarray, device: torch.device) -> PairBatch:
    return collate(rows(rng, lengths[:, 0]), rows(rng, lengths[:, 1]), device)


def rows(rng: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    ids = rng.integers(4, VOCAB, (len(lengths), lengths.max()))
    return np.where(np.arange(lengths.max()) < lengths[:, None], ids, 0)


PEERS = {"torch.nn.Transformer": peer(torch_transformer), "HF MarianMT": peer(marian)}
BFLOAT16, FLOAT32 = (partial(heedful, precision=precision) for precision in ("bfloat16", "float32"))
SYSTEMS = {
    "heedful bfloat16": System(BFLOAT16, "bfloat16", keeps_freed=True),
    "heedful bfloat16, in quarters": System(partial(BFLOAT16, pieces=4), "bfloat16", keeps_freed=True),
    "heedful float32": System(FLOAT32, "float32", keeps_freed=True),
    "heedful float32, tuned": System(FLOAT32, "float32", keeps_freed=True, shimmed=True),
} | {
    f"{name}{kind}": system
    for name, systems in PEERS.items()
    for kind, system in zip(("", ", tuned", ", tuned, autocast"), systems, strict=True)
}
TINY = ModelConfig(d_model=128, d_ff=256, heads=4, encoder_layers=4, decoder_layers=4)
SIZES = {
    "tiny": Size(TINY, batches, CELLS, warm_up=12, steps=12),
    "base": Size(ModelConfig(), batches, CELLS, warm_up=6, steps=4),
}

if __name__ == "__main__":
    run(Race(__file__, SYSTEMS, SIZES, flops), __doc__)
