"""Training speed beside other implementations of the same mathematics: python benchmarks/train_step.py [--help]

Random sentences with the lengths of image captions, a vocabulary of 9,712, batches of at most 4096 cells, dropout 0.1,
label smoothing 0.1, Adam. Every measurement is a process of its own and the systems take turns, so that what else the
machine does hits all alike. Each peer runs as released, and cured: with the allocator setting that heedful makes for
itself and, given --shim (see peers/environments.sh), with MKL's AVX-512 kernels on a processor that is not Intel's;
cured also under bfloat16 autocast. Tokens are those of both sides without padding.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import record
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from heedful.config.schema import ModelConfig, OptimizerConfig, Recipe, TrainConfig
from heedful.data.batches import BatchPlan
from heedful.machine import keep_freed_memory
from heedful.machine.limits import matmul_speed
from heedful.models import EncoderDecoder
from heedful.nn.positions import sinusoids
from heedful.tasks.sequence_to_sequence import Batch, collate, loss
from heedful.train.learner import Learner

VOCAB = 9712
SIZES = {
    "tiny": ModelConfig(d_model=128, d_ff=256, heads=4, encoder_layers=4, decoder_layers=4),
    "base": ModelConfig(),
}
STEPS = {"tiny": (3, 12), "base": (1, 4)}  # warm-up, measured

Step = Callable[[Batch], None]


def heedful(config: ModelConfig, precision: Literal["float32", "bfloat16"], pieces: int = 1) -> Step:
    optimizer = OptimizerConfig(lr=1e-4, schedule="constant", warmup=0)
    recipe = Recipe(model=config, optimizer=optimizer, train=TrainConfig(precision=precision))
    smoothing = recipe.train.label_smoothing
    learner = Learner(
        EncoderDecoder(config, VOCAB, VOCAB), lambda model, batch: [loss(model, batch, smoothing)], recipe
    )
    return lambda batch: learner.update(cut(batch, pieces), 1) and None


def cut(batch: Batch, pieces: int) -> list[Batch]:
    """The same sentences in several batches, whose gradients are added up: train.accumulate."""
    names = ("source", "source_keep", "target_in", "target_out", "target_keep")
    cuts = zip(*(getattr(batch, name).chunk(pieces) for name in names), strict=True)
    return [
        Batch(*tensors, source_tokens=int(tensors[1].sum()), target_tokens=int(tensors[4].sum())) for tensors in cuts
    ]


class TorchTransformer(nn.Module):
    """torch.nn.Transformer between tied embeddings."""

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

    def forward(self, batch: Batch) -> Tensor:
        states = self.transformer(
            self.embed(batch.source),
            self.embed(batch.target_in),
            tgt_mask=torch.ones(2 * (batch.target_in.size(1),), dtype=torch.bool).triu(1),
            src_key_padding_mask=~batch.source_keep,
            memory_key_padding_mask=~batch.source_keep,
            tgt_is_causal=True,
        )
        return F.linear(states, self.embedding.weight)


def torch_transformer(config: ModelConfig, autocast: bool) -> Step:
    model = TorchTransformer(config)
    return plain_step(model, model, autocast)


def marian(config: ModelConfig, autocast: bool) -> Step:
    from transformers import MarianConfig, MarianMTModel

    model = MarianMTModel(
        MarianConfig(
            vocab_size=VOCAB,
            d_model=config.d_model,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            encoder_attention_heads=config.heads,
            decoder_attention_heads=config.heads,
            max_position_embeddings=256,
            dropout=0.1,
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

    def forward(batch: Batch) -> Tensor:
        mask = batch.source_keep.long()
        target = batch.target_in
        return model(input_ids=batch.source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits

    return plain_step(model, forward, autocast)


def plain_step(model: nn.Module, forward: Callable[[Batch], Tensor], autocast: bool) -> Step:
    """The usual step around logits: cross-entropy, backward, Adam."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Batch) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits, target = forward(batch).flatten(0, 1), batch.target_out.flatten()
            loss = F.cross_entropy(logits, target, ignore_index=0, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@dataclass(frozen=True)
class System:
    """What is measured: how to make its step, and in which surroundings."""

    make: Callable[[ModelConfig], Step]
    precision: str
    keeps_freed: bool = False
    shimmed: bool = False


def peer(make: Callable[[ModelConfig, bool], Step]) -> tuple[System, System, System]:
    """A peer as released, cured, and cured under autocast."""
    released = System(lambda config: make(config, False), "float32")
    cured = System(released.make, "float32", keeps_freed=True, shimmed=True)
    return released, cured, System(lambda config: make(config, True), "bfloat16", keeps_freed=True, shimmed=True)


PEERS = {"torch.nn.Transformer": peer(torch_transformer), "HF MarianMT": peer(marian)}
SYSTEMS = {
    "heedful bfloat16": System(lambda config: heedful(config, "bfloat16"), "bfloat16", keeps_freed=True),
    "heedful bfloat16, in quarters": System(
        lambda config: heedful(config, "bfloat16", 4), "bfloat16", keeps_freed=True
    ),
    "heedful float32": System(lambda config: heedful(config, "float32"), "float32", keeps_freed=True),
} | {
    f"{name}{kind}": system
    for name, systems in PEERS.items()
    for kind, system in zip(("", ", cured", ", cured, autocast"), systems, strict=True)
}


@dataclass(frozen=True)
class Measured:
    """One process."""

    tokens: float  # a second
    useful: float  # FLOP/s of matrix products without padding and attention scores
    peak: float  # GB of memory, by the kernel's account of the process


def useful_flops(config: ModelConfig, batch: Batch) -> int:
    """Six for each weight that a token meets (forward 2, backward 4)."""
    attention, feed_forward = 4 * config.d_model**2, 2 * config.d_model * config.d_ff
    source = config.encoder_layers * (attention + feed_forward) + config.decoder_layers * attention // 2
    target = config.decoder_layers * (attention * 3 // 2 + feed_forward) + config.d_model * VOCAB
    return 6 * (source * batch.source_tokens + target * batch.target_tokens)


def batches(seed: int) -> list[Batch]:
    """Sentence pairs of 3 to 40 tokens, of similar length within a batch."""
    rng = np.random.default_rng(seed)
    source = np.clip(rng.normal(14.7, 5, 20_000).round(), 3, 40).astype(int)
    target = np.clip((source + rng.normal(0, 2, 20_000)).round(), 3, 40).astype(int)
    lengths = np.stack([source, target], axis=1)
    plan = BatchPlan([lengths], [1.0], 4096, seed).epoch(0)
    return [batch(rng, lengths[ids]) for ids in plan[:40]]


def batch(rng: np.random.Generator, lengths: np.ndarray) -> Batch:
    return collate(rows(rng, lengths[:, 0]), rows(rng, lengths[:, 1]), torch.device("cpu"))


def rows(rng: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    ids = rng.integers(4, VOCAB, (len(lengths), lengths.max()))
    return np.where(np.arange(lengths.max()) < lengths[:, None], ids, 0)


def measure(system: System, size: str, threads: int, seed: int) -> Measured:
    """The measured steps, in this process."""
    if system.keeps_freed:
        keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config, stream = SIZES[size], iter(batches(seed))
    step = system.make(config)
    warm_up, steps = STEPS[size]
    for _ in range(warm_up):
        step(next(stream))
    measured = [next(stream) for _ in range(steps)]
    start = time.perf_counter()
    for batch in measured:
        step(batch)
    seconds = time.perf_counter() - start
    flops = sum(useful_flops(config, batch) for batch in measured)
    return Measured(sum(batch.tokens for batch in measured) / seconds, flops / seconds, record.peak())


def measure_apart(name: str, options: argparse.Namespace, size: str, seed: int) -> Measured:
    """The same in a process of its own."""
    arguments = ["--one", name, "--sizes", size, "--threads", str(options.threads), "--seed", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    if SYSTEMS[name].shimmed and options.shim:
        environment["LD_PRELOAD"] = str(options.shim)
    command = [sys.executable, __file__, *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return Measured(**json.loads(output))


def table(size: str, results: dict[str, list[Measured]], limits: dict[str, float]) -> Table:
    shown = Table(title=f"{size}: training", title_justify="left")
    columns = ("system", "tokens/s", "lowest", "highest", "heedful bfloat16 is", "GFLOP/s", "of the limit", "peak GB")
    for column in columns:
        shown.add_column(column, justify="left" if column == "system" else "right")
    ours = statistics.median(run.tokens for run in results["heedful bfloat16"])
    for name, runs in results.items():
        tokens, useful = [run.tokens for run in runs], statistics.median(run.useful for run in runs)
        shown.add_row(
            name,
            *(f"{value:,.0f}" for value in (statistics.median(tokens), min(tokens), max(tokens))),
            f"{ours / statistics.median(tokens):.2f} times",
            f"{useful / 1e9:,.0f}",
            f"{useful / limits[SYSTEMS[name].precision]:.0%}",
            f"{max(run.peak for run in runs):.2f}",
        )
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shim", type=Path, help="library that makes MKL take its AVX-512 kernels")
    parser.add_argument("--one", choices=SYSTEMS, help="measure one system in this process and print the figures")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asdict(measure(SYSTEMS[options.one], options.sizes[0], options.threads, options.seed))))
        return
    console = Console(width=130)
    torch.set_num_threads(options.threads)
    kinds, cpu = {"float32": torch.float32, "bfloat16": torch.bfloat16}, torch.device("cpu")
    limits = {name: matmul_speed(4096, 512, 2048, kind, cpu) for name, kind in kinds.items()}
    facts = record.machine(options.threads) | {"shim": options.shim is not None, "limits": limits}
    console.print(facts)
    for size in options.sizes:
        results: dict[str, list[Measured]] = {name: [] for name in SYSTEMS}
        for number in range(options.rounds):
            for name, runs in results.items():
                runs.append(measure_apart(name, options, size, options.seed + number))
        console.print(table(size, results, limits))
        figures = {name: [asdict(run) for run in runs] for name, runs in results.items()}
        record.append(__file__, facts | {"size": size, "results": figures})


if __name__ == "__main__":
    main()
