"""Training speed beside other implementations of the same mathematics: python benchmarks/train_step.py [--help]

Random sentences with the lengths of image captions, a vocabulary of 9,712, batches of at most 4096 cells, dropout 0.1,
label smoothing 0.1, Adam. Every measurement is a process of its own and the systems take turns, so that what else the
machine does hits all alike. Each peer runs as released, and once more with the allocator setting that heedful makes for
itself. Tokens are those of both sides without padding.
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
from datetime import date
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from heedful.config.schema import ModelConfig, OptimizerConfig, Recipe, TrainConfig
from heedful.data.batches import BatchPlan
from heedful.machine import keep_freed_memory
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
RESULTS = Path(__file__).with_suffix(".jsonl")

Step = Callable[[Batch], None]


def heedful(config: ModelConfig, precision: Literal["float32", "bfloat16"]) -> Step:
    optimizer = OptimizerConfig(lr=1e-4, schedule="constant", warmup=0)
    recipe = Recipe(model=config, optimizer=optimizer, train=TrainConfig(precision=precision))
    smoothing = recipe.train.label_smoothing
    learner = Learner(
        EncoderDecoder(config, VOCAB, VOCAB), lambda model, batch: [loss(model, batch, smoothing)], recipe
    )
    return lambda batch: learner.update([batch], 1) and None


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


def torch_transformer(config: ModelConfig) -> Step:
    model = TorchTransformer(config)
    return plain_step(model, model)


def marian(config: ModelConfig) -> Step:
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

    return plain_step(model, forward)


def plain_step(model: nn.Module, forward: Callable[[Batch], Tensor]) -> Step:
    """The usual step around logits: cross-entropy, backward, Adam."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step(batch: Batch) -> None:
        logits, target = forward(batch).flatten(0, 1), batch.target_out.flatten()
        F.cross_entropy(logits, target, ignore_index=0, label_smoothing=0.1).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


SYSTEMS: dict[
    str, tuple[Callable[[ModelConfig], Step], bool]
] = {  # how to make its step, whether it keeps freed memory
    "heedful bfloat16": (lambda config: heedful(config, "bfloat16"), True),
    "heedful float32": (lambda config: heedful(config, "float32"), True),
    "torch.nn.Transformer": (torch_transformer, False),
    "torch.nn.Transformer, allocator": (torch_transformer, True),
    "HF MarianMT": (marian, False),
    "HF MarianMT, allocator": (marian, True),
}


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


def measure(system: str, size: str, threads: int, seed: int) -> float:
    """Tokens a second over the measured steps."""
    make, keep_freed = SYSTEMS[system]
    if keep_freed:
        keep_freed_memory()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step, stream = make(SIZES[size]), iter(batches(seed))
    warm_up, steps = STEPS[size]
    for _ in range(warm_up):
        step(next(stream))
    start, tokens = time.perf_counter(), 0
    for _ in range(steps):
        batch = next(stream)
        step(batch)
        tokens += batch.tokens
    return tokens / (time.perf_counter() - start)


def measure_apart(system: str, size: str, threads: int, seed: int) -> float:
    """The same in a process of its own."""
    options = ["--one", system, "--sizes", size, "--threads", str(threads), "--seed", str(seed)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    return float(
        subprocess.run(
            [sys.executable, __file__, *options], check=True, capture_output=True, text=True, env=environment
        ).stdout
    )


def table(size: str, speeds: dict[str, list[float]]) -> Table:
    baseline = statistics.median(speeds["torch.nn.Transformer"])
    shown = Table(title=f"{size}: tokens a second while training", title_justify="left")
    for column in ("system", "median", "lowest", "highest", "times torch.nn.Transformer"):
        shown.add_column(column, justify="left" if column == "system" else "right")
    for system, values in speeds.items():
        median = statistics.median(values)
        row = [f"{value:,.0f}" for value in (median, min(values), max(values))]
        shown.add_row(system, *row, f"{median / baseline:.2f}")
    return shown


def processor() -> str:
    """The name that the kernel gives to the processor."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].split(":")[1].strip() if names else "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", choices=SYSTEMS, help="measure one system in this process and print the figure")
    options = parser.parse_args()
    if options.one:
        print(measure(options.one, options.sizes[0], options.threads, options.seed))
        return
    console = Console(width=110)
    facts = {
        "date": str(date.today()),
        "torch": torch.__version__,
        "threads": options.threads,
        "processor": processor(),
    }
    console.print(facts)
    for size in options.sizes:
        speeds: dict[str, list[float]] = {system: [] for system in SYSTEMS}
        for number in range(options.rounds):
            for system, values in speeds.items():
                values.append(measure_apart(system, size, options.threads, options.seed + number))
        console.print(table(size, speeds))
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**facts, "size": size, "tokens_per_second": speeds}) + "\n")


if __name__ == "__main__":
    main()
