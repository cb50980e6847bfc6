"""Typer options that several commands share: model, output, device, precision, input tables and columns."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from heedful.config.keys import KEYS, description_of
from heedful.errors import InputError

STDIN, STDOUT, MODELS = "standard input", "standard output", "the model's"  # defaults as help shows them


def mirrored(key: object, *spellings: str, more: str = "", show_default: str = MODELS) -> Any:
    """Make the option that overrides a setting of a model's recipe; its help is the description of the setting."""
    text, others = description_of(str(key))
    text = re.sub(r" Not set: [^.]*\.", "", text)  # the value is that of the model then
    text = re.sub(r"`(\w+)`", lambda name: option_of(name[1]) if name[1] in others else name[0], text)
    return typer.Option(*spellings, help=f"{text} {more}".rstrip().replace("`", ""), show_default=show_default)


def option_of(name: str) -> str:
    """The option that overrides a setting of this name."""
    return f"--{name.replace('_', '-')}"


BadUtf8 = Literal["error", "skip", "replace"]

Model = Annotated[str, typer.Option(help="Folder of a model or of a run.")]
Output = Annotated[Path | None, typer.Option(help="File to write.", show_default=STDOUT)]


def allow_replacing(given: bool) -> bool:
    """Note whether `--force` is given, for `check_output`."""
    from heedful.cli.output import REPLACES

    REPLACES.set(given)
    return given


def folder_to_read(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the folder of an option, and refuse one that is not there, or a file."""
    if value is not None and not value.is_dir():
        from heedful.storage.paths import no_folder

        raise InputError(f"{param.opts[0]} {no_folder(value)}")
    return value


def refuse_file_in_the_way(folder: Path, named: str) -> None:
    """Make sure that no file is in the way of a folder; `named` is what the user wrote, for messages."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise InputError(f"{named}: {'' if named.endswith(str(place)) else f'{place} '}is a file; name a folder")


def folder_to_write(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the folder of an option or an argument that is written to, and refuse one where a file is in the way."""
    if value is not None:
        refuse_file_in_the_way(
            value, f"{param.opts[0] if param.opts[0].startswith('-') else param.opts[0].upper()} {value}"
        )
    return value


Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting of the recipe, such as train.seed=2. Can be repeated."
    ),
]


Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the data files that the recipe names.",
        show_default="the folder of the recipe",
        callback=folder_to_read,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, with all digits.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace a file or folder that heedful did not write, or that was changed since.",
        callback=allow_replacing,
    ),
]
Device = Annotated[
    str, typer.Option(help="Device to compute on: cpu, cuda, cuda:1, mps, or auto (a GPU if there is one).")
]
Beam = Annotated[int | None, mirrored(KEYS.decode.beam)]
NBest = Annotated[int | None, mirrored(KEYS.decode.n_best, more="More than 1 needs --json.")]
MaxExtra = Annotated[int | None, mirrored(KEYS.decode.max_extra)]
Precision = Annotated[
    str,
    typer.Option(
        help="Number format of the weights: float32, or int8 (on a CPU), which needs less memory and changes results "
        "slightly. With 8-bit instructions (VNNI) int8 is faster for large models; on other processors it is slower."
    ),
]
TextsOrTable = Annotated[
    Path | None,
    typer.Option(
        "--input",
        help="File with a text on each line, or a table: .tsv, .csv or .jsonl. Each plain, .gz, .bz2 or .xz. "
        "- is standard input.",
    ),
]


class InputFormat(StrEnum):
    LINES = "lines"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"


InputForm = Annotated[
    InputFormat | None,
    typer.Option(
        "--input-format",
        help="Format of the input where its name does not say it, such as of a table on standard input.",
        show_default="by the file's name; lines of standard input",
    ),
]
SourceField = Annotated[
    str | None,
    typer.Option(
        "--column",
        "--source-field",
        help="Column or key of the text, if the input is a table.",
        show_default="the recipe's source_field, or the one that holds text",
    ),
]
PairField = Annotated[
    str | None,
    typer.Option(
        help="Column or key of the second text, if a row holds a pair of texts.", show_default="the recipe's pair_field"
    ),
]
