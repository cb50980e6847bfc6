"""`heedful export`: write a model folder to give away, without the paths of this machine."""

import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Force, folder_to_write
from heedful.cli.output import writing_folder
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.config.schema import CorpusConfig, Recipe


class Dtype(StrEnum):
    """Data types in which `heedful export` stores weights."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def export(
    model: Annotated[
        str, typer.Argument(help="Folder of a model, a checkpoint or a run, or the name of a built-in model.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            help="Model folder to write; a model of heedful that is there is replaced.", callback=folder_to_write
        ),
    ],
    dtype: Annotated[
        Dtype, typer.Option(help="Data type of the weights; bfloat16 halves the size and has 8 bits of precision.")
    ] = Dtype.FLOAT32,
    _force: Force = False,
) -> None:
    """Write a model folder to share: all files that the model needs, without the paths of this machine."""
    from heedful.architectures import weights
    from heedful.checkpoint import load_model, write_model
    from heedful.storage.manifest import MANIFEST
    from heedful.tasks import find_task
    from heedful.tasks.task import usage

    replaced = ", in place of the model that was there" if (out / MANIFEST).is_file() else ""
    with writing_folder(out, "OUT") as folder, show_progress(f"exporting {model}"):
        loaded = load_model(model)
        write_model(folder, without_paths(loaded.recipe), loaded.tokenizers, weights(loaded.model), dtype.value)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    typer.echo(f"{out}: {size / 1e6:.1f} MB{replaced}; try: {usage(find_task(loaded.recipe.task), out)}")


def without_paths(recipe: "Recipe") -> "Recipe":
    """Copy a recipe without the paths of data, tokenizer, word vectors and start models on this machine."""

    def by_name(corpus: "CorpusConfig") -> "CorpusConfig":
        sides = {side: Path(path) for side in ("source", "target") if (path := getattr(corpus, side)) is not None}
        absolute = {side: path for side, path in sides.items() if path.is_absolute()}
        names = {side: path.name for side, path in absolute.items()}
        if len(set(names.values())) < len(names):  # en/test.txt and de/test.txt
            common = os.path.commonpath(absolute.values())
            names = {side: str(path.relative_to(common)) for side, path in absolute.items()}
        return replace(corpus, **names)

    data = recipe.data
    parts = {part: by_name(corpus) for part in ("valid", "test") if (corpus := getattr(data, part))}
    return replace(
        recipe,
        data=replace(data, root=".", train=tuple(map(by_name, data.train)), **parts),
        train=replace(recipe.train, start=None, start_decoder=None),
        tokenizer=replace(recipe.tokenizer, path=None),
        model=replace(recipe.model, source_vectors=None, target_vectors=None, freeze_vectors=False),
    )
