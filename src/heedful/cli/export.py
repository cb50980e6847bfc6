"""`heedful export`: a model to give away."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Dtype(StrEnum):
    """How weights are stored."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def export(
    model: Annotated[str, typer.Argument(help="A model folder, a checkpoint, a run, or a name in the box.")],
    out: Annotated[Path, typer.Argument(help="The model folder to write; a model that is there is replaced.")],
    dtype: Annotated[Dtype, typer.Option(help="bfloat16 halves the size and keeps 8 bits of precision.")] = Dtype.FLOAT32,
) -> None:
    """Write a model folder to give away: what translating needs, and no path of this machine."""
    from dataclasses import replace

    from heedful.checkpoint import load_model, write_model
    from heedful.models import weights

    loaded = load_model(model)
    recipe = replace(loaded.recipe, data=replace(loaded.recipe.data, root="."))
    write_model(out, recipe, loaded.tokenizers, weights(loaded.model), dtype.value)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    typer.echo(f"{out}: {size / 1e6:.1f} MB; try: heedful translate --model {out} 'Some text.'")
