"""`heedful fill`: predict words for the gaps ([MASK]) of a text, or the masked patches of an image."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.evaluate import recipe_of
from heedful.cli.files import FileOptions, ReadFiles, SkipBad, Truncated, named_files
from heedful.cli.inputs import input_file, input_lines, place_of, progress_of, texts_or_stdin, warning_if_unknown
from heedful.cli.options import STDIN, Device, Force, InputForm, Model, Output, SourceField, TextsOrTable
from heedful.cli.output import check_output, writing
from heedful.cli.tables import (
    check_columns,
    check_json_output,
    given_texts,
    one_line,
    wanted_texts,
    whole_lines,
    writing_answers,
)
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.filler import MaskCandidate


def fill_pictures(model: str, names: list[str] | None, output: Path | None, device: str, reading: FileOptions) -> None:
    """Write a PNG with a row for each picture: as it is, with patches hidden, and with these filled in.

    Args:
        model: A model folder or a run.
        names: Pictures, or folders of pictures.
        output: The PNG to write.
        device: The device to compute on.
        reading: How files are read.

    Raises:
        InputError: No pictures are named, some cannot be read, or `output` is not the name of a PNG, or is one
            of the pictures.
    """
    import numpy as np

    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.media.images import png
    from heedful.predictors.patch_filler import GAP, WHITE, PatchFiller

    prepare_process()
    loaded = reading.applied(model, load_model(model, device))
    filler = loaded.use_as(PatchFiller)
    if output is None or output.suffix.lower() != ".png":
        raise InputError("a model of masked patches fills in pictures: name the one to write, --output FILE.png")
    files = ReadFiles(named_files(names, loaded.recipe), filler.reader.decoded)
    check_output(output, *files.files)
    with show_progress("filling", "files", len(files.files)) as progress:
        rows = []
        for found in filler.answers(files):
            rows.append(np.pad(found.side_by_side(), ((0, GAP), (0, 0), (0, 0)), constant_values=WHITE))
            progress.advance()
    if rows:
        with writing(output) as stream:
            stream.write(png(np.concatenate(rows)))
        typer.echo(f"{output}: {counted(len(rows), 'pictures')}, each as it is, with hidden patches, and filled in")
    files.check(skip_bad=reading.skip_bad)


COUNT = 5  # candidates for each gap


def fill(
    model: Model,
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Texts with gaps; or pictures.", show_default=STDIN, callback=texts_or_stdin),
    ] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    output: Output = None,
    count: Annotated[int | None, typer.Option(min=1, help="Candidates for each gap.", show_default=str(COUNT))] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON list for each text: for each gap, a list of candidates.")
    ] = False,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    """Fill gaps in texts with a masked language model (BERT): the most likely words, with their probabilities.

    A gap is written [MASK]: heedful fill "The man [MASK] a bike." --model RUN

    A model of masked patches fills in pictures, of which it hides patches at
    random: heedful fill cat.png --model RUN --output filled.png writes each
    picture as it is, as the model saw it, and filled in, side by side.

    In a table, the texts are read from the column that the model's recipe
    names or, if the table does not have it, that `heedful init` would take for
    the text. An output file whose name ends in .csv, .tsv or .jsonl is a table:
    the columns of the input, the text with the most likely words as "filled",
    and "candidates", as with --json.
    """
    from heedful.checkpoint import load_model
    from heedful.machine import prepare_process
    from heedful.predictors.filler import Filler

    reading = FileOptions(skip_bad, truncated)
    reading.check(model, recipe := recipe_of(model))
    if recipe.data.modality == "image":
        given = {"--input": source, "--input-format": input_form, "--column": source_field}
        refuse_text_options({**given, "--count": count, "--json": as_json})
        fill_pictures(model, text, output, device, reading)
        return
    check_output(output, source)
    check_json_output(output, as_json=as_json)
    source = input_file(text, source, input_form)
    check_columns(source, "--input", source_field)
    lines = whole_lines(input_lines(text, source))
    prepare_process()
    loaded = load_model(model, device)
    filler = loaded.use_as(Filler)
    given = given_texts(lines, source, wanted_texts(loaded.recipe, source_field))
    rows = warning_if_unknown(given.rows, filler.tokenizer, lambda row: without_gaps(row.texts[0]))
    columns = () if as_json else ("filled", "candidates")
    with (
        progress_of("filling", text, source, output, f"{given.unit}s", count=given.count) as progress,
        writing_answers(output, source, given, columns) as results,
    ):
        for row in progress.over(rows):
            line = row.texts[0]
            try:
                gaps = filler.fill(line, count or COUNT)
            except InputError as error:
                raise InputError(f"{place_of(source, row.line)}: {error}") from error
            candidates = [[asdict(candidate) for candidate in gap] for gap in gaps]
            if as_json:
                shown = json.dumps(candidates, ensure_ascii=False)
            else:
                shown = f"{one_line(line)}\n" + "\n".join(table(gap) for gap in gaps)
            results.write(row, shown, {"filled": filled(line, gaps), "candidates": candidates})


def filled(text: str, gaps: "list[list[MaskCandidate]]") -> str:
    """Return a text with the most likely word in each of its gaps."""
    from heedful.predictors.filler import GAP

    words = iter(gaps)
    return GAP.sub(lambda gap: " " * gap[0].startswith(" ") + next(words)[0].text.strip(), text)


def without_gaps(text: str) -> str:
    """Return a text without its gaps, which are not words of any vocabulary."""
    from heedful.predictors.filler import GAP

    return " ".join(part.strip() for part in GAP.split(text)).strip()


def refuse_text_options(given: dict[str, object]) -> None:
    """Refuse options that are for texts only.

    Raises:
        InputError: one is given.
    """
    if named := [option for option, value in given.items() if value]:
        raise InputError(f"{' and '.join(named)}: for gaps in texts, and this model fills in pictures; leave it out")


def table(gap: list["MaskCandidate"]) -> str:
    """Format the candidates for a gap ([MASK]) as lines: probability and text."""
    return "".join(f"{candidate.probability:7.2%}  {one_line(candidate.text)}\n" for candidate in gap)
