"""Measurement of a trained system: size, FLOPs, speed, and results on the test set and on groups of its sentences."""

import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful.architectures.parameters import count_parameters
from heedful.checkpoint import Checkpoints, DamagedError, LoadedModel, load_model
from heedful.checkpoint.load import labels_learned
from heedful.config.schema import Recipe
from heedful.inspector.development import gold_alignment
from heedful.machine import environment
from heedful.machine.speed import count_flops
from heedful.metrics import Resampled, Scoring, score
from heedful.metrics.bootstrap import bootstrap_scores, example_scores
from heedful.metrics.texts import Texts
from heedful.progress import show_progress
from heedful.tasks import Task, find_task
from heedful.tasks.parts.sequence_to_sequence import Pairs, SequenceToSequence
from heedful.tasks.task import Evaluation, Results, output_metrics
from heedful.tasks.text_to_text import Translation
from heedful.tools.compare.job import Job, Measured, TestResult
from heedful.tools.compare.statistics import TextSample, metrics_of
from heedful.training.training_step import TrainingStep

UPDATES = 2  # updates to take the mean of


def flops_per_update(task: Task, model: nn.Module, recipe: Recipe) -> float:
    """Count the FLOPs of a training update, forward, backward and optimiser: the mean of the first updates of a run.

    Args:
        task: the task with the training data.
        model: a model of the recipe; its weights stay as they are.
        recipe: the recipe of the run.
    """
    plain = replace(recipe, train=replace(recipe.train, compile=False, precision="float32"))
    trained = deepcopy(model)
    step = TrainingStep(trained, task.loss, plain)
    device = next(trained.parameters()).device
    ids = task.data.epoch(0)[: UPDATES * recipe.train.accumulate]
    batches = [task.data.batch(some, 0, device) for some in ids]
    updates = [batches[i : i + recipe.train.accumulate] for i in range(0, len(batches), recipe.train.accumulate)]
    with torch.enable_grad():
        counts = [count_flops(lambda some=some, n=n: step.update(some, n)) for n, some in enumerate(updates, start=1)]
    return sum(counts) / len(counts)


MOST = 5  # groups
FEWEST = 20  # sentences of a group


@dataclass(frozen=True)
class Group:
    """Sentences of a test set with similar values of a property, and the score of each system on them.

    Attributes:
        low: the smallest value of the property.
        high: the largest value.
        count: number of sentences.
        scores: the score on the group with its 95 % interval, by system.
    """

    low: int
    high: int
    count: int
    scores: dict[str, Resampled]


def group_scores(values: Sequence[int], samples: Mapping[str, TextSample], score: str) -> list[Group]:
    """Divide a test set into groups of about equal size by a property of its sentences, and score each group.

    Args:
        values: the property of each sentence, such as its length.
        samples: the results of each system, by its name.
        score: the name of the score.

    Returns:
        Groups in the order of the property; none if there are too few sentences for two groups.
    """
    groups = []
    for chosen in divided(values):
        found = {name: sample.part(chosen).intervals()[score] for name, sample in samples.items()}
        inside = [values[i] for i in chosen]
        groups.append(Group(min(inside), max(inside), len(chosen), found))
    return groups


def divided(values: Sequence[int]) -> list[list[int]]:
    """Divide sentences by a property into at most `MOST` groups; sentences with equal values stay together.

    A group of fewer than `FEWEST` sentences is joined to the one before it, the first to the one after it.
    """
    count = min(MOST, len(values) // FEWEST)
    if count < 2:
        return []
    bounds = np.unique(np.quantile(values, np.arange(1, count) / count, method="higher"))
    places = np.searchsorted(bounds, values, side="right")
    groups: list[list[int]] = []
    for place in range(len(bounds) + 1):
        group = np.flatnonzero(places == place).tolist()
        if groups and min(len(group), len(groups[-1])) < FEWEST:
            groups[-1] += group
        else:
            groups.append(group)
    return groups if len(groups) > 1 else []


def largest_moves(recipe: Recipe) -> list[int] | None:
    """Return for each test sentence how far the word order moves: the largest |i - j| of aligned words i and j.

    The gold alignment of the words stands beside the text in a corpus of `heedful scenes`; None for other data.
    """
    test = recipe.data.test
    if test is None:
        return None
    tested = replace(recipe, data=replace(recipe.data, valid=test))
    moves = [max((abs(i - j) for i, j in pair.links), default=0) for pair in gold_alignment(tested, most=1 << 30)]
    return moves or None


SENTENCES = 8  # of the test set, whose FLOPs are counted
BATCHES = 4


def measure(job: Job, peak_memory: int | None) -> Measured:
    """Measure the trained system of a job.

    Args:
        job: the job, whose training has ended.
        peak_memory: the most memory of the training in bytes; None if it was not measured.

    Raises:
        InputError: the model or the test set cannot be used.
    """
    loaded = as_asked(load_model(job.folder, job.recipe.train.device), job.recipe)
    counts = count_parameters(loaded.model)
    progress = trainer_progress(job)
    flops = None
    if job.data is not None:
        trained = find_task(job.recipe.task).prepare(with_labels(job.recipe, loaded.recipe), job.data, lambda _: None)
        flops = flops_per_update(trained, loaded.model, loaded.recipe)
    with (
        show_progress(f"testing {job.folder.name}") as report,
        loaded.testing(loaded.recipe.data, lambda _: None) as task,
    ):
        run = Evaluation(progress=report, is_test=True)
        written = isinstance(task, SequenceToSequence)
        test = test_written(task, loaded, run) if written else test_examples(task, loaded, run)
        per_example = flops_per_example(task, loaded, test.count)
    return Measured(
        parameters=counts.total,
        kinds=dict(counts.weights + counts.biases),
        precision=loaded.recipe.train.precision,
        updates=progress.get("update"),
        seconds=progress.get("seconds"),
        tokens=progress.get("tokens"),
        peak_memory=peak_memory,
        flops_per_update=flops,
        flops_per_example=per_example,
        environment=environment(next(loaded.model.parameters()).device),
        test=test,
    )


def as_asked(loaded: LoadedModel, recipe: Recipe) -> LoadedModel:
    """Return a model with the test set, its language and the search that a job asks for.

    A run that has ended keeps those that it was trained with.
    """
    asked = recipe.data
    data = replace(loaded.recipe.data, root=asked.root, test=asked.test, target_language=asked.target_language)
    decode = recipe.decode
    if decode.max_extra is None:  # measured in training
        decode = replace(decode, max_extra=loaded.recipe.decode.max_extra)
    return replace(loaded, recipe=replace(loaded.recipe, data=data, decode=decode, generate=recipe.generate))


def with_labels(recipe: Recipe, trained: Recipe) -> Recipe:
    """Return a recipe with the classes, or the mean and scale of labels, that its training has found in the data."""
    return replace(recipe, data=labels_learned(recipe.data, trained.data))


def trainer_progress(job: Job) -> dict[str, Any]:
    """Return the counters of the trainer at the last checkpoint of a run; empty for a model without its run."""
    if not job.folder.is_dir():  # a model that comes with the package
        return {}
    try:
        saved = Checkpoints(job.folder, keep_last=2).load_latest(strict=True).checkpoint
    except DamagedError:
        return {}
    return saved.state["progress"] if saved else {}


def flops_per_example(task: Task, loaded: LoadedModel, count: int) -> float:
    """Count the FLOPs of writing one text of the test set or, for other tasks, of reading one example: a mean.

    Args:
        task: the task with the test set.
        loaded: the model.
        count: the examples of the test set.
    """
    if isinstance(task, SequenceToSequence):
        decode, write, alone = replace(loaded.recipe.decode, n_best=1), task.write, Evaluation()
        chosen = range(0, count, -(-count // SENTENCES))
        counts = [count_flops(lambda i=i: list(write(loaded.model, decode, [i], alone))) for i in chosen]
        return sum(counts) / len(chosen)
    batches = list(islice(task.data.valid_plan() or (), BATCHES))
    data, device = task.data, next(loaded.model.parameters()).device
    counts = [count_flops(lambda ids=ids: task.loss(loaded.model, data.valid_batch(ids, device))) for ids in batches]
    return sum(counts) / sum(map(len, batches))


def test_written(task: SequenceToSequence, loaded: LoadedModel, run: Evaluation) -> TestResult:
    """Test a model that writes texts: decode the test set, time that, and score the outputs."""
    begin = time.perf_counter()
    texts = task.decoded(loaded.model, replace(loaded.recipe.decode, n_best=1), run)
    seconds = time.perf_counter() - begin
    outcomes = example_scores(texts, output_metrics(type(task), task.recipe))
    losses = task.summary(run.mean_losses(task, loaded.model, run.batches(task.data, loaded.model)))
    found = TestResult(
        count=len(texts),
        scores=(outcomes.whole or {}) | losses,
        seconds=seconds,
        tokens=sum(len(row) + 1 for row in loaded.tokenizers.target.encode_batch(list(texts.outputs))),
    )
    if not isinstance(task.data, Pairs):
        return replace(found, draws=asdict(bootstrap_scores(outcomes)))
    found = with_texts(found, task.data, loaded, texts)
    if not isinstance(task, Translation):
        return replace(found, figures=outcomes.each)
    language, sides = loaded.recipe.data.target_language, (list(texts.outputs), list(texts.references))
    scored = score(sides[0], [sides[1]], Scoring(metrics=metrics_of(*sides), language=language))
    return replace(found, scores={one.name: one.value for one in scored} | losses, language=language)


def with_texts(found: TestResult, data: Pairs, loaded: LoadedModel, texts: Texts) -> TestResult:
    """Return a test from text to text with all that is shown of its texts."""
    sources = [source for source, _ in data.prepared.valid_text]
    shown = {"source": sources, "reference": list(texts.references), "output": list(texts.outputs)}
    lengths = [len(row) + 1 for row in loaded.tokenizers.source.encode_batch(sources)]
    return replace(found, texts=shown, lengths=lengths)


def test_examples(task: Task, loaded: LoadedModel, run: Evaluation) -> TestResult:
    """Test a model of any other task: score it with the metrics of the task, and time that."""
    device = next(loaded.model.parameters()).device
    batches = [(len(ids), task.data.valid_batch(ids, device).tokens) for ids in task.data.valid_plan() or ()]
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begin = time.perf_counter()
    results = task.evaluate(loaded.model, run) or Results({})
    seconds = time.perf_counter() - begin
    outcomes = results.outcomes  # None for the perplexity of running text, for example
    return TestResult(
        count=outcomes.count if outcomes else sum(examples for examples, _ in batches),
        scores=results.scores,
        seconds=seconds,
        tokens=sum(read for _, read in batches),
        draws=asdict(bootstrap_scores(outcomes)) if outcomes else None,
        absent=outcomes.classes.absent if outcomes and outcomes.classes else None,
    )
