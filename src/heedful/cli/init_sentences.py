"""`heedful init` for tagged words (CoNLL) and for questions on passages (SQuAD): a tagger, or question answering."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    free_folder,
    new_recipe,
    tell_lengths,
    tell_parts,
    tell_recipe,
    write,
    write_parts,
)
from heedful.cli.init_labelled import FEW, PARTS, SHOWN, Given, division_of, tell_only_trained
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.proposals.proposal import Texts
    from heedful.data.readers.squad import SpanQuestion
    from heedful.data.readers.tagged import Tagged

MANY = 20  # articles, of which some are held out whole


def init_tagged(corpus: CorpusConfig, given: Given, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of a tagger, and hold out sentences for validation and test.

    Raises:
        InputError: The sentences cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.proposals.pair_survey import TextStatistics, only_trained
    from heedful.data.proposals.sentence_proposal import propose_tagger
    from heedful.data.readers.tagged import read_tagged, tags_of

    folder = free_folder(Path(corpus.source), out, "tagging")
    data = DataConfig(bad_utf8=bad_utf8)
    texts, kinds, members = TextStatistics(), Counter[str](), dict[int, set[str]]()
    with show_progress(f"reading {corpus.source}", "sentences") as progress:
        for sentence in progress.over(read_tagged(corpus, data)):
            texts.add(" ".join(sentence.words))
            kinds.update(kinds_in(sentence))
            members.setdefault(hash_of_words(sentence), set()).update(kinds_in(sentence) or {"O"})
    if not texts.words:
        raise InputError(f"{corpus.source}: there are no sentences in it; check the file")
    side, tags = texts.side(), tags_of(replace(data, train=(corpus,)))
    typer.echo(f"{counted(len(side.words), 'sentences')} of tagged words")
    tell_lengths("", "words a sentence", side.words)
    shown = [f"{kind} ({count:,})" for kind, count in kinds.most_common(SHOWN)]
    typer.echo(f"  {len(kinds):,} kinds of spans, and the sentences that have one: {', '.join(shown)}")
    tell_few(len(side.words), "sentences")
    division = division_of(members, given)

    def lines() -> Iterator[tuple[str, tuple[str]]]:
        sentences = read_tagged(corpus, data)
        for part, one in division.divide(sentences, lambda one: " ".join(one.words), lambda _: True, hash_of_words):
            yield part, (lines_of_words(one),)
        for part, other in given.items():
            yield from ((part, (lines_of_words(one),)) for one in read_tagged(other, data))

    with new_recipe(folder) as place:
        counts = write_parts(place / "data", lines(), {part: (f"{part}.conll",) for part in PARTS})
        write(place / "config.toml", propose_tagger(side, tags, texts_of(folder, ".conll", bad_utf8)))
    tell_parts(folder / "data", counts, "sentences", len(side.words) if not given else sum(counts.values()), "text")
    tell_only_trained(only_trained(members, division) if not given else [])
    tell_recipe(load_recipe(folder), folder)


def kinds_in(sentence: "Tagged") -> set[str]:
    """The kinds of spans in a tagged sentence."""
    return {tag[2:] for tag in sentence.tags if tag != "O"}


def hash_of_words(sentence: "Tagged") -> int:
    """The hash that near copies of a sentence share."""
    from heedful.data.proposals.pair_survey import near_hash

    return near_hash(" ".join(sentence.words))


def lines_of_words(sentence: "Tagged") -> str:
    """Format a tagged sentence as lines of words with their tags; the line end after the last one ends the sentence."""
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))


def init_answers(corpus: CorpusConfig, given: Given, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of question answering, and hold out passages with their questions for validation and test.

    Raises:
        InputError: The questions cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.proposals.pair_survey import TextStatistics, near_hash
    from heedful.data.proposals.sentence_proposal import propose_answers
    from heedful.data.readers.squad import read_squad

    folder = free_folder(Path(corpus.source), out, "span_qa")
    data = DataConfig(bad_utf8="replace" if bad_utf8 == "replace" else "error")
    with show_progress(f"reading {corpus.source}", "questions") as progress:
        questions = list(progress.over(read_squad(corpus, data)))
    if not questions:
        raise InputError(f"{corpus.source}: there are no questions in it; check the file")
    articles = {question.article for question in questions}
    passages = {question.context for question in questions}
    texts = TextStatistics()
    for question in questions:
        texts.add(f"{question.question} {question.context}")
    side = texts.side()
    unanswered = sum(not question.answers for question in questions)
    typer.echo(
        f"{counted(len(questions), 'questions')} on {counted(len(passages), 'passages')} of "
        f"{counted(len(articles), 'articles')}, {unanswered:,} of them without an answer"
    )
    tell_lengths(
        "", "characters" if side.is_spaceless else "words", side.characters if side.is_spaceless else side.words
    )
    tell_few(len(questions), "questions")

    def group(question: "SpanQuestion") -> int:
        return question.article if len(articles) >= MANY else near_hash(question.context)

    division = division_of({group(question): ("",) for question in questions}, given)
    parts: dict[str, list[SpanQuestion]] = {part: [] for part in PARTS}
    for question in questions:
        parts[division.part(group(question))].append(question)
    for part, other in given.items():
        parts[part] = list(read_squad(other, data))
    lines = ((part, (squad_of(parts[part]),)) for part in PARTS)
    with new_recipe(folder) as place:
        write_parts(place / "data", lines, {part: (f"{part}.json",) for part in PARTS})
        write(place / "config.toml", propose_answers(side, texts_of(folder, ".json", data.bad_utf8)))
    counts = {part: len(found) for part, found in parts.items()}
    tell_parts(folder / "data", counts, "questions", sum(counts.values()), "passage")
    tell_recipe(load_recipe(folder), folder)


def squad_of(questions: "list[SpanQuestion]") -> str:
    """Write questions in SQuAD's format, each passage as an article."""
    articles = []
    for context, group in groupby(questions, attrgetter("context")):
        entries = [
            {
                "id": question.id,
                "question": question.question,
                "answers": [{"text": answer.text, "answer_start": answer.start} for answer in question.answers],
                "is_impossible": not question.answers,
            }
            for question in group
        ]
        articles.append({"title": "", "paragraphs": [{"context": context, "qas": entries}]})
    return json.dumps({"version": "1.1", "data": articles}, ensure_ascii=False)


def tell_few(count: int, unit: str) -> None:
    """Print that there are few examples, if there are."""
    if count < FEW:
        typer.echo(
            f"  fewer than {FEW:,} {unit} teach little from scratch; begin with a model that has read text before "
            "(--set train.start=RUN), or find more"
        )


def texts_of(folder: Path, ending: str, bad_utf8: str) -> "Texts":
    """The name of a recipe and the files of its parts."""
    from heedful.data.proposals.proposal import Corpora, Texts

    corpora = Corpora(**{part: {"source": f"data/{part}{ending}"} for part in PARTS})
    return Texts(folder.resolve().name, bad_utf8, corpora)
