"""Losses of fast code paths against a reference: python benchmarks/losses.py RECIPE --data DATA [--help]

Runs the first updates of a recipe for translation several times, from the same weights, on the same batches, with the
same dropout: once with torch's own attention and a cross-entropy over all logits, in float32, and as heedful trains in
each precision.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import record
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from rich.table import Table

from heedful.architectures import EncoderDecoder
from heedful.config.load import load_recipe
from heedful.losses import Loss, reference_cross_entropy
from heedful.nn.attention import Attention
from heedful.tasks import find_task
from heedful.tasks.parts.sequence_to_sequence import PairBatch, SequenceToSequence
from heedful.training.training_step import TrainingStep


def fast(task: SequenceToSequence, precision: Literal["float32", "bfloat16", "autocast"]) -> TrainingStep:
    recipe = replace(task.recipe, train=replace(task.recipe.train, precision=precision))
    torch.manual_seed(0)
    return TrainingStep(task.build(recipe, task.tokenizers), task.loss, recipe)


def reference(task: SequenceToSequence) -> TrainingStep:
    smoothing = task.recipe.train.label_smoothing

    def loss(model: EncoderDecoder, batch: PairBatch) -> tuple[Loss]:
        hidden = model.hidden(batch.source, batch.source_padding_mask, batch.target_in, batch.target_padding_mask)
        target = batch.target_out[batch.target_padding_mask]
        return (reference_cross_entropy(hidden[batch.target_padding_mask], model.output.weight, target, smoothing),)

    learner = fast(task, "float32")
    for module in learner.model.modules():
        if isinstance(module, Attention):
            module.attention_fn = F.scaled_dot_product_attention
    learner.objective = loss
    return learner


PATHS: dict[str, Callable[[SequenceToSequence], TrainingStep]] = {
    "the reference": reference,
    "float32": partial(fast, precision="float32"),
    "bfloat16": partial(fast, precision="bfloat16"),
    "autocast": partial(fast, precision="autocast"),
}


def losses(task: SequenceToSequence, path: str, updates: int) -> list[float]:
    """Measure the loss at each update, in nats per token."""
    learner, found, epoch = PATHS[path](task), [], 0
    while len(found) < updates:
        for ids in track(task.data.epoch(epoch)[: updates - len(found)], f"{path}, epoch {epoch + 1}", transient=True):
            update = learner.update([task.data.batch(ids, epoch, torch.device("cpu"))], len(found) + 1)
            found.append(update.losses[0] / update.counts[0])
        epoch += 1
    return found


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--updates", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    recipe = load_recipe(options.recipe, data_root=options.data)
    with TemporaryDirectory() as folder:
        task = find_task(recipe.task).prepare(recipe, Path(folder), print)
        if not isinstance(task, SequenceToSequence):
            parser.error(f"{options.recipe} writes no text from a text")
        found = {path: losses(task, path, options.updates) for path in PATHS}
    shown = Table("path", "first loss", "last loss", "furthest from the reference", "on average")
    for path, values in found.items():
        off = [abs(a / b - 1) for a, b in zip(values, found["the reference"], strict=True)]
        figures = (f"{max(off):.1e}", f"{sum(off) / len(off):.1e}")
        shown.add_row(path, f"{values[0]:.4f}", f"{values[-1]:.4f}", *figures)
    facts = record.machine(options.threads) | {"recipe": recipe.name}
    Console(width=110).print(facts, shown)
    record.append(__file__, facts | {"losses": found})


if __name__ == "__main__":
    main()
