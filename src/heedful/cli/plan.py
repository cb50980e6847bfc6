"""`heedful plan`: what a run will need, before anything is trained."""

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
WIDTH = 34


def lines(plan: "Plan") -> Iterator[str]:
    """Format a plan: the model, the memory of a GPU in two layouts, the work, its speed, checkpoints and data."""
    accelerator, count = plan.accelerator, counted(plan.gpus, "GPUs")
    yield f"{plan.name}: {plan.shape}"
    yield row("parameters", f"{plan.parameters:,}")
    yield row("precision", plan.precision)
    yield row("machine", accelerator.name if plan.gpus == 1 else f"{count}, {accelerator.name}")
    yield row("", f"{si(accelerator.flops)}FLOP/s, {size(accelerator.memory)} ({accelerator.source})")
    yield ""
    yield from memory_lines(plan)
    yield ""

    work, pace = plan.work, plan.speed
    epochs = "" if work.epochs is None else f", {work.epochs:.3g} epochs"
    time = f"{pace.hours / 24:.3g} days" if pace.hours >= 48 else duration(3600 * pace.hours)
    yield row("updates", f"{work.updates:,}{epochs}")
    yield row("an update", f"{counted(work.batches, 'batches')}, {work.tokens:,.0f} tokens, {si(work.flops)}FLOP")
    yield row("", work.origin)
    yield row("in all", f"{work.updates * work.flops:.3g} FLOP, {work.updates * work.tokens:.3g} tokens")
    yield row("utilisation, assumed", f"{pace.utilisation:.0%}")
    yield row("an update takes, est.", f"{pace.seconds:.3g} s, {pace.layout}")
    yield row("speed, est.", f"{speed(pace.tokens_per_second)} tokens/s")
    yield row("time, est.", f"{time}, {pace.gpu_hours:,.3g} GPU hours")
    yield ""

    saved = plan.checkpoints
    yield row("a checkpoint", f"{size(saved.bytes)}, written in {saved.seconds:.3g} s")
    yield row("on disk", f"{size(saved.disk)}: {counted(saved.kept, 'checkpoints')} at most, and the model")
    yield row("a checkpoint every, est.", f"{duration(saved.interval)} loses the least time")
    if data := plan.data:
        yield row("data", f"{counted(data.files, 'files')}, {size(data.bytes)}, {counted(data.lines, 'lines')}")
        yield row("", f"about {data.tokens:,} tokens ({data.how})")


def memory_lines(plan: "Plan") -> Iterator[str]:
    yield row("memory of each, in GB", "DDP", "FSDP2 (estimate)")
    for title, key in (
        ("weights, float32", "weights"),
        ("weights that compute, if others", "working"),
        ("state of the optimiser", "optimizer"),
        ("gradients", "gradients"),
        ("largest batch", "batch"),
        ("most at a time", "total"),
        ("with activation checkpointing, est.", "checkpointed"),
    ):
        yield row(title, *(gigabytes(getattr(layout, key)) for layout in plan.layouts))
    yield row("fits", *("yes" if layout.fits else "no" for layout in plan.layouts))
    yield row("sent in an update", *(gigabytes(layout.volume) for layout in plan.layouts))
    yield row(f"  seconds at {plan.link / 1e9:g} GB/s", *(f"{layout.communication:.3g}" for layout in plan.layouts))
    yield from advice(plan)


def advice(plan: "Plan") -> Iterator[str]:
    from heedful.tools.plan.plan import USABLE

    if plan.layouts[0].fits:
        return
    room = USABLE * plan.accelerator.memory - plan.memory.states
    if room > 0:
        times = int(-(-plan.memory.work // room))
        yield f"fits with batches of 1/{times}: train.batch_tokens / {times}, train.accumulate x {times}"
    else:
        yield f"weights, gradients and optimiser alone need {size(plan.memory.states)}: only shards of them fit"


def row(title: str, *values: str) -> str:
    columns: Sequence[str] = values if len(values) == 1 else [f"{value:>18}" for value in values]
    return f"{title:{WIDTH}}  {''.join(columns)}".rstrip()


def si(number: float) -> str:
    """Format a number with three digits and a prefix such as G, to be followed by a unit."""
    scale, prefix = next((unit for unit in UNITS if number >= unit[0]), (1.0, ""))
    return f"{number / scale:.3g} {prefix}"


def size(number: float) -> str:
    return f"{si(number)}B"


def gigabytes(number: float | None) -> str:
    return "-" if number is None else f"{number / 1e9:,.3f}"


def plan(
    recipe: Annotated[str, typer.Argument(help="TOML file, folder with a config.toml, or preset.")],
    gpus: Annotated[int, typer.Option(min=1, help="Number of GPUs, of which each has a process.")] = 1,
    gpu: Annotated[
        str, typer.Option(help="h100, h200, a100, a100-40gb, rtx4090, cpu, or here: this machine's GPU, else its CPU.")
    ] = "here",
    utilisation: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=1.0,
            help="Share of the peak FLOPs that is used.",
            show_default="0.2, 0.3 from 10^8 and 0.4 from 5 x 10^8 parameters on; 0.5 on a CPU",
        ),
    ] = None,
    length: Annotated[int, typer.Option(min=2, help="Tokens of a typical sentence of a translator.")] = 27,
    link: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Gigabytes per second from a GPU to the others.",
            show_default="the data sheet's for up to 8 GPUs, 50 for more",
        ),
    ] = None,
    disk: Annotated[float, typer.Option(min=0.001, help="Gigabytes per second that the disk writes.")] = 1.0,
    failure_hours: Annotated[float, typer.Option(min=1.0, help="GPU hours between two failures.")] = 50_000.0,
    data: Data = None,
    prepared: Annotated[
        Path | None,
        typer.Option(help="Folder of prepared data, such as RUN/data, whose batches are real.", show_default="none"),
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Plan a run on paper: memory, FLOPs, time, checkpoints and data. Nothing is trained, and no GPU is needed.

    Memory and FLOPs are those of the training step itself, which runs on
    tensors without memory. Times are estimates from the utilisation.
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
    typer.echo(json.dumps(asdict(result), indent=2) if as_json else "\n".join(lines(result)))
