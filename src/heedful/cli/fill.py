"""`heedful fill`: predict the words for the gaps ([MASK]) of a text with a masked language model (BERT)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.inputs import input_lines, progress_of, warning_if_unknown
from heedful.cli.options import STDIN, Device, Model, Output
from heedful.cli.output import check_output, writing_results

if TYPE_CHECKING:
    from heedful.decode.filler import MaskCandidate


def fill(
    model: Model,
    text: Annotated[list[str] | None, typer.Argument(help="Texts with gaps.", show_default=STDIN)] = None,
    source: Annotated[Path | None, typer.Option("--input", help="File with a text on each line; plain or .gz.")] = None,
    output: Output = None,
    count: Annotated[int, typer.Option(min=1, help="Candidates for each gap.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON list for each text: for each gap, a list of candidates.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Fill gaps in texts with a masked language model (BERT): the most likely words, with their probabilities.

    A gap is written [MASK]: heedful fill "The man [MASK] a bike." --model RUN
    """
    from heedful.checkpoint import load_model
    from heedful.decode.filler import Filler
    from heedful.machine import prepare_process

    check_output(output, source)
    texts = input_lines(text, source)
    prepare_process()
    filler = load_model(model, device).use_as(Filler)
    texts = warning_if_unknown(texts, filler.tokenizer)
    with progress_of("filling", text, source, output) as progress, writing_results(output, source) as results:
        for line in progress.over(texts):
            gaps = filler.fill(line, count)
            if as_json:
                shown = json.dumps([[asdict(candidate) for candidate in gap] for gap in gaps], ensure_ascii=False)
            else:
                shown = f"{line}\n" + "\n".join(table(gap) for gap in gaps)
            results.write(shown)


def table(gap: list["MaskCandidate"]) -> str:
    """Format the candidates for a gap ([MASK]) as lines: probability and text."""
    return "".join(f"{candidate.probability:7.2%}  {candidate.text}\n" for candidate in gap)
