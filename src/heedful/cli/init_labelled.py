"""The part of `heedful init` that begins a classifier or a regression."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    check_free,
    folder_of,
    json_line,
    tell_lengths,
    tell_recipe,
    write,
    write_parts,
)
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.label_survey import LabelSurvey
    from heedful.data.labelled import Example

PARTS = ("train", "valid", "test")
SHARE = 10  # of so many texts one is held out for validation, and one for test
FEW = 1000  # examples
SHOWN = 20  # classes
RARE = 5  # examples of a class


def init_labelled(corpus: CorpusConfig, task: str, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of a classifier or a regression, and hold some text out.

    Raises:
        InputError: The text cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.label_proposal import propose_labelled
    from heedful.data.label_survey import survey_labelled
    from heedful.data.labelled import labels_of
    from heedful.data.proposal import Corpora

    folder = folder_of(Path(corpus.source), out, task)
    check_free(folder)
    data = DataConfig(bad_utf8=bad_utf8, train=(corpus,))
    found = survey_labelled(corpus, data)
    tell_text(found, corpus, task)
    labels = labels_of(data) if task == "classification" else ()
    hold_out(found, corpus, data, folder / "data")
    fields = {"source_field": "text", **({"pair_field": "pair"} if found.is_pairs else {}), "target_field": "label"}
    corpora = Corpora(**{part: {"source": f"data/{part}.jsonl", **fields} for part in PARTS})
    texts = {"name": folder.resolve().name, "bad_utf8": bad_utf8}
    write(folder / "config.toml", propose_labelled(found, task, labels, texts, corpora))
    tell_recipe(load_recipe(folder), folder, "One text.\tAnother one." if found.is_pairs else None)


def hold_out(found: "LabelSurvey", corpus: CorpusConfig, data: DataConfig, folder: Path) -> None:
    """Write the three parts; no text is in two of them."""
    from heedful.data.label_survey import text_of
    from heedful.data.labelled import read_labelled
    from heedful.data.survey import split

    division = split(found.hashes, valid=True, test=True, share=SHARE)
    divided = division.divide(read_labelled(corpus, data), text_of, lambda example: bool(text_of(example).strip()))
    lines = ((part, (line_of(example),)) for part, example in divided)
    counts = write_parts(folder, lines, {part: (f"{part}.jsonl",) for part in PARTS}, "examples")
    if left := found.examples - counts.total():
        typer.echo(f"  and {left:,} left out, as their text is held out already")


def line_of(example: "Example") -> str:
    """An example as a line of JSON."""
    pair = {} if example.pair is None else {"pair": example.pair}
    return json_line({"text": example.text, **pair, "label": example.label})


def tell_text(found: "LabelSurvey", corpus: CorpusConfig, task: str) -> None:
    """Say what the examples look like, and what is odd about them.

    Raises:
        InputError: There is one class only.
    """
    unit = "characters" if found.side.is_spaceless else "words"
    kind = "pairs" if found.is_pairs else "texts"
    pair = f", its second one in {corpus.pair_field!r}" if found.is_pairs else ""
    fields = f"text in {corpus.source_field!r}{pair}, label in {corpus.target_field!r}"
    typer.echo(f"{counted(found.examples, kind)}: {fields}")
    tell_lengths("", f"{unit} a text", found.side.characters if found.side.is_spaceless else found.side.words)
    if found.side.characters.max() > 100_000:
        typer.echo(f"  the longest text has {found.side.characters.max():,} characters: line {found.longest_at:,}")
    if task == "classification":
        if len(found.labels) < 2:
            raise InputError(
                f"{corpus.source}: all labels in {corpus.target_field!r} are {next(iter(found.labels))!r}, and "
                "classification needs two classes; name another column with --target-field"
            )
        shown = [f"{label} {count:,}" for label, count in found.labels.most_common(SHOWN)]
        typer.echo(f"  {len(found.labels):,} classes: {', '.join(shown)}{', ...' * (len(found.labels) > SHOWN)}")
        if rare := [label for label, count in found.labels.items() if count < RARE]:
            typer.echo(
                f"  too rare to be learned, with fewer than {RARE} examples: {', '.join(rare[:SHOWN])}; typing slips?"
            )
    if found.empty:
        typer.echo(f"  {counted(found.empty, 'examples')} without text; remove what is not wanted")
    if found.examples < FEW:
        typer.echo(
            f"  fewer than {FEW:,} examples teach little from scratch; begin with a model that has read text before "
            "(--set train.start=RUN), or find more"
        )
