"""`heedful convert` and `export`: models from and to other toolkits, and without the paths of this machine."""

import json
import os
import re
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Force, folder_to_write
from heedful.cli.output import writing_folder
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.files import read_lines
from heedful.errors import InputError, RunError
from heedful.progress import show_progress
from heedful.storage.manifest import MANIFEST
from heedful.tasks import find_task

if TYPE_CHECKING:
    from heedful.convert.weights import Weights


class Source(StrEnum):
    HEEDFUL = "heedful"
    BERT = "bert"
    CLIP = "clip"
    GPT2 = "gpt2"
    MARIAN = "marian"
    WHISPER = "whisper"
    OPENNMT = "opennmt"
    FASTER_WHISPER = "faster-whisper"
    VIT = "vit"


class Target(StrEnum):
    HEEDFUL = "heedful"
    BERT = "bert"
    CLIP = "clip"
    GPT2 = "gpt2"
    MARIAN = "marian"
    VIT = "vit"
    WHISPER = "whisper"


HUGGING_FACE = ("bert", "clip", "gpt2", "marian", "vit", "whisper")  # types that a config.json may name


class Format(StrEnum):
    """Formats that `heedful export` writes."""

    SAFETENSORS = "safetensors"
    CTRANSLATE2 = "ctranslate2"


class Dtype(StrEnum):
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


def target_of(name: str) -> Target:
    formats = [target.value for target in Target]
    if name in formats:
        return Target(name)
    problem = "heedful reads this format and does not write it" if name in list(Source) else "there is no such format"
    raise InputError(f"--to {name}: {problem}; choose one of {', '.join(formats)}")


def convert(
    model: Annotated[
        str,
        typer.Argument(
            help="Model folder of heedful, Hugging Face or CTranslate2; also a run, or the name of a built-in model."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.", callback=folder_to_write)],
    source: Annotated[
        Source | None,
        typer.Option("--from", help="Format of the model that is read.", show_default="recognised by its files"),
    ] = None,
    target: Annotated[
        Target, typer.Option("--to", parser=target_of, metavar=f"[{'|'.join(Target)}]", help="Format to write.")
    ] = Target.HEEDFUL,
    task: Annotated[
        str | None,
        typer.Option(help="Task of the model in heedful, such as ranking.", show_default="as in the model's files"),
    ] = None,
    _force: Force = False,
) -> None:
    """Convert a model: the same numbers in another format.

    bert, clip, gpt2, marian, vit and whisper are folders of Hugging Face, with
    safetensors and, where there is text, a tokenizer; opennmt and
    faster-whisper are in CTranslate2's format. What a format cannot express is
    refused, and weights that are not used are named.
    """
    source = source or format_of(model)
    if source is Source.HEEDFUL and target is Target.HEEDFUL:
        others = ", ".join(each.value for each in Target if each is not Target.HEEDFUL)
        raise InputError(f"{model} is a model of heedful already; to take it elsewhere give --to with one of {others}")
    if source is not Source.HEEDFUL and target is not Target.HEEDFUL:
        raise InputError(
            f"{model} is a {source.value} model, and --to {target.value} takes one of heedful; leave --to out, which "
            "makes it one"
        )
    if source is Source.HEEDFUL and task is not None:
        raise InputError(f"--task {task}: is for a model that becomes one of heedful's; leave it out")
    if source is Source.HEEDFUL:
        to_other(model, target, out)
    else:
        to_heedful(Path(model), source, task, out)


def to_heedful(folder: Path, source: Source, task: str | None, out: Path) -> None:
    """Convert a model of another toolkit into a heedful model folder, and print which weights were not used."""
    from heedful.checkpoint import write_model
    from heedful.convert import FORMATS
    from heedful.convert.model import count

    with writing_folder(out, "--out") as free, show_progress(f"converting {folder}"):
        model = FORMATS[source.value].read(folder, task)
        write_model(free, model.recipe, model.tokenizers, model.weights)
    typer.echo(f'{out}: a model for the task "{model.recipe.task}" with {count(model.weights):,} parameters')
    for weight, times in unused(model.left_out).items():
        often = f", {times} times" if times > 1 else ""
        typer.echo(f'not used for the task "{model.recipe.task}": {weight}{often}', err=True)
    for note in model.notes:
        typer.echo(f"note: {note}", err=True)


def unused(weights: "Weights") -> Counter[str]:
    """Count unused weights by name and shape; `#` in a name stands for the number of a layer."""
    return Counter(f"{re.sub(r'(?<=[.])[0-9]+(?=[.])', '#', name)} {tuple(weights[name].shape)}" for name in weights)


def to_other(name: str, target: Target, out: Path) -> None:
    from heedful.architectures import weights
    from heedful.checkpoint import load_model
    from heedful.convert import FORMATS, Model

    with writing_folder(out, "--out") as free, show_progress(f"converting {name}"):
        loaded = load_model(name)
        model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
        numbers = FORMATS[target.value].write(model, free)
    typer.echo(f"{out}: a {target.value} model with {numbers:,} parameters")
    for change in FORMATS[target.value].changes(model):
        typer.echo(f"note: {change}", err=True)


def format_of(model: str) -> Source:
    """Find the format of a model by the files in its folder."""
    from heedful.checkpoint.load import find_model
    from heedful.convert.ctranslate2 import read_specification
    from heedful.convert.faster_whisper import SPEC
    from heedful.convert.settings import CONFIG, read_config

    folder = Path(model)
    if (folder / "model.bin").is_file():
        return Source.FASTER_WHISPER if read_specification(folder / "model.bin") == SPEC else Source.OPENNMT
    if (folder / CONFIG).is_file():
        kind, file = read_config(folder).get("model_type"), folder / CONFIG
        if kind is None:
            raise InputError(f"{file}: has no model_type; if it is {' or '.join(HUGGING_FACE)}, say so with --from")
        if kind not in HUGGING_FACE:
            types = ", ".join(HUGGING_FACE)
            raise InputError(f"{file}: model_type is {json.dumps(kind)}, and heedful converts {types}")
        return Source(kind)
    try:
        find_model(model)
    except InputError as error:
        raise InputError(
            f"{str(error).removesuffix('?')}. A model of another toolkit is a folder with {CONFIG}, as Hugging Face "
            "has it, or model.bin, as CTranslate2 has it, and heedful downloads none"
        ) from error
    return Source.HEEDFUL


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
    to: Annotated[
        Format, typer.Option("--to", help="Format: a model of heedful, or one for the inference engine CTranslate2.")
    ] = Format.SAFETENSORS,
    dtype: Annotated[
        Dtype, typer.Option(help="Data type of the weights; bfloat16 halves the size and has 8 bits of precision.")
    ] = Dtype.FLOAT32,
    precision: Annotated[
        str | None,
        typer.Option(
            help="Type of the weights for CTranslate2, such as int8, int8_float32, int16, float16 or bfloat16.",
            show_default="float32",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="Texts, one on each line, with which the export for CTranslate2 is compared with the model.",
            show_default="the validation set of the recipe",
        ),
    ] = None,
    _force: Force = False,
) -> None:
    """Write a model folder to share: all files that the model needs, without the paths of this machine.

    With --to ctranslate2 it is a folder that ctranslate2.Translator, Generator
    or Encoder opens, with a tokenizer.json for the library tokenizers. Its
    outputs are compared with those of the model, and a folder that differs is
    removed.
    """
    if to is Format.CTRANSLATE2:
        if dtype is not Dtype.FLOAT32:
            raise InputError("--dtype: is for --to safetensors; for ctranslate2 use --precision")
        export_ctranslate2(model, out, precision or "float32", inputs)
        return
    for option, value in (("--precision", precision), ("--inputs", inputs)):
        if value is not None:
            raise InputError(f"{option} {value}: is for --to ctranslate2")
    from heedful.architectures import weights
    from heedful.checkpoint import load_model, write_model
    from heedful.tasks.task import usage

    replaced = ", in place of the model that was there" if (out / MANIFEST).is_file() else ""
    with writing_folder(out, "OUT") as folder, show_progress(f"exporting {model}"):
        loaded = load_model(model)
        write_model(folder, without_paths(loaded.recipe), loaded.tokenizers, weights(loaded.model), dtype.value)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    typer.echo(f"{out}: {size / 1e6:.1f} MB{replaced}; try: {usage(find_task(loaded.recipe.task), out)}")


def export_ctranslate2(name: str, out: Path, precision: str, inputs: Path | None) -> None:
    """Write a model for CTranslate2, and compare its outputs with those of the model."""
    from heedful.architectures import weights
    from heedful.checkpoint import load_model
    from heedful.convert import Model
    from heedful.convert.ctranslate2_export import PRECISIONS, TEXTS, compare_outputs, validation_texts, write

    if precision not in PRECISIONS:
        raise InputError(f"--precision {precision}: choose one of {', '.join(PRECISIONS)}")
    loaded = load_model(name)
    texts = validation_texts(loaded.recipe) if inputs is None else read_lines(inputs)
    texts = list(islice(texts, TEXTS))
    with writing_folder(out, "OUT") as folder, show_progress(f"exporting {name}"):
        model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
        write(model, folder, precision)
        agreement = compare_outputs(loaded.use(), folder, texts) if texts else None
        if agreement and precision == "float32" and not agreement.is_equal:
            rmtree(folder)
            raise RunError(f"{out}: {agreement} and the folder is removed; please report this with the recipe")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    typer.echo(f"{out}: {size / 1e6:.1f} MB for CTranslate2, in {precision}")
    unknown = "not compared with the model, as its validation set is not there; give texts with --inputs FILE"
    typer.echo(f"heedful: {agreement or unknown}", err=True)


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
