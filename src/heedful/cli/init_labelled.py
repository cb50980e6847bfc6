"""`heedful init` on texts with targets: labels, numbers, tags, answers on passages, or replies and other texts."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedful.cli.first_recipe import (
    free_folder,
    json_line,
    lengths_of,
    new_recipe,
    report_dropped,
    report_lengths,
    report_longest,
    report_parts,
    report_recipe,
    this_machine,
    write,
    write_parts,
)
from heedful.cli.options import BadUtf8
from heedful.config.schema import CorpusConfig, DataConfig, FilterConfig
from heedful.data.readers.chat_messages import BETWEEN
from heedful.data.readers.corpus import SentencePair, read_replies, read_rows
from heedful.data.readers.filters import DropReport
from heedful.data.readers.labelled import MOST_LABELS, dominance_line, in_order, read_labelled
from heedful.data.readers.squad import read_squad
from heedful.data.readers.tagged import read_tagged, tags_of
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.tools.proposals.labelled import (
    lookalikes_among,
    propose_answers,
    propose_labelled,
    propose_tagger,
    survey_labelled,
    text_of,
)
from heedful.tools.proposals.pairs import (
    Split,
    TextStatistics,
    near_hash,
    only_trained,
    propose_replies,
    split_by_class,
    survey,
)
from heedful.tools.proposals.proposal import Corpora, Texts
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.columns import Notation
    from heedful.data.readers.labelled import Example
    from heedful.data.readers.squad import SpanQuestion
    from heedful.data.readers.tagged import Tagged
    from heedful.tools.proposals.labelled import LabelSurvey

PARTS = ("train", "valid", "test")
SHARE = 10  # of so many texts one is held out for validation, and one for test
FEW = 1000  # examples; with fewer there is a warning
FEW_REPLIES = 10_000
SHOWN = 20  # classes that are listed at most
LONGEST_SHOWN = 40  # characters of a text in a message
RARE = 5  # examples; a class with fewer is rare
MANY = 20  # articles, of which some are held out whole
WHOLE = FilterConfig(max_characters=10**9)  # of which no context of a dialogue is cut

Given = Mapping[str, CorpusConfig]  # of the parts valid and test, as far as they are there and not to be held out
Exchange = list[SentencePair]  # the replies of one dialogue, each with its context, or one text and its answer


@dataclass(frozen=True)
class LabelledRequest:
    """Arguments of `heedful init` for texts with targets."""

    corpus: CorpusConfig
    task: str
    out: Path | None  # None: the output folder is named after the file
    bad_utf8: BadUtf8
    given: Given = field(default_factory=dict)
    notation: "Notation" = "point"  # of the numbers of a regression; the parts have them with a decimal point
    copied: bool = False  # the file is a temporary copy of the user's, whose lines are not those of the user's file
    labels: tuple[str, ...] = ()  # as the parts have them, where these are known: 2 for labels that are written 2.0

    @property
    def data(self) -> DataConfig:
        return DataConfig(bad_utf8=self.bad_utf8, labels=self.labels)

    def line(self, example: "Example") -> str:
        """Format a labelled example as a line of JSON, with the columns of the corpus as keys."""
        corpus = self.corpus
        pair = {} if corpus.pair_field is None else {corpus.pair_field: example.pair or ""}
        label = example.label
        if self.task == "regression" and "," in label:
            label = label.replace(".", "").replace(",", ".") if self.notation == "comma" else label.replace(",", "")
        return json_line({corpus.source_field: example.text, **pair, corpus.target_field: label})


def texts_of(folder: Path, bad_utf8: str, ending: str = ".jsonl", **fields: str) -> Texts:
    corpora = Corpora(**{part: {"source": f"data/{part}{ending}", **fields} for part in PARTS})
    return Texts(folder.resolve().name, bad_utf8, corpora)


def division_of(members: Mapping[int, Collection[str]], given: Given) -> Split:
    """Divide groups of examples into parts so that each class is in each; parts that are given are not held out."""
    if {"valid", "test"} <= given.keys():
        return Split(frozenset(), frozenset())
    return split_by_class(members, SHARE).without(given.keys())


def init_labelled(request: LabelledRequest) -> None:
    """Write the recipe of a classifier or a regression, and hold out text for validation and test."""
    corpus, task = request.corpus, request.task
    folder = free_folder(Path(corpus.source), request.out, task)
    with show_progress(f"reading {corpus.source}", "texts") as progress:
        drops = DropReport()
        statistics = survey_labelled(progress.over(read_labelled(corpus, request.data, drops)), corpus)
    report_dropped(drops, copied=request.copied)
    report_labelled(statistics, corpus, task)
    if request.notation == "comma":
        typer.echo("  numbers are written with a decimal comma, as in 4,37; the parts have 4.37")
    labels = in_order(statistics.labels) if task == "classification" else ()
    # Columns keep their names or numbers, so that the model reads them from other tables like this one too.
    names = {"source_field": corpus.source_field, "pair_field": corpus.pair_field, "target_field": corpus.target_field}
    fields = {field: name for field, name in names.items() if name is not None}
    recipe = propose_labelled(statistics, task, labels, texts_of(folder, request.bad_utf8, **fields))
    with new_recipe(folder) as place:
        hold_out(statistics, request, folder, place)
        write(place / "config.toml", recipe)
    report_recipe(folder, "One text.\tAnother one." if statistics.is_pairs else None)


def hold_out(statistics: "LabelSurvey", request: LabelledRequest, folder: Path, place: Path) -> None:
    """Write the training, validation and test parts of labelled examples; no text is in two, nor a near copy of it.

    Validation and test have the same text with the same label once, and with other labels, as of several raters, too.
    They are written to `place`, the temporary folder of what is to be in `folder`.
    """
    groups = statistics.groups if request.task == "classification" else dict.fromkeys(statistics.groups, ("",))
    division = division_of(groups, request.given)
    copies: list[Example] = []
    with show_progress(f"writing {folder}", "texts", statistics.examples) as progress:
        divided = division.divide(
            progress.over(read_labelled(request.corpus, request.data)),
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
    example = ""
    if copies:
        text = text_of(copies[0])
        excerpt = repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")
        line = f"{'record' if request.copied else 'line'} {copies[0].line:,}"
        example = f", such as {excerpt}, {line}; to keep them, give a folder with files train, valid and test"
    report_parts(folder / "data", counts, "examples", total, "text with the same label", example)
    report_only_trained([] if request.given else only_trained(groups, division))


def report_only_trained(labels: Sequence[str]) -> None:
    if labels:
        typer.echo(
            f"  not in all three parts, as they have too few different examples: {', '.join(labels[:SHOWN])}"
            f"{', ...' * (len(labels) > SHOWN)}; give 3 or more of each class"
        )


def report_labelled(statistics: "LabelSurvey", corpus: CorpusConfig, task: str) -> None:
    """Print what labelled examples look like, and what is odd about them; refuse one class, or too many."""
    kind = "pairs" if statistics.is_pairs else "texts"
    pair = f", its second one in {corpus.pair_field!r}" if statistics.is_pairs else ""
    fields = f"text in {corpus.source_field!r}{pair}, label in {corpus.target_field!r}"
    typer.echo(f"{counted(statistics.examples, kind)}: {fields}")
    unit, lengths = lengths_of(statistics.side)
    report_lengths(f"{unit} a text", lengths)
    report_longest("text", statistics.side.characters.max(), f"line {statistics.longest_at:,}")
    if task == "classification":
        report_label_columns(statistics, corpus)
    elif statistics.counts_rows:
        typer.echo(
            f"  WARNING: all labels in {corpus.target_field!r} are whole numbers, and no two are equal: are they ids, "
            "or numbers of the rows? If so, name another column with --target-field"
        )
    if statistics.empty:
        typer.echo(f"  {counted(statistics.empty, 'examples')} without text; remove what is not wanted")
    report_few(statistics.examples, "examples")


def report_label_columns(statistics: "LabelSurvey", corpus: CorpusConfig) -> None:
    """Print the classes of labelled examples, and texts with several classes; refuse one class, or too many."""
    labels = statistics.labels
    if len(labels) < 2:
        raise InputError(
            f"{corpus.source}: all labels in {corpus.target_field!r} are {next(iter(labels))!r}, and "
            "classification needs two classes; name another column with --target-field"
        )
    if len(labels) > MOST_LABELS:
        raise InputError(
            f"{corpus.source}: {corpus.target_field!r} has {len(labels):,} different labels, and more than "
            f"{MOST_LABELS:,} are no classes; name another column with --target-field"
        )
    report_classes(labels, "examples")
    if statistics.contradictions.lines:
        first, second = statistics.contradictions.lines
        typer.echo(
            f"  {counted(statistics.contradictions.texts, 'texts')} with different labels, as in lines {first:,} and "
            f"{second:,}; correct them, or take them out"
        )


def report_classes(labels: Counter[str], unit: str) -> None:
    """Print classes with their numbers of examples, rare classes, and classes that look alike."""
    counts = [f"{label} ({count:,})" for label, count in labels.most_common(SHOWN)]
    typer.echo(f"  {len(labels):,} classes: {', '.join(counts)}{', ...' * (len(labels) > SHOWN)}")
    if line := dominance_line(labels):
        typer.echo(f"  {line}")
    if rare := [label for label, count in labels.items() if count < RARE]:
        typer.echo(f"  too rare to be learned, with fewer than {RARE} {unit}: {', '.join(rare[:SHOWN])}; typing slips?")
    if alike := lookalikes_among(labels):
        groups = "; ".join(", ".join(map(repr, group)) for group in alike[:SHOWN])
        typer.echo(
            "  learned as different classes, though they differ only in capitals, in blanks or in how a number is "
            f"written: {groups}; make them one if they mean the same"
        )


def report_few(count: int, unit: str) -> None:
    if count < FEW:
        typer.echo(
            f"  fewer than {FEW:,} {unit} teach little from scratch; begin with a model that has read text before "
            "(--set train.start=RUN), or find more"
        )


def init_tagged(corpus: CorpusConfig, given: Given, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of a tagger, and hold out sentences for validation and test."""
    folder = free_folder(Path(corpus.source), out, "tagging")
    data = DataConfig(bad_utf8=bad_utf8)
    texts, kinds, members = TextStatistics(), Counter[str](), dict[int, set[str]]()
    with show_progress(f"reading {corpus.source}", "sentences") as progress:
        for sentence in progress.over(read_tagged(corpus, data)):
            texts.add(" ".join(sentence.words))
            own = {tag[2:] for tag in sentence.tags if tag != "O"}
            kinds.update(own)
            members.setdefault(hash_of_words(sentence), set()).update(own or {"O"})
    if not texts.words:
        raise InputError(f"{corpus.source}: there are no sentences in it; check the file")
    side, tags = texts.side(), tags_of(DataConfig(bad_utf8=bad_utf8, train=(corpus,)))
    typer.echo(f"{counted(len(side.words), 'sentences')} of tagged words")
    report_lengths("words a sentence", side.words)
    counts = [f"{kind} ({count:,})" for kind, count in kinds.most_common(SHOWN)]
    typer.echo(f"  {len(kinds):,} kinds of spans, and the sentences that have one: {', '.join(counts)}")
    report_few(len(side.words), "sentences")
    division = division_of(members, given)

    def lines() -> Iterator[tuple[str, tuple[str]]]:
        sentences = read_tagged(corpus, data)
        for part, one in division.divide(sentences, lambda one: " ".join(one.words), lambda _: True, hash_of_words):
            yield part, (lines_of_words(one),)
        for part, other in given.items():
            yield from ((part, (lines_of_words(one),)) for one in read_tagged(other, data))

    with new_recipe(folder) as place:
        counts = write_parts(place / "data", lines(), {part: (f"{part}.conll",) for part in PARTS})
        write(place / "config.toml", propose_tagger(side, tags, texts_of(folder, bad_utf8, ".conll")))
    report_parts(folder / "data", counts, "sentences", len(side.words) if not given else sum(counts.values()), "text")
    report_only_trained(only_trained(members, division) if not given else [])
    report_recipe(folder)


def hash_of_words(sentence: "Tagged") -> int:
    return near_hash(" ".join(sentence.words))


def lines_of_words(sentence: "Tagged") -> str:
    """Format a tagged sentence as lines of words with their tags; the line end after the last one ends the sentence."""
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))


def init_answers(corpus: CorpusConfig, given: Given, out: Path | None, bad_utf8: BadUtf8) -> None:
    """Write the recipe of question answering, and hold out passages with their questions for validation and test."""
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
    report_lengths(*lengths_of(side))
    report_few(len(questions), "questions")

    # Of many articles whole ones are held out, otherwise passages.
    def group(question: "SpanQuestion") -> int:
        return question.article if len(articles) >= MANY else near_hash(question.context)

    division = division_of({group(question): ("",) for question in questions}, given)
    parts: dict[str, list[SpanQuestion]] = {part: [] for part in PARTS}
    for question in questions:
        parts[division.part(group(question))].append(question)
    for part, other in given.items():
        parts[part] = list(read_squad(other, data))
    with new_recipe(folder) as place:
        lines = ((part, (squad_of(parts[part]),)) for part in PARTS)
        write_parts(place / "data", lines, {part: (f"{part}.json",) for part in PARTS})
        write(place / "config.toml", propose_answers(side, texts_of(folder, data.bad_utf8, ".json")))
    counts = {part: len(some) for part, some in parts.items()}
    report_parts(folder / "data", counts, "questions", sum(counts.values()), "passage")
    report_recipe(folder)


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


def init_replies(request: LabelledRequest) -> None:
    """Write the recipe of a model that replies, answers or sums up, and hold out text for validation and test."""
    corpus, task = request.corpus, request.task
    folder = free_folder(Path(corpus.source), request.out, task)
    beginnings: Counter[int] = Counter()
    drops = DropReport()
    with show_progress(f"reading {corpus.source}", "texts") as progress:

        def pairs() -> Iterator[SentencePair]:
            for exchange in progress.over(exchanges(corpus, request, drops)):
                beginnings[near_hash(exchange[0].source)] += 1
                yield from exchange

        statistics, count = survey(pairs()), beginnings.total()
    report_dropped(drops, copied=request.copied)
    if statistics.copies == statistics.pairs:
        raise InputError(f"{corpus.source}: each answer is the same as its text; name other columns")
    unit, replies = ("dialogues", "replies") if task == "dialogue" else ("texts", "answers")
    typer.echo(f"{counted(count, unit)} with {counted(statistics.pairs, replies)}")
    for name, side in (("before", statistics.source), ("reply ", statistics.target)):
        measure, lengths = lengths_of(side)
        report_lengths(f"{name} {measure}", lengths)
    if statistics.pairs < FEW_REPLIES:
        typer.echo(f"  fewer than {FEW_REPLIES:,} pairs teach phrases rather than answers; find more text if you can")

    # A reply can be judged if no text of its exchange is blank.
    division = division_of(dict.fromkeys(beginnings, ("",)), request.given)
    divided = division.divide(
        exchanges(corpus, request, DropReport()),
        lambda exchange: exchange[0].source,
        lambda exchange: all(pair.source.strip() and pair.target.strip() for pair in exchange),
    )

    def lines() -> Iterator[tuple[str, tuple[str]]]:
        yield from ((part, (exchange_line(exchange, task),)) for part, exchange in divided)
        for part, other in request.given.items():
            for exchange in exchanges(other, request, DropReport()):
                yield part, (exchange_line(exchange, task),)

    recipe = propose_replies(statistics, this_machine(), task, texts_of(folder, request.bad_utf8))
    with new_recipe(folder) as place:
        counts = write_parts(place / "data", lines(), {part: (f"{part}.jsonl",) for part in PARTS})
        write(place / "config.toml", recipe)
    report_parts(folder / "data", counts, unit, sum(counts.values()) if request.given else count, "beginning")
    report_recipe(folder)


def exchanges(corpus: CorpusConfig, request: LabelledRequest, report: DropReport) -> Iterator[Exchange]:
    """Yield the replies of each dialogue, or each text with its answer."""
    if request.task == "dialogue":
        data = DataConfig(bad_utf8=request.bad_utf8, filters=WHOLE)
        for _, pairs in groupby(read_replies(corpus, data, report), attrgetter("line")):
            yield list(pairs)
        return
    pair_field = [] if corpus.pair_field is None else [corpus.pair_field]
    fields = (corpus.source_field, *pair_field, corpus.target_field)
    for line, (*texts, target) in read_rows(corpus, request.data, fields, report):
        yield [SentencePair(line, "\n".join(text for text in texts if text.strip()), target)]


def exchange_line(exchange: Exchange, task: str) -> str:
    """Format a dialogue, with the roles of its turns, or a text with its answer, as a line of JSON."""
    last = exchange[-1]
    if task != "dialogue":
        return json_line({"source": last.source, "target": last.target})
    replies = {len(pair.source.split(BETWEEN)) for pair in exchange}
    turns = [*last.source.split(BETWEEN), last.target]
    messages: list[dict[str, Any]] = [
        {"role": "assistant" if place in replies else "user", "content": turn} for place, turn in enumerate(turns)
    ]
    return json_line({"source": messages})
