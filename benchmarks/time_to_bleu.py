"""Time of training until a BLEU: python benchmarks/time_to_bleu.py RECIPE --data DATA [--help]

`heedful train` with the recipe and with the settings that were published for its data, and HF's MarianMT with the
published settings in a loop that reads the same batches, one after another or on a core each. Every few minutes the
validation sentences are translated greedily, which counts as time too. Published: Wu et al. (2021), "Good for
Misconceived Reasons".
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import record
import torch
import torch.nn.functional as F
from decode import marian_search
from rich.console import Console
from rich.table import Table
from train_step import marian_logits, marian_model

from heedful.config.load import load_recipe
from heedful.metrics import Scoring, score
from heedful.tasks.parts.sequence_to_sequence import PairBatch
from heedful.tasks.text_to_text import Translation
from heedful.training.learning_rate import learning_rate

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

Point = tuple[float, int, float]  # minutes, updates, validation BLEU


def heedful(name: str, changes: Sequence[str], options: argparse.Namespace) -> list[Point]:
    """Run `heedful train` and return its BLEU scores over time; a score's time is that of the next line of the log."""
    run = run_folder(name, options)
    command = [Path(sys.executable).with_name("heedful"), "train", options.recipe, "--data", options.data, "--out", run]
    settings = [f"train.threads={options.threads}", f"train.seed={options.seed}", *changes]
    start = time.time()
    with subprocess.Popen([*command, *(part for change in settings for part in ("--set", change))]) as process:
        try:
            if process.wait(options.minutes * 60):
                raise SystemExit(f"{name}: training ended with status {process.returncode}")
        except subprocess.TimeoutExpired:
            process.terminate()
    end = time.time()
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    times = [json.loads(line) for line in (run / "timings.jsonl").read_text().splitlines()]
    points = []
    for line in lines:
        if "valid_bleu" in line:
            known = next((t["time"] for t in times if t["update"] > line["update"]), end)
            points.append(((known - start) / 60, line["update"], line["valid_bleu"]))
    return points


def run_folder(name: str, options: argparse.Namespace) -> Path:
    """Return the run folder of a heedful system."""
    return options.runs / f"{name.replace(', ', '-').replace(' ', '-')}-{options.seed}"


def marian(_: str, changes: Sequence[str], options: argparse.Namespace) -> list[Point]:
    """Train and evaluate Hugging Face's MarianMT in a process of its own."""
    settings = [f"--{key}={getattr(options, key)}" for key in ("data", "minutes", "every", "threads", "seed")]
    command = [sys.executable, __file__, str(options.recipe), "--peer", json.dumps(changes), *settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


SYSTEMS = {
    "heedful": (heedful, ()),
    "heedful, as published": (heedful, PUBLISHED),
    "HF MarianMT, as published": (marian, PUBLISHED),
}
COLOURS = dict(zip(SYSTEMS, ("#0072B2", "#56B4E9", "#D55E00"), strict=True))


def train_marian(options: argparse.Namespace) -> Iterator[Point]:
    """Train Hugging Face's MarianMT in this process until time or updates are over; yield validation BLEU at times."""
    recipe = load_recipe(options.recipe, [f"train.seed={options.seed}", *json.loads(options.peer)], options.data)
    with TemporaryDirectory() as folder:
        task = Translation.prepare(recipe, Path(folder), partial(print, file=sys.stderr))
        update, bleu = marian_trainer(task)
        start, due = time.monotonic(), options.every
        for number, batches in enumerate(groups(task, recipe.train.accumulate), start=1):
            update(batches, number)
            gone = (time.monotonic() - start) / 60
            over = gone >= options.minutes or number == recipe.train.max_updates
            if gone >= due or over:
                found = bleu()
                gone = (time.monotonic() - start) / 60
                print(f"{gone:.1f} minutes, {number:,} updates, BLEU {found:.2f}", file=sys.stderr)
                yield gone, number, found
                due = gone + options.every
            if over:
                return


def marian_trainer(task: Translation) -> tuple[Callable[[list[PairBatch], int], None], Callable[[], float]]:
    """Make two functions: one updates Hugging Face's MarianMT, one measures its BLEU on the validation set."""
    recipe = task.recipe
    torch.manual_seed(recipe.train.seed)
    model = marian_model(recipe.model, len(task.tokenizers.target))
    optimizer = torch.optim.Adam(model.parameters(), betas=recipe.optimizer.betas, eps=recipe.optimizer.eps)
    sources, references = zip(*task.data.examples.valid_text, strict=True)
    rows = task.tokenizers.source.encode_batch(list(sources))

    def update(batches: list[PairBatch], number: int) -> None:
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
        lines = [task.tokenizers.target.decode(ids) for ids in outputs]
        return score(lines, [references], Scoring(metrics=("bleu",), language=recipe.data.target_language))[0].value

    return update, bleu


def groups(task: Translation, pieces: int) -> Iterator[list[PairBatch]]:
    """Iterate over the batches of each update, without end."""
    epoch, waiting = 0, []
    while True:
        for ids in task.data.epoch(epoch):
            waiting.append(task.data.batch(ids, epoch, CPU))
            if len(waiting) == pieces:
                yield waiting
                waiting = []
        epoch += 1


def draw(curves: dict[str, list[Point]], path: Path) -> None:
    """Draw validation BLEU over minutes of training."""
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for name, points in curves.items():
        colour = COLOURS[name]
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
    parser.add_argument("--every", type=float, default=3.0, help="minutes between the peer's translations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--at-once", type=int, default=1, help="systems that run at a time, each on its own --threads")
    parser.add_argument("--runs", type=Path, default=Path("runs/time-to-bleu"), help="where heedful's runs are kept")
    parser.add_argument("--out", type=Path, default=Path("docs/time-to-bleu.svg"), help="where to draw")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.peer:
        for point in train_marian(options):
            print(json.dumps(point), flush=True)
        return
    for run in (run_folder(name, options) for name in options.systems):
        if run.exists():
            raise SystemExit(f"{run} is there already, and time counts from the start; remove it or give other --runs")
    with ThreadPoolExecutor(options.at_once) as pool:
        found = pool.map(lambda name: SYSTEMS[name][0](name, SYSTEMS[name][1], options), options.systems)
        curves = dict(zip(options.systems, found, strict=True))
    shown = Table("system", *(f"BLEU {level}, minutes" for level in MILESTONES), "best", "after minutes")
    for name, points in curves.items():
        reached = [next((f"{p[0]:.1f}" for p in points if p[2] >= level), "-") for level in MILESTONES]
        best = max(points, key=lambda p: p[2])
        shown.add_row(name, *reached, f"{best[2]:.2f}", f"{best[0]:.1f}")
    facts: dict[str, Any] = record.machine(options.threads) | {"recipe": options.recipe.name, "seed": options.seed}
    Console(width=120).print(facts, shown)
    draw(curves, options.out)
    record.append(__file__, facts | {"minutes, updates, bleu": curves})


if __name__ == "__main__":
    main()
