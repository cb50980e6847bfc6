"""`heedful plan`: what a run will need, before it begins."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.config import Data, Overrides


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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all digits.")] = False,
) -> None:
    """Plan a run on paper: memory, FLOPs, time, checkpoints and data. Nothing is trained, and no GPU is needed.

    Memory and FLOPs are those of the training step itself, which runs on
    tensors without memory. Times are estimates from the utilisation.
    """
    from heedful.cli.config import recipe_or_preset
    from heedful.cli.plan_table import lines
    from heedful.plan import Circumstances, make_plan

    circumstances = Circumstances(
        gpus=gpus,
        gpu=gpu,
        utilisation=utilisation,
        length=length,
        link=link and link * 1e9,
        disk=disk * 1e9,
        failure_hours=failure_hours,
    )
    made = make_plan(recipe_or_preset(recipe, overrides or [], data), circumstances, prepared)
    typer.echo(json.dumps(asdict(made), indent=2) if as_json else "\n".join(lines(made)))
