"""`heedful init` for dialogues, and for texts with answers or summaries: the recipe of a model that writes them."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.cli.first_recipe import (
    free_folder,
    new_recipe,
    tell_dropped,
    tell_lengths,
    tell_parts,
    tell_recipe,
    this_machine,
    write,
    write_parts,
)
from heedful.cli.init_labelled import PARTS, LabelledRequest, division_of
from heedful.config.schema import CorpusConfig, DataConfig, FilterConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.corpus import SentencePair
    from heedful.data.readers.filters import DropReport

FEW = 10_000  # pairs; with fewer there is a warning
WHOLE = FilterConfig(max_characters=10**9)  # of which no context of a dialogue is cut

Exchange = list["SentencePair"]  # the replies of one dialogue, each with its context, or one text and its answer


def init_replies(request: LabelledRequest) -> None:
    """Write the recipe of a model that replies, answers or sums up, and hold out text for validation and test."""
    from heedful.config.load import load_recipe
    from heedful.data.readers.filters import DropReport
    from heedful.tools.proposals.pairs import near_hash, propose_replies, survey
    from heedful.tools.proposals.proposal import Corpora, Texts

    corpus, task = request.corpus, request.task
    folder = free_folder(Path(corpus.source), request.out, task)
    with show_progress(f"reading {corpus.source}", "texts") as progress:
        beginnings: Counter[int] = Counter()

        def surveyed() -> "Iterator[SentencePair]":
            for exchange in progress.over(exchanges(corpus, request, drops)):
                beginnings[near_hash(exchange[0].source)] += 1
                yield from exchange

        drops = DropReport()
        found, count = survey(surveyed()), beginnings.total()
    tell_dropped(drops, copied=request.copied)
    if found.copies == found.pairs:
        raise InputError(f"{corpus.source}: each answer is the same as its text; name other columns")
    unit = "dialogues" if task == "dialogue" else "texts"
    typer.echo(f"{counted(count, unit)} with {counted(found.pairs, 'replies' if task == 'dialogue' else 'answers')}")
    for name, side in (("before", found.source), ("reply ", found.target)):
        tell_lengths(
            f"{name} ",
            "characters" if side.is_spaceless else "words",
            side.characters if side.is_spaceless else side.words,
        )
    if found.pairs < FEW:
        typer.echo(f"  fewer than {FEW:,} pairs teach phrases rather than answers; find more text if you can")
    division = division_of(dict.fromkeys(beginnings, ("",)), request.given)
    read = exchanges(corpus, request, DropReport())
    divided = division.divide(read, lambda exchange: exchange[0].source, is_whole)

    def lines() -> Iterator[tuple[str, tuple[str]]]:
        yield from ((part, (line_of(exchange, task),)) for part, exchange in divided)
        for part, other in request.given.items():
            yield from ((part, (line_of(exchange, task),)) for exchange in exchanges(other, request, DropReport()))

    texts = Texts(
        folder.resolve().name,
        request.bad_utf8,
        Corpora(**{part: {"source": f"data/{part}.jsonl"} for part in PARTS}),
    )
    recipe = propose_replies(found, this_machine(), task, texts)
    with new_recipe(folder) as place:
        counts = write_parts(place / "data", lines(), {part: (f"{part}.jsonl",) for part in PARTS})
        write(place / "config.toml", recipe)
    tell_parts(folder / "data", counts, unit, sum(counts.values()) if request.given else count, "beginning")
    tell_recipe(load_recipe(folder), folder)


def exchanges(corpus: CorpusConfig, request: LabelledRequest, report: "DropReport") -> Iterator[Exchange]:
    """Yield the replies of each dialogue, or each text with its answer."""
    from heedful.data.readers.corpus import SentencePair, read_replies, read_rows

    if request.task == "dialogue":
        data = DataConfig(bad_utf8=request.bad_utf8, filters=WHOLE)
        for _, pairs in groupby(read_replies(corpus, data, report), attrgetter("line")):
            yield list(pairs)
        return
    pair_field = [] if corpus.pair_field is None else [corpus.pair_field]
    fields = (corpus.source_field, *pair_field, corpus.target_field)
    for line, (*texts, target) in read_rows(corpus, request.data, fields, report):
        yield [SentencePair(line, "\n".join(text for text in texts if text.strip()), target)]


def is_whole(exchange: Exchange) -> bool:
    """True if no text and no reply is blank, so that replies to them can be judged."""
    return all(pair.source.strip() and pair.target.strip() for pair in exchange)


def line_of(exchange: Exchange, task: str) -> str:
    """Format a dialogue, with the roles of its turns, or a text with its answer, as a line of JSON."""
    from heedful.data.readers.chat_messages import BETWEEN

    last = exchange[-1]
    if task != "dialogue":
        return json.dumps({"source": last.source, "target": last.target}, ensure_ascii=False)
    replies = {len(pair.source.split(BETWEEN)) for pair in exchange}
    turns = [*last.source.split(BETWEEN), last.target]
    messages = [
        {"role": "assistant" if place in replies else "user", "content": turn} for place, turn in enumerate(turns)
    ]
    return json.dumps({"source": messages}, ensure_ascii=False)
