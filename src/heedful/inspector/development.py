"""How a model became what it is: the curves of its run, and what its heads did at each checkpoint that was kept."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from pathlib import Path
from statistics import mean

from heedful.checkpoint import Checkpoints, DamagedError, LoadedModel, load_model
from heedful.config.schema import Recipe
from heedful.data.corpus import read_pairs
from heedful.data.files import read_lines
from heedful.decode.translator import Translator
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import reading
from heedful.inspector.capture.trace import traced
from heedful.inspector.measures.attention import AlignedAttention, alignment_error, cross_attention
from heedful.inspector.overview import measures, numbers
from heedful.train.logger import LOG

SENTENCES = 20  # whose gold alignment heads are compared with
Curves = dict[str, list[tuple[int, float]]]
Measured = dict[str, dict[str, list[float]]]  # by block and measure, a number a head


@dataclass(frozen=True)
class Aligned:
    """A sentence, its translation, and which words correspond, as (source word, target word) from 0."""

    source: str
    target: str
    source_words: list[str]
    target_words: list[str]
    links: list[tuple[int, int]]


@dataclass(frozen=True)
class Run:
    """What training has left behind.

    Attributes:
        folder: of the run.
        steps: the checkpoints that are kept.
        best: the one that validation found best.
        curves: by what was logged, such as "loss" and "valid_bleu": updates and values.
    """

    folder: Path
    steps: list[int]
    best: int | None
    curves: Curves


@dataclass(frozen=True)
class Snapshot:
    """What the heads did at a checkpoint: `measures.heads.MEASURES`, and "alignment" where there is gold."""

    step: int
    heads: Measured


def run_of(model: Path) -> Path | None:
    """The run that a model folder or a checkpoint lies in; None for a model that came without one."""
    return next((folder for folder in (model.parent, model.parent.parent) if (folder / LOG).is_file()), None)


def read_run(folder: Path) -> Run:
    """What a run has logged and kept, so far.

    Raises:
        InputError: its log is damaged.
    """
    checkpoints = Checkpoints(folder, keep_last=2)
    best = checkpoints.best
    return Run(folder, checkpoints.steps(), best and best.step, curves(folder / LOG))


def curves(log: Path) -> Curves:
    """Every finite number of a log against the update where it was written; a last line that is still written waits.

    Raises:
        InputError: a line is not what a run writes.
    """
    found: Curves = {}
    *whole, _ = log.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(whole, start=1):
        try:
            record = json.loads(line)
            update = int(record.pop("update"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{log}, line {number}: is no record of a run ({error})") from error
        for name, value in record.items():
            if value is not None and isfinite(value):
                found.setdefault(name, []).append((update, value))
    return found


def snapshots(folder: Path, text: str, target: str | None) -> Iterator[Snapshot]:
    """What the heads do at each kept checkpoint, from the first; one that is gone or damaged meanwhile is left out.

    Args:
        folder: of the run.
        text: what is read.
        target: what is to have been written; None: each checkpoint writes its own, which may be all kinds of things.

    Raises:
        InputError: the text is empty, or one of the two too long.
    """
    checkpoints = Checkpoints(folder, keep_last=2)
    for step in checkpoints.steps():
        if (loaded := loaded_if_there(checkpoints.path(step))) is not None:
            yield Snapshot(step, measured(loaded, text, target))


def loaded_if_there(path: Path) -> LoadedModel | None:
    """The checkpoint; None if it is gone or damaged."""
    try:
        return load_model(path)
    except (DamagedError, OSError):
        return None
    except InputError:
        if path.is_dir():
            raise
        return None


def measured(loaded: LoadedModel, text: str, target: str | None) -> Measured:
    """What the heads of one model do."""
    subject = loaded.use()
    once = replace(reading(subject, text, target), steps=None)
    found = measures(traced(once, ["*.attn"]))
    if isinstance(subject, Translator) and (gold := list(gold_alignment(loaded.recipe))):
        for block, values in alignment(subject, gold).items():
            found[block]["alignment"] = values
    return found


def gold_alignment(recipe: Recipe, most: int = SENTENCES) -> Iterator[Aligned]:
    """Validation pairs whose word alignment is known, as in the corpora of `heedful scenes`; none elsewhere.

    Line i of `valid.align`, `valid.words.en` and `valid.words.de` is about line i of `valid.en` and `valid.de`.
    """
    valid = recipe.data.valid
    if valid is None or valid.target is None:
        return
    sides = [Path(recipe.data.root) / name for name in (valid.source, valid.target)]
    beside = [sides[0].with_suffix(".align"), *(side.with_suffix(f".words{side.suffix}") for side in sides)]
    if not all(path.is_file() for path in (*sides, *beside)):
        return
    known = list(zip(*map(read_lines, beside), strict=False))
    for pair in islice(read_pairs(valid, recipe.data), most):
        if pair.line <= len(known):
            links, source_words, target_words = (line.split() for line in known[pair.line - 1])
            yield Aligned(pair.source, pair.target, source_words, target_words, [link_of(link) for link in links])


def link_of(text: str) -> tuple[int, int]:
    """Two numbers from "2-3"."""
    source, target = text.split("-")
    return int(source), int(target)


def alignment(subject: Translator, gold: list[Aligned]) -> dict[str, list[float]]:
    """The alignment error of each head that looks at the source, by block: the mean over all sentences.

    A sentence that the tokenizer cuts into other words than gold does is left out; without any, so is the measure.
    """
    seen = [(cross_attention(subject, one.source, one.target), one) for one in gold]
    errors = [error_of(found, one) for found, one in seen if cut_alike(found, one)]
    if not errors:
        return {}
    return {
        f"dec.{layer}.cross": [mean(values) for values in zip(*heads, strict=True)]
        for layer, heads in enumerate(zip(*errors, strict=True))
    }


def cut_alike(seen: AlignedAttention, gold: Aligned) -> bool:
    """Whether the words are those of the gold alignment; <eos> is none."""
    return seen.source.words[:-1] == gold.source_words and seen.target.words[:-1] == gold.target_words


def error_of(seen: AlignedAttention, gold: Aligned) -> list[list[float]]:
    """The alignment error by layer and head."""
    return numbers(alignment_error(seen.by_word()[..., :-1, :-1], gold.links).numpy())
