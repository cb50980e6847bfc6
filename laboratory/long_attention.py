"""Memory against length, and copies over distance, of full, window and linear attention: long_attention.py [--help]

An exponent is the slope of log memory over log length.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import accumulate
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from layer_cost import exponent
from long_range import TASKS, VOCABULARY, copy
from models import BLUE, BROWN, TRANSFORMER
from report import arguments, check, publish
from torch import Tensor
from torch.profiler import profile

from heedful.architectures import LanguageModel
from heedful.architectures.transformer.layers import Stack, self_attend
from heedful.config.schema import ModelConfig
from heedful.nn.kv_cache import NO_CACHE
from heedful.nn.masks import AttentionMask, BiasedInputs
from heedful.nn.positions import Positions, unrotated

LENGTHS, LAYER_WINDOW = (1024, 2048, 4096, 8192, 16_384), 256
DISTANCES, MODEL_WINDOW = (8, 16, 32), 10  # within a window, within those of two layers, and beyond them
WIDTH, UPDATES, WARM_UP, ROWS, TEST_ROWS, LEARNING_RATE = 64, 300, 50, 32, 256, 4e-3
EXPONENTS = {"full": 2, "full, fused kernel": 2, "window": 1, "linear": 1}  # of N in memory, according to the claim
SETTINGS = {"full": {}, "full, fused kernel": {}, "window": {"window": LAYER_WINDOW}, "linear": {"attention": "linear"}}
COLOURS = dict(zip(EXPONENTS, ("#222222", "#3a7d44", BROWN, BLUE), strict=True))
CHANCE = TASKS["copy"].chance
MODELS = ("full", "window", "linear")


def fused(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, p: float) -> Tensor:
    """Compute causal attention with torch's kernel, which stores no weights; all tokens are real."""
    del bias
    return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)


def peak_memory(kind: str, length: int) -> float:
    """Return the bytes that one self-attention allocates at a time, at most: mask, forward and backward pass."""
    config = ModelConfig(d_model=WIDTH, heads=1, **SETTINGS[kind])
    stack = Stack(config, 1, Positions(config, causal=True))
    attention: Any = stack.get_submodule("blocks.0.self_attention")
    x = torch.randn(1, length, WIDTH, requires_grad=True)
    padding_mask, no_bias = torch.ones(1, length, dtype=torch.bool), torch.zeros(1, 1, 1, length)
    with profile(profile_memory=True) as profiler:
        if kind == "full, fused kernel":
            attention.attention_fn = fused
            inputs = BiasedInputs(no_bias, unrotated)
        else:
            inputs = stack.inputs(AttentionMask(padding_mask, length, causal=True), x)
        self_attend(attention, x, inputs, NO_CACHE).sum().backward()
    kineto: Any = profiler.profiler
    events = [event for event in kineto.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return float(max(accumulate(changes)))


def accuracy(kind: str, distance: int, seed: int, updates: int, test_rows: int) -> float:
    """Train a language model to copy symbols over a distance; return its accuracy on new rows."""
    torch.manual_seed(seed)
    settings = {"window": MODEL_WINDOW} if kind == "window" else SETTINGS[kind]
    config = replace(TRANSFORMER, d_model=WIDTH, d_ff=WIDTH, positions="sinusoidal", **settings)
    model = LanguageModel(config, VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda update: min(1.0, (update + 1) / WARM_UP) * (1 - update / updates)
    )

    def logits(tokens: Tensor) -> Tensor:
        return model(tokens)[:, -distance:]

    for _ in range(updates):
        tokens, answers = copy(distance, ROWS)
        loss = F.cross_entropy(logits(tokens).flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    tokens, answers = copy(distance, test_rows)
    with torch.no_grad():
        share = float((logits(tokens).argmax(-1) == answers).float().mean())
    print(kind, distance, seed, round(share, 3), flush=True)
    return share


def main() -> None:
    options = arguments(__doc__, seeds=3)
    lengths, updates, test_rows = ((512, 1024), 1, 5) if options.quick else (LENGTHS, UPDATES, TEST_ROWS)
    memory = {kind: [peak_memory(kind, length) for length in lengths] for kind in EXPONENTS}
    jobs = [
        (kind, distance, seed, updates, test_rows)
        for kind in MODELS
        for distance in DISTANCES
        for seed in range(options.seeds)
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.threads, context, torch.set_num_threads, (1,)) as processes:
        shares = dict(zip(jobs, processes.map(accuracy, *zip(*jobs, strict=True)), strict=True))
    copies = {
        (kind, distance): [shares[job] for job in jobs if job[:2] == (kind, distance)]
        for kind in MODELS
        for distance in DISTANCES
    }

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for kind, values in memory.items():
        left.loglog(lengths, [value / 1e6 for value in values], marker="o", label=kind, color=COLOURS[kind])
    left.set(xlabel="tokens", ylabel="peak memory of one layer, MB")
    left.minorticks_off()
    left.set_xticks(lengths, [f"{length:,}" for length in lengths])
    left.legend()
    for kind in MODELS:
        means = [fmean(copies[kind, distance]) for distance in DISTANCES]
        right.plot(DISTANCES, means, marker="o", label=kind, color=COLOURS[kind])
    right.axhline(CHANCE, color="#999999", linestyle=":", linewidth=1)
    right.set(xlabel="symbols to copy", ylabel="accuracy", ylim=(0, 1.05))
    right.set_xticks(DISTANCES)
    right.legend()

    predictions = [
        check("exponent", [exponent(lengths, memory[kind])], power - 0.2, power + 0.2, name=kind)
        for kind, power in EXPONENTS.items()
    ]
    predictions += [
        check("ratio", [memory["full"][-1] / memory[kind][-1]], least=10, name=kind) for kind in ("window", "linear")
    ]
    near, middle, far = DISTANCES
    predictions += [
        check("copy", copies["full", distance], least=0.9, name="full", n=distance) for distance in DISTANCES
    ]
    predictions += [
        check("copy", copies["window", distance], least=0.9, name="window", n=distance) for distance in (near, middle)
    ]
    predictions += [check("copy", copies["window", far], most=CHANCE + 0.1, name="window", n=far)]
    for distance in (middle, far):
        pairs = zip(copies["full", distance], copies["linear", distance], strict=True)
        predictions.append(check("difference", [full - linear for full, linear in pairs], least=0.1, n=distance))
    publish(
        "long_attention",
        predictions,
        figure,
        options,
        memory=memory,
        copies={f"{kind} {n}": values for (kind, n), values in copies.items()},
    )


if __name__ == "__main__":
    main()
