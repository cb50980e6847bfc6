"""Proposes a first recipe for tagged sentences, or for questions on passages: a small BERT, trained from scratch."""

from string import Template

import numpy as np

from heedful.data.proposals.label_proposal import MOST_TOKENS, SIZE, max_length, pieces, schedule
from heedful.data.proposals.pair_survey import Side
from heedful.data.proposals.proposal import ADAMW_OF_BERT, BEGINNING, ENCODER, TRAINING, Texts, filled, quoted, room_for

WINDOW = 384  # tokens of a question with a piece of its passage, as in Devlin et al. (2019)


def propose_tagger(side: Side, tags: tuple[str, ...], texts: Texts) -> str:
    """Write a first recipe, in TOML, for a tagger, from a survey of the sentences and their tags."""
    tags_line = f"labels = {quoted(tags)} # the tags\n"
    return proposed(side, "tagging", max_length(side.tokens, pairs=False), texts, "tagged sentences", tags_line)


def propose_answers(side: Side, texts: Texts) -> str:
    """Write a first recipe, in TOML, for answers cut from passages, from a survey of the questions with these."""
    return proposed(side, "span_qa", WINDOW, texts, "questions on passages", "")


def proposed(side: Side, task: str, length: int, texts: Texts, seen: str, classes: str) -> str:
    """Write a first recipe, in TOML, for a task with an answer for each token."""
    values = vars(SIZE) | {"size": SIZE.name, "more_dropout": 2 * SIZE.dropout, "task": task, "max_length": length}
    values |= {
        "kind": "character" if side.is_spaceless else "wordpiece",
        "vocab_size": room_for(side.alphabet) if side.is_spaceless else pieces(side),
    }
    values |= schedule(int(np.minimum(side.tokens, length).sum()))
    values["batch_tokens"] = max(int(str(values["batch_tokens"])), min(MOST_TOKENS, 4 * length))
    return filled(TEMPLATE, texts, values, seen=f"{len(side.characters):,} {seen}", classes=classes)


TEMPLATE = Template(
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
