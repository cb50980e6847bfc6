"""The part of `heedful init` that begins a translator."""

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    check_free,
    json_line,
    tell_lengths,
    tell_recipe,
    this_machine,
    write,
    write_parts,
)
from heedful.config.schema import CorpusConfig
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.corpus import Pair
    from heedful.data.proposal import Keys
    from heedful.data.survey import Side, Survey

Files = tuple[Path, Path]
Languages = tuple[str, str]

LANGUAGES = {"han": "zh", "kana": "ja", "hangul": "ko"}  # the scripts that write one language
FEW = 10_000  # pairs
SHOWN = 60  # characters of an example


@dataclass(frozen=True)
class Request:
    """What a translator is to be begun from."""

    corpus: CorpusConfig
    given: dict[str, Files]  # text for validation and test, as far as it is not to be held out
    out: Path | None
    source_language: str | None
    target_language: str | None
    bad_utf8: BadUtf8


def init_pairs(request: Request) -> None:
    """Write the recipe of a translator, and hold out what is not given.

    Raises:
        InputError: The text cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.proposal import Corpora, Texts, propose
    from heedful.data.survey import survey

    corpora = {part: CorpusConfig(source=str(a), target=str(b)) for part, (a, b) in request.given.items()}
    for corpus in corpora.values():
        deque(pairs_of(corpus, request.bad_utf8), maxlen=0)
    found = survey(pairs_of(request.corpus, request.bad_utf8))
    languages = languages_of(request, found)
    folder = request.out or Path("-".join(languages))
    check_languages(languages)
    check_free(folder)
    tell_text(found, languages)
    tell_strangers(found, request)
    names = {part: relative(corpus, folder) for part, corpus in {"train": request.corpus, **corpora}.items()}
    names |= hold_out(found, request, folder / "data", languages)
    texts = Texts(folder.resolve().name, *languages, Corpora(**names), request.bad_utf8)
    write(folder / "config.toml", propose(found, this_machine(), texts))
    tell_recipe(load_recipe(folder), folder)


def pairs_of(corpus: CorpusConfig, bad_utf8: BadUtf8) -> "Iterator[Pair]":
    """The pairs of a corpus."""
    from heedful.config.schema import DataConfig
    from heedful.data.corpus import read_pairs

    return read_pairs(corpus, DataConfig(bad_utf8=bad_utf8))


def relative(corpus: CorpusConfig, folder: Path) -> "Keys":
    """The keys of a corpus in a recipe that lies in a folder."""
    fields = {"source_field": corpus.source_field, "target_field": corpus.target_field}
    files = {"source": corpus.source, "target": corpus.target}
    named = {key: os.path.relpath(name, folder) for key, name in files.items() if name is not None}
    return named if corpus.target else named | fields


def languages_of(request: Request, found: "Survey") -> Languages:
    """The languages: as the options say, else by the names of files or columns, else by the scripts."""
    corpus = request.corpus
    here, there = (corpus.source, corpus.target) if corpus.target else (corpus.source_field, corpus.target_field)
    return (
        request.source_language or language_of(Path(here), found.source, "src"),
        request.target_language or language_of(Path(there), found.target, "tgt"),
    )


def language_of(file: Path, side: "Side", otherwise: str) -> str:
    """A language by the file's name, as in train.de.gz or de.txt, or by a script that writes only one."""
    codes = [part for part in file.name.split(".") if re.fullmatch(r"[a-z]{2}([-_][A-Za-z]{2,4})?", part)]
    codes = [code for code in codes if code != "gz"]
    return codes[-1] if codes else LANGUAGES.get(side.script or "", otherwise)


def check_languages(languages: Languages) -> None:
    """Refuse what would make two files of one name, or a file elsewhere."""
    for language in languages:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", language):
            raise InputError(f'"{language}" is no language code; give one such as en or zh-Hant')
    if languages[0] == languages[1]:
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")


def hold_out(found: "Survey", request: Request, folder: Path, languages: Languages) -> "dict[str, Keys]":
    """Write the parts that are not given and what they leave for training; return how a recipe names them."""
    from heedful.data.survey import can_be_held_out, split

    missing = [part for part in ("valid", "test") if part not in request.given]
    if not missing:
        return {}
    parts = ["train", *missing]
    division = split(found.source_hashes, valid="valid" in missing, test="test" in missing)
    pairs = pairs_of(request.corpus, request.bad_utf8)
    divided = division.divide(pairs, lambda pair: pair.source, can_be_held_out)
    if request.corpus.target:
        names = {part: (f"{part}.{languages[0]}", f"{part}.{languages[1]}") for part in parts}
        lines = ((part, (pair.source, pair.target)) for part, pair in divided)
        keys: dict[str, Keys] = {part: {"source": f"data/{a}", "target": f"data/{b}"} for part, (a, b) in names.items()}
    else:
        names = {part: (f"{part}.jsonl",) for part in parts}
        lines = ((part, (json_line({"source": pair.source, "target": pair.target}),)) for part, pair in divided)
        keys = {part: {"source": f"data/{name}"} for part, (name,) in names.items()}
    counts = write_parts(folder, lines, names, "pairs")
    if left := found.pairs - counts.total():
        typer.echo(f"  and {left:,} left out, as their source sentence is held out already")
    return keys


def tell_text(found: "Survey", languages: Languages) -> None:
    """Say what the text looks like, and what is odd about it."""
    import numpy as np

    from heedful.data.survey import MOST_CHARACTERS

    typer.echo(f"{counted(found.pairs, 'pairs')} of sentences")
    for language, side in zip(languages, (found.source, found.target), strict=True):
        unit, lengths = ("characters", side.characters) if side.is_spaceless else ("words", side.words)
        script = f"{side.script} script" if side.script else "a script without a filter"
        tell_lengths(f"{language:4}{script}, ", f"{unit} a line", lengths)
    for count, what in (
        (found.repeated, "repeating an earlier pair; left out of training unless data.filters.duplicates = true"),
        (found.empty, "with an empty side; left out of training"),
        (found.copies, "the same on both sides, which teaches to copy; remove what is not wanted"),
    ):
        if count:
            typer.echo(f"  {counted(count, 'pairs')} ({count / found.pairs:.1%}) {what}")
    if count := int(found.too_long.sum()):
        longest = int(np.argmax(np.maximum(found.source.characters, found.target.characters)))
        typer.echo(
            f"  {counted(count, 'pairs')} ({count / found.pairs:.1%}) with more than {MOST_CHARACTERS:,} characters, "
            f"the longest in line {found.lines[longest]:,}; left out of training, and not counted in the recipe"
        )
    if found.pairs < FEW:
        typer.echo(f"  fewer than {FEW:,} pairs teach phrases rather than a language; find more text if you can")


def tell_strangers(found: "Survey", request: Request) -> None:
    """Warn where the two sides do not seem to belong together, with examples."""
    from heedful.data.alignment import strangers

    runs = strangers(found.source, found.target)
    if not runs:
        return
    named = [f"{found.lines[begin]:,} to {found.lines[end - 1]:,}" for begin, end in runs[:3]]
    typer.echo(
        f"  WARNING: in lines {', '.join(named)}{' and others' * (len(runs) > 3)} the two sides do not seem to belong "
        "together: long lines do not stand beside long ones, nor questions beside questions, nor numbers beside "
        "numbers. Was one side shuffled or shifted? See for yourself:"
    )
    begin, end = runs[0]
    wanted = {int(found.lines[begin + (end - begin) * step // 4]) for step in (1, 2, 3)}
    for pair in pairs_of(request.corpus, request.bad_utf8):
        if pair.line in wanted:
            typer.echo(f"    line {pair.line:,}: {pair.source[:SHOWN]!r} | {pair.target[:SHOWN]!r}")
