"""`heedful predict` with a model of pictures or sounds: the class of each file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.inputs import shows_bar
from heedful.cli.output import check_output, writing_results
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    import numpy as np

    from heedful.config.schema import DataConfig
    from heedful.predict.media_classifier import MediaClassifier


def predict_files(
    model: str, names: list[str] | None, source: Path | None, output: Path | None, device: str, *, as_json: bool
) -> None:
    """Write the class of each file, in order; a file that cannot be read is told on standard error.

    Args:
        model: A model folder or a run.
        names: Files, or folders of files.
        source: What `--input` names: nothing, as there are no lines to read.
        output: The file to write; None: standard output.
        device: The device to compute on.
        as_json: True for a JSON object for each file.

    Raises:
        InputError: No files are named, there are none, or some cannot be read.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predict.media_classifier import MediaClassifier

    if source or not names:
        raise InputError(f"{model} reads files: name them, or folders of them, behind the options")
    check_output(output)
    prepare_process()
    loaded = load_model(model, device)
    predictor = loaded.use_as(MediaClassifier)
    files = list(named_files(names, loaded.recipe.data))
    bad: list[InputError] = []
    with (
        show_progress("predicting", "files", len(files), bar=shows_bar(output)) as progress,
        writing_results(output, None, unit="file") as results,
    ):
        read: list[Path] = []
        answers = predictor.answers(readable(predictor, files, read, bad))
        for number, answer in enumerate(answers):
            facts = {"file": str(read[number]), **asdict(answer)}
            line = json.dumps(facts, ensure_ascii=False) if as_json else f"{read[number]}\t{answer}"
            results.write(line)
            progress.advance()
    if bad:
        raise InputError(f"{counted(len(bad), 'files')} of {len(files):,} cannot be read; the first: {bad[0]}")


def named_files(names: Sequence[str], data: "DataConfig") -> Iterator[Path]:
    """Yield the files that are named, and those below folders that are named.

    Raises:
        InputError: There is no such file or folder, or a folder holds no files of the right kind.
    """
    from heedful.data.media_files import ENDINGS, files_below

    for name in names:
        path = Path(name)
        if not path.exists():
            raise InputError(f"{name}: there is no such file or folder")
        files = files_below(path, data) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{name}: no file below this folder ends in {', '.join(ENDINGS[data.modality])}")
        yield from files


def readable(
    predictor: "MediaClassifier", files: Sequence[Path], read: list[Path], bad: list[InputError]
) -> "Iterator[np.ndarray]":
    """Yield the decoded contents of files; note those that were read, and the errors of those that cannot be read."""
    for file in files:
        try:
            decoded = predictor.reader.decoded(file)
        except InputError as error:
            bad.append(error)
            typer.echo(f"heedful: {error}", err=True)
        else:
            read.append(file)
            yield decoded
