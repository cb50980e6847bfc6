"""`heedful init` for running text, and for parallel text and its languages."""

import re
from collections.abc import Iterator, Mapping
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
    report_few,
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
from heedful.tools.proposals.pairs import FAST, can_be_held_out, misaligned_lines, propose_translator, survey_parallel
from heedful.tools.proposals.proposal import RecipeData
from heedful.tools.proposals.running_text import propose_bert, propose_gpt, survey_text
from heedful.tools.proposals.splits import split
from heedful.tools.proposals.text_statistics import MAX_CHARACTERS
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.tools.proposals.pairs import ParallelSurvey
    from heedful.tools.proposals.proposal import Keys
    from heedful.tools.proposals.running_text import TextSurvey
    from heedful.tools.proposals.text_statistics import TextStatistics

PARTS = {"train": (0.0, 0.9), "valid": (0.9, 0.95), "test": (0.95, 1.0)}  # shares of a running text
MIN_CHARACTERS = 2000  # a shorter text is rejected
ADVISED_CHARACTERS = 300_000  # fewer cause a warning
ADVISED_PAIRS = 10_000
TEACHER = "teacher"  # subfolder of the recipe of a fast translator
MAX_EXCERPT = 60  # characters of an example that are printed

ENDINGS = re.compile(r"(\.(txt|text|md))?(\.(gz|bz2|xz))?$")  # file extensions that may follow a language code
AT_END = re.compile(r"(?:^|[-._])([a-z]{2}(?:[-_](?:[A-Z]{2}|Han[st]|Latn|Cyrl|cn|tw|br))?)$")
SCRIPTS = {"han": "zh", "kana": "ja", "hangul": "ko"}  # scripts that suggest a single language
UNKNOWN = {"source": "src", "target": "tgt"}  # as in a recipe without languages


def init_text(corpus: CorpusConfig, task: str, out: Path | None, bad_utf8: BadUtf8, *, copied: bool = False) -> None:
    """Write the recipe of a GPT or a BERT that learns from running text, which stays in place.

    With `copied`, the text is a temporary copy, so it is written to the recipe folder.
    """
    folder = free_folder(Path(corpus.source), out, task)
    data = DataConfig(bad_utf8=bad_utf8)
    with show_progress(f"reading {corpus.source}", "lines") as progress:
        statistics = survey_text(progress.over(document_lines(corpus, data)), corpus.source)
    report_text(statistics)
    if statistics.characters < MIN_CHARACTERS:
        raise InputError(
            f"{corpus.source}: too little text to train on and to hold some out for validation and test: "
            f"{counted(statistics.characters, 'characters')}; give at least {MIN_CHARACTERS:,}"
        )
    with show_progress(f"dividing {corpus.source}", "parts", len(PARTS)) as progress:
        for part, share in progress.over(PARTS.items()):
            if not any(document.text for document in read_documents(replace(corpus, part=share), data)):
                begin, end = share
                raise InputError(
                    f"{corpus.source}: the {part} part, from {begin:.0%} to {end:.0%}, contains no text; give more text"
                )

    text, copy = Path(corpus.source), Path("data", Path(corpus.source).name)
    source = {"source": relative_path(folder / copy if copied else text, folder)}
    if corpus.source_field != CorpusConfig.source_field:
        source["source_field"] = corpus.source_field
    corpora = {part: {**source, "part": list(share)} for part, share in PARTS.items()}
    propose = propose_gpt if task == "language_model" else propose_bert
    recipe = propose(statistics, this_machine(), RecipeData(folder.resolve().name, bad_utf8, corpora))
    with new_recipe(folder) as staging:
        if copied:
            write(staging / copy, text.read_text(encoding="utf-8"))
        write(staging / "config.toml", recipe)
    typer.echo("\nsplit of each file: first 90% for training, next 5% for validation, last 5% for testing")
    report_recipe(folder, statistics.beginning if task == "language_model" else f"{statistics.beginning} [MASK]")


def report_text(statistics: "TextSurvey") -> None:
    lines = counted(statistics.lines, "rows" if statistics.is_rows else "lines")
    paragraphs = "" if statistics.is_rows else f" in {counted(statistics.paragraphs, 'paragraphs')}"
    typer.echo(
        f"{counted(statistics.files, 'files')} of running text: {counted(statistics.characters, 'characters')}, "
        f"{len(statistics.letters):,} distinct, {script_of(statistics.script)}\n"
        f"  {lines}{paragraphs}, {counted(statistics.words, 'words')}"
    )
    report_longest("line", statistics.longest, statistics.longest_at)
    if statistics.characters >= MIN_CHARACTERS:
        report_few(statistics.characters, ADVISED_CHARACTERS, "characters", "spelling rather than meaning")


@dataclass(frozen=True)
class PairsRequest:
    """Arguments of `heedful init` for a translator."""

    corpus: CorpusConfig
    parts: Mapping[str, CorpusConfig]  # the user's validation and test sets
    out: Path | None
    source_language: str | None
    target_language: str | None
    bad_utf8: BadUtf8
    fast: bool = False  # write the recipe of a fast translator


def init_pairs(request: PairsRequest) -> None:
    """Write the recipe of a translator, and hold out text for validation and test unless the user provides it."""
    for corpus in request.parts.values():
        survey_pairs(corpus, request.bad_utf8)
    corpus = request.corpus
    statistics = survey_pairs(corpus, request.bad_utf8)
    if corpus.target is None:
        typer.echo(
            f"source: column {corpus.source_field!r}; target: column {corpus.target_field!r}; if this is wrong, set "
            "--source-field and --target-field"
        )
    names = (corpus.source, corpus.target) if corpus.target else (corpus.source_field, corpus.target_field)
    languages = (
        language_of("source", request.source_language, names[0], statistics.source),
        language_of("target", request.target_language, names[1], statistics.target),
    )
    if languages[0] == languages[1]:  # both sides would get the same file name
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")
    folder = request.out or Path("-".join(languages))
    check_free(folder)
    report_pairs(statistics, languages)
    report_misaligned(statistics, request)
    corpora = {part: corpus_keys(corpus, folder) for part, corpus in {"train": corpus, **request.parts}.items()}
    machine = this_machine()
    with new_recipe(folder) as staging:
        corpora |= hold_out(statistics, request, folder, staging, languages)
        texts = RecipeData(folder.resolve().name, request.bad_utf8, corpora)
        if not request.fast:
            write(staging / "config.toml", propose_translator(statistics, machine, texts, languages))
        else:
            write(staging / "config.toml", propose_translator(statistics, machine, texts, languages, FAST))
            parent_corpora = {part: in_parent(keys) for part, keys in corpora.items()}
            teacher = replace(texts, name=f"{texts.name}-{TEACHER}", corpora=parent_corpora)
            write(staging / TEACHER / "config.toml", propose_translator(statistics, machine, teacher, languages))
    report_recipe(folder, teacher=folder / TEACHER if request.fast else None)


def in_parent(keys: "Keys") -> "Keys":
    """Return the recipe keys of a corpus for a recipe in a subfolder."""
    paths = {side: f"../{keys[side]}" for side in ("source", "target") if side in keys}
    return {**keys, **paths}


def survey_pairs(corpus: CorpusConfig, bad_utf8: BadUtf8) -> "ParallelSurvey":
    with show_progress(f"reading {corpus.source}", "pairs") as progress:
        statistics = survey_parallel(
            progress.over(read_pairs(corpus, DataConfig(bad_utf8=bad_utf8))), name=corpus.source
        )
    if corpus.target:
        for name, side in ((corpus.source, statistics.source), (corpus.target, statistics.target)):
            if not side.words.any():
                raise InputError(f"{name}: contains only blank lines; give a text and its line-by-line translation")
    if statistics.copies == statistics.pairs:
        sides = corpus.target or f"{corpus.source_field} and {corpus.target_field}"
        raise InputError(
            f"{corpus.source}, {sides}: both sides are identical on every line, so a translator would only learn to "
            "copy; give a text and its translation"
        )
    return statistics


def language_of(role: str, code: str | None, name: str, side: "TextStatistics") -> str:
    """Return the language of a side of a parallel text: `code` if given, otherwise a guess, which is printed.

    `role` is "source" or "target"; `name` is the name of the file, or of the column of a table.
    """
    if code:
        return code
    name = Path(name).name
    has_extension = "." in ENDINGS.sub("", name)
    guesses = (
        (language_in(name), f"from the {'file extension of' if has_extension else 'name'} {name}"),
        (language_called(name), f"from the name {name}"),
        (SCRIPTS.get(side.script or ""), f"from its {script_of(side.script)}"),
        (UNKNOWN[role], "not recognised from the name or the script of the text"),
    )
    language, reason = next((guess, reason) for guess, reason in guesses if guess)
    typer.echo(f"{role} language: {language} ({reason}); if this is wrong, set --{role}-language")
    return language


def language_in(name: str) -> str | None:
    """Find the language code at the end of a name such as train.de.gz, news-de.txt or zh_TW, ignoring extensions."""
    code = AT_END.search(ENDINGS.sub("", Path(name).name))
    return code[1] if code and is_language(code[1]) else None


def corpus_keys(corpus: CorpusConfig, folder: Path) -> "Keys":
    """Return the recipe keys of a corpus, with paths relative to the recipe folder."""
    source = relative_path(corpus.source, folder)
    if corpus.target:
        return {"source": source, "target": relative_path(corpus.target, folder)}
    return {"source": source, "source_field": corpus.source_field, "target_field": corpus.target_field}


def hold_out(
    statistics: "ParallelSurvey", request: PairsRequest, folder: Path, staging: Path, languages: tuple[str, str]
) -> "dict[str, Keys]":
    """Write the held-out parts, and the rest for training; return the recipe keys of each part.

    The files are written to `staging`, which is renamed to `folder` at the end.
    """
    missing = [part for part in ("valid", "test") if part not in request.parts]
    if not missing:
        return {}
    parts = ["train", *missing]
    has_two_files = request.corpus.target is not None
    division = split(
        statistics.source_hashes,
        "valid" in missing,
        "test" in missing,
        source=request.corpus.source,
        alternative=f", or other files with {' and '.join(f'--{part}' for part in missing)}" if has_two_files else "",
    )
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
        counts = write_parts(staging / "data", ((part, lines(pair)) for part, pair in divided), names)
    report_parts(folder / "data", counts, "pairs", statistics.pairs, "source sentence")
    return keys


def report_pairs(statistics: "ParallelSurvey", languages: tuple[str, str]) -> None:
    typer.echo(f"{counted(statistics.pairs, 'sentence pairs')}")
    for language, side in zip(languages, (statistics.source, statistics.target), strict=True):
        unit, lengths = lengths_of(side)
        report_lengths(f"{language:4}{script_of(side.script)}, {unit} per line", lengths)
    for count, what in (
        (
            statistics.repeated,
            "repeating an earlier pair; left out of training unless data.filters.duplicates = true",
        ),
        (statistics.empty, "with an empty side; left out of training"),
        (statistics.copies, "with identical sides, which teach the model to copy; remove any that you do not want"),
    ):
        if count:
            typer.echo(f"  {counted(count, 'pairs')} ({count / statistics.pairs:.1%}) {what}")
    if count := int(statistics.too_long.sum()):
        longest = int(np.argmax(statistics.characters))
        typer.echo(
            f"  {counted(count, 'pairs')} ({count / statistics.pairs:.1%}) with more than {MAX_CHARACTERS:,} "
            f"characters, the longest on line {statistics.lines[longest]:,}; left out of training, and ignored in "
            "choosing the sizes in the recipe"
        )
    report_few(statistics.pairs, ADVISED_PAIRS, "pairs", "phrases rather than the language")


def report_misaligned(statistics: "ParallelSurvey", request: PairsRequest) -> None:
    """Warn about lines of a parallel text whose two sides do not seem to be aligned, with examples."""
    with show_progress("comparing both sides"):
        runs = misaligned_lines(statistics.source, statistics.target)
    if not runs:
        return
    spans = [f"{statistics.lines[begin]:,} to {statistics.lines[end - 1]:,}" for begin, end in runs[:3]]
    typer.echo(
        f"  WARNING: on lines {', '.join(spans)}{' and others' * (len(runs) > 3)} the two sides do not seem to be "
        "aligned: long lines do not correspond to long lines, questions to questions, or numbers to numbers. "
        "Was one side shuffled or shifted? For example:"
    )
    begin, end = runs[0]
    examples = {int(statistics.lines[begin + (end - begin) * step // 4]) for step in (1, 2, 3)}
    pairs: Iterator[SentencePair] = read_pairs(request.corpus, DataConfig(bad_utf8=request.bad_utf8))
    for pair in takewhile(lambda pair: pair.line <= max(examples), pairs):
        if pair.line in examples:
            typer.echo(f"    line {pair.line:,}: {pair.source[:MAX_EXCERPT]!r} | {pair.target[:MAX_EXCERPT]!r}")
