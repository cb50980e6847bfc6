"""Typer options that several commands share: model, output, device, precision, input tables and columns."""

import logging
import operator
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from heedful.config.keys import KEYS, description_of, hint_of
from heedful.config.setting import bounds, range_text
from heedful.errors import InputError

STDIN, STDOUT, MODELS = "standard input", "standard output", "the model's"  # defaults as help shows them


def mirrored(key: object, *spellings: str, more: str = "", show_default: str = MODELS) -> Any:
    """Make the option that overrides a setting of a model's recipe; its help is the description of the setting."""
    text, others = description_of(str(key))
    text = re.sub(r" Not set: [^.]*\.", "", text)  # the model's value applies then
    text = re.sub(r"`(\w+)`", lambda name: option_of(name[1]) if name[1] in others else name[0], text)
    help = f"{text} {more}".rstrip().replace("`", "")
    return typer.Option(*spellings, help=help, show_default=show_default, callback=range_check(str(key)))


def range_check(key: str) -> Callable[[typer.CallbackParam, Any], Any] | None:
    """Return a callback that rejects a number outside the range of a setting; None for a setting without a range."""
    limits = bounds(hint_of(key))

    def check(param: typer.CallbackParam, value: Any) -> Any:
        if value is None:
            return None
        if broken := {name: limit for name, limit in limits.items() if not getattr(operator, name)(value, limit)}:
            raise InputError(f"{param.opts[0]} must be {range_text(broken)}, but is {value:,}")
        return value

    return check if limits else None


COPIED: dict[str, str] = {}  # paths of temporary copies of inputs, and the names to show for them in messages


def name_copied(message: str) -> str:
    """Name the user's file in a message instead of its temporary copy."""
    for copy, original in COPIED.items():
        message = message.replace(copy, original)
    return message


def option_of(name: str) -> str:
    """Return the option that overrides the setting with this name."""
    return f"--{name.replace('_', '-')}"


BadUtf8 = Literal["error", "skip", "replace"]

MODEL_HELP = "Model or run folder, the name of a bundled model, or hf:OWNER/NAME on the Hugging Face Hub."
Model = Annotated[str, typer.Option(help=MODEL_HELP)]
ENSEMBLE_HELP = "Can be repeated for an ensemble: models with the same tokenizers, whose probabilities are averaged."
FurtherModels = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="Further model, for an ensemble of models that write text with the same tokenizers. Can be repeated.",
    ),
]
Output = Annotated[Path | None, typer.Option(help="File to write.", show_default=STDOUT)]


def allow_replacing(force: bool) -> bool:
    """Record whether `--force` was given, for `check_output`."""
    from heedful.cli.output import REPLACES

    REPLACES.set(force)
    return force


def report_choices(verbose: bool) -> bool:
    """Log messages of level INFO to standard error if `--verbose` was given; otherwise, only warnings."""
    logging.getLogger("heedful").setLevel(logging.INFO if verbose else logging.NOTSET)
    if logging.lastResort:
        logging.lastResort.setLevel(logging.INFO if verbose else logging.WARNING)
    return verbose


def folder_to_read(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the folder given for an option; reject a path that does not exist or is a file."""
    if value is not None and not value.is_dir():
        from heedful.storage.paths import no_folder

        raise InputError(f"{param.opts[0]} {no_folder(value)}")
    return value


def reject_file_in_the_way(folder: Path, words: str) -> None:
    """Reject a folder whose path, or the path of a parent, is a file; `words` is what the user typed, for messages."""
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise InputError(f"{words}: {'' if words.endswith(str(path)) else f'{path} '}is a file; give a folder")


def folder_to_write(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the output folder given for an option or an argument; reject it if a file is in the way."""
    if value is not None:
        name = param.opts[0]
        reject_file_in_the_way(value, f"{name if name.startswith('-') else name.upper()} {value}")
    return value


def run_folder(param: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the folder given for a run; reject a file, and the folder of a comparison."""
    if value is not None and (value / "report.json").is_file():
        raise InputError(f"{param.opts[0]} {value}: is the folder of a comparison; choose another folder for the run")
    return folder_to_write(param, value)


def web_address(param: typer.CallbackParam, value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise InputError(f"{param.opts[0]} {value}: is not an address; give one that begins with http:// or https://")
    return value


Mirror = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of another server to download from, which has the same data sets.",
        show_default="the addresses of the data sets",
        callback=web_address,
    ),
]


Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting of the recipe, such as train.seed=2. Can be repeated."
    ),
]


Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the recipe's data files.",
        show_default="the recipe's folder",
        callback=folder_to_read,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, at full precision.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace a file or folder even if it was not written by heedful, or was changed since.",
        callback=allow_replacing,
    ),
]
Device = Annotated[str, typer.Option(help="Device to run on: cpu, cuda, cuda:1, mps, or auto (a GPU if there is one).")]
Beam = Annotated[int | None, mirrored(KEYS.decode.beam)]
NBest = Annotated[int | None, mirrored(KEYS.decode.n_best, more="More than 1 needs --json.")]
MaxExtra = Annotated[int | None, mirrored(KEYS.decode.max_extra)]
Precision = Annotated[
    str,
    typer.Option(
        help="Number format of the weights: float32; or int8, which needs a quarter of the memory, is usually faster "
        "for many texts, and changes results slightly. int8 is supported only by the CTranslate2 engine."
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Inference engine: torch; ctranslate2, which is faster on a CPU and starts sooner; or auto, which is "
        "ctranslate2 wherever its results are identical."
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Report on standard error which engine is used, and why.", callback=report_choices),
]
TextsOrTable = Annotated[
    Path | None,
    typer.Option(
        "--input",
        help="File with one text per line, or a table: .tsv, .csv or .jsonl. Files may be compressed: .gz, .bz2 or "
        ".xz. - is standard input.",
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
        help="Format of the input if its name does not show it, for example for a table on standard input.",
        show_default="from the file name; lines for standard input",
    ),
]
SourceField = Annotated[
    str | None,
    typer.Option(
        "--column",
        "--source-field",
        help="Column or key of the text, if the input is a table.",
        show_default="the recipe's source_field, or the one with text",
    ),
]
PairField = Annotated[
    str | None,
    typer.Option(
        help="Column or key of the second text, if rows contain text pairs.", show_default="the recipe's pair_field"
    ),
]
