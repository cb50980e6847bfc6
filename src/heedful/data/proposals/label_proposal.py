"""Proposes a first recipe for labelled text: a classifier, or a regression, trained from scratch.

Model and optimiser are those of recipes/sst2 and recipes/chnsenticorp: the smallest BERT of Turc et al. (2019) with
rotary positions and the mean of all states.
"""

import math
from string import Template

import numpy as np

from heedful.data.proposals.label_survey import LabelSurvey
from heedful.data.proposals.pair_survey import Side
from heedful.data.proposals.proposal import (
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

SIZE = Size("tiny", math.inf, 128, 512, 2, 2, dropout=0.1, lr=1e-3, warmup=100, passes=4)
MOST_TOKENS = 4096  # in a batch, at most
LENGTHS = (64, 256)  # tokens of a text: the smallest and the largest
FEWEST_UPDATES = 300
SAVES = 20  # checkpoints in a run, each after a validation
KNOWN_LENGTHS = 0.95  # the share of the texts that is read whole


def propose_labelled(found: LabelSurvey, task: str, labels: tuple[str, ...], texts: Texts) -> str:
    """Write a first recipe, in TOML, for a classifier or a regression, from a survey of the labelled text.

    Args:
        found: The survey of the labelled text.
        task: "classification" or "regression".
        labels: The classes in order; none for a regression.
        texts: Name, corpora and handling of bad UTF-8 for the recipe.
    """
    spaceless = found.side.is_spaceless
    length = max_length(found.side.tokens, pairs=found.is_pairs)
    values = vars(SIZE) | {"size": SIZE.name, "more_dropout": 2 * SIZE.dropout, "task": task, "max_length": length}
    values |= {
        "kind": "character" if spaceless else "wordpiece",
        "vocab_size": room_for(found.side.alphabet) if spaceless else pieces(found.side),
    }
    values |= schedule(int(np.minimum(found.side.tokens, length).sum()))
    classes = f"labels = {quoted(labels)} # the classes\n" if labels else ""
    return filled(TEMPLATE, texts, values, seen=f"{found.examples:,} labelled texts", classes=classes)


def max_length(tokens: np.ndarray, *, pairs: bool) -> int:
    """Choose the maximum text length in tokens: the estimated 95 % quantile plus a margin, within 64 to 256.

    Args:
        tokens: Estimated numbers of tokens of the texts or pairs.
        pairs: True adds a separator token for the second text.
    """
    longest = np.quantile(tokens, KNOWN_LENGTHS) * (1.3 if LENGTHS[0] < np.median(tokens) else 1.5) + 2 + pairs
    return int(min(LENGTHS[1], max(LENGTHS[0], 32 * math.ceil(longest / 32))))


def pieces(side: Side) -> int:
    """Choose the vocabulary size for subwords: 8000, or fewer where the texts would show each subword too seldom."""
    return min(8000, max(1000, 1000 * round(int(side.words.sum()) / 15_000)))


def schedule(tokens: int) -> dict[str, object]:
    """Choose batch size, number of updates, warm-up and validation interval by the tokens of the training text."""
    batch = batch_size(tokens, 150, MOST_TOKENS)
    every = save_interval(max(FEWEST_UPDATES, SIZE.passes * tokens / batch), SAVES)
    return {
        "batch_tokens": batch,
        "max_updates": SAVES * every,
        "warmup": min(SIZE.warmup, 2 * every),
        "every": every,
        "passes": max(1, round(SAVES * every * batch / tokens)),
    }


TEMPLATE = Template(
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
