"""Work of the process for one system: train it, or resume its training, then measure size, FLOPs, speed and scores."""

import time
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import torch
from rich.console import Console
from torch import nn

from heedful.architectures.parameters import count_parameters
from heedful.checkpoint import Checkpoints, DamagedError, LoadedModel, load_model
from heedful.checkpoint.load import labels_learned
from heedful.config.schema import Recipe
from heedful.errors import HeedfulError
from heedful.inspector.development import gold_alignment
from heedful.machine import choose_device, environment, prepare_process
from heedful.machine.memory import PeakMemory
from heedful.machine.speed import count_flops
from heedful.metrics import Scoring, score
from heedful.metrics.bootstrap import bootstrap_scores, example_scores
from heedful.progress import show_progress
from heedful.tasks import Task, find_task, import_task
from heedful.tasks.parts.sequence_to_sequence import Pairs, SequenceToSequence
from heedful.tasks.specs import output_metrics
from heedful.tasks.task import Evaluation, Results
from heedful.tasks.text_to_text import Translation
from heedful.tools.compare.job import Job, Measured, Result, TestResult
from heedful.tools.compare.statistics import metrics_of
from heedful.training import loop
from heedful.training.resume import ChangedSettings
from heedful.training.training_step import TrainingStep

UPDATES = 2  # maximum number of updates whose FLOPs are counted
SENTENCES = 8  # maximum number of test sentences whose FLOPs are counted
BATCHES = 4  # maximum number of test batches whose FLOPs are counted, if no text is written


def work(job: Job, console: Console | None = None) -> int:
    """Train and measure the system of a job, and write the result, or the error; return the exit code."""
    console = console or Console(stderr=True)
    result = Result(job.to_json(), Result.read(job.result).peak_memory)
    code = 0
    try:
        import_task(job.recipe.task)
        code = train(job, result, console) if job.trains else 0
        if not code:
            result.write(job.result)  # keeps the peak memory of training if the measurement is interrupted
            prepare_process(job.recipe.train.threads)
            result.measured = measure(job, result.peak_memory)
    except ChangedSettings as error:  # the command has no --allow-change
        remedy = "Use the options and recipes of that comparison, or start a new one with a different --out"
        result.error = f"the run of an earlier comparison has different settings: {error.changes}. {remedy}"
        code = HeedfulError.exit_code
    except HeedfulError as error:
        result.error, code = str(error), HeedfulError.exit_code
    except Exception as error:  # from a user's class, or out of memory: the other systems continue
        console.print_exception()
        result.error, code = f"{type(error).__name__}: {error}", HeedfulError.exit_code
    result.write(job.result)
    return code


def train(job: Job, result: Result, console: Console) -> int:
    """Train the system of a job, or resume its training, and record its memory; return the exit code."""
    memory = PeakMemory(choose_device(job.recipe.train.device))
    try:
        with memory:
            return loop.train(job.recipe, job.folder, console, job.data).exit_code
    finally:
        result.peak_memory = max(memory.bytes, result.peak_memory or 0)


def measure(job: Job, peak_memory: int | None) -> Measured:
    loaded = load_model(job.folder, job.recipe.train.device)
    # The test set, language and search settings of the job replace the settings that are stored with the model.
    data = {key: getattr(job.recipe.data, key) for key in ("root", "test", "target_language")}
    decode = job.recipe.decode
    if decode.max_extra is None:  # the run has derived it from its training texts
        decode = replace(decode, max_extra=loaded.recipe.decode.max_extra)
    recipe = replace(loaded.recipe, data=replace(loaded.recipe.data, **data), decode=decode)
    loaded = replace(loaded, recipe=replace(recipe, generate=job.recipe.generate))

    progress: dict[str, Any] = {}  # of the trainer at the last checkpoint
    if job.folder.is_dir():  # a bundled model has no folder here
        with suppress(DamagedError):
            saved = Checkpoints(job.folder, keep_last=2).load_latest(strict=True).checkpoint
            progress = saved.state["progress"] if saved else {}
    flops = None
    if job.data is not None:
        # The classes, or the mean and scale of the labels, were found in training, so they come from the trained model.
        recipe = replace(job.recipe, data=labels_learned(job.recipe.data, loaded.recipe.data))
        task = find_task(recipe.task).prepare(recipe, job.data, lambda _: None)
        flops = flops_per_update(task, loaded.model, loaded.recipe)
    with (
        show_progress(f"testing {job.folder.name}") as report,
        loaded.testing(loaded.recipe.data, lambda _: None) as task,
    ):
        run = Evaluation(progress=report, is_test=True)
        is_written = isinstance(task, SequenceToSequence)
        test = test_written(task, loaded, run) if is_written else test_examples(task, loaded, run)
        per_example = flops_per_example(task, loaded, test.count)
    counts = count_parameters(loaded.model)
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


def flops_per_update(task: Task, model: nn.Module, recipe: Recipe) -> float:
    """Count the FLOPs of a training update (forward, backward, optimizer): the mean over the first updates of a run."""
    plain = replace(recipe, train=replace(recipe.train, compile=False, precision="float32"))
    model = deepcopy(model)
    step = TrainingStep(model, task.loss, plain)
    device = next(model.parameters()).device
    accumulate = recipe.train.accumulate
    batches = [task.data.batch(ids, 0, device) for ids in task.data.epoch(0)[: UPDATES * accumulate]]
    updates = [batches[i : i + accumulate] for i in range(0, len(batches), accumulate)]
    with torch.enable_grad():
        counts = [
            count_flops(lambda batches=batches, number=number: step.update(batches, number))
            for number, batches in enumerate(updates, start=1)
        ]
    return sum(counts) / len(counts)


def flops_per_example(task: Task, loaded: LoadedModel, count: int) -> float:
    """Count the mean FLOPs for writing one text of the test set or, for other tasks, for reading one example."""
    if isinstance(task, SequenceToSequence):
        decode, write, evaluation = replace(loaded.recipe.decode, n_best=1), task.decode, Evaluation()
        sentences = range(0, count, -(-count // SENTENCES))
        counts = [count_flops(lambda i=i: list(write(loaded.model, decode, [i], evaluation))) for i in sentences]
        return sum(counts) / len(sentences)
    batches = list(islice(task.data.valid_plan() or (), BATCHES))
    data, device = task.data, next(loaded.model.parameters()).device
    counts = [count_flops(lambda ids=ids: task.loss(loaded.model, data.valid_batch(ids, device))) for ids in batches]
    return sum(counts) / sum(map(len, batches))


def reordering_distances(recipe: Recipe) -> list[int] | None:
    """Return how far words move in each test sentence: the largest |i - j| over aligned words i and j.

    The gold alignments are files next to the text, as in a corpus of `heedful scenes`; without them, return None.
    """
    test = recipe.data.test
    if test is None:
        return None
    tested = replace(recipe, data=replace(recipe.data, valid=test))
    moves = [max((abs(i - j) for i, j in pair.links), default=0) for pair in gold_alignment(tested, limit=1 << 30)]
    return moves or None


def test_written(task: SequenceToSequence, loaded: LoadedModel, run: Evaluation) -> TestResult:
    """Test a model that writes texts: decode the test set, measure the time, and score the outputs."""
    begin = time.perf_counter()
    texts = task.decode_all(loaded.model, replace(loaded.recipe.decode, n_best=1), run)
    seconds = time.perf_counter() - begin
    outcomes = example_scores(texts, output_metrics(task.spec, task.recipe))
    losses = task.summary(run.mean_losses(task.loss, loaded.model, run.batches(task.data, loaded.model)))
    result = TestResult(
        count=len(texts),
        scores=(outcomes.whole or {}) | losses,
        seconds=seconds,
        tokens=sum(len(row) + 1 for row in loaded.tokenizers.target.encode_batch(list(texts.outputs))),
    )
    if not isinstance(task.data, Pairs):
        return replace(result, draws=asdict(bootstrap_scores(outcomes)))
    sources = [source for source, _ in task.data.examples.valid_text]
    result = replace(
        result,
        texts={"source": sources, "reference": list(texts.references), "output": list(texts.outputs)},
        lengths=[len(row) + 1 for row in loaded.tokenizers.source.encode_batch(sources)],
    )
    if not isinstance(task, Translation):
        return replace(result, figures=outcomes.each)
    language, sides = loaded.recipe.data.target_language, (list(texts.outputs), list(texts.references))
    scored = score(sides[0], [sides[1]], Scoring(metrics=metrics_of(*sides), language=language))
    return replace(result, scores={metric.name: metric.value for metric in scored} | losses, language=language)


def test_examples(task: Task, loaded: LoadedModel, run: Evaluation) -> TestResult:
    """Test a model of any other task: score it with the metrics of the task, and measure the time."""
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
        tokens=sum(tokens for _, tokens in batches),
        draws=asdict(bootstrap_scores(outcomes)) if outcomes else None,
        absent=outcomes.classes.absent if outcomes and outcomes.classes else None,
    )
