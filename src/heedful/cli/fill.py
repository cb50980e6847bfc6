"""`heedful fill`: predict words for the gaps ([MASK]) of a text, or the hidden patches of a picture."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.evaluate import recipe_of
from heedful.cli.files import FileOptions, SkipBad, Truncated
from heedful.cli.fill_pictures import fill_pictures
from heedful.cli.inputs import input_lines, place_of, progress_of, warning_if_unknown
from heedful.cli.options import STDIN, Device, Force, Model, Output
from heedful.cli.output import check_output, writing_results
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.decode.filler import MaskCandidate

COUNT = 5  # candidates for each gap


def fill(
    model: Model,
    text: Annotated[list[str] | None, typer.Argument(help="Texts with gaps; or pictures.", show_default=STDIN)] = None,
    source: Annotated[Path | None, typer.Option("--input", help="File with a text on each line; plain or .gz.")] = None,
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
    """
    from heedful.checkpoint import load_model
    from heedful.decode.filler import Filler
    from heedful.machine import prepare_process

    check_output(output, source)
    reading = FileOptions(skip_bad, truncated)
    reading.check(model, recipe := recipe_of(model))
    if recipe.data.modality == "image":
        refuse_text_options({"--input": source, "--count": count, "--json": as_json})
        fill_pictures(model, text, output, device, reading)
        return
    texts = input_lines(text, source)
    prepare_process()
    filler = load_model(model, device).use_as(Filler)
    texts = warning_if_unknown(texts, filler.tokenizer, without_gaps)
    with progress_of("filling", text, source, output) as progress, writing_results(output, source) as results:
        for number, line in enumerate(progress.over(texts), start=1):
            try:
                gaps = filler.fill(line, count or COUNT)
            except InputError as error:
                raise InputError(f"{place_of(source, number)}: {error}") from error
            if as_json:
                shown = json.dumps([[asdict(candidate) for candidate in gap] for gap in gaps], ensure_ascii=False)
            else:
                shown = f"{line}\n" + "\n".join(table(gap) for gap in gaps)
            results.write(shown)


def without_gaps(text: str) -> str:
    """Return a text without its gaps, which are not words of any vocabulary."""
    from heedful.decode.filler import GAP

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
    return "".join(f"{candidate.probability:7.2%}  {candidate.text}\n" for candidate in gap)
