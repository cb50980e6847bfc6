"""What `heedful init` does for all tasks: the output folder, the recipe in it, and the next commands to type."""

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from heedful.config.load import load_recipe
from heedful.errors import InputError
from heedful.storage.atomic import atomic_file, atomic_folder, named_write_errors
from heedful.tools.proposals.proposal import Machine
from heedful.wording import counted, singular

if TYPE_CHECKING:
    from heedful.data.readers.drop_report import DropReport
    from heedful.tools.proposals.text_statistics import TextStatistics

COMPLETE = ".complete-recipe"  # subfolder of an output folder: a complete recipe that is about to be moved up
LONG = 100_000  # characters; a longer line is reported


def free_folder(source: Path, out: Path | None, task: str) -> Path:
    """Choose a free output folder: `out` if given, otherwise a folder named after the text and the task."""
    folder = out or Path(f"{source.resolve().name.split('.')[0]}-{task.replace('_', '-')}")
    check_free(folder)
    return folder


def check_free(folder: Path) -> None:
    """Reject an output folder that already has a recipe or data, so that no file is overwritten."""
    if (folder / COMPLETE).is_dir():  # left by an `init` that was killed
        move_up(folder)
    for path in (folder / "config.toml", folder / "data"):
        if path.exists():
            raise InputError(f"{path} already exists and was not overwritten; choose another folder with --out")


@contextmanager
def new_recipe(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder for config.toml and data/; at the end, both are moved to `folder`, or neither is.

    What a killed process leaves behind has a hidden name; the next `init` removes it or, if complete, moves it up.
    """
    exists = folder.exists()
    with named_write_errors(folder), atomic_folder(folder / COMPLETE if exists else folder) as writer:
        yield writer.path
    if exists:
        with named_write_errors(folder):
            move_up(folder)


def move_up(folder: Path) -> None:
    """Move a complete recipe from its hidden folder up into the output folder, config.toml last."""
    for path in sorted((folder / COMPLETE).iterdir(), key=lambda path: path.name == "config.toml"):
        path.rename(folder / path.name)
    (folder / COMPLETE).rmdir()


def write(file: Path, text: str) -> None:
    with named_write_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file) as stream:
            stream.write(text.encode())


def write_parts(
    folder: Path, parts: Iterable[tuple[str, tuple[str, ...]]], names: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """Write lines to the files of their parts (train, valid, test), all or none; return the number of lines in each."""
    counts: Counter[str] = Counter()
    with named_write_errors(folder), atomic_folder(folder) as writer, ExitStack() as stack:
        streams = {
            part: [stack.enter_context((writer.path / name).open("wb")) for name in files]
            for part, files in names.items()
        }
        for part, lines in parts:
            counts[part] += 1
            for stream, line in zip(streams[part], lines, strict=True):
                stream.write(line.encode() + b"\n")
    return {part: counts[part] for part in names}


def json_line(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False)


def relative_path(path: str | Path, folder: Path) -> str:
    """Return the path of a file relative to a recipe folder, which may be a link or lie below one."""
    relative = os.path.relpath(os.path.abspath(path), folder.resolve())
    try:
        relative.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{relative!a}: the name is not valid UTF-8; rename the file") from error
    return relative


def this_machine() -> Machine:
    """Describe this machine's hardware, to size a model for it: cores, bfloat16 support, GPU memory."""
    import torch

    from heedful.machine import choose_precision

    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        return Machine(os.cpu_count() or 1, torch.cuda.is_bf16_supported(), memory)
    return Machine(os.cpu_count() or 1, choose_precision(torch.device("cpu")).precision == "bfloat16")


@contextmanager
def printed_at_the_end() -> Iterator[None]:
    """Hold back what a block prints until it has succeeded, so that a rejected proposal is not printed."""
    output = StringIO()
    with redirect_stdout(output):
        yield
    typer.echo(output.getvalue(), nl=False)


def report_dropped(drops: "DropReport", *, copied: bool = False) -> None:
    """Print on standard error how many rows are left out and why; a header does not count."""
    from heedful.data.readers.drop_report import phrase

    for reason, count, first in drops.rows():
        if reason != "header":
            location = f"record {first.rpartition(' ')[2]}" if copied else first
            typer.echo(f"heedful: {counted(count, 'rows')} left out {phrase(reason)} (first: {location})", err=True)


def report_parts(
    folder: Path, counts: Mapping[str, int], unit: str, total: int, shared: str, example: str = ""
) -> None:
    """Print how many items are in each part (train, valid, test), and how many are left out of all parts.

    An item is left out if it has its text or other content in common with a held-out item; `shared` names this content.
    `example` describes an item that is left out.
    """
    typer.echo(f"\nwritten to {folder}:")
    for part, count in counts.items():
        typer.echo(f"  {part:6}{count:>11,} {singular(unit) if count == 1 else unit}")
    if rest := total - sum(counts.values()):
        whose = "its" if rest == 1 else "their"
        typer.echo(f"  and {rest:,} left out, because {whose} {shared} is already held out{example}")


def lengths_of(texts: "TextStatistics") -> "tuple[str, np.ndarray]":
    """Return the unit in which to measure texts, which depends on their script, and the length of each text."""
    return ("characters", texts.characters) if texts.is_spaceless else ("words", texts.words)


def report_lengths(what: str, lengths: np.ndarray) -> None:
    """Print the median, the 99% quantile and the maximum of text lengths."""
    half, most, longest = np.quantile(lengths, [0.5, 0.99, 1]).astype(int)
    typer.echo(f"  {what}: median {half}, 99% up to {most}, longest {longest:,}")


def report_longest(item: str, characters: int, location: str) -> None:
    """Print where the longest item, such as a line, is located if it is suspiciously long."""
    if characters > LONG:
        typer.echo(f"  the longest {item} has {characters:,} characters: {location}")


def report_few(count: int, advised: int, unit: str, lesson: str, remedy: str = "add more text if you can") -> None:
    """Print a warning if there are fewer examples than advised; `lesson` is what a model learns from so few."""
    if count < advised:
        typer.echo(f"  with fewer than {advised:,} {unit}, a model learns {lesson}; {remedy}")


def listed(names: Iterable[str], most: int) -> str:
    """Join the first `most` names with commas; an ellipsis stands for any others."""
    names = list(names)
    return ", ".join([*names[:most], *["..."] * (len(names) > most)])


def script_of(script: str | None) -> str:
    return f"{script.capitalize()} script" if script else "unrecognised script"


def report_recipe(folder: Path, example: str | None = None, teacher: Path | None = None) -> None:
    """Print the model size of a recipe, and the next commands, which include distillation if there is a teacher."""
    from heedful.cli.config import summary
    from heedful.tasks import find_task
    from heedful.tasks.model_size import count_model, vocabulary_sizes

    recipe = load_recipe(folder)
    vocabs = vocabulary_sizes(recipe)
    total = count_model(recipe, *vocabs).total
    run = folder / "run"
    spec = find_task(recipe.task).spec
    typer.echo(f"\n{folder / 'config.toml'}: {summary(recipe, vocabs)}: up to {total / 1e6:.1f}M parameters")
    typer.echo("\nnext (training prints an estimate of its time as soon as it starts):")
    student = folder / "student" if teacher else folder
    lessons = [
        ["heedful", "train", str(teacher), "--out", f"{teacher}/run"],
        ["heedful", "distill", str(folder), "--teacher", f"{teacher}/run", "--out", str(student)],
    ]
    for command in (
        *(lessons if teacher else ()),
        ["heedful", "train", str(student), "--out", str(run)],
        ["heedful", "evaluate", str(run)],
        [*shlex.split(spec.command), "--model", str(run), *([example] if example else shlex.split(spec.example))],
    ):
        typer.echo(f"  {shlex.join(command)}")
