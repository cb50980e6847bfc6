"""`heedful predict` with a model of pictures, sounds or videos: the class of each file."""

from pathlib import Path

import typer

from heedful.cli.files import FileOptions, ReadFiles, files_in_table, named_files
from heedful.cli.inputs import shows_bar
from heedful.cli.output import check_output, json_of_files
from heedful.cli.table_output import check_json_output, writing_file_answers
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted


def predict_files(
    model: str,
    names: list[str],
    source: Path | None,
    field: str | None,
    output: Path | None,
    device: str,
    reading: FileOptions,
    *,
    as_json: bool,
) -> None:
    """Write the class of each file, in order; files that cannot be read are named at the end.

    Args:
        model: A model folder or a run.
        names: Files, folders of files, and tables of files.
        source: A further table of files, which `--input` names.
        field: The column of that table that names the files; None: the one of the recipe.
        output: The file to write; None: standard output.
        device: The device to compute on.
        reading: How files are read.
        as_json: True for a JSON object for each file.

    Raises:
        InputError: No files are named, there are none, some cannot be read, or the output would overwrite one; or
            `source` is no table.
    """
    from heedful.checkpoint import load_model
    from heedful.data.readers.unlabelled import is_table
    from heedful.machine import prepare_process
    from heedful.predict.media_classifier import MediaClassifier

    check_json_output(output, as_json=as_json)
    check_output(output, *map(Path, names))
    if source and not is_table(source):
        raise InputError(
            f"--input {source}: {model} reads files, not lines; name them behind the options, or in a table whose name "
            "ends in .tsv, .csv or .jsonl"
        )
    prepare_process()
    loaded = reading.applied(model, load_model(model, device))
    predictor = loaded.use_as(MediaClassifier)
    named = named_files(names or ["-"], loaded.recipe) if names or not source else []
    tabled = files_in_table(source, loaded.recipe, field) if source else []
    files = ReadFiles([*named, *tabled], predictor.reader.parts)
    check_output(output, *files.files)
    long: list[str] = []
    with (
        show_progress("predicting", "files", len(files.files), bar=shows_bar(output)) as progress,
        writing_file_answers(output, () if as_json else ("label",)) as results,
    ):
        for number, answer in enumerate(predictor.answers(files)):
            file = files.read[number]
            facts = {"file": str(file), "label": answer.label, "probabilities": answer.probabilities}
            if answer.windows > 1:
                facts["windows"] = answer.windows
                long.append(f"{file} ({answer.windows:,} windows)")
            if as_json:
                results.write_line(json_of_files(facts))
            else:
                results.write_file(file, str(answer), {"label": answer.label})
            progress.advance()
    if long:
        most = f"audio.max_seconds = {loaded.recipe.audio.max_seconds:g}"
        typer.echo(
            f"heedful: {counted(len(long), 'sounds')} longer than {most}: "
            f"read in windows of that length, whose probabilities are averaged; the first: {long[0]}",
            err=True,
        )
    files.check(skip_bad=reading.skip_bad)
