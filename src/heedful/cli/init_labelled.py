"""`heedful init` on labelled or tagged text, and on questions with answers."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    free_folder,
    json_line,
    new_recipe,
    tell_dropped,
    tell_lengths,
    tell_longest,
    tell_parts,
    tell_recipe,
    write,
    write_parts,
)
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.columns import Notation
    from heedful.data.readers.labelled import Example
    from heedful.data.readers.squad import SpanQuestion
    from heedful.data.readers.tagged import Tagged
    from heedful.tools.proposals.labelled import LabelSurvey
    from heedful.tools.proposals.pairs import Split
    from heedful.tools.proposals.proposal import Texts


PARTS = ("train", "valid", "test")
SHARE = 10  # of so many texts one is held out for validation, and one for test
FEW = 1000  # examples; with fewer there is a warning
SHOWN = 20  # classes that are listed at most
LONGEST_SHOWN = 40  # characters of a text in a message
RARE = 5  # examples; a class with fewer is rare


Given = Mapping[str, CorpusConfig]  # of the parts valid and test, as far as they are there and not to be held out


@dataclass(frozen=True)
class LabelledRequest:
    """Arguments of `heedful init` for labelled text.

    Attributes:
        corpus: The file, and its columns.
        task: "classification" or "regression".
        out: The output folder; None: it is named after the file.
        bad_utf8: What happens to bad UTF-8.
        given: Text for validation and test, as far as it is not to be held out.
        notation: How the numbers of a regression are written; the parts have them with a decimal point.
        copied: True if the file is a temporary copy of the user's, whose lines are not those of the user's file.
        labels: The classes as the parts have them, where these are known: 2 for labels that are written 2.0.
    """

    corpus: CorpusConfig
    task: str
    out: Path | None
    bad_utf8: BadUtf8
    given: Given = field(default_factory=dict)
    notation: "Notation" = "point"
    copied: bool = False
    labels: tuple[str, ...] = ()

    @property
    def data(self) -> DataConfig:
        """The settings by which the text is read."""
        return DataConfig(bad_utf8=self.bad_utf8, labels=self.labels)

    def line(self, example: "Example") -> str:
        """Format a labelled example as a line of JSON, with the columns of the corpus as keys."""
        corpus = self.corpus
        pair = {} if corpus.pair_field is None else {corpus.pair_field: example.pair or ""}
        label = example.label
        if self.task == "regression" and "," in label:
            label = label.replace(".", "").replace(",", ".") if self.notation == "comma" else label.replace(",", "")
        return json_line({corpus.source_field: example.text, **pair, corpus.target_field: label})


def init_labelled(request: LabelledRequest) -> None:
    """Write the recipe of a classifier or a regression, and hold out text for validation and test."""
    from heedful.config.load import load_recipe
    from heedful.data.readers.filters import DropReport
    from heedful.data.readers.labelled import in_order, read_labelled
    from heedful.tools.proposals.labelled import propose_labelled, survey_labelled
    from heedful.tools.proposals.proposal import Corpora, Texts

    corpus, task = request.corpus, request.task
    folder = free_folder(Path(corpus.source), request.out, task)
    with show_progress(f"reading {corpus.source}", "texts") as progress:
        found = survey_labelled(progress.over(read_labelled(corpus, request.data, drops := DropReport())), corpus)
    tell_dropped(drops, copied=request.copied)
    tell_text(found, corpus, task)
    if request.notation == "comma":
        typer.echo("  numbers are written with a decimal comma, as in 4,37; the parts have 4.37")
    labels = in_order(found.labels) if task == "classification" else ()
    # Columns keep their names or numbers, so that the model reads them from other tables like this one too.
    named = {"source_field": corpus.source_field, "pair_field": corpus.pair_field, "target_field": corpus.target_field}
    fields = {field: name for field, name in named.items() if name is not None}
    corpora = Corpora(**{part: {"source": f"data/{part}.jsonl", **fields} for part in PARTS})
    texts = Texts(folder.resolve().name, request.bad_utf8, corpora)
    recipe = propose_labelled(found, task, labels, texts)
    with new_recipe(folder) as place:
        hold_out(found, request, folder, place)
        write(place / "config.toml", recipe)
    tell_recipe(load_recipe(folder), folder, "One text.\tAnother one." if found.is_pairs else None)


def hold_out(found: "LabelSurvey", request: LabelledRequest, folder: Path, place: Path) -> None:
    """Write the training, validation and test parts of labelled examples; no text is in two, nor a near copy of it.

    Validation and test have the same text with the same label once, and with other labels, as of several raters, too.
    They are written to `place`, the temporary folder of what is to be in `folder`.
    """
    from heedful.data.readers.labelled import read_labelled
    from heedful.tools.proposals.labelled import text_of
    from heedful.tools.proposals.pairs import near_hash, only_trained

    members = found.groups if request.task == "classification" else dict.fromkeys(found.groups, ("",))
    division = division_of(members, request.given)
    copies: list[Example] = []
    with show_progress(f"writing {folder}", "texts", found.examples) as progress:
        examples = progress.over(read_labelled(request.corpus, request.data))
        divided = division.divide(
            examples,
            lambda example: f"{text_of(example)}\n{example.label}",
            lambda example: bool(text_of(example).strip()),
            lambda example: near_hash(text_of(example)),
            copies.append,
        )

        def lines() -> Iterator[tuple[str, tuple[str]]]:
            yield from ((part, (request.line(example),)) for part, example in divided)
            for part, corpus in request.given.items():
                yield from ((part, (request.line(example),)) for example in read_labelled(corpus, request.data))

        counts = write_parts(place / "data", lines(), {part: (f"{part}.jsonl",) for part in PARTS})
    total = sum(counts.values()) + len(copies)
    tell_parts(folder / "data", counts, "examples", total, "text with the same label", copy_line(copies, request))
    tell_only_trained([] if request.given else only_trained(members, division))


def copy_line(copies: "Sequence[Example]", request: LabelledRequest) -> str:
    """Name one of the copies that are left out, and how to keep them."""
    from heedful.tools.proposals.labelled import text_of

    if not copies:
        return ""
    text = text_of(copies[0])
    shown = repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")
    place = f"{'record' if request.copied else 'line'} {copies[0].line:,}"
    return f", such as {shown}, {place}; to keep them, give a folder with files train, valid and test"


def division_of(members: "Mapping[int, Collection[str]]", given: Given) -> "Split":
    """Divide groups of examples into parts so that each class is in each; parts that are given are not held out."""
    from heedful.tools.proposals.pairs import Split, split_by_class

    if {"valid", "test"} <= given.keys():
        return Split(frozenset(), frozenset())
    return split_by_class(members, SHARE).without(given.keys())


def tell_only_trained(labels: Sequence[str]) -> None:
    """Print which classes are not in all parts."""
    if labels:
        typer.echo(
            f"  not in all three parts, as they have too few different examples: {', '.join(labels[:SHOWN])}"
            f"{', ...' * (len(labels) > SHOWN)}; give 3 or more of each class"
        )


def tell_text(found: "LabelSurvey", corpus: CorpusConfig, task: str) -> None:
    """Print what labelled examples look like, and what is odd about them."""
    unit = "characters" if found.side.is_spaceless else "words"
    kind = "pairs" if found.is_pairs else "texts"
    pair = f", its second one in {corpus.pair_field!r}" if found.is_pairs else ""
    fields = f"text in {corpus.source_field!r}{pair}, label in {corpus.target_field!r}"
    typer.echo(f"{counted(found.examples, kind)}: {fields}")
    tell_lengths("", f"{unit} a text", found.side.characters if found.side.is_spaceless else found.side.words)
    tell_longest("text", found.side.characters.max(), f"line {found.longest_at:,}")
    if task == "classification":
        tell_classes(found, corpus)
    elif found.counts_rows:
        typer.echo(
            f"  WARNING: all labels in {corpus.target_field!r} are whole numbers, and no two are equal: are they ids, "
            "or numbers of the rows? If so, name another column with --target-field"
        )
    if found.empty:
        typer.echo(f"  {counted(found.empty, 'examples')} without text; remove what is not wanted")
    if found.examples < FEW:
        typer.echo(
            f"  fewer than {FEW:,} examples teach little from scratch; begin with a model that has read text before "
            "(--set train.start=RUN), or find more"
        )


def tell_classes(found: "LabelSurvey", corpus: CorpusConfig) -> None:
    """Print the classes of labelled examples, rare classes, classes that look alike, and texts with several classes."""
    from heedful.data.readers.labelled import MOST_LABELS, dominance_line

    if len(found.labels) < 2:
        raise InputError(
            f"{corpus.source}: all labels in {corpus.target_field!r} are {next(iter(found.labels))!r}, and "
            "classification needs two classes; name another column with --target-field"
        )
    if len(found.labels) > MOST_LABELS:
        raise InputError(
            f"{corpus.source}: {corpus.target_field!r} has {len(found.labels):,} different labels, and more than "
            f"{MOST_LABELS:,} are no classes; name another column with --target-field"
        )
    shown = [f"{label} ({count:,})" for label, count in found.labels.most_common(SHOWN)]
    typer.echo(f"  {len(found.labels):,} classes: {', '.join(shown)}{', ...' * (len(found.labels) > SHOWN)}")
    if line := dominance_line(found.labels):
        typer.echo(f"  {line}")
    if rare := [label for label, count in found.labels.items() if count < RARE]:
        typer.echo(
            f"  too rare to be learned, with fewer than {RARE} examples: {', '.join(rare[:SHOWN])}; typing slips?"
        )
    tell_lookalikes(found.labels)
    if found.contradictions.lines:
        first, second = found.contradictions.lines
        typer.echo(
            f"  {counted(found.contradictions.texts, 'texts')} with different labels, as in lines {first:,} and "
            f"{second:,}; correct them, or take them out"
        )


def tell_lookalikes(labels: Iterable[str]) -> None:
    """Print which classes differ so little that they may be meant as one."""
    from heedful.tools.proposals.labelled import lookalikes_among

    if found := lookalikes_among(labels):
        groups = "; ".join(", ".join(map(repr, group)) for group in found[:SHOWN])
        typer.echo(
            "  learned as different classes, though they differ only in capitals, in blanks or in how a number is "
            f"written: {groups}; make them one if they mean the same"
        )


MANY = 20  # articles, of which some are held out whole


def init_tagged(corpus: CorpusConfig, given: Given, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of a tagger, and hold out sentences for validation and test."""
    from heedful.config.load import load_recipe
    from heedful.data.readers.tagged import read_tagged, tags_of
    from heedful.tools.proposals.labelled import propose_tagger
    from heedful.tools.proposals.pairs import TextStatistics, only_trained

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
    from heedful.tools.proposals.pairs import near_hash

    return near_hash(" ".join(sentence.words))


def lines_of_words(sentence: "Tagged") -> str:
    """Format a tagged sentence as lines of words with their tags; the line end after the last one ends the sentence."""
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))


def init_answers(corpus: CorpusConfig, given: Given, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of question answering, and hold out passages with their questions for validation and test."""
    from heedful.config.load import load_recipe
    from heedful.data.readers.squad import read_squad
    from heedful.tools.proposals.labelled import propose_answers
    from heedful.tools.proposals.pairs import TextStatistics, near_hash

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
    from heedful.tools.proposals.proposal import Corpora, Texts

    corpora = Corpora(**{part: {"source": f"data/{part}{ending}"} for part in PARTS})
    return Texts(folder.resolve().name, bad_utf8, corpora)
