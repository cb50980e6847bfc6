"""`heedful init` for texts with targets: labels, numbers, tags, answers about passages, or replies and other texts."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from heedful.cli.first_recipe import (
    free_folder,
    json_line,
    lengths_of,
    listed,
    new_recipe,
    report_dropped,
    report_few,
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
from heedful.data.readers.chat_messages import TURN_SEPARATOR
from heedful.data.readers.corpus import SentencePair, read_replies, read_rows
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.labelled import MAX_LABELS, dominance_line, in_order, read_labelled
from heedful.data.readers.squad import read_squad
from heedful.data.readers.tagged import read_tagged, tags_of
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.tools.proposals.labelled import (
    lookalikes_among,
    propose_encoder,
    survey_labelled,
    text_of,
)
from heedful.tools.proposals.pairs import propose_replies, survey_parallel
from heedful.tools.proposals.proposal import RecipeData
from heedful.tools.proposals.splits import Split, classes_not_held_out, near_hash, split_by_class
from heedful.tools.proposals.text_statistics import StatisticsBuilder
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.columns import Notation
    from heedful.data.readers.labelled import Example
    from heedful.data.readers.squad import SpanQuestion
    from heedful.data.readers.tagged import Tagged
    from heedful.tools.proposals.labelled import LabelSurvey

T = TypeVar("T")

PARTS = ("train", "valid", "test")
SHARE = 10  # one text in 10 is held out for validation, and one for testing
ADVISED_EXAMPLES = 1000  # fewer cause a warning
ADVISED_REPLIES = 10_000
START = "start from a pretrained model (--set train.start=RUN), or add more data"
MIN_CLASS_SIZE = 5  # examples; smaller classes are rare
MAX_SHOWN = 20  # classes
MAX_EXCERPT = 40  # characters of a text in a message
MANY_ARTICLES = 20  # with at least this many, whole articles are held out
UNCUT = FilterConfig(max_characters=10**9)  # so that no context of a dialogue is cut

Exchange = list[SentencePair]  # the replies of one dialogue, each with its context, or one text and its answer


@dataclass(frozen=True)
class LabelledRequest:
    """Arguments of `heedful init` for texts with targets."""

    corpus: CorpusConfig
    task: str
    out: Path | None  # if None, the output folder is named after the file
    bad_utf8: BadUtf8
    parts: Mapping[str, CorpusConfig] = field(default_factory=dict)  # the user's validation and test sets
    notation: "Notation" = "point"  # of the numbers in the file, for regression; the parts have a decimal point
    is_copy: bool = False  # whether the file is a temporary copy of the user's, with other line numbers
    labels: tuple[str, ...] = ()  # the classes as written to the parts, such as 2 if the file has 2.0

    @property
    def data(self) -> DataConfig:
        return DataConfig(bad_utf8=self.bad_utf8, labels=self.labels)

    def folder(self) -> Path:
        """Return the output folder, which does not contain a recipe yet."""
        return free_folder(Path(self.corpus.source), self.out, self.task)

    def division(self, members: Mapping[int, Collection[str]]) -> Split:
        """Divide groups of examples into the parts that the user does not give, each with every class if possible."""
        if {"valid", "test"} <= self.parts.keys():
            return Split()
        return split_by_class(members, SHARE, source=self.corpus.source).without(self.parts.keys())

    def write(
        self,
        folder: Path,
        recipe: str,
        divided: Iterable[tuple[str, T]],
        read: Callable[[CorpusConfig], Iterable[T]],
        line: Callable[[T], str],
        ending: str = ".jsonl",
    ) -> dict[str, int]:
        """Write the recipe, the divided examples and the user's own parts; return the number of lines in each part."""

        def lines() -> Iterator[tuple[str, tuple[str]]]:
            yield from ((part, (line(example),)) for part, example in divided)
            for part, corpus in self.parts.items():
                yield from ((part, (line(example),)) for example in read(corpus))

        with new_recipe(folder) as staging:
            counts = write_parts(staging / "data", lines(), {part: (f"{part}{ending}",) for part in PARTS})
            write(staging / "config.toml", recipe)
        return counts


def texts_of(folder: Path, bad_utf8: str, ending: str = ".jsonl", **fields: str) -> RecipeData:
    corpora = {part: {"source": f"data/{part}{ending}", **fields} for part in PARTS}
    return RecipeData(folder.resolve().name, bad_utf8, corpora)


def init_labelled(request: LabelledRequest) -> None:
    """Write the recipe of a classifier or regression model, and hold out text for validation and test.

    No two parts share a text or a near copy of one. In validation and test, the same text with the same label occurs
    once; a text with several labels, for example from several raters, occurs once with each of them.
    """
    corpus, task = request.corpus, request.task
    folder = request.folder()
    with show_progress(f"reading {corpus.source}", "texts") as progress:
        drops = DropReport()
        statistics = survey_labelled(progress.over(read_labelled(corpus, request.data, drops)), corpus)
    report_dropped(drops, copied=request.is_copy)
    report_labelled(statistics, corpus, task)
    if request.notation == "comma":
        typer.echo("  numbers are written with a decimal comma, as in 4,37; the parts contain 4.37")
    labels = in_order(statistics.labels) if task == "classification" else ()
    # Columns keep their names or numbers, so that the model can also read other tables like this one.
    names = {"source_field": corpus.source_field, "pair_field": corpus.pair_field, "target_field": corpus.target_field}
    fields = {field: name for field, name in names.items() if name is not None}
    recipe = propose_encoder(
        statistics.texts, task, labels, texts_of(folder, request.bad_utf8, **fields), pairs=statistics.is_pairs
    )

    def line(example: "Example") -> str:
        pair = {} if corpus.pair_field is None else {corpus.pair_field: example.pair or ""}
        label = example.label
        if task == "regression" and "," in label:
            label = label.replace(".", "").replace(",", ".") if request.notation == "comma" else label.replace(",", "")
        return json_line({corpus.source_field: example.text, **pair, corpus.target_field: label})

    groups = statistics.groups if task == "classification" else dict.fromkeys(statistics.groups, ("",))
    division = request.division(groups)
    copies: list[Example] = []
    with show_progress(f"writing {folder}", "texts", statistics.examples) as progress:
        divided = division.divide(
            progress.over(read_labelled(corpus, request.data)),
            lambda example: f"{text_of(example)}\n{example.label}",
            lambda example: bool(text_of(example).strip()),
            lambda example: near_hash(text_of(example)),
            copies.append,
        )
        counts = request.write(folder, recipe, divided, lambda part: read_labelled(part, request.data), line)
    remark = ""
    if copies:
        text = text_of(copies[0])
        excerpt = repr(text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}...")
        location = f"{'record' if request.is_copy else 'line'} {copies[0].line:,}"
        remark = f", such as {excerpt}, {location}; to keep them, give a folder with files train, valid and test"
    total = sum(counts.values()) + len(copies)
    report_parts(folder / "data", counts, "examples", total, "text with the same label", remark)
    if not request.parts:
        report_only_trained(classes_not_held_out(groups, division))
    report_recipe(folder, "One text.\tAnother one." if statistics.is_pairs else None)


def report_only_trained(labels: Collection[str]) -> None:
    if labels:
        typer.echo(
            f"  classes that are not in all three parts, because they have too few distinct examples: "
            f"{listed(labels, MAX_SHOWN)}; give at least 3 examples of each"
        )


def report_labelled(statistics: "LabelSurvey", corpus: CorpusConfig, task: str) -> None:
    """Print what labelled examples look like, and what is odd about them; reject a single class, or too many."""
    kind = "pairs" if statistics.is_pairs else "texts"
    pair = f", second text in {corpus.pair_field!r}" if statistics.is_pairs else ""
    fields = f"text in {corpus.source_field!r}{pair}, label in {corpus.target_field!r}"
    typer.echo(f"{counted(statistics.examples, kind)}: {fields}")
    unit, lengths = lengths_of(statistics.texts)
    report_lengths(f"{unit} per text", lengths)
    report_longest("text", statistics.texts.characters.max(), f"line {statistics.longest_at:,}")
    labels = statistics.labels
    if task == "classification":
        if len(labels) < 2:
            raise InputError(
                f"{corpus.source}: all labels in {corpus.target_field!r} are {next(iter(labels))!r}, but "
                "classification needs at least two classes; choose another column with --target-field"
            )
        if len(labels) > MAX_LABELS:
            raise InputError(
                f"{corpus.source}: {corpus.target_field!r} has {len(labels):,} distinct labels, but at "
                f"most {MAX_LABELS:,} classes are supported; choose another column with --target-field"
            )
        report_classes(labels, "examples")
        if statistics.contradictions.lines:
            first, second = statistics.contradictions.lines
            typer.echo(
                f"  {counted(statistics.contradictions.texts, 'texts')} with contradictory labels, as on lines "
                f"{first:,} and {second:,}; correct the labels or remove the lines"
            )
    elif statistics.labels_are_ids:
        typer.echo(
            f"  WARNING: all labels in {corpus.target_field!r} are distinct whole numbers: are they ids or row "
            "numbers? If so, choose another column with --target-field"
        )
    if statistics.empty:
        typer.echo(f"  {counted(statistics.empty, 'examples')} without text; remove any that you do not want")
    report_few(statistics.examples, ADVISED_EXAMPLES, "examples", "little from scratch", START)


def report_classes(labels: Counter[str], unit: str) -> None:
    """Print the classes with their numbers of examples, rare classes, and classes that look alike."""
    counts = (f"{label} ({count:,})" for label, count in labels.most_common())
    typer.echo(f"  {len(labels):,} classes: {listed(counts, MAX_SHOWN)}")
    if line := dominance_line(labels):
        typer.echo(f"  {line}")
    if rare := [label for label, count in labels.items() if count < MIN_CLASS_SIZE]:
        names = ", ".join(rare[:MAX_SHOWN])
        typer.echo(f"  too rare to learn, with fewer than {MIN_CLASS_SIZE} {unit}: {names}; are they typos?")
    if alike := lookalikes_among(labels):
        groups = "; ".join(", ".join(map(repr, group)) for group in alike[:MAX_SHOWN])
        typer.echo(
            "  treated as different classes, although they differ only in capitals, spaces or number format: "
            f"{groups}; merge them if they mean the same"
        )


def init_tagged(request: LabelledRequest) -> None:
    """Write the recipe of a tagger, and hold out sentences for validation and test."""
    corpus, data = request.corpus, request.data
    folder = request.folder()
    texts, kinds, members = StatisticsBuilder(), Counter[str](), dict[int, set[str]]()

    def text_in(sentence: "Tagged") -> str:
        return " ".join(sentence.words)

    with show_progress(f"reading {corpus.source}", "sentences") as progress:
        for sentence in progress.over(read_tagged(corpus, data)):
            texts.add(text_in(sentence))
            own = {tag[2:] for tag in sentence.tags if tag != "O"}
            kinds.update(sorted(own))
            members.setdefault(near_hash(text_in(sentence)), set()).update(own or {"O"})
    if not texts.words:
        raise InputError(f"{corpus.source}: has no sentences; check the file")
    side, tags = texts.build(), tags_of(DataConfig(bad_utf8=request.bad_utf8, train=(corpus,)))
    typer.echo(f"{counted(len(side.words), 'sentences')} of tagged words")
    report_lengths("words per sentence", side.words)
    counts_of_kinds = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.most_common(MAX_SHOWN))
    typer.echo(f"  {len(kinds):,} kinds of spans, with their numbers of sentences: {counts_of_kinds}")
    report_few(len(side.words), ADVISED_EXAMPLES, "sentences", "little from scratch", START)

    def lines(sentence: "Tagged") -> str:  # the line break after the last word ends the sentence
        return "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True))

    division = request.division(members)
    divided = division.divide(read_tagged(corpus, data), text_in, lambda _: True, lambda one: near_hash(text_in(one)))
    recipe = propose_encoder(side, "tagging", tags, texts_of(folder, request.bad_utf8, ".conll"))
    counts = request.write(folder, recipe, divided, lambda part: read_tagged(part, data), lines, ".conll")
    total = sum(counts.values()) if request.parts else len(side.words)
    report_parts(folder / "data", counts, "sentences", total, "text")
    if not request.parts:
        report_only_trained(classes_not_held_out(members, division))
    report_recipe(folder)


def init_answers(request: LabelledRequest) -> None:
    """Write a recipe for question answering, and hold out passages with their questions for validation and test."""
    corpus, folder = request.corpus, request.folder()
    data = DataConfig(bad_utf8="replace" if request.bad_utf8 == "replace" else "error")
    with show_progress(f"reading {corpus.source}", "questions") as progress:
        questions = list(progress.over(read_squad(corpus, data)))
    if not questions:
        raise InputError(f"{corpus.source}: has no questions; check the file")
    articles = {question.article for question in questions}
    passages = {question.context for question in questions}
    texts = StatisticsBuilder()
    for question in questions:
        texts.add(f"{question.question} {question.context}")
    side = texts.build()
    unanswered = sum(not question.answers for question in questions)
    typer.echo(
        f"{counted(len(questions), 'questions')} about {counted(len(passages), 'passages')} from "
        f"{counted(len(articles), 'articles')}; {unanswered:,} without an answer"
    )
    report_lengths(*lengths_of(side))
    report_few(len(questions), ADVISED_EXAMPLES, "questions", "little from scratch", START)

    # With many articles, whole articles are held out, otherwise passages.
    def group(question: "SpanQuestion") -> int:
        return question.article if len(articles) >= MANY_ARTICLES else near_hash(question.context)

    division = request.division({group(question): ("",) for question in questions})
    parts: dict[str, list[SpanQuestion]] = {part: [] for part in PARTS}
    for question in questions:
        parts[division.part(group(question))].append(question)
    parts |= {part: list(read_squad(other, data)) for part, other in request.parts.items()}
    with new_recipe(folder) as staging:
        lines = ((part, (squad_of(parts[part]),)) for part in PARTS)
        write_parts(staging / "data", lines, {part: (f"{part}.json",) for part in PARTS})
        write(staging / "config.toml", propose_encoder(side, "span_qa", (), texts_of(folder, data.bad_utf8, ".json")))
    counts = {part: len(some) for part, some in parts.items()}
    report_parts(folder / "data", counts, "questions", sum(counts.values()), "passage")
    report_recipe(folder)


def squad_of(questions: "list[SpanQuestion]") -> str:
    """Format questions as SQuAD's JSON, each passage as an article."""
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
    """Write the recipe of a model that replies, answers or summarises, and hold out text for validation and test."""
    corpus, task = request.corpus, request.task
    folder = request.folder()
    beginnings: Counter[int] = Counter()
    drops = DropReport()
    with show_progress(f"reading {corpus.source}", "texts") as progress:

        def pairs() -> Iterator[SentencePair]:
            for exchange in progress.over(exchanges(corpus, request, drops)):
                beginnings[near_hash(exchange[0].source)] += 1
                yield from exchange

        statistics, count = survey_parallel(pairs()), beginnings.total()
    report_dropped(drops, copied=request.is_copy)
    if statistics.copies == statistics.pairs:
        raise InputError(f"{corpus.source}: each answer is the same as its text; choose other columns")
    unit, replies = ("dialogues", "replies") if task == "dialogue" else ("texts", "answers")
    typer.echo(f"{counted(count, unit)} with {counted(statistics.pairs, replies)}")
    reply = "reply" if task == "dialogue" else "answer"
    for location, side in ((f"before the {reply}", statistics.source), (f"in the {reply}", statistics.target)):
        measure, lengths = lengths_of(side)
        report_lengths(f"{measure} {location}", lengths)
    report_few(statistics.pairs, ADVISED_REPLIES, "pairs", "phrases rather than answers")

    # Only an exchange without blank texts is suitable for evaluation.
    divided = request.division(dict.fromkeys(beginnings, ("",))).divide(
        exchanges(corpus, request, DropReport()),
        lambda exchange: exchange[0].source,
        lambda exchange: all(pair.source.strip() and pair.target.strip() for pair in exchange),
    )

    def line(exchange: Exchange) -> str:
        last = exchange[-1]
        if task != "dialogue":
            return json_line({"source": last.source, "target": last.target})
        reply_indices = {len(pair.source.split(TURN_SEPARATOR)) for pair in exchange}
        turns = [*last.source.split(TURN_SEPARATOR), last.target]
        messages: list[dict[str, Any]] = [
            {"role": "assistant" if index in reply_indices else "user", "content": turn}
            for index, turn in enumerate(turns)
        ]
        return json_line({"source": messages})

    recipe = propose_replies(statistics, this_machine(), task, texts_of(folder, request.bad_utf8))
    counts = request.write(folder, recipe, divided, lambda part: exchanges(part, request, DropReport()), line)
    report_parts(folder / "data", counts, unit, sum(counts.values()) if request.parts else count, "beginning")
    report_recipe(folder)


def exchanges(corpus: CorpusConfig, request: LabelledRequest, report: DropReport) -> Iterator[Exchange]:
    """Yield the replies of each dialogue, or each text with its answer."""
    if request.task == "dialogue":
        data = DataConfig(bad_utf8=request.bad_utf8, filters=UNCUT)
        for _, pairs in groupby(read_replies(corpus, data, report), attrgetter("line")):
            yield list(pairs)
        return
    pair_field = [] if corpus.pair_field is None else [corpus.pair_field]
    fields = (corpus.source_field, *pair_field, corpus.target_field)
    for line, (*texts, target) in read_rows(corpus, request.data, fields, report):
        yield [SentencePair(line, "\n".join(text for text in texts if text.strip()), target)]
