"""Plan of a run: the memory, time and disk space that it will need on given accelerators, estimated from its recipe."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from heedful.architectures.parameters import count_inactive
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.machine import choose_precision
from heedful.machine.memory import total_memory
from heedful.machine.process import preserve_rng_state
from heedful.machine.speed import matmul_speed
from heedful.nn.paper import CPU as CPU_DEVICE
from heedful.nn.paper import GPU
from heedful.tasks import import_spec
from heedful.tasks.specs import check_task
from heedful.tools.plan.data import DataVolume, PlannedBatches, batches_of, data_volume
from heedful.tools.plan.update import Memory, UpdateOnPaper
from heedful.training.warm_start import with_lora
from heedful.wording import counted, either

CPU = "cpu"
HERE = "here"  # the first GPU of this machine or, without one, its CPU
CPU_NAME = "this machine's CPU"
SIZE = 1024  # rows and columns of the matrices that are multiplied to measure a CPU
GPU_SIZE = 8192  # the same for a GPU, which smaller matrices do not keep busy
NODE = 8  # GPUs per node; links within a node are faster than links between nodes
USABLE = 0.9  # usable share of a GPU's memory; the rest is for the driver, kernels, communication and fragmentation
# Assumed share of the peak FLOPs by model size: pairs of an upper limit on the parameters and the share.
UTILISATION = ((1e8, 0.2), (5e8, 0.3), (math.inf, 0.4))
CPU_UTILISATION = 0.5
GPU_LINK = 32e9  # bytes per second between GPUs of this machine: PCIe 4.0 x16, an assumption
BETWEEN_NODES = 50e9  # bytes per second for each GPU: a network of 400 Gb/s, an assumption


@dataclass(frozen=True)
class Accelerator:
    name: str
    # dense FLOPs per second in the precision of the run: bfloat16, unless `find_accelerator` is asked for float32
    flops: float
    float32: float  # dense FLOPs per second in float32, without TF32
    memory: float  # bytes
    link: float  # bytes per second that it can send to others in its node, in one direction
    source: str = "data sheet"  # where the numbers come from


ACCELERATORS = {
    "h100": Accelerator("NVIDIA H100 SXM", 989.4e12, 66.9e12, 80e9, 450e9),
    "h200": Accelerator("NVIDIA H200 SXM", 989.4e12, 66.9e12, 141e9, 450e9),
    "a100": Accelerator("NVIDIA A100 80GB SXM", 312e12, 19.5e12, 80e9, 300e9),
    "a100-40gb": Accelerator("NVIDIA A100 40GB SXM", 312e12, 19.5e12, 40e9, 300e9),
    "rtx4090": Accelerator("NVIDIA RTX 4090", 165.2e12, 82.6e12, 24e9, 32e9),
}


def find_accelerator(name: str, precision: str) -> Accelerator:
    """Return an accelerator with its speed in a training precision. The speed of this machine is measured."""
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    if name == CPU:
        flops = matmul_speed(SIZE, SIZE, SIZE, dtype, torch.device("cpu"))
        return Accelerator(CPU_NAME, flops, flops, total_memory(), 1e9, "measured now")
    if name == HERE:
        flops = matmul_speed(GPU_SIZE, GPU_SIZE, GPU_SIZE, dtype, torch.device("cuda", 0))
        properties = torch.cuda.get_device_properties(0)
        return Accelerator(properties.name, flops, flops, properties.total_memory, GPU_LINK, "measured now")
    if name not in ACCELERATORS:
        raise InputError(
            f'--gpu {name}: unknown GPU; choose {either(ACCELERATORS)} or, for this machine, "{HERE}" (its GPU) or '
            f'"{CPU}"'
        )
    accelerator = ACCELERATORS[name]
    return replace(accelerator, flops=accelerator.float32) if precision == "float32" else accelerator


@dataclass(frozen=True)
class Layout:
    """Distribution of weights and training state over GPUs, with the memory per GPU in bytes."""

    name: str  # "replicated" (DDP) or "sharded" (FSDP2)
    weights: float  # the float32 weights that each GPU stores
    # the weights used for computing, if these differ: a bfloat16 copy, or the gathered weights of blocks
    working: float
    optimizer: float
    gradients: float
    batch: float  # the memory of the largest batch: activations and workspace
    total: float  # the peak memory
    fits: bool  # True if `total` is within the usable share of the GPU's memory
    # the total with activation checkpointing, an estimate; None for models without stacks of blocks
    checkpointed: float | None
    volume: float  # bytes that each GPU sends per update
    communication: float  # seconds to send them, without overlap with computation


@dataclass(frozen=True)
class Hardware:
    """Facts that are not in a recipe: the GPUs, their links, the disk, and how often something fails."""

    gpus: int = 1  # with one process each
    gpu: str = HERE  # one of ACCELERATORS, HERE or CPU
    utilisation: float | None = None  # share of the peak FLOPs; None for an assumption based on device and model size
    length: int = 27  # tokens in a typical sentence, for an encoder-decoder without prepared data
    # bytes per second between GPUs; None for the data sheet's value within a node, and an assumption between nodes
    link: float | None = None
    disk: float = 1e9  # bytes per second at which a checkpoint is written
    failure_hours: float = 50_000.0  # GPU hours between two failures, an assumption


@dataclass(frozen=True)
class Work:
    updates: int
    batches: int  # batches per update on all GPUs
    batches_per_gpu: int  # the maximum number of batches per update on one GPU
    tokens: float  # real tokens per update
    flops: float  # FLOPs per update on all GPUs: forward, backward and optimizer
    flops_per_gpu: float  # FLOPs per update on the GPU with the most batches
    epochs: float | None  # passes over the prepared data; None without it
    origin: str  # where the batches come from, for display


@dataclass(frozen=True)
class Speed:
    """Speed of a run at a given or assumed utilisation, excluding validation."""

    utilisation: float  # the share of the accelerator's peak FLOPs
    layout: str  # the layout whose communication time is included
    seconds: float  # seconds per update: computation, then communication
    tokens_per_second: float  # real tokens per second on all GPUs
    hours: float  # training time of the whole run
    gpu_hours: float  # hours x number of GPUs


@dataclass(frozen=True)
class Checkpoints:
    bytes: int  # the size of a checkpoint, with the optimizer state
    model: int  # the size of the final model
    kept: int  # the maximum number on disk: the last ones, the best one, and the one that is being written
    disk: int  # the space for `kept` checkpoints and the final model
    seconds: float  # the time to write a checkpoint
    # the interval between checkpoints, in seconds, that loses the least time: sqrt(2 x write time x time to failure)
    # by Young's formula
    interval: float


@dataclass(frozen=True)
class Plan:
    """Plan of a run; sizes are in bytes, and each part states the unit of its times."""

    name: str
    shape: str
    parameters: int
    active: int  # number of parameters that compute a token: without the experts that it does not use
    trained: int  # number of parameters that are trained
    precision: str
    gpus: int
    accelerator: Accelerator  # one of the GPUs, or this machine's CPU
    link: float  # bytes per second that each GPU can send to the others
    memory: Memory
    layouts: tuple[Layout, ...]  # replicated and sharded
    work: Work
    speed: Speed
    checkpoints: Checkpoints
    data: DataVolume | None  # None if a file of the training text is missing, or if the data is not text


@preserve_rng_state()
def make_plan(recipe: Recipe, hardware: Hardware, prepared: Path | None = None) -> Plan:
    """Plan a run with batches from prepared data, such as `data` in a run folder, or with synthetic batches."""
    if hardware.gpu == HERE and not torch.cuda.is_available():
        hardware = replace(hardware, gpu=CPU)
    check_hardware(recipe, hardware)
    check_task(import_spec(recipe.task), recipe)
    on_cpu = hardware.gpu == CPU
    if recipe.train.precision == "auto":  # on a CPU, whichever is faster on this machine
        precision = choose_precision(CPU_DEVICE).precision if on_cpu else "bfloat16"
        recipe = replace(recipe, train=replace(recipe.train, precision=precision))
    accelerator = find_accelerator(hardware.gpu, recipe.train.precision)
    recipe = with_lora(recipe)
    batches = batches_of(recipe, hardware.length, prepared)
    recipe = replace(recipe, data=batches.task.recipe.data)
    update = UpdateOnPaper(batches.task, recipe, CPU_DEVICE if on_cpu else GPU)
    per_gpu = math.ceil(recipe.train.accumulate / hardware.gpus)
    memory = update.memory(batches.largest, accumulates=per_gpu > 1)
    parameters = sum(parameter.numel() for parameter in update.model.parameters())
    in_a_node = hardware.gpus <= NODE
    link = hardware.link or (accelerator.link if in_a_node else min(accelerator.link, BETWEEN_NODES))
    layouts = layouts_of(recipe, memory, hardware.gpus, accelerator, link, per_gpu)
    work = work_of(recipe, batches, update, hardware.gpus)

    assumed = CPU_UTILISATION if on_cpu else next(share for size, share in UTILISATION if parameters < size)
    utilisation = hardware.utilisation or assumed
    layout = next((layout for layout in layouts if layout.fits), layouts[0])
    seconds = work.flops_per_gpu / (utilisation * accelerator.flops) + layout.communication
    hours = work.updates * seconds / 3600
    minutes = recipe.train.max_minutes
    if minutes is not None and (share := minutes / (60 * hours)) < 1:  # the time limit comes first
        epochs = work.epochs and work.epochs * share
        work, hours = replace(work, updates=math.ceil(work.updates * share), epochs=epochs), hours * share

    model, count = 4 * parameters, recipe.train.keep_last + 2
    size = model + memory.optimizer
    writing, to_failure = size / hardware.disk, 3600 * hardware.failure_hours / hardware.gpus
    interval = math.sqrt(2 * writing * to_failure)
    return Plan(
        name=recipe.name,
        shape=recipe.model.shape(),
        parameters=parameters,
        active=parameters - count_inactive(update.model),
        trained=sum(parameter.numel() for parameter in update.trained),
        precision=recipe.train.precision,
        gpus=hardware.gpus,
        accelerator=accelerator,
        link=link,
        memory=memory,
        layouts=layouts,
        work=work,
        speed=Speed(utilisation, layout.name, seconds, work.tokens / seconds, hours, hours * hardware.gpus),
        checkpoints=Checkpoints(size, model, count, count * size + model, writing, interval),
        data=data_volume(recipe),
    )


def check_hardware(recipe: Recipe, hardware: Hardware) -> None:
    train, gpus = recipe.train, hardware.gpus
    if recipe.model.family == "word_vectors":
        raise InputError('model.family = "word_vectors" cannot be planned; `heedful info` counts its parameters')
    if hardware.gpu == CPU and gpus > 1:
        raise InputError(
            f"--gpus {gpus}: the plan is for this machine's CPU; leave --gpus out, or choose a GPU, such as --gpu h100"
        )
    if train.accumulate < gpus:
        size = max(1, train.batch_tokens * train.accumulate // gpus)
        raise InputError(
            f"--gpus {gpus}: an update has {counted(train.accumulate, 'batches')} (train.accumulate), but each GPU "
            f"needs at least one. To split the same tokens into more batches: --set train.accumulate={gpus} "
            f"--set train.batch_tokens={size}"
        )


def layouts_of(
    recipe: Recipe, memory: Memory, gpus: int, accelerator: Accelerator, link: float, batches: int
) -> tuple[Layout, ...]:
    """Return two layouts: everything on each GPU (DDP), and an equal share of everything on each (FSDP2).

    `batches` is the number of batches per GPU and update.
    """
    single = recipe.train.precision == "float32"
    weights, optimizer, gradients = memory.weights, memory.optimizer, memory.gradients

    # Activation checkpointing, an estimate: each block stores its input, and one block all of its activations.
    inputs = memory.depth * recipe.train.batch_tokens * recipe.model.d_model * (4 if single else 2)
    saved = max(0.0, memory.activations - (inputs + memory.activations / memory.depth)) if memory.depth else None

    # Replicated: gradients are summed in float32 once per update, by a ring all-reduce.
    replicated = ("replicated", weights, memory.replica, optimizer, gradients)

    # Sharded: while one block computes, its weights, those of the next block and all weights outside of blocks, such as
    # embeddings, are gathered, in the precision of the run. The gradients of a block are whole until they are sharded.
    # Weights are gathered for the forward and the backward pass of each batch, and gradients are summed after each.
    size = 1.0 if single else 0.5  # of gathered weights, relative to float32
    working = 0.0 if gpus == 1 else size * (2 * memory.block + weights - memory.blocks) + memory.block
    sharded = ("sharded", weights / gpus, working, optimizer / gpus, gradients / gpus)

    layouts = []
    for parts, total, volume in (
        (replicated, memory.peak, 2 * (gpus - 1) / gpus * gradients),
        (sharded, sum(sharded[1:]) + memory.work, batches * (gpus - 1) / gpus * (size * 2 * weights + gradients)),
    ):
        fits = total <= USABLE * accelerator.memory
        checkpointed = None if saved is None else total - saved
        layouts.append(Layout(*parts, memory.work, total, fits, checkpointed, volume, volume / link))
    return tuple(layouts)


def work_of(recipe: Recipe, batches: PlannedBatches, update: UpdateOnPaper, gpus: int) -> Work:
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
