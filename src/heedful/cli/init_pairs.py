"""`heedful init` on parallel text, and its languages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    check_free,
    json_line,
    new_recipe,
    relative_path,
    script_of,
    tell_lengths,
    tell_parts,
    tell_recipe,
    this_machine,
    write,
    write_parts,
)
from heedful.config.schema import CorpusConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.text.languages import is_language, language_called
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.corpus import SentencePair
    from heedful.tools.proposals.pairs import Side, Survey
    from heedful.tools.proposals.proposal import Keys


ENDINGS = re.compile(r"(\.(txt|text|md))?(\.(gz|bz2|xz))?$")  # file endings that may follow a language code
AT_END = re.compile(r"(?:^|[-._])([a-z]{2}(?:[-_](?:[A-Z]{2}|Han[st]|Latn|Cyrl|cn|tw|br))?)$")
SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko"}  # scripts that are taken for one language
UNKNOWN = {"source": "src", "target": "tgt"}  # as in a recipe that names no languages


def language_of(role: str, given: str | None, name: str, side: "Side") -> str:
    """Return the language of one side of a parallel text: as given, or else a guess, which is printed."""
    if given:
        return given
    guesses = {
        f"by the end of the name {Path(name).name}": language_in(name),
        f"by the name {Path(name).name}": language_called(Path(name).name),
        f"as its script is {side.script}": SCRIPTS.get(side.script or ""),
        "as neither name nor script tells which": UNKNOWN[role],
    }
    reason, language = next((reason, guess) for reason, guess in guesses.items() if guess)
    typer.echo(f"{role} language: {language}, {reason}; if that is wrong, give --{role}-language")
    return language


def language_in(name: str) -> str | None:
    """Find the language code that ends a name such as train.de.gz, news-de.txt or zh_TW, file endings aside."""
    found = AT_END.search(ENDINGS.sub("", Path(name).name))
    return found[1] if found and is_language(found[1]) else None


def check_different(languages: tuple[str, str]) -> None:
    """Refuse a source language equal to the target language, as both sides would get one file name."""
    if languages[0] == languages[1]:
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")


Languages = tuple[str, str]

FEW = 10_000  # pairs; with fewer there is a warning
SHOWN = 60  # characters of an example that are printed


@dataclass(frozen=True)
class PairsRequest:
    """Arguments of `heedful init` for a translator: corpora, output folder, languages, treatment of bad UTF-8."""

    corpus: CorpusConfig
    given: dict[str, CorpusConfig]  # text for validation and test, as far as it is not to be held out
    out: Path | None
    source_language: str | None
    target_language: str | None
    bad_utf8: BadUtf8


def init_pairs(request: PairsRequest) -> None:
    """Write the recipe of a translator, and hold out validation and test text that is not given."""
    from heedful.config.load import load_recipe
    from heedful.tools.proposals.pairs import ParallelTexts, propose_translator
    from heedful.tools.proposals.proposal import Corpora

    given = request.given
    for corpus in given.values():
        look_at(corpus, request.bad_utf8)
    found = look_at(request.corpus, request.bad_utf8)
    tell_columns(request.corpus)
    languages = languages_of(request, found)
    folder = request.out or Path("-".join(languages))
    check_free(folder)
    tell_text(found, languages)
    tell_strangers(found, request)
    names = {part: relative(corpus, folder) for part, corpus in {"train": request.corpus, **given}.items()}
    machine = this_machine()
    with new_recipe(folder) as place:
        names |= hold_out(found, request, folder, place, languages)
        texts = ParallelTexts(folder.resolve().name, request.bad_utf8, Corpora(**names), *languages)
        write(place / "config.toml", propose_translator(found, machine, texts))
    tell_recipe(load_recipe(folder), folder)


def look_at(corpus: CorpusConfig, bad_utf8: BadUtf8) -> "Survey":
    """Survey all sentence pairs of a parallel corpus."""
    from heedful.tools.proposals.pairs import survey

    with show_progress(f"reading {corpus.source}", "pairs") as progress:
        found = survey(progress.over(pairs_of(corpus, bad_utf8)))
    if found.copies == found.pairs:
        sides = corpus.target or f"{corpus.source_field} and {corpus.target_field}"
        raise InputError(
            f"{corpus.source}, {sides}: both sides are the same in every line, from which a translator would learn to "
            "copy; name the text and its translation"
        )
    return found


def pairs_of(corpus: CorpusConfig, bad_utf8: BadUtf8) -> "Iterator[SentencePair]":
    """Read the sentence pairs of a parallel corpus."""
    from heedful.config.schema import DataConfig
    from heedful.data.readers.corpus import read_pairs

    return read_pairs(corpus, DataConfig(bad_utf8=bad_utf8))


def relative(corpus: CorpusConfig, folder: Path) -> "Keys":
    """Return the recipe keys that name a corpus, with paths relative to the folder of the recipe."""
    fields = {"source_field": corpus.source_field, "target_field": corpus.target_field}
    files = {"source": corpus.source, "target": corpus.target}
    named = {key: relative_path(name, folder) for key, name in files.items() if name is not None}
    return named if corpus.target else named | fields


def languages_of(request: PairsRequest, found: "Survey") -> Languages:
    """Return the source and target language: as given, else by the names of files or columns, else by the scripts."""
    corpus = request.corpus
    here, there = (corpus.source, corpus.target) if corpus.target else (corpus.source_field, corpus.target_field)
    languages = (
        language_of("source", request.source_language, here, found.source),
        language_of("target", request.target_language, there, found.target),
    )
    check_different(languages)
    return languages


def hold_out(
    found: "Survey", request: PairsRequest, folder: Path, place: Path, languages: Languages
) -> "dict[str, Keys]":
    """Write held-out parts that are not given, and the rest for training; return the recipe keys of each part.

    They are written to `place`, the temporary folder of what is to be in `folder`.
    """
    from heedful.tools.proposals.pairs import can_be_held_out, split

    missing = [part for part in ("valid", "test") if part not in request.given]
    if not missing:
        return {}
    parts = ["train", *missing]
    division = split(found.source_hashes, valid="valid" in missing, test="test" in missing)
    if request.corpus.target:
        names = {part: (f"{part}.{languages[0]}", f"{part}.{languages[1]}") for part in parts}
        keys: dict[str, Keys] = {part: {"source": f"data/{a}", "target": f"data/{b}"} for part, (a, b) in names.items()}
    else:
        names = {part: (f"{part}.jsonl",) for part in parts}
        keys = {part: {"source": f"data/{name}"} for part, (name,) in names.items()}
    with show_progress(f"writing {folder}", "pairs", found.pairs) as progress:
        pairs = progress.over(pairs_of(request.corpus, request.bad_utf8))
        divided = division.divide(pairs, lambda pair: pair.source, can_be_held_out)
        counts = write_parts(
            place / "data", ((part, lines_of(pair, len(names[part]))) for part, pair in divided), names
        )
    tell_parts(folder / "data", counts, "pairs", found.pairs, "source sentence")
    return keys


def lines_of(pair: "SentencePair", files: int) -> tuple[str, ...]:
    """Format a sentence pair as its two lines for two files, or as one line of JSON for one file."""
    sides = (pair.source, pair.target)
    return sides if files == 2 else (json_line({"source": pair.source, "target": pair.target}),)


def tell_columns(corpus: CorpusConfig) -> None:
    """Print which column of a table is the source and which the target, if one table holds both."""
    if corpus.target is None:
        typer.echo(
            f"source: column {corpus.source_field!r}; target: column {corpus.target_field!r}; if that is wrong, give "
            "--source-field and --target-field"
        )


def tell_text(found: "Survey", languages: Languages) -> None:
    """Print what a parallel text looks like, and what is odd about the text."""
    import numpy as np

    from heedful.tools.proposals.pairs import MOST_CHARACTERS

    typer.echo(f"{counted(found.pairs, 'pairs')} of sentences")
    for language, side in zip(languages, (found.source, found.target), strict=True):
        unit, lengths = ("characters", side.characters) if side.is_spaceless else ("words", side.words)
        tell_lengths(f"{language:4}{script_of(side.script)}, ", f"{unit} a line", lengths)
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


def tell_strangers(found: "Survey", request: PairsRequest) -> None:
    """Warn of lines of a parallel text whose two sides do not seem to belong together, with examples."""
    from heedful.tools.proposals.pairs import strangers

    with show_progress("comparing both sides"):
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
    for pair in takewhile(lambda pair: pair.line <= max(wanted), pairs_of(request.corpus, request.bad_utf8)):
        if pair.line in wanted:
            typer.echo(f"    line {pair.line:,}: {pair.source[:SHOWN]!r} | {pair.target[:SHOWN]!r}")
