"""Checks that split batches, several processes and interruptions do not change the updates of training."""

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.architectures import load_weights, weights
from heedful.checkpoint import Checkpoint, Checkpoints, write_model
from heedful.checkpoint.load import LoadedModel, load_model
from heedful.checkpoint.safetensors_format import read_tensors
from heedful.config.schema import OptimizerConfig, Recipe, Shardings
from heedful.distributed.launch import launch
from heedful.distributed.reducer import SINGLE_PROCESS, Reducer
from heedful.errors import Interrupted, RunError
from heedful.losses import Loss
from heedful.machine.process import preserve_rng_state
from heedful.optim import load_optimizer_tensors, optimizer_tensors
from heedful.tools.verify.subjects import Example, Subject, largest_difference, relative_difference, subject_of
from heedful.training.sharding import without_rows
from heedful.training.training_step import TrainingStep

UPDATES = 4
PROCESSES = 2
WEIGHT_FILES: dict[Shardings, str] = {"none": "whole.safetensors", "full": "sharded.safetensors"}  # by parallel.shard
MAX_WAIT = 5.0  # minutes that one process waits for the other


class ExampleBatch(NamedTuple):
    examples: Sequence[Example]
    tokens: int
    counts: tuple[int, ...]


def batch_of(subject: Subject, examples: Sequence[Example]) -> ExampleBatch:
    with torch.no_grad():
        count = subject.loss(subject.model, examples).count
    return ExampleBatch(examples, count, (count,))


def training_step(subject: Subject, recipe: Recipe, reducer: Reducer = SINGLE_PROCESS) -> TrainingStep:
    """Make a training step in float32 for a copy of a subject's model."""

    def objective(model: Any, batch: ExampleBatch) -> list[Loss]:
        return [subject.loss(model, batch.examples)]

    train = replace(recipe.train, precision="float32", compile=False)
    optimizer = OptimizerConfig(name="adamw", lr=1e-3, schedule="constant", warmup=0, clip_norm=1.0)
    model = copy.deepcopy(subject.model)
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.numel() > 0)
    return TrainingStep(model, objective, replace(recipe, train=train, optimizer=optimizer), reducer)


@preserve_rng_state()
def several_batches(subject: Subject, loaded: LoadedModel) -> float:
    """Measure the difference between the gradients of all examples in several batches and in one."""

    def gradient(parts: list[list[Example]]) -> Tensor:
        step = training_step(subject, loaded.recipe)
        step.model.eval()  # without dropout, which differs from batch to batch
        batches = [batch_of(subject, part) for part in parts]
        count = sum(batch.counts[0] for batch in batches)
        for index, batch in enumerate(batches):
            step.backward(batch, (1, index), step.divisors([count], count))
        return torch.cat([p.grad.flatten() for p in step.model.parameters() if p.grad is not None])

    examples = subject.examples
    return relative_difference(gradient([[example] for example in examples]), gradient([examples]))


def train_copy(
    subject: Subject, recipe: Recipe, reducer: Reducer = SINGLE_PROCESS, between: Callable | None = None
) -> TrainingStep:
    """Train a copy of a model for a few updates of two batches each.

    `between` is called halfway through with the training step, and returns a step to continue with.
    """
    step = training_step(subject, recipe, reducer)
    halves = [batch_of(subject, subject.examples[half::2]) for half in (0, 1)]
    for number in range(1, UPDATES + 1):
        step.update(list(reducer.shard(halves)), number)
        if between and number == UPDATES // 2:
            step = between(step)
    return step


@preserve_rng_state()
def several_processes(subject: Subject, loaded: LoadedModel) -> float:
    """Measure the largest difference between the weights after updates by two processes and by one process.

    First, both processes have all weights; then, unless a weight is a single number, the weights are sharded by rows.

    Raises:
        Interrupted: A signal such as Ctrl-C ended the processes.
        RunError: One of the processes failed.
    """
    seed, modules = subject.random.initial_seed(), custom_modules(loaded.recipe)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder / "model", loaded.recipe, loaded.tokenizers, weights(subject.model))
        code = launch(
            [sys.executable, "-m", "heedful.tools.verify.training_process", name, str(seed), *modules], PROCESSES
        )
        if code > 128:
            raise Interrupted("stopped while comparing two processes with one; the model is unchanged")
        if code:
            raise RunError(f"the two processes that train a copy of the model exited with code {code}")
        shared = [read_tensors(folder / file) for file in weight_files(subject.model).values()]
        one = load_model(folder / "model")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            expected = weights(train_copy(subject_of(one, seed), one.recipe).model)
        finally:
            torch.set_num_threads(threads)
        return max(largest_difference([actual[key] for key in expected], list(expected.values())) for actual in shared)


def weight_files(model: nn.Module) -> dict[Shardings, str]:
    """Return the entries of `WEIGHT_FILES` with a sharding that is possible for the weights of a model."""
    return {shard: file for shard, file in WEIGHT_FILES.items() if shard == "none" or not without_rows(model)}


def custom_modules(recipe: Recipe) -> list[str]:
    """List the user's modules whose classes a recipe names as "module:Class"."""
    names = (recipe.task, recipe.model.architecture)
    return [name.partition(":")[0] for name in names if ":" in name]


@preserve_rng_state()
def resumed_run(subject: Subject, loaded: LoadedModel) -> float:
    """Measure the difference between the weights after updates with and without saving and loading a checkpoint."""
    with TemporaryDirectory() as name:

        def interrupt(step: TrainingStep) -> TrainingStep:
            checkpoint = Checkpoint(
                step=1,
                weights=weights(step.model),
                optimizer=optimizer_tensors(step.optimizer, step.model),
                recipe=loaded.recipe,
                tokenizers=loaded.tokenizers,
                state={},
            )
            Checkpoints(Path(name), keep_last=1).save(checkpoint)
            saved = Checkpoints(Path(name), keep_last=1).load_latest(strict=True).checkpoint
            fresh = training_step(subject, loaded.recipe)
            load_weights(fresh.model, saved.weights if saved else {})
            load_optimizer_tensors(fresh.optimizer, fresh.model, saved.optimizer if saved else {})
            return fresh

        with_break, whole = (train_copy(subject, loaded.recipe, between=step) for step in (interrupt, None))
        return largest_difference(list(weights(with_break.model).values()), list(weights(whole.model).values()))


@preserve_rng_state()
def saved_model(subject: Subject, loaded: LoadedModel) -> float:
    """Measure the difference between a model's outputs before and after it was saved to a folder and loaded again."""
    with TemporaryDirectory() as name, torch.no_grad():
        write_model(Path(name) / "model", loaded.recipe, loaded.tokenizers, weights(subject.model))
        models = (load_model(Path(name) / "model").model, subject.model)
        return largest_difference(*(subject.outputs(model, subject.examples) for model in models))
