"""`heedful plan`: estimate memory, time and checkpoints of a run before it starts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import AsJson, Data, Overrides
from heedful.wording import counted, duration, speed

if TYPE_CHECKING:
    from heedful.tools.plan import Plan


UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
TITLE_WIDTH = 40


def plan_lines(plan: "Plan") -> Iterator[str]:
    """Format a plan: the model, the memory per device in two layouts, the work, its speed, checkpoints and data."""
    from heedful.tools.plan.plan import CPU_NAME

    accelerator, count = plan.accelerator, counted(plan.gpus, "GPUs")
    yield row("model", f"{plan.name}: {plan.shape}")
    yield row("parameters", f"{plan.parameters:,}")
    if plan.active < plan.parameters:
        yield row("active per token", f"{plan.active:,} ({plan.active / plan.parameters:.2%})")
    if plan.trained < plan.parameters:
        yield row("trained", f"{plan.trained:,} ({plan.trained / plan.parameters:.2%})")
    yield row("precision", plan.precision)
    yield row("machine", accelerator.name if plan.gpus == 1 else f"{count}, {accelerator.name}")
    yield row("", f"{with_prefix(accelerator.flops)}FLOP/s, {in_bytes(accelerator.memory)} ({accelerator.source})")
    yield ""

    yield row("memory per device, in GB", "DDP", "FSDP2 (estimate)")
    for title, key in (
        ("weights, float32", "weights"),
        ("low-precision copy of the weights", "working"),
        ("optimizer state", "optimizer"),
        ("gradients", "gradients"),
        ("largest batch", "batch"),
        ("peak memory", "total"),
        ("with activation checkpointing (estimate)", "checkpointed"),
    ):
        yield row(title, *(gigabytes(getattr(layout, key)) for layout in plan.layouts))
    yield row("fits", *("yes" if layout.fits else "no" for layout in plan.layouts))
    yield row("communication per update", *(gigabytes(layout.volume) for layout in plan.layouts))
    yield row(f"  seconds at {plan.link / 1e9:g} GB/s", *(f"{layout.communication:.3g}" for layout in plan.layouts))
    yield from advice(plan)
    yield ""

    work, pace = plan.work, plan.speed
    epochs = "" if work.epochs is None else f", {work.epochs:.3g} epochs"
    time = f"{pace.hours / 24:.3g} days" if pace.hours >= 48 else duration(3600 * pace.hours)
    flops = f"{with_prefix(work.flops)}FLOP"
    yield row("updates", f"{work.updates:,}{epochs}")
    yield row("per update", f"{counted(work.batches, 'batches')}, {work.tokens:,.0f} tokens, {flops}")
    yield row("", work.origin)
    yield row("total", f"{work.updates * work.flops:.3g} FLOP, {work.updates * work.tokens:.3g} tokens")
    yield row("utilisation (assumption)", f"{pace.utilisation:.0%}")
    yield row("time per update (estimate)", f"{pace.seconds:.3g} s, {pace.layout}")
    yield row("speed (estimate)", f"{speed(pace.tokens_per_second)} tokens/s")
    time = "less than 1 s" if 3600 * pace.hours < 1 else time
    hours = "less than 0.01" if pace.gpu_hours < 0.01 else f"{pace.gpu_hours:,.3g}"
    hours = "" if accelerator.name == CPU_NAME else f", {hours} GPU hours"
    yield row("total time (estimate)", f"{time}{hours}")
    yield ""

    saved = plan.checkpoints
    yield row("checkpoint", f"{in_bytes(saved.bytes)}, written in {saved.seconds:.3g} s")
    yield row("disk space", f"{in_bytes(saved.disk)}: up to {counted(saved.kept, 'checkpoints')}, and the model")
    yield row("optimal checkpoint interval", f"{duration(saved.interval)} (estimate)")
    if data := plan.data:
        yield row("data", f"{counted(data.files, 'files')}, {in_bytes(data.bytes)}, {counted(data.lines, 'lines')}")
        yield row("", f"about {data.tokens:,} tokens ({data.how})")


def advice(plan: "Plan") -> Iterator[str]:
    from heedful.tools.plan.plan import USABLE

    if plan.layouts[0].fits:
        return
    room = USABLE * plan.accelerator.memory - plan.memory.states
    if room > 0:
        times = int(-(-plan.memory.work // room))
        yield f"fits with 1/{times} of the batch size: train.batch_tokens / {times}, train.accumulate x {times}"
    else:
        yield f"weights, gradients and optimizer alone need {in_bytes(plan.memory.states)}; they fit only if sharded"


def row(title: str, *values: str) -> str:
    columns: Sequence[str] = values if len(values) == 1 else [f"{value:>18}" for value in values]
    return f"{title:{TITLE_WIDTH}}  {''.join(columns)}".rstrip()


def with_prefix(number: float) -> str:
    """Format a number with three digits and a prefix such as G, ready for a unit."""
    scale, prefix = next((unit for unit in UNITS if number >= unit[0]), (1.0, ""))
    return f"{number / scale:.3g} {prefix}"


def in_bytes(number: float) -> str:
    return f"{with_prefix(number)}B"


def gigabytes(number: float | None) -> str:
    return "-" if number is None else f"{number / 1e9:,.3f}"


def plan(
    recipe: Annotated[str, typer.Argument(help="TOML file, folder with a config.toml, or preset.")],
    gpus: Annotated[int, typer.Option(min=1, help="Number of GPUs, with one process each.")] = 1,
    gpu: Annotated[
        str,
        typer.Option(
            help="Device to plan for: h100, h200, a100, a100-40gb, rtx4090, cpu, or here (this machine's GPU or, if "
            "it has none, its CPU)."
        ),
    ] = "here",
    utilisation: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=1.0,
            help="Share of the peak FLOP/s that training achieves.",
            show_default="0.2; 0.3 from 10^8 parameters; 0.4 from 5 x 10^8 parameters; 0.5 on a CPU",
        ),
    ] = None,
    length: Annotated[int, typer.Option(min=2, help="Tokens in a typical sentence, for a translator.")] = 27,
    link: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Bandwidth from a GPU to the others, in gigabytes per second.",
            show_default="from the data sheet for up to 8 GPUs, 50 for more",
        ),
    ] = None,
    disk: Annotated[float, typer.Option(min=0.001, help="Disk write speed in gigabytes per second.")] = 1.0,
    failure_hours: Annotated[float, typer.Option(min=1.0, help="Mean GPU hours between failures.")] = 50_000.0,
    data: Data = None,
    prepared: Annotated[
        Path | None,
        typer.Option(help="Folder of prepared data, such as RUN/data, to plan with its batches.", show_default="none"),
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Plan a run on paper: memory, FLOPs, time, checkpoints and data. Nothing is trained, and no GPU is needed.

    Memory and FLOPs come from the training step itself, which runs on tensors
    without storage (meta tensors). Times are estimates based on the
    utilisation.
    """
    from heedful.cli.config import recipe_or_preset
    from heedful.tools.plan import Hardware, make_plan

    hardware = Hardware(
        gpus=gpus,
        gpu=gpu,
        utilisation=utilisation,
        length=length,
        link=link and link * 1e9,
        disk=disk * 1e9,
        failure_hours=failure_hours,
    )
    result = make_plan(recipe_or_preset(recipe, overrides or [], data), hardware, prepared)
    typer.echo(json.dumps(asdict(result), indent=2) if as_json else "\n".join(plan_lines(result)))
