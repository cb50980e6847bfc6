"""Plan of a run: what it will need, by its recipe alone, on some number of GPUs."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.machine import choose_precision
from heedful.machine.process import own_random_numbers
from heedful.plan.batches import PlannedBatches, batches_of
from heedful.plan.data_volume import DataVolume, data_volume
from heedful.plan.hardware import CPU, HERE, Accelerator, at_hand, find_accelerator, link_of
from heedful.plan.layouts import Layout, replicated, sharded
from heedful.plan.paper import CPU as CPU_DEVICE
from heedful.plan.paper import GPU
from heedful.plan.update import Memory, UpdateOnPaper
from heedful.tasks import import_task
from heedful.tasks.task import check

UTILISATION = ((1e8, 0.2), (5e8, 0.3), (math.inf, 0.4))  # the first with more parameters than the model
ON_CPU = 0.5


@dataclass(frozen=True)
class Circumstances:
    """Circumstances of a run that its recipe does not know.

    Attributes:
        gpus: the number of GPUs, of which each has a process.
        gpu: the name of an accelerator, see `heedful.plan.hardware`; by default this machine's GPU, or else its CPU.
        utilisation: the share of the peak FLOPs that is used; None: an assumption by the size of the model.
        length: tokens of a typical sentence of a translator, where there is no prepared data.
        link: bytes per second between GPUs; None: that of the data sheet in a node, and an assumption between nodes.
        disk: bytes per second at which a checkpoint is written.
        failure_hours: GPU hours between two failures, an assumption.
    """

    gpus: int = 1
    gpu: str = HERE
    utilisation: float | None = None
    length: int = 27
    link: float | None = None
    disk: float = 1e9
    failure_hours: float = 50_000.0


@dataclass(frozen=True)
class Work:
    """Work of a run, and of each of its updates.

    Attributes:
        updates: the number of updates of the run.
        batches: the batches of an update.
        batches_per_gpu: the most batches of an update that one GPU computes.
        tokens: real tokens of an update.
        flops: FLOPs of an update on all GPUs, forward, backward and optimiser.
        flops_per_gpu: those of the GPU with the most batches.
        epochs: passes over the prepared data; None where there is none.
        origin: in words, where the batches come from.
    """

    updates: int
    batches: int
    batches_per_gpu: int
    tokens: float
    flops: float
    flops_per_gpu: float
    epochs: float | None
    origin: str


@dataclass(frozen=True)
class Speed:
    """Speed of a run at an assumed utilisation, without validation.

    Attributes:
        utilisation: the share of the accelerator's peak FLOPs.
        layout: the layout whose communication is reckoned with.
        seconds: seconds of an update: computing, then communication.
        tokens_per_second: real tokens per second on all GPUs.
        hours: hours of the whole run.
        gpu_hours: the same times the number of GPUs.
    """

    utilisation: float
    layout: str
    seconds: float
    tokens_per_second: float
    hours: float
    gpu_hours: float


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints of a run.

    Attributes:
        bytes: the size of one, with the state of the optimiser.
        model: the size of the final model.
        kept: the most that are on disk at a time: the last ones, the best one, and the one that is being written.
        disk: the space that these and the final model take.
        seconds: the time to write one.
        interval: seconds between two that lose the least time, by Young's formula sqrt(2 x write x time to a failure).
    """

    bytes: int
    model: int
    kept: int
    disk: int
    seconds: float
    interval: float


@dataclass(frozen=True)
class Plan:
    """Plan of a run; sizes are in bytes, and each part gives the unit of its times.

    Attributes:
        name: the name of the recipe.
        shape: the shape of the model in words.
        parameters: the number of its weights.
        precision: the precision of training.
        gpus: the number of GPUs.
        accelerator: one of them, or this machine's CPU.
        link: bytes per second that each GPU can send to the others.
        memory: the memory of one process.
        layouts: all weights on each GPU, and a share of them on each.
        work: the work of an update.
        speed: the times of training.
        checkpoints: the sizes and times of saving.
        data: the volume of the training text; None where it is not here.
    """

    name: str
    shape: str
    parameters: int
    precision: str
    gpus: int
    accelerator: Accelerator
    link: float
    memory: Memory
    layouts: tuple[Layout, ...]
    work: Work
    speed: Speed
    checkpoints: Checkpoints
    data: DataVolume | None


@own_random_numbers()
def make_plan(recipe: Recipe, circumstances: Circumstances, prepared: Path | None = None) -> Plan:
    """Plan a run.

    Args:
        recipe: the recipe.
        circumstances: what the recipe does not know.
        prepared: the folder of the prepared data, `data` in the folder of a run; None: batches are made up.

    Raises:
        InputError: the recipe cannot work, the batches cannot be known, or there is no such accelerator.
    """
    circumstances = replace(circumstances, gpu=at_hand(circumstances.gpu))
    check_circumstances(recipe, circumstances)
    check(import_task(recipe.task), recipe)
    on_cpu = circumstances.gpu == CPU
    recipe = replace(recipe, train=replace(recipe.train, precision=precision_of(recipe, on_cpu)))
    accelerator = find_accelerator(circumstances.gpu, recipe.train.precision)
    batches = batches_of(recipe, circumstances.length, prepared)
    recipe = replace(recipe, data=batches.task.recipe.data)
    update = UpdateOnPaper(batches.task, recipe, CPU_DEVICE if on_cpu else GPU)
    per_gpu = math.ceil(recipe.train.accumulate / circumstances.gpus)
    memory = update.memory(batches.largest, accumulates=per_gpu > 1)
    parameters = sum(parameter.numel() for parameter in update.model.parameters())
    link = circumstances.link or link_of(accelerator, circumstances.gpus)
    layouts = (
        replicated(recipe, memory, circumstances.gpus, accelerator, link),
        sharded(recipe, memory, circumstances.gpus, accelerator, link, per_gpu),
    )
    work = work_of(recipe, batches, update, circumstances.gpus)
    speed = speed_of(work, layouts, parameters, accelerator, circumstances)
    work, speed = within_minutes(recipe.train.max_minutes, work, speed)
    return Plan(
        name=recipe.name,
        shape=recipe.model.shape(),
        parameters=parameters,
        precision=recipe.train.precision,
        gpus=circumstances.gpus,
        accelerator=accelerator,
        link=link,
        memory=memory,
        layouts=layouts,
        work=work,
        speed=speed,
        checkpoints=checkpoints_of(recipe, memory.optimizer, parameters, circumstances),
        data=data_volume(recipe),
    )


def check_circumstances(recipe: Recipe, circumstances: Circumstances) -> None:
    """Check that a recipe can be planned for a number of GPUs.

    Raises:
        InputError: an update has fewer batches than there are GPUs, several GPUs are asked for on the CPU, or the
            recipe is one of word vectors, whose gradients are sparse.
    """
    train, gpus = recipe.train, circumstances.gpus
    if recipe.model.family == "word_vectors":
        raise InputError('model.family = "word_vectors" cannot be planned; `heedful info` counts its parameters')
    if circumstances.gpu == CPU and gpus > 1:
        raise InputError(f"--gpus {gpus}: a CPU is one machine; leave --gpus out, or name the GPUs, such as --gpu h100")
    if train.accumulate < gpus:
        size = max(1, train.batch_tokens * train.accumulate // gpus)
        raise InputError(
            f"--gpus {gpus}: an update has train.accumulate = {train.accumulate} batches, and each GPU needs one. The "
            f"same tokens in more batches: --set train.accumulate={gpus} --set train.batch_tokens={size}"
        )


def precision_of(recipe: Recipe, on_cpu: bool) -> str:
    """Return the precision of a recipe; for "auto" bfloat16 on a GPU, and on the CPU what is faster on this machine."""
    if recipe.train.precision != "auto":
        return recipe.train.precision
    return choose_precision(CPU_DEVICE).precision if on_cpu else "bfloat16"


def work_of(recipe: Recipe, batches: PlannedBatches, update: UpdateOnPaper, gpus: int) -> Work:
    """Count the work of an update, from a typical batch."""
    train = recipe.train
    passes, step = update.flops(batches.typical)
    passes = passes * batches.tokens / batches.typical.tokens
    per_gpu = math.ceil(train.accumulate / gpus)
    per_epoch = None if batches.epoch is None else math.ceil(batches.epoch / train.accumulate)
    updates = train.max_updates
    if per_epoch and train.max_epochs:
        updates = min(updates, train.max_epochs * per_epoch)
    return Work(
        updates=updates,
        batches=train.accumulate,
        batches_per_gpu=per_gpu,
        tokens=train.accumulate * batches.tokens,
        flops=train.accumulate * passes + gpus * step,
        flops_per_gpu=per_gpu * passes + step,
        epochs=updates / per_epoch if per_epoch else None,
        origin=batches.origin,
    )


def speed_of(
    work: Work, layouts: tuple[Layout, ...], parameters: int, accelerator: Accelerator, circumstances: Circumstances
) -> Speed:
    """Compute the speed of a run in the first layout that fits, or in the first of all if none does."""
    assumed = ON_CPU if circumstances.gpu == CPU else next(share for size, share in UTILISATION if parameters < size)
    utilisation = circumstances.utilisation or assumed
    layout = next((layout for layout in layouts if layout.fits), layouts[0])
    seconds = work.flops_per_gpu / (utilisation * accelerator.flops) + layout.communication
    hours = work.updates * seconds / 3600
    return Speed(utilisation, layout.name, seconds, work.tokens / seconds, hours, hours * circumstances.gpus)


def within_minutes(minutes: float | None, work: Work, speed: Speed) -> tuple[Work, Speed]:
    """Shorten a run that `train.max_minutes` ends before its other limits."""
    if minutes is None or (share := minutes / (60 * speed.hours)) >= 1:
        return work, speed
    epochs = work.epochs and work.epochs * share
    work = replace(work, updates=math.ceil(work.updates * share), epochs=epochs)
    return work, replace(speed, hours=speed.hours * share, gpu_hours=speed.gpu_hours * share)


def checkpoints_of(recipe: Recipe, optimizer: int, parameters: int, circumstances: Circumstances) -> Checkpoints:
    """Compute the size of checkpoints and how often to write one."""
    model, kept = 4 * parameters, recipe.train.keep_last + 2
    size = model + optimizer
    seconds = size / circumstances.disk
    to_failure = 3600 * circumstances.failure_hours / circumstances.gpus
    return Checkpoints(size, model, kept, kept * size + model, seconds, math.sqrt(2 * seconds * to_failure))
