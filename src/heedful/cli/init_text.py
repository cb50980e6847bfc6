"""`heedful init` for running text: the recipe of a GPT or a BERT."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    free_folder,
    new_recipe,
    relative_path,
    script_of,
    tell_longest,
    tell_recipe,
    this_machine,
    write,
)
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.proposals.proposal import Corpora
    from heedful.data.proposals.text_survey import TextSurvey

PARTS = {"train": (0.0, 0.9), "valid": (0.9, 0.95), "test": (0.95, 1.0)}
FEWEST = 2000  # characters; a shorter text is refused
FEW = 300_000  # characters; with fewer there is a warning


def init_text(corpus: CorpusConfig, task: str, out: Path | None, bad_utf8: BadUtf8, *, copied: bool = False) -> None:
    """Write the recipe of a GPT or a BERT that learns from running text, which stays in place unless it is copied.

    Args:
        corpus: The file or the folder, and the column of a table.
        task: "language_model" or "masked_lm".
        out: The output folder; None: it is named after the text.
        bad_utf8: What happens to bad UTF-8.
        copied: True copies the file into the output folder.

    Raises:
        InputError: The text cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.proposals.proposal import Texts
    from heedful.data.proposals.text_proposal import propose_bert, propose_gpt
    from heedful.data.proposals.text_survey import survey_text
    from heedful.data.readers.documents import document_lines

    folder = free_folder(Path(corpus.source), out, task)
    data = DataConfig(bad_utf8=bad_utf8)
    with show_progress(f"reading {corpus.source}", "lines") as progress:
        found = survey_text(progress.over(document_lines(corpus, data)), corpus.source)
    tell_text(found)
    if found.characters < FEWEST:
        raise InputError(
            f"{corpus.source}: {counted(found.characters, 'characters')}: too few to learn from and to hold some out; "
            f"give at least {FEWEST:,}"
        )
    with show_progress(f"dividing {corpus.source}", "parts", len(PARTS)) as progress:
        for part in progress.over(PARTS):
            check_part(part, corpus, data)
    text, copy = Path(corpus.source), Path("data", Path(corpus.source).name)
    corpus = replace(corpus, source=str(folder / copy)) if copied else corpus
    propose = propose_gpt if task == "language_model" else propose_bert
    texts = Texts(folder.resolve().name, bad_utf8, corpora_of(corpus, folder))
    recipe = propose(found, this_machine(), texts)
    with new_recipe(folder) as place:
        if copied:
            write(place / copy, text.read_text(encoding="utf-8"))
        write(place / "config.toml", recipe)
    typer.echo("\ntrained on the first 90 % of each file, validated on the next 5 %, tested on the last 5 %")
    example = found.beginning if task == "language_model" else f"{found.beginning} [MASK]"
    tell_recipe(load_recipe(folder), folder, example)


def check_part(part: str, corpus: CorpusConfig, data: DataConfig) -> None:
    """Make sure that the train, valid or test part of a running text is not empty.

    Raises:
        InputError: The part holds no text.
    """
    from heedful.data.readers.documents import read_documents

    share = PARTS[part]
    if not any(document.text for document in read_documents(replace(corpus, part=share), data)):
        raise InputError(f"{corpus.source}: its {part} part, {share}, holds no text; give more text")


def corpora_of(corpus: CorpusConfig, folder: Path) -> "Corpora":
    """Return the recipe tables that name the train, valid and test parts of a text, relative to the recipe's folder."""
    from heedful.data.proposals.proposal import Corpora

    source = {"source": relative_path(corpus.source, folder)}
    if corpus.source_field != CorpusConfig.source_field:
        source["source_field"] = corpus.source_field
    return Corpora(**{part: {**source, "part": list(share)} for part, share in PARTS.items()})


def tell_text(found: "TextSurvey") -> None:
    """Print what a running text looks like: files, characters, script, lines, words."""
    lines = counted(found.lines, "rows" if found.is_rows else "lines")
    paragraphs = "" if found.is_rows else f" in {counted(found.paragraphs, 'paragraphs')}"
    typer.echo(
        f"{counted(found.files, 'files')} of running text: {counted(found.characters, 'characters')}, "
        f"{len(found.letters):,} different, {script_of(found.script)}\n"
        f"  {lines}{paragraphs}, {counted(found.words, 'words')}"
    )
    tell_longest("line", found.longest, found.longest_at)
    if FEWEST <= found.characters < FEW:
        typer.echo(f"  fewer than {FEW:,} characters teach spelling rather than sense; find more text if you can")
