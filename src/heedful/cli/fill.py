"""`heedful fill`: predict words for the gaps ([MASK]) of a text, or the masked patches of an image."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.answering import AnswerForm, TextCommand, check_use, load, recipe_of
from heedful.cli.files import FileOptions, ReadFiles, SkipBad, TruncatedImages, named_files
from heedful.cli.inputs import place_of, texts_argument, texts_of, warning_if_unknown
from heedful.cli.options import Device, Force, InputForm, Model, Output, SourceField, TextsOrTable
from heedful.cli.output import check_output, one_line, writing
from heedful.data.readers.labelled import WholeRow
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.predictors.filler import MaskCandidate
    from heedful.progress import ProgressReporter

    FilledText = tuple[str, list[list[MaskCandidate]]]

COUNT = 5  # candidates per gap


def fill(
    model: Model,
    text: Annotated[list[str] | None, texts_argument("Texts with gaps, or image files.")] = None,
    source: TextsOrTable = None,
    input_form: InputForm = None,
    source_field: SourceField = None,
    output: Output = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Number of candidates per gap.", show_default=str(COUNT))
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON list for each text: for each gap, a list of candidates.")
    ] = False,
    skip_bad: SkipBad = False,
    truncated: TruncatedImages = False,
    device: Device = "auto",
    _force: Force = False,
) -> None:
    """Fill gaps in texts with a masked language model (BERT): the most likely words, with their probabilities.

    A gap is written [MASK]: heedful fill "The man [MASK] a bike." --model RUN

    A masked-patch model fills in images after masking random patches: heedful
    fill cat.png --model RUN --output filled.png writes each image unchanged,
    with masked patches, and filled in, side by side.

    In a table, the texts are read from the column that the model's recipe
    names or, if the table does not have it, from the one that `heedful init`
    would choose as the text. An output file whose name ends in .csv, .tsv or
    .jsonl is a table: the columns of the input, the text with the most likely
    words as "filled", and "candidates", as with --json.
    """
    reading = FileOptions(skip_bad, truncated)
    check_use(model, recipe := recipe_of(model), "heedful fill")
    reading.check(model, recipe)
    if recipe.data.modality == "image":
        options = {
            "--input": source,
            "--input-format": input_form,
            "--column": source_field,
            "--count": count,
            "--json": as_json,
        }
        if names := [option for option, value in options.items() if value]:
            verb, pronoun = ("is", "it") if len(names) == 1 else ("are", "them")
            raise InputError(
                f"{' and '.join(names)} {verb} for gaps in texts, but {model} fills in images; leave {pronoun} out"
            )
        fill_images(model, text, output, device, reading)
    else:
        command = TextCommand("filling", text, source, input_form, output, source_field, as_json=as_json)
        fill_texts(command, model, source_field, count or COUNT, device)


def fill_texts(command: TextCommand, model: str, source_field: str | None, count: int, device: str) -> None:
    """Write each text with the `count` most likely candidates for each of its gaps."""
    from heedful.predictors.filler import GAP, Filler

    loaded = load(model, device)
    filler = loaded.use_as(Filler)

    def without_gaps(row: "WholeRow") -> str:  # gaps are not in any vocabulary
        return " ".join(part.strip() for part in GAP.split(row.texts[0])).strip()

    def answers(rows: "Iterator[WholeRow]", progress: "ProgressReporter") -> "Iterator[FilledText]":
        for row in progress.over(warning_if_unknown(rows, filler.tokenizer, without_gaps)):
            try:
                yield row.texts[0], filler.fill(row.texts[0], count)
            except InputError as error:
                raise InputError(f"{place_of(command.source, row.line)}: {error}") from error

    def lines(answer: "FilledText") -> str:
        candidates = ("".join(f"{one.probability:7.2%}  {one_line(one.text)}\n" for one in gap) for gap in answer[1])
        return f"{one_line(answer[0])}\n" + "\n".join(candidates)

    def as_dicts(answer: "FilledText") -> list[list[dict[str, Any]]]:
        return [[asdict(candidate) for candidate in gap] for gap in answer[1]]

    def cells(answer: "FilledText") -> dict[str, object]:
        words = iter(answer[1])
        filled = GAP.sub(lambda gap: " " * gap[0].startswith(" ") + next(words)[0].text.strip(), answer[0])
        return {"filled": filled, "candidates": as_dicts(answer)}

    form = AnswerForm[Any](("filled", "candidates"), lines, cells, as_dicts)
    command.answer(command.rows(texts_of(loaded.recipe, source_field)), answers, form)


def fill_images(model: str, names: list[str] | None, output: Path | None, device: str, reading: FileOptions) -> None:
    """Write a PNG with a row for each image: the original, with masked patches, and with the patches filled in."""
    import numpy as np

    from heedful.media.images import png
    from heedful.predictors.patch_filler import GAP, WHITE, PatchFiller

    if output is None or output.suffix.lower() != ".png":
        raise InputError(f"{model} fills in images; give a file for the result, as in --output FILE.png")
    loaded = reading.applied(model, load(model, device))
    filler = loaded.use_as(PatchFiller)
    files = ReadFiles(named_files(names, loaded.recipe), filler.reader.decoded)
    check_output(output, *files.files)
    with show_progress("filling", "files", len(files.files)) as progress:
        rows = [
            np.pad(answer.side_by_side(), ((0, GAP), (0, 0), (0, 0)), constant_values=WHITE)
            for answer in progress.over(filler.answers(files))
        ]
    if rows:
        with writing(output) as stream:
            stream.write(png(np.concatenate(rows)))
        typer.echo(f"{output}: {counted(len(rows), 'images')}, each unchanged, with masked patches, and filled in")
    files.check(skip_bad=reading.skip_bad)
