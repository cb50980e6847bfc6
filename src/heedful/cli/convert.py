"""`heedful convert` and `export`: convert models from and to other formats, and write model folders for sharing.

The formats that both commands offer are the names in the tables of `heedful.registry`.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.checkpoint.hub import HUB, download, folder_to_push, is_hub_name, split_name
from heedful.checkpoint.hub import push as push_folder
from heedful.cli.options import Force, folder_to_write
from heedful.cli.output import writing_folder
from heedful.config.user_code import check_task_name
from heedful.data.readers.files import read_lines
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.registry import EXPORTERS, FORMATS
from heedful.storage.complete_folder import MANIFEST
from heedful.tasks import find_task
from heedful.tasks.specs import kind_of_model
from heedful.wording import either

if TYPE_CHECKING:
    from heedful.convert.exporter import Exporter
    from heedful.convert.weights import Weights

HEEDFUL, SAFETENSORS = "heedful", "safetensors"


def format_option(option: str, names: Sequence[str], **settings: Any) -> Any:
    """Create an option that takes a format name from a registry."""

    def parse(name: str) -> str:
        if name in names:
            return name
        problem = "heedful reads this format but does not write it" if name in FORMATS else "unknown format"
        raise InputError(f"{option} {name}: {problem}; choose one of {', '.join(names)}")

    return typer.Option(option, parser=parse, metavar=f"<{'|'.join(names)}>", **settings)


def convert(
    model: Annotated[
        str,
        typer.Argument(
            help="Model folder in the format of heedful, Hugging Face or CTranslate2; or a run folder, the name of a "
            "bundled model, or hf:OWNER/NAME, a model on the Hugging Face Hub."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.", callback=folder_to_write)],
    source: Annotated[
        str | None,
        format_option(
            "--from",
            [HEEDFUL, *FORMATS],
            help="Format of the input model.",
            show_default="detected from its files",
        ),
    ] = None,
    target: Annotated[str, format_option("--to", [HEEDFUL, *EXPORTERS], help="Format to write.")] = HEEDFUL,
    task: Annotated[
        str | None,
        typer.Option(help="Task of the model in heedful, such as ranking.", show_default="as in the model's files"),
    ] = None,
    adapter: Annotated[
        Path | None,
        typer.Option(help="Folder of a PEFT LoRA adapter to merge into the weights of a Hugging Face model."),
    ] = None,
    _force: Force = False,
) -> None:
    """Convert a model to or from another format; its outputs stay the same.

    bert, clip, gpt2, llama, marian, vit and whisper are Hugging Face folders,
    with safetensors and, for text models, a tokenizer; opennmt and
    faster-whisper are in CTranslate2's format. Models that the target format
    cannot represent are rejected, and unused weights are listed.
    """
    folder = Path(model)
    if is_hub_name(model):
        with show_progress(f"downloading {model}"):
            folder = download(model, foreign=True)
    source = source or format_of(str(folder))
    if source != HEEDFUL and not (folder / FORMATS[source].file).is_file():
        raise InputError(f"--from {source}: {model} has the format {format_of(str(folder))}; leave --from out")
    if HEEDFUL not in (source, target):
        raise InputError(
            f"{model}: has the format {source}, but --to {target} converts only heedful models; leave --to out to "
            "import it"
        )
    if adapter is not None and (source == HEEDFUL or FORMATS[source].names is None):
        raise InputError(
            f"--adapter {adapter}: can only be merged into a Hugging Face model, but {model} has the format {source}; "
            "give the model that the adapter was trained on"
        )
    if source != HEEDFUL:
        if task is not None:
            check_task_name(task, f"--task {task}")
        to_heedful(folder, source, task, out, split_name(model)[0] if is_hub_name(model) else None, adapter)
        return
    if (found := format_of(str(folder))) != HEEDFUL:
        raise InputError(f"--from {HEEDFUL}: {model} has the format {found}; leave --from out")
    if task is not None:
        raise InputError(
            f"--task {task}: applies only to models from other toolkits, but {model} is a heedful model; leave it out"
        )
    if target == HEEDFUL:
        from heedful.checkpoint import load_model
        from heedful.convert.exporter import as_converted, fitting_formats

        formats = fitting_formats(as_converted(load_model(model)))
        raise InputError(
            f"{model} is a heedful model already; to convert it, give --to with one of {', '.join(formats)}"
        )
    export(model, out, target)


def to_heedful(
    folder: Path, source: str, task: str | None, out: Path, repository: str | None, adapter: Path | None
) -> None:
    """Convert a model from another toolkit into a heedful model folder, and print which weights were not used.

    A model from a Hub `repository` is named after it, not after the download folder.
    """
    from heedful.checkpoint import write_model
    from heedful.convert.model import count_values

    with writing_folder(out, folder) as free, show_progress(f"converting {folder}"):
        model = FORMATS[source].read(folder, task)
        if adapter is not None:
            from heedful.convert.peft import with_adapter

            model = with_adapter(model, FORMATS[source].names, adapter)
        recipe = replace(model.recipe, name=Path(repository).name) if repository else model.recipe
        write_model(free, recipe, model.tokenizers, model.weights)
    origin = f", from {repository} at commit {folder.name}" if repository else ""
    kind, parameters = kind_of_model(model.recipe.task), count_values(model.weights)
    typer.echo(f"{out}: {kind} with {parameters:,} parameters{origin}")
    for weight, times in count_unused(model.left_out).items():
        often = f", {times} times" if times > 1 else ""
        typer.echo(f'not used for the task "{model.recipe.task}": {weight}{often}', err=True)
    for note in model.notes:
        typer.echo(f"note: {note}", err=True)


def count_unused(weights: "Weights") -> Counter[str]:
    """Count unused weights by name and shape; `#` in a name stands for the layer number."""
    return Counter(f"{re.sub(r'(?<=[.])[0-9]+(?=[.])', '#', name)} {tuple(weights[name].shape)}" for name in weights)


def format_of(model: str) -> str:
    """Return the name of a model's format, detected from the files in its folder."""
    from heedful.checkpoint.find import find_model
    from heedful.convert.ctranslate2 import MODEL_BIN, read_specification
    from heedful.convert.peft import SETTINGS as ADAPTER_SETTINGS
    from heedful.convert.settings import CONFIG, read_config, reject_lfs_pointers

    folder = Path(model)
    if (folder / MODEL_BIN).is_file() or (folder / CONFIG).is_file():
        reject_lfs_pointers(folder)
    if (folder / MODEL_BIN).is_file():
        file, kind, noun = MODEL_BIN, read_specification(folder / MODEL_BIN), "specification"
    elif (folder / CONFIG).is_file():
        file, kind, noun = CONFIG, read_config(folder).get("model_type"), "model_type"
    else:
        try:
            find_model(model)
        except InputError as error:
            if (folder / ADAPTER_SETTINGS).is_file():
                raise InputError(
                    f"{model}: contains a PEFT adapter, not a whole model; give the model that the adapter was trained "
                    f"on, with --adapter {model}"
                ) from error
            raise InputError(
                f"{str(error).removesuffix('?')}. To convert a model from another toolkit, give its local folder (with "
                f"{CONFIG} for Hugging Face, {MODEL_BIN} for CTranslate2) or hf:OWNER/NAME on the Hugging Face Hub"
            ) from error
        return HEEDFUL
    # The format with the same name as the kind is imported first, and usually no other is needed.
    for name in sorted(FORMATS, key=lambda name: name != kind):
        if FORMATS[name].file == file and kind in FORMATS[name].kinds:
            return name
    formats = [kind for each in FORMATS.values() if each.file == file for kind in each.kinds]
    if kind is None:
        raise InputError(
            f"{folder / file}: has no {noun}; if the model is {either(formats)}, give its format with --from"
        )
    raise InputError(
        f"{folder / file}: {noun} {json.dumps(kind)} is not supported; heedful converts only {', '.join(formats)}"
    )


def export(
    model: Annotated[
        str,
        typer.Argument(help="Model, checkpoint or run folder, the name of a bundled model, or hf:OWNER/NAME."),
    ],
    out: Annotated[
        Path | None,
        typer.Argument(
            help="Model folder to write; a heedful model in it is replaced. Optional with --push.",
            callback=folder_to_write,
        ),
    ] = None,
    to: Annotated[str, format_option("--to", [*EXPORTERS], help="Format to write.")] = SAFETENSORS,
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            "--dtype",
            help="Data type of the stored weights, such as bfloat16, int8 or int4; the choices depend on --to.",
            show_default="float32",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            help="File with texts or media file names, one per line, on which the export is compared with the model.",
            show_default="the recipe's validation set",
        ),
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option(help="Source language as an ISO 639 code, such as en.", show_default="as in the recipe"),
    ] = None,
    target_language: Annotated[
        str | None,
        typer.Option(help="Target language as an ISO 639 code, such as de.", show_default="as in the recipe"),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="hf:OWNER/NAME",
            help="Upload the folder in one commit to a Hugging Face Hub repository, which is created if it does not "
            "exist; hf:OWNER/NAME@BRANCH uploads to a branch.",
        ),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Create a private repository.")] = False,
    _force: Force = False,
) -> None:
    """Write a model folder for sharing, in heedful's format (safetensors) or for other programs.

    The folder contains all files that the model needs, without this machine's
    paths, and a model card, README.md. With --to ctranslate2 it opens with
    ctranslate2.Translator, Generator, Encoder or models.Whisper; with --to onnx
    it opens with ONNX Runtime, as run.py in the folder shows. gguf is for
    llama.cpp; sentencepiece writes only the tokenizers, and argos a package for
    Argos Translate and LibreTranslate.

    The export's outputs are compared with the model's; if they differ, the
    folder is deleted. If the format cannot represent the model, export fails
    and lists the settings that the format supports.
    """
    from heedful.checkpoint import load_model
    from heedful.checkpoint.find import find_model
    from heedful.convert.exporter import COMPARED_INPUTS, export_model, with_languages
    from heedful.tasks.specs import usage
    from heedful.text.languages import check_language

    exporter: Exporter = EXPORTERS[to]
    precision = precision or exporter.precisions[0]
    if precision not in exporter.precisions:
        raise InputError(f"--precision {precision}: choose one of {', '.join(exporter.precisions)}")
    if inputs is not None and exporter.compare is None:
        raise InputError(f"--inputs {inputs}: --to {to} does not compare outputs; leave --inputs out")
    if private and push is None:
        raise InputError(f"--private is for a Hub repository; add --push {HUB}OWNER/NAME")

    for option, code in (("--source-language", source_language), ("--target-language", target_language)):
        if code is not None:
            check_language(code, option)
    texts = None if inputs is None else list(islice(read_lines(inputs), COMPARED_INPUTS))
    replaced = ", replacing the model that was there" if out and (out / MANIFEST).is_file() else ""
    destination, commit = out or push, ""
    with folder_to_push(out, push) as folder:
        with writing_folder(folder, find_model(model)) as free, show_progress(f"exporting {model}"):
            loaded = with_languages(load_model(model), source_language, target_language)
            exported = export_model(loaded, to, free, precision, texts, push or ".")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if push:
            with show_progress(f"uploading to {push}"):
                commit = push_folder(folder, push, private=private)
    weights = f", {exported.parameters:,} parameters in {precision}" if exported.parameters else ""
    size_text = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
    typer.echo(f"{destination}: {size_text} for {exporter.title}{weights}{replaced}")
    if commit:
        typer.echo(f"pushed: {commit}")
    if to == SAFETENSORS:
        typer.echo(f"try: {usage(find_task(loaded.recipe.task).spec, str(destination))}")
    for note in exported.notes:
        typer.echo(f"note: {note}", err=True)
    if exported.agreement:
        typer.echo(f"heedful: {exported.agreement}", err=True)
