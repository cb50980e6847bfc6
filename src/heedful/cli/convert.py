"""`heedful convert`: models of other toolkits into heedful's, and heedful's into theirs."""

import json
import re
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.convert.names import Weights


class Source(StrEnum):
    """What can be read."""

    HEEDFUL = "heedful"
    BERT = "bert"
    GPT2 = "gpt2"
    MARIAN = "marian"
    OPENNMT = "opennmt"


class Target(StrEnum):
    """What can be written."""

    HEEDFUL = "heedful"
    BERT = "bert"
    GPT2 = "gpt2"
    MARIAN = "marian"


def convert(
    model: Annotated[str, typer.Argument(help="A model's folder; of heedful's also a run or a name in the box.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    source: Annotated[
        Source | None, typer.Option("--from", help="The format of MODEL.", show_default="what the folder holds")
    ] = None,
    target: Annotated[Target, typer.Option("--to", help="The format to write.")] = Target.HEEDFUL,
    task: Annotated[
        str | None, typer.Option(help="What a model for heedful is for.", show_default="what it was made for")
    ] = None,
) -> None:
    """Convert a model: the same numbers in another format.

    bert, gpt2 and marian are folders of Hugging Face, with safetensors and a
    tokenizer; opennmt is CTranslate2's format. What a format cannot express
    is refused, and weights that are not used are named.
    """
    source = source or guess(Path(model), target)
    if (source is Source.HEEDFUL) == (target is Target.HEEDFUL):
        raise InputError(f"--from {source.value} --to {target.value}: one of both is heedful; give the other one")
    if source is Source.HEEDFUL and task is not None:
        raise InputError(f"--task {task}: is for a model that becomes one of heedful's; leave it out")
    if source is Source.HEEDFUL:
        away(model, target, out)
    else:
        home(Path(model), source, task, out)


def home(folder: Path, source: Source, task: str | None, out: Path) -> None:
    """Make a model folder of heedful."""
    from heedful.checkpoint import write_model
    from heedful.convert import FORMATS
    from heedful.convert.model import count

    with show_progress(f"converting {folder}"):
        found = FORMATS[source.value].read(folder, task)
        write_model(out, found.recipe, found.tokenizers, found.weights)
    typer.echo(f'{out}: a model for the task "{found.recipe.task}" with {count(found.weights):,} parameters')
    for weight, times in unused(found.left_out).items():
        often = f", {times} times" if times > 1 else ""
        typer.echo(f'not used for the task "{found.recipe.task}": {weight}{often}', err=True)
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)


def away(name: str, target: Target, out: Path) -> None:
    """Make a folder of another format."""
    from heedful.checkpoint import load_model
    from heedful.convert import FORMATS, Model
    from heedful.models import weights

    with show_progress(f"converting {name}"):
        loaded = load_model(name)
        model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
        numbers = FORMATS[target.value].write(model, out)
    typer.echo(f"{out}: a {target.value} model with {numbers:,} parameters")


def unused(weights: "Weights") -> Counter[str]:
    """Names and shapes of weights, and how many there are of each; `#` stands for the number of a layer."""
    return Counter(f"{re.sub(r'(?<=[.])[0-9]+(?=[.])', '#', name)} {tuple(weights[name].shape)}" for name in weights)


def guess(folder: Path, target: Target) -> Source:
    """The format of a folder: heedful's if another one is wanted, else what the files say.

    Raises:
        InputError: They say nothing that is known.
    """
    if target is not Target.HEEDFUL:
        return Source.HEEDFUL
    if (folder / "model.bin").is_file():
        return Source.OPENNMT
    from heedful.convert.settings import read_config

    kind = read_config(folder).get("model_type")
    if kind not in ("bert", "gpt2", "marian"):
        raise InputError(
            f"{folder / 'config.json'}: model_type is {json.dumps(kind)}, and heedful converts bert, gpt2 and marian"
        )
    return Source(kind)
