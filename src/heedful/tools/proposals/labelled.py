"""Labelled text: its survey, and first recipes for classification, regression, tagging or question answering."""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from heedful.config.schema import CorpusConfig
from heedful.data.readers.columns import whole_number
from heedful.data.readers.labelled import Example
from heedful.errors import InputError
from heedful.tools.proposals.proposal import (
    ADAMW_OF_BERT,
    ENCODER,
    HEADER,
    TRAINING,
    RecipeData,
    Size,
    batch_size,
    fill_template,
    schedule,
    tokenizer_values,
    toml_value,
)
from heedful.tools.proposals.splits import near_hash, text_hash
from heedful.tools.proposals.text_statistics import StatisticsBuilder, TextStatistics


class Contradictions(NamedTuple):
    """Texts that occur with different labels: their number, and the lines (from 1) of two examples of one text."""

    texts: int
    lines: tuple[int, int] | None


@dataclass(frozen=True)
class LabelSurvey:
    """Statistics of labelled text: texts, counts of labels, empty texts, contradictions, and hashes for a split."""

    texts: TextStatistics  # the two texts of a pair count as one
    is_pairs: bool
    labels: Counter[str]
    empty: int  # number of examples without text
    groups: dict[int, set[str]]  # the labels of each group of near copies that can be held out, by their near hash
    longest_at: int  # line of the longest text, from 1
    contradictions: Contradictions

    @property
    def examples(self) -> int:
        return self.labels.total()

    @property
    def labels_are_ids(self) -> bool:
        """True if the labels may be ids or row numbers: each is a different whole number."""
        return len(self.labels) == self.examples and all((whole_number(x) or x).isdecimal() for x in self.labels)


def lookalikes_among(labels: Iterable[str]) -> list[list[str]]:
    """Find groups of labels that differ only in capitals or spaces, or are the same number, such as 1 and 1.0.

    A whole number that starts with 0 or + is a code rather than a number.
    """
    groups: dict[str | Decimal, list[str]] = defaultdict(list)
    for label in labels:
        plain = "".join(label.split()).casefold()
        is_number = re.fullmatch(r"-?(0|[1-9]\d*)([.]\d+)?(e[+-]?\d+)?", plain, re.ASCII)
        groups[Decimal(plain) if is_number else plain].append(label)
    return [group for group in groups.values() if len(group) > 1]


def text_of(example: Example) -> str:
    """Return the text of a labelled example; for a text pair, both texts, separated by a tab."""
    return example.text if example.pair is None else f"{example.text}\t{example.pair}"


def survey_labelled(examples: Iterable[Example], corpus: CorpusConfig) -> LabelSurvey:
    """Survey the labelled examples of a corpus in one pass; memory grows with the number of examples."""
    texts, labels = StatisticsBuilder(), Counter[str]()
    groups: dict[int, set[str]] = {}
    numbers: dict[str, int] = {}  # the number of each label, in order of appearance
    hashes, label_numbers, lines = array("Q"), array("L"), array("L")  # of examples with text
    empty = longest = longest_at = 0
    for example in examples:
        text = text_of(example)
        texts.add(text)
        labels[example.label] += 1
        if text.strip():
            hashes.append(text_hash(text))
            groups.setdefault(near_hash(text), set()).add(example.label)
            label_numbers.append(numbers.setdefault(example.label, len(numbers)))
            lines.append(example.line)
        else:
            empty += 1
        if len(text) > longest:
            longest, longest_at = len(text), example.line
    if not labels:
        raise InputError(f"{corpus.source}: has no examples; check the file")
    contradictions = find_contradictions(*map(np.array, (hashes, label_numbers, lines)))
    is_pairs = corpus.pair_field is not None
    return LabelSurvey(texts.build(), is_pairs, labels, empty, groups, longest_at, contradictions)


def find_contradictions(hashes: np.ndarray, labels: np.ndarray, lines: np.ndarray) -> Contradictions:
    """Find equal texts with different labels, given the hash, label and line of each example, all (n,)."""
    order = np.lexsort((lines, labels, hashes))
    hashes, labels, lines = hashes[order], labels[order], lines[order]
    indices = np.flatnonzero((hashes[1:] == hashes[:-1]) & (labels[1:] != labels[:-1]))
    if not len(indices):
        return Contradictions(0, None)
    first, second = sorted((int(lines[indices[0]]), int(lines[indices[0] + 1])))
    return Contradictions(len(np.unique(hashes[indices])), (first, second))


SIZE = Size("tiny", math.inf, 128, 512, 2, 2, dropout=0.1, lr=1e-3, warmup=100, passes=4)
MAX_BATCH_TOKENS = 4096
MIN_LENGTH, MAX_LENGTH = 64, 256  # tokens per text
WINDOW = 384  # tokens for a question with a piece of its passage, as in Devlin et al. (2019)
MIN_UPDATES = 300
SAVES = 20  # checkpoints in a run, each after a validation
WHOLE_TEXTS = 0.95  # share of texts that fit completely
WINDOWED = {"tagging": "tagged sentences", "span_qa": "questions about passages"}  # tasks with an answer for each token


def propose_encoder(
    texts: TextStatistics, task: str, labels: tuple[str, ...], data: RecipeData, *, pairs: bool = False
) -> str:
    """Write a first recipe, in TOML, for classification, regression, tagging or question answering.

    `labels` are the classes or tags, in order; `pairs` is True if the model reads two texts with a separator.
    """
    if task == "span_qa":
        length = WINDOW
    else:  # the estimated 95% quantile plus a margin
        margin = 1.3 if np.median(texts.tokens) > MIN_LENGTH else 1.5
        longest = np.quantile(texts.tokens, WHOLE_TEXTS) * margin + 2 + pairs
        length = int(min(MAX_LENGTH, max(MIN_LENGTH, 32 * math.ceil(longest / 32))))
    tokens = int(np.minimum(texts.tokens, length).sum())
    batch = batch_size(tokens, 150, MAX_BATCH_TOKENS)
    values = schedule(SIZE, max(MIN_UPDATES, SIZE.passes * tokens / batch), tokens / batch, SAVES)
    values |= tokenizer_values(texts, "wordpiece") | {"task": task, "max_length": length, "batch_tokens": batch}
    if task in WINDOWED:  # a batch has at least four windows
        values["batch_tokens"] = max(batch, min(MAX_BATCH_TOKENS, 4 * length))
        lines = {
            "when": "",
            "longer": "longer texts are read in windows",
            "tokenizer": "byte_fallback = true # names contain unusual letters",
            "pooling": "",
        }
    else:
        lines = {
            "when": " with few labels",
            "longer": "longer texts are truncated",
            "tokenizer": "lowercase = true",
            "pooling": 'pooling = "mean"\n',
        }
    kind = "tags" if task == "tagging" else "classes"
    lines["labels"] = f"labels = {toml_value(labels)} # the {kind}\n" if labels else ""
    lines["content"] = f"{len(texts.characters):,} {WINDOWED.get(task, 'labelled texts')}"
    return fill_template(TEMPLATE, data, values, **lines)


TEMPLATE = (
    HEADER
    + """\
# To start from a pretrained model, which helps most$when:
#   heedful train ... --set train.start=RUN --set optimizer.lr=1e-4
name = $name
task = $task

[data]
max_length = $max_length # tokens; $longer
bad_utf8 = $bad_utf8
$labels
$corpora

[tokenizer]
kind = $kind
vocab_size = $vocab_size # an upper bound
$tokenizer
"""
    + ENCODER
    + """\
attention_dropout = 0.1
$pooling"""
    + ADAMW_OF_BERT
    + TRAINING
    + """\
patience = 6 # early stopping: stop after this many validations without improvement
"""
)
