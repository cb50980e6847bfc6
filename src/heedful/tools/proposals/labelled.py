"""Labelled text: its survey, and the first recipe of a classifier, a regression, a tagger or an answerer."""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from string import Template
from typing import NamedTuple

import numpy as np

from heedful.config.schema import CorpusConfig
from heedful.data.readers.columns import whole_number
from heedful.data.readers.labelled import Example
from heedful.errors import InputError
from heedful.tools.proposals.pairs import Side, TextStatistics, near_hash, source_hash
from heedful.tools.proposals.proposal import (
    ADAMW_OF_BERT,
    BEGINNING,
    ENCODER,
    TRAINING,
    Size,
    Texts,
    batch_size,
    filled,
    quoted,
    room_for,
    save_interval,
)


class Contradictions(NamedTuple):
    """Equal texts with different labels: how many texts, and the lines of two examples of one of them, from 1."""

    texts: int
    lines: tuple[int, int] | None


@dataclass(frozen=True)
class LabelSurvey:
    """Statistics of labelled text: texts, counts of labels, empty texts, contradictions, and hashes for a split."""

    side: Side  # the texts; of a pair, both as one
    is_pairs: bool
    labels: Counter[str]
    empty: int  # examples without text
    groups: dict[int, set[str]]  # the labels of each group of near copies that can be held out, by their near hash
    longest_at: int  # the line of the longest text, from 1
    contradictions: Contradictions

    @property
    def examples(self) -> int:
        return self.labels.total()

    @property
    def counts_rows(self) -> bool:
        """True if the labels may be ids or row numbers: whole numbers, no two of them equal."""
        return len(self.labels) == self.examples and all((whole_number(x) or x).isdecimal() for x in self.labels)


def lookalikes_among(labels: Iterable[str]) -> list[list[str]]:
    """Groups of labels that differ only in capitals or blanks, or are the same number, such as 1 and 1.0.

    A whole number that begins with 0 or + is a code rather than a number.
    """
    groups: dict[str | Decimal, list[str]] = defaultdict(list)
    for label in labels:
        plain = "".join(label.split()).casefold()
        is_number = re.fullmatch(r"-?(0|[1-9]\d*)([.]\d+)?(e[+-]?\d+)?", plain, re.ASCII)
        groups[Decimal(plain) if is_number else plain].append(label)
    return [group for group in groups.values() if len(group) > 1]


def text_of(example: Example) -> str:
    """The text of a labelled example; of a pair of texts, both with a tab between them."""
    return example.text if example.pair is None else f"{example.text}\t{example.pair}"


def survey_labelled(examples: Iterable[Example], corpus: CorpusConfig) -> LabelSurvey:
    """Survey the labelled examples of a corpus, read once; memory grows with the number of different texts."""
    tally, labels = TextStatistics(), Counter[str]()
    groups: dict[int, set[str]] = {}
    numbers: dict[str, int] = {}  # the number of each label, in order of appearance
    hashes, labelled, lines = array("Q"), array("L"), array("L")  # of examples with text
    empty = longest = longest_at = 0
    for example in examples:
        text = text_of(example)
        tally.add(text)
        labels[example.label] += 1
        if text.strip():
            hashes.append(source_hash(text))
            groups.setdefault(near_hash(text), set()).add(example.label)
            labelled.append(numbers.setdefault(example.label, len(numbers)))
            lines.append(example.line)
        else:
            empty += 1
        if len(text) > longest:
            longest, longest_at = len(text), example.line
    if not labels:
        raise InputError(f"{corpus.source}: there are no examples in it; check the file")
    contradictions = find_contradictions(*map(np.array, (hashes, labelled, lines)))
    is_pairs = corpus.pair_field is not None
    return LabelSurvey(tally.side(), is_pairs, labels, empty, groups, longest_at, contradictions)


def find_contradictions(hashes: np.ndarray, labels: np.ndarray, lines: np.ndarray) -> Contradictions:
    """Find contradictions in labelled text: equal texts with different labels.

    Args:
        hashes: The hash of the text of each example, uint64, (n,).
        labels: The number of the label of each example, (n,).
        lines: The line of each example, (n,).
    """
    order = np.lexsort((lines, labels, hashes))
    hashes, labels, lines = hashes[order], labels[order], lines[order]
    at = np.flatnonzero((hashes[1:] == hashes[:-1]) & (labels[1:] != labels[:-1]))
    if not len(at):
        return Contradictions(0, None)
    first, second = sorted((int(lines[at[0]]), int(lines[at[0] + 1])))
    return Contradictions(len(np.unique(hashes[at])), (first, second))


SIZE = Size("tiny", math.inf, 128, 512, 2, 2, dropout=0.1, lr=1e-3, warmup=100, passes=4)
MAX_TOKENS = 4096  # in a batch
LENGTHS = (64, 256)  # tokens of a text: the smallest and the largest
MIN_UPDATES = 300
SAVES = 20  # checkpoints in a run, each after a validation
KNOWN_LENGTHS = 0.95  # the share of the texts that is read whole


def propose_labelled(survey: LabelSurvey, task: str, labels: tuple[str, ...], texts: Texts) -> str:
    """Write a first recipe, in TOML, for a classifier with these classes, in order, or for a regression without."""
    length = max_length(survey.side.tokens, pairs=survey.is_pairs)
    classes = f"labels = {quoted(labels)} # the classes\n" if labels else ""
    values = settings(survey.side, task, length)
    return filled(LABEL_TEMPLATE, texts, values, seen=f"{survey.examples:,} labelled texts", classes=classes)


def max_length(tokens: np.ndarray, *, pairs: bool) -> int:
    """Choose the maximum text length in tokens: the estimated 95 % quantile plus a margin, within 64 to 256.

    Pairs of texts have a separator between them.
    """
    longest = np.quantile(tokens, KNOWN_LENGTHS) * (1.3 if LENGTHS[0] < np.median(tokens) else 1.5) + 2 + pairs
    return int(min(LENGTHS[1], max(LENGTHS[0], 32 * math.ceil(longest / 32))))


def pieces(side: Side) -> int:
    """Choose the vocabulary size for subwords: 8000, or fewer where the texts would show each subword too seldom."""
    return min(8000, max(1000, 1000 * round(int(side.words.sum()) / 15_000)))


def settings(side: Side, task: str, length: int) -> dict[str, object]:
    """Choose the tokenizer, the batch size and the number of updates, by the tokens of the training text."""
    tokens = int(np.minimum(side.tokens, length).sum())
    batch = batch_size(tokens, 150, MAX_TOKENS)
    every = save_interval(max(MIN_UPDATES, SIZE.passes * tokens / batch), SAVES)
    return vars(SIZE) | {
        "size": SIZE.name,
        "more_dropout": 2 * SIZE.dropout,
        "task": task,
        "max_length": length,
        "kind": "character" if side.is_spaceless else "wordpiece",
        "vocab_size": room_for(side.alphabet) if side.is_spaceless else pieces(side),
        "batch_tokens": batch,
        "max_updates": SAVES * every,
        "warmup": min(SIZE.warmup, 2 * every),
        "every": every,
        "passes": max(1, round(SAVES * every * batch / tokens)),
    }


LABEL_TEMPLATE = Template(
    BEGINNING
    + """\
# To begin with a model that has read text before, which helps most where labels are few:
#   heedful train ... --set train.start=RUN --set optimizer.lr=1e-4
name = $name
task = $task

[data]
max_length = $max_length # tokens; longer texts are cut
bad_utf8 = $bad_utf8
$classes
$corpora

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound
lowercase = true
"""
    + ENCODER
    + """\
attention_dropout = 0.1
pooling = "mean"
"""
    + ADAMW_OF_BERT
    + TRAINING
    + """\
patience = 6 # early stopping: ends after so many validations without a better one
"""
)


WINDOW = 384  # tokens of a question with a piece of its passage, as in Devlin et al. (2019)


def propose_tagger(side: Side, tags: tuple[str, ...], texts: Texts) -> str:
    """Write a first recipe, in TOML, for a tagger, from a survey of the sentences and their tags."""
    tags_line = f"labels = {quoted(tags)} # the tags\n"
    return propose_windows(side, "tagging", max_length(side.tokens, pairs=False), texts, "tagged sentences", tags_line)


def propose_answers(side: Side, texts: Texts) -> str:
    """Write a first recipe, in TOML, for answers cut from passages, from a survey of the questions with these."""
    return propose_windows(side, "span_qa", WINDOW, texts, "questions on passages", "")


def propose_windows(side: Side, task: str, length: int, texts: Texts, content: str, classes: str) -> str:
    """Write a first recipe, in TOML, for a task with an answer for each token; a batch has at least four windows."""
    values = settings(side, task, length)
    values["batch_tokens"] = max(int(str(values["batch_tokens"])), min(MAX_TOKENS, 4 * length))
    return filled(SENTENCE_TEMPLATE, texts, values, seen=f"{len(side.characters):,} {content}", classes=classes)


SENTENCE_TEMPLATE = Template(
    BEGINNING
    + """\
# To begin with a model that has read text before, which helps most:
#   heedful train ... --set train.start=RUN --set optimizer.lr=1e-4
name = $name
task = $task

[data]
max_length = $max_length # tokens; of longer texts windows are read
bad_utf8 = $bad_utf8
$classes
$corpora

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound
byte_fallback = true # names are full of letters in strange places
"""
    + ENCODER
    + """\
attention_dropout = 0.1
"""
    + ADAMW_OF_BERT
    + TRAINING
    + """\
patience = 6 # early stopping: ends after so many validations without a better one
"""
)
