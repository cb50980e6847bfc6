"""The part of `heedful init` that begins a GPT or a BERT."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import BadUtf8, check_free, folder_of, tell_recipe, this_machine, write
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.proposal import Corpora
    from heedful.data.text_survey import TextSurvey

PARTS = {"train": (0.0, 0.9), "valid": (0.9, 0.95), "test": (0.95, 1.0)}
FEWEST = 2000  # characters
FEW = 300_000


def init_text(corpus: CorpusConfig, task: str, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of a language model that learns from running text, where it lies.

    Raises:
        InputError: The text cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.text_proposal import propose_bert, propose_gpt
    from heedful.data.text_survey import survey_text

    folder = folder_of(Path(corpus.source), out, task)
    check_free(folder)
    data = DataConfig(bad_utf8=bad_utf8)
    found = survey_text(corpus, data)
    tell_text(found)
    if found.characters < FEWEST:
        raise InputError(
            f"{corpus.source}: {counted(found.characters, 'characters')}: too few to learn from and to hold some out; "
            f"give at least {FEWEST:,}"
        )
    check_parts(corpus, data)
    propose = propose_gpt if task == "language_model" else propose_bert
    name = folder.resolve().name
    write(folder / "config.toml", propose(found, this_machine(), name, corpora_of(corpus, folder), bad_utf8))
    typer.echo("\ntrained on the first 90 % of each file, validated on the next 5 %, tested on the last 5 %")
    example = found.beginning if task == "language_model" else f"{found.beginning} [MASK]"
    tell_recipe(load_recipe(folder), folder, example)


def check_parts(corpus: CorpusConfig, data: DataConfig) -> None:
    """Whether each part has text.

    Raises:
        InputError: One has none.
    """
    from heedful.data.documents import read_documents

    for part, share in PARTS.items():
        if not any(document.text for document in read_documents(replace(corpus, part=share), data)):
            raise InputError(f"{corpus.source}: its {part} part, {share}, holds no text; give more text")


def corpora_of(corpus: CorpusConfig, folder: Path) -> "Corpora":
    """How a recipe in a folder names the parts of the text."""
    from heedful.data.proposal import Corpora

    source = {"source": os.path.relpath(corpus.source, folder)}
    if corpus.source_field != CorpusConfig.source_field:
        source["source_field"] = corpus.source_field
    return Corpora(**{part: {**source, "part": list(share)} for part, share in PARTS.items()})


def tell_text(found: "TextSurvey") -> None:
    """Say what the text looks like."""
    script = f"{found.script} script" if found.script else "a script without a filter"
    lines = counted(found.lines, "rows" if found.is_rows else "lines")
    paragraphs = "" if found.is_rows else f" in {counted(found.paragraphs, 'paragraphs')}"
    typer.echo(
        f"{counted(found.files, 'files')} of running text: {counted(found.characters, 'characters')}, "
        f"{len(found.letters):,} different, {script}\n"
        f"  {lines}{paragraphs}, {counted(found.words, 'words')}"
    )
    if found.longest > 100_000:
        typer.echo(f"  the longest line has {found.longest:,} characters: {found.longest_at}")
    if FEWEST <= found.characters < FEW:
        typer.echo(f"  fewer than {FEW:,} characters teach spelling rather than sense; find more text if you can")
