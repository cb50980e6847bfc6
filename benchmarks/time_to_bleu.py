"""How long until a translator is good: python benchmarks/time_to_bleu.py RECIPE --data DATA [--help]

heedful with the recipe, heedful with the settings that were published for its data, and HF's MarianMT with those, one
after another in processes of their own. All read the same batches; every few minutes the validation sentences are
translated greedily, which counts as time too. Published: Wu et al. (2021), "Good for Misconceived Reasons".
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import record
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from train_step import marian_logits, marian_model

from decode import marian_search
from heedful.config.load import load_recipe
from heedful.machine import keep_freed_memory
from heedful.optim import learning_rate
from heedful.tasks.sequence_to_sequence import Batch
from heedful.tasks.translation import Translation
from heedful.train.learner import Learner

PUBLISHED = (
    "model.norm=post",
    "model.positions=sinusoidal",
    "optimizer.name=adam",
    "optimizer.lr=5e-3",
    "optimizer.schedule=inverse_sqrt",
    "optimizer.warmup=2000",
    "train.accumulate=2",
    "train.max_updates=8000",
)
MILESTONES = (30, 35, 38, 39, 40, 41)
CPU = record.CPU

Update = Callable[[list[Batch], int], object]
Trainer = tuple[Update, Callable[[], float]]  # and the validation BLEU


def heedful(task: Translation) -> Trainer:
    keep_freed_memory()
    torch.manual_seed(task.recipe.train.seed)
    model = task.build(task.recipe, task.tokenizers)
    learner = Learner(model, task.loss, task.recipe)
    return learner.update, lambda: task.decoded(model, replace(task.recipe.decode, beam=1, n_best=1))["bleu"]


def marian(task: Translation) -> Trainer:
    torch.manual_seed(task.recipe.train.seed)
    recipe = task.recipe
    model = marian_model(recipe.model, len(task.tokenizers.target))
    optimizer = torch.optim.Adam(model.parameters(), betas=recipe.optimizer.betas, eps=recipe.optimizer.eps)
    sources, references = zip(*task.prepared.valid_text, strict=True)
    rows = task.tokenizers.source.encode_batch(list(sources))

    def update(batches: list[Batch], number: int) -> None:
        model.train()
        tokens = sum(batch.target_tokens for batch in batches)
        for batch in batches:
            logits, target = marian_logits(model, batch).flatten(0, 1), batch.target_out.flatten()
            smoothing = recipe.train.label_smoothing
            loss = F.cross_entropy(logits, target, ignore_index=0, label_smoothing=smoothing, reduction="sum")
            (loss / tokens).backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe.optimizer, number, recipe.train.max_updates, recipe.model.d_model)
        optimizer.step()
        optimizer.zero_grad()

    def bleu() -> float:
        outputs = marian_search(model.eval(), 1)(rows)
        return task.measure([task.tokenizers.target.decode(ids) for ids in outputs], references)["bleu"]

    return update, bleu


SYSTEMS: dict[str, tuple[Callable[[Translation], Trainer], tuple[str, ...]]] = {
    "heedful": (heedful, ()),
    "heedful, as published": (heedful, PUBLISHED),
    "HF MarianMT, as published": (marian, PUBLISHED),
}


def train(task: Translation, trainer: Trainer, minutes: float, every: float) -> Iterator[tuple[float, int, float]]:
    """Train until time or updates are over; yield minutes, updates and validation BLEU now and then."""
    update, bleu = trainer
    start, number, due = time.monotonic(), 0, every
    pieces = task.recipe.train.accumulate
    for number, batches in enumerate(groups(task, pieces), start=1):
        update(batches, number)
        gone = (time.monotonic() - start) / 60
        over = gone >= minutes or number == task.recipe.train.max_updates
        if gone >= due or over:
            yield gone, number, bleu()
            due = gone + every
        if over:
            return


def groups(task: Translation, pieces: int) -> Iterator[list[Batch]]:
    """The batches of each update, over and over."""
    epoch, waiting = 0, []
    while True:
        for ids in task.epoch(epoch):
            waiting.append(task.batch(ids, epoch, CPU))
            if len(waiting) == pieces:
                yield waiting
                waiting = []
        epoch += 1


def measure_here(name: str, options: argparse.Namespace) -> None:
    """In this process; a line of JSON each time the validation set was translated."""
    make, changes = SYSTEMS[name]
    recipe = load_recipe(options.recipe, [*changes, *options.set], options.data)
    with TemporaryDirectory() as folder:
        task = Translation.prepare(recipe, Path(folder), partial(print, file=sys.stderr))
        for point in train(task, make(task), options.minutes, options.every):
            print(json.dumps(point), flush=True)


def measure_apart(name: str, options: argparse.Namespace, console: Console) -> list[tuple[float, int, float]]:
    """In a process of its own, whose progress is shown."""
    settings = [f"--{key}={getattr(options, key)}" for key in ("data", "minutes", "every", "threads")]
    changes = [part for change in options.set for part in ("--set", change)]
    command = [sys.executable, __file__, str(options.recipe), "--one", name, *settings, *changes]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    points = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        for line in process.stdout or ():
            points.append(tuple(json.loads(line)))
            console.print(f"{name}: {points[-1][0]:.1f} minutes, {points[-1][1]:,} updates, BLEU {points[-1][2]:.2f}")
    if process.returncode:
        raise SystemExit(f"{name} failed with status {process.returncode}; run it alone with --one")
    return points


def draw(curves: dict[str, list[tuple[float, int, float]]], path: Path) -> None:
    """Validation BLEU over minutes."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for (name, points), colour in zip(curves.items(), ("#0072B2", "#56B4E9", "#D55E00"), strict=False):
        panel.plot([p[0] for p in points], [p[2] for p in points], "o-", color=colour, markersize=3.5, label=name)
    panel.set_xlabel("minutes of training")
    panel.set_ylabel("validation BLEU, greedy")
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)
    panel.legend(frameon=False, loc="lower right")
    figure.savefig(path)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each system at most")
    parser.add_argument("--every", type=float, default=3.0, help="minutes between translations of the validation set")
    parser.add_argument("--set", action="append", default=[], help="change the recipe: key=value")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("docs/time-to-bleu.svg"), help="where to draw")
    parser.add_argument("--one", choices=SYSTEMS, help="measure one system in this process")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.one:
        measure_here(options.one, options)
        return
    console = Console(width=120)
    curves = {name: measure_apart(name, options, console) for name in options.systems}
    shown = Table("system", *(f"BLEU {level}, minutes" for level in MILESTONES), "best", "after minutes")
    for name, points in curves.items():
        reached = [next((f"{p[0]:.1f}" for p in points if p[2] >= level), "-") for level in MILESTONES]
        best = max(points, key=lambda p: p[2])
        shown.add_row(name, *reached, f"{best[2]:.2f}", f"{best[0]:.1f}")
    facts: dict[str, Any] = record.machine(options.threads) | {"recipe": options.recipe.name}
    console.print(facts, shown)
    draw(curves, options.out)
    record.append(__file__, facts | {"minutes, updates, bleu": curves})


if __name__ == "__main__":
    main()
