"""`heedful fill`: what stands in the gaps of a text."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.decode.filler import Candidate


def fill(
    text: Annotated[list[str] | None, typer.Argument(help="Texts with [MASK].", show_default="standard input")] = None,
    model: Annotated[str, typer.Option(help="A model folder or a run.", show_default=False)] = "",
    source: Annotated[Path | None, typer.Option("--input", help="A file, one text a line; plain or .gz.")] = None,
    output: Annotated[Path | None, typer.Option(help="Where to write.", show_default="standard output")] = None,
    count: Annotated[int, typer.Option(min=1, help="Candidates for each gap.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="A line is a JSON list with the candidates of each gap.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, mps or auto.")] = "auto",
) -> None:
    """Fill the gaps of texts with a masked language model: the likeliest words and their probabilities.

    A gap is written [MASK]: heedful fill "The man [MASK] a bike." --model RUN
    """
    from heedful.checkpoint import load_model
    from heedful.cli.translate import lines, writing
    from heedful.decode.filler import Filler
    from heedful.machine import choose_device

    if not model:
        raise InputError("--model is missing; give the folder of a model or of a run")
    texts = lines(text, source)
    filler = load_model(model, str(choose_device(device))).use_as(Filler)
    with writing(output) as stream:
        for line in texts:
            gaps = filler.fill(line, count)
            if as_json:
                shown = json.dumps([[asdict(candidate) for candidate in gap] for gap in gaps], ensure_ascii=False)
            else:
                shown = f"{line}\n" + "\n".join(table(gap) for gap in gaps)
            stream.write(f"{shown}\n".encode())
            stream.flush()


def table(gap: list["Candidate"]) -> str:
    """The candidates of a gap, a line for each, and a blank line."""
    return "".join(f"{candidate.probability:7.2%}  {candidate.text}\n" for candidate in gap)
