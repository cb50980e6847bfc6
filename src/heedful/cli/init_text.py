"""`heedful init` on running text, and on parallel text and its languages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

from heedful.cli.first_recipe import (
    check_free,
    free_folder,
    json_line,
    lengths_of,
    new_recipe,
    relative_path,
    report_lengths,
    report_longest,
    report_parts,
    report_recipe,
    script_of,
    this_machine,
    write,
    write_parts,
)
from heedful.cli.options import BadUtf8
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import SentencePair, read_pairs
from heedful.data.readers.documents import document_lines, read_documents
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.text.languages import is_language, language_called
from heedful.tools.proposals.pairs import (
    MOST_CHARACTERS,
    ParallelTexts,
    can_be_held_out,
    propose_translator,
    split,
    strangers,
    survey,
)
from heedful.tools.proposals.proposal import Corpora, Texts
from heedful.tools.proposals.running_text import propose_bert, propose_gpt, survey_text
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.tools.proposals.pairs import Side, Survey
    from heedful.tools.proposals.proposal import Keys
    from heedful.tools.proposals.running_text import TextSurvey

PARTS = {"train": (0.0, 0.9), "valid": (0.9, 0.95), "test": (0.95, 1.0)}  # of a running text
FEWEST = 2000  # characters; a shorter text is refused
FEW = 300_000  # characters; with fewer there is a warning
FEW_PAIRS = 10_000
SHOWN = 60  # characters of an example that are printed

ENDINGS = re.compile(r"(\.(txt|text|md))?(\.(gz|bz2|xz))?$")  # file endings that may follow a language code
AT_END = re.compile(r"(?:^|[-._])([a-z]{2}(?:[-_](?:[A-Z]{2}|Han[st]|Latn|Cyrl|cn|tw|br))?)$")
SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko"}  # scripts that are taken for one language
UNKNOWN = {"source": "src", "target": "tgt"}  # as in a recipe that names no languages


def init_text(corpus: CorpusConfig, task: str, out: Path | None, bad_utf8: BadUtf8, *, copied: bool = False) -> None:
    """Write the recipe of a GPT or a BERT that learns from running text, which stays in place unless it is `copied`."""
    folder = free_folder(Path(corpus.source), out, task)
    data = DataConfig(bad_utf8=bad_utf8)
    with show_progress(f"reading {corpus.source}", "lines") as progress:
        statistics = survey_text(progress.over(document_lines(corpus, data)), corpus.source)
    report_text(statistics)
    if statistics.characters < FEWEST:
        raise InputError(
            f"{corpus.source}: {counted(statistics.characters, 'characters')}: too few to learn from and to hold some "
            f"out; give at least {FEWEST:,}"
        )
    with show_progress(f"dividing {corpus.source}", "parts", len(PARTS)) as progress:
        for part, share in progress.over(PARTS.items()):
            if not any(document.text for document in read_documents(replace(corpus, part=share), data)):
                raise InputError(f"{corpus.source}: its {part} part, {share}, holds no text; give more text")

    text, copy = Path(corpus.source), Path("data", Path(corpus.source).name)
    source = {"source": relative_path(folder / copy if copied else text, folder)}
    if corpus.source_field != CorpusConfig.source_field:
        source["source_field"] = corpus.source_field
    corpora = Corpora(**{part: {**source, "part": list(share)} for part, share in PARTS.items()})
    propose = propose_gpt if task == "language_model" else propose_bert
    recipe = propose(statistics, this_machine(), Texts(folder.resolve().name, bad_utf8, corpora))
    with new_recipe(folder) as place:
        if copied:
            write(place / copy, text.read_text(encoding="utf-8"))
        write(place / "config.toml", recipe)
    typer.echo("\ntrained on the first 90 % of each file, validated on the next 5 %, tested on the last 5 %")
    report_recipe(folder, statistics.beginning if task == "language_model" else f"{statistics.beginning} [MASK]")


def report_text(statistics: "TextSurvey") -> None:
    lines = counted(statistics.lines, "rows" if statistics.is_rows else "lines")
    paragraphs = "" if statistics.is_rows else f" in {counted(statistics.paragraphs, 'paragraphs')}"
    typer.echo(
        f"{counted(statistics.files, 'files')} of running text: {counted(statistics.characters, 'characters')}, "
        f"{len(statistics.letters):,} different, {script_of(statistics.script)}\n"
        f"  {lines}{paragraphs}, {counted(statistics.words, 'words')}"
    )
    report_longest("line", statistics.longest, statistics.longest_at)
    if FEWEST <= statistics.characters < FEW:
        typer.echo(f"  fewer than {FEW:,} characters teach spelling rather than sense; find more text if you can")


@dataclass(frozen=True)
class PairsRequest:
    """Arguments of `heedful init` for a translator."""

    corpus: CorpusConfig
    given: dict[str, CorpusConfig]  # text for validation and test, as far as it is not to be held out
    out: Path | None
    source_language: str | None
    target_language: str | None
    bad_utf8: BadUtf8


def init_pairs(request: PairsRequest) -> None:
    """Write the recipe of a translator, and hold out validation and test text that is not given."""
    for corpus in request.given.values():
        survey_pairs(corpus, request.bad_utf8)
    corpus = request.corpus
    statistics = survey_pairs(corpus, request.bad_utf8)
    if corpus.target is None:
        typer.echo(
            f"source: column {corpus.source_field!r}; target: column {corpus.target_field!r}; if that is wrong, give "
            "--source-field and --target-field"
        )
    here, there = (corpus.source, corpus.target) if corpus.target else (corpus.source_field, corpus.target_field)
    languages = (
        language_of("source", request.source_language, here, statistics.source),
        language_of("target", request.target_language, there, statistics.target),
    )
    if languages[0] == languages[1]:  # as both sides would get one file name
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")
    folder = request.out or Path("-".join(languages))
    check_free(folder)
    report_pairs(statistics, languages)
    report_strangers(statistics, request)
    corpora = {part: corpus_keys(corpus, folder) for part, corpus in {"train": corpus, **request.given}.items()}
    machine = this_machine()
    with new_recipe(folder) as place:
        corpora |= hold_out(statistics, request, folder, place, languages)
        texts = ParallelTexts(folder.resolve().name, request.bad_utf8, Corpora(**corpora), *languages)
        write(place / "config.toml", propose_translator(statistics, machine, texts))
    report_recipe(folder)


def survey_pairs(corpus: CorpusConfig, bad_utf8: BadUtf8) -> "Survey":
    with show_progress(f"reading {corpus.source}", "pairs") as progress:
        statistics = survey(progress.over(read_pairs(corpus, DataConfig(bad_utf8=bad_utf8))))
    if statistics.copies == statistics.pairs:
        sides = corpus.target or f"{corpus.source_field} and {corpus.target_field}"
        raise InputError(
            f"{corpus.source}, {sides}: both sides are the same in every line, from which a translator would learn to "
            "copy; name the text and its translation"
        )
    return statistics


def language_of(role: str, code: str | None, name: str, side: "Side") -> str:
    """Return the language of the source or target side of a parallel text: its code, or else a guess, which is printed.

    `name` is that of the file, or of the column of a table.
    """
    if code:
        return code
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
    code = AT_END.search(ENDINGS.sub("", Path(name).name))
    return code[1] if code and is_language(code[1]) else None


def corpus_keys(corpus: CorpusConfig, folder: Path) -> "Keys":
    """Return the recipe keys that name a corpus, with paths relative to the folder of the recipe."""
    source = relative_path(corpus.source, folder)
    if corpus.target:
        return {"source": source, "target": relative_path(corpus.target, folder)}
    return {"source": source, "source_field": corpus.source_field, "target_field": corpus.target_field}


def hold_out(
    statistics: "Survey", request: PairsRequest, folder: Path, place: Path, languages: tuple[str, str]
) -> "dict[str, Keys]":
    """Write held-out parts that are not given, and the rest for training; return the recipe keys of each part.

    They are written to `place`, the temporary folder of what is to be in `folder`.
    """
    missing = [part for part in ("valid", "test") if part not in request.given]
    if not missing:
        return {}
    parts = ["train", *missing]
    division = split(statistics.source_hashes, valid="valid" in missing, test="test" in missing)
    has_two_files = request.corpus.target is not None
    if has_two_files:
        names = {part: (f"{part}.{languages[0]}", f"{part}.{languages[1]}") for part in parts}
        keys: dict[str, Keys] = {part: {"source": f"data/{a}", "target": f"data/{b}"} for part, (a, b) in names.items()}
    else:
        names = {part: (f"{part}.jsonl",) for part in parts}
        keys = {part: {"source": f"data/{name}"} for part, (name,) in names.items()}

    def lines(pair: SentencePair) -> tuple[str, ...]:
        sides = (pair.source, pair.target)
        return sides if has_two_files else (json_line({"source": pair.source, "target": pair.target}),)

    with show_progress(f"writing {folder}", "pairs", statistics.pairs) as progress:
        pairs = progress.over(read_pairs(request.corpus, DataConfig(bad_utf8=request.bad_utf8)))
        divided = division.divide(pairs, lambda pair: pair.source, can_be_held_out)
        counts = write_parts(place / "data", ((part, lines(pair)) for part, pair in divided), names)
    report_parts(folder / "data", counts, "pairs", statistics.pairs, "source sentence")
    return keys


def report_pairs(statistics: "Survey", languages: tuple[str, str]) -> None:
    typer.echo(f"{counted(statistics.pairs, 'pairs')} of sentences")
    for language, side in zip(languages, (statistics.source, statistics.target), strict=True):
        unit, lengths = lengths_of(side)
        report_lengths(f"{language:4}{script_of(side.script)}, {unit} a line", lengths)
    for count, what in (
        (statistics.repeated, "repeating an earlier pair; left out of training unless data.filters.duplicates = true"),
        (statistics.empty, "with an empty side; left out of training"),
        (statistics.copies, "the same on both sides, which teaches to copy; remove what is not wanted"),
    ):
        if count:
            typer.echo(f"  {counted(count, 'pairs')} ({count / statistics.pairs:.1%}) {what}")
    if count := int(statistics.too_long.sum()):
        longest = int(np.argmax(np.maximum(statistics.source.characters, statistics.target.characters)))
        typer.echo(
            f"  {counted(count, 'pairs')} ({count / statistics.pairs:.1%}) with more than {MOST_CHARACTERS:,} "
            f"characters, the longest in line {statistics.lines[longest]:,}; left out of training, and not counted in "
            "the recipe"
        )
    if statistics.pairs < FEW_PAIRS:
        typer.echo(f"  fewer than {FEW_PAIRS:,} pairs teach phrases rather than a language; find more text if you can")


def report_strangers(statistics: "Survey", request: PairsRequest) -> None:
    """Warn of lines of a parallel text whose two sides do not seem to belong together, with examples."""
    with show_progress("comparing both sides"):
        runs = strangers(statistics.source, statistics.target)
    if not runs:
        return
    spans = [f"{statistics.lines[begin]:,} to {statistics.lines[end - 1]:,}" for begin, end in runs[:3]]
    typer.echo(
        f"  WARNING: in lines {', '.join(spans)}{' and others' * (len(runs) > 3)} the two sides do not seem to belong "
        "together: long lines do not stand beside long ones, nor questions beside questions, nor numbers beside "
        "numbers. Was one side shuffled or shifted? See for yourself:"
    )
    begin, end = runs[0]
    examples = {int(statistics.lines[begin + (end - begin) * step // 4]) for step in (1, 2, 3)}
    pairs: Iterator[SentencePair] = read_pairs(request.corpus, DataConfig(bad_utf8=request.bad_utf8))
    for pair in takewhile(lambda pair: pair.line <= max(examples), pairs):
        if pair.line in examples:
            typer.echo(f"    line {pair.line:,}: {pair.source[:SHOWN]!r} | {pair.target[:SHOWN]!r}")
