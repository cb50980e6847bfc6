"""Development of a model during training: logged curves, and measures of attention heads at each checkpoint."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite
from pathlib import Path
from statistics import mean

from heedful.checkpoint import Checkpoints, DamagedError, LoadedModel, load_model
from heedful.config.schema import Recipe
from heedful.data.readers.corpus import read_pairs
from heedful.data.readers.files import read_lines
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import reading
from heedful.inspector.capture.sources import Input
from heedful.inspector.capture.trace import traced
from heedful.inspector.measures.attention import alignment_error, cross_attention
from heedful.inspector.overview import measures, numbers
from heedful.predictors.translator import Translator
from heedful.training.logger import LOG

SENTENCES = 20  # maximum number of sentences on which the alignment error of heads is measured
Curves = dict[str, list[tuple[int, float]]]
HeadMeasures = dict[str, dict[str, list[float]]]  # by block and measure, one number per head


@dataclass(frozen=True)
class Aligned:
    """Sentence pair with its gold word alignment: links (source word, target word), counted from 0."""

    source: str
    target: str
    source_words: list[str]
    target_words: list[str]
    links: list[tuple[int, int]]


@dataclass(frozen=True)
class Run:
    """Log and checkpoints of a training run."""

    folder: Path
    steps: list[int]  # updates of the checkpoints on disk
    best: int | None  # update of the checkpoint with the best validation score
    curves: Curves  # by name of the logged value, such as "loss" and "valid_bleu": pairs of update and value


@dataclass(frozen=True)
class Snapshot:
    """Measures of all attention heads at one checkpoint, including the alignment error if there is a gold alignment."""

    step: int
    heads: HeadMeasures


def run_of(model: Path) -> Path | None:
    """Return the run folder, recognised by its log, that contains a model folder or checkpoint; None if none does."""
    return next((folder for folder in (model.parent, model.parent.parent) if (folder / LOG).is_file()), None)


def read_run(folder: Path) -> Run:
    """Read the log and the list of checkpoints of a training run, which may still be in progress."""
    checkpoints = Checkpoints(folder, keep_last=2)
    best = checkpoints.best
    return Run(folder, checkpoints.steps(), best and best.step, curves(folder / LOG))


def curves(log: Path) -> Curves:
    """Read the training curves from a log: every finite number by name, with its update; skip an unfinished line."""
    points: Curves = {}
    try:
        # A run that is still training may have written half of the last line.
        *whole, _ = log.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{log}: cannot be read as text ({error})") from error
    for number, line in enumerate(whole, start=1):
        try:
            record = json.loads(line)
            update = int(record.pop("update"))
            values = {name: float(value) for name, value in record.items() if value is not None}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(f"{log}, line {number}: not a record of a run ({error})") from error
        for name, value in values.items():
            if isfinite(value):
                points.setdefault(name, []).append((update, value))
    return points


def snapshots(
    folder: Path, text: Input, target: str | None, watch: Callable[[LoadedModel], object] = lambda _: None
) -> Iterator[Snapshot]:
    """Measure the attention heads of every checkpoint of a run on one input, in the order of training.

    Checkpoints that are damaged, or deleted meanwhile, are left out. `watch` is called with each model before it is
    measured.
    """
    checkpoints = Checkpoints(folder, keep_last=2)
    for step in checkpoints.steps():
        path = checkpoints.path(step)
        try:
            model = load_model(path)
        except (DamagedError, OSError):
            continue
        except InputError:
            # A checkpoint that training has deleted meanwhile is left out; an error in one that exists is reported.
            if path.is_dir():
                raise
            continue
        watch(model)
        yield Snapshot(step, head_measures(model, text, target))


def head_measures(loaded: LoadedModel, value: Input, target: str | None) -> HeadMeasures:
    """Compute the measures of all attention heads of one model on an input, by block and measure."""
    subject = loaded.use()
    forward = replace(reading(subject, value, target), steps=None)  # without the check against token-by-token decoding
    by_block = measures(traced(forward, ["*.attn"]), forward.media)
    if isinstance(subject, Translator) and (gold := list(gold_alignment(loaded.recipe))):
        for block, errors in alignment(subject, gold).items():
            by_block[block]["alignment"] = errors
    return by_block


def gold_alignment(recipe: Recipe, limit: int = SENTENCES) -> Iterator[Aligned]:
    """Yield the first `limit` validation pairs with their gold word alignments, as in `heedful scenes` corpora.

    For example, line i of `valid.align`, `valid.words.en` and `valid.words.de` belongs to line i of `valid.en` and
    `valid.de`. If one of these files is missing, nothing is yielded.
    """
    valid = recipe.data.valid
    if valid is None or valid.target is None:
        return
    sides = [Path(recipe.data.root) / name for name in (valid.source, valid.target)]
    others = [sides[0].with_suffix(".align"), *(side.with_suffix(f".words{side.suffix}") for side in sides)]
    if not all(path.is_file() for path in (*sides, *others)):
        return
    lines = list(zip(*map(read_lines, others), strict=False))
    for pair in islice(read_pairs(valid, recipe.data), limit):
        if pair.line <= len(lines):
            links, source_words, target_words = (line.split() for line in lines[pair.line - 1])
            sizes = len(source_words), len(target_words)
            pairs = []
            for link in links:
                match = re.fullmatch(r"(\d{1,9})-(\d{1,9})", link)
                # A malformed link becomes one outside of the sentences, which is rejected below.
                source, target = map(int, match.groups()) if match else sizes
                if source >= sizes[0] or target >= sizes[1]:
                    raise InputError(
                        f"{others[0]}, line {pair.line}: {link!r} does not link one of {sizes[0]} words to one "
                        f"of {sizes[1]}; links are word numbers from 0, such as 0-0"
                    )
                pairs.append((source, target))
            yield Aligned(pair.source, pair.target, source_words, target_words, pairs)


def alignment(subject: Translator, gold: list[Aligned]) -> dict[str, list[float]]:
    """Compute the alignment error rate of each cross-attention head, by block: the mean over the sentences.

    Sentences that the tokenizer splits into words other than those of the gold alignment are left out. If all are left
    out, the result is empty.
    """
    errors, layers = [], []
    for pair in gold:
        attention = cross_attention(subject, pair.source, pair.target)
        layers = attention.layers
        words = attention.source.words[:-1], attention.target.words[:-1]  # without <eos>
        if words == (pair.source_words, pair.target_words):
            errors.append(numbers(alignment_error(attention.by_word()[..., :-1, :-1], pair.links).numpy()))
    if not errors:
        return {}
    # By sentence, layer and head -> by layer, the mean over the sentences for each head.
    return {
        f"dec.{layer - 1}.cross": [mean(of_sentences) for of_sentences in zip(*heads, strict=True)]
        for layer, heads in zip(layers, zip(*errors, strict=True), strict=True)
    }
