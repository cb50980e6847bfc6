"""Training from a Python program or a notebook: `heedful.train`, on files or on data in memory."""

import json
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import chain
from math import isnan
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from heedful.checkpoint import claim, load_model
from heedful.config.load import Overrides, load_recipe, make_recipe
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.columns import FILE_NAMES, LABEL_NAMES, LANGUAGE_NAMES, PAIR_NAMES, TEXT_NAMES
from heedful.distributed import all_processes, is_rank_zero
from heedful.errors import InputError
from heedful.predictors import AnyPredictor
from heedful.predictors.predictor import described
from heedful.registry import TASKS
from heedful.storage.atomic import atomic_file
from heedful.training import loop
from heedful.training.callbacks import CallbackError, Callbacks
from heedful.training.logger import LOG, final_scores, records
from heedful.training.media_in_memory import MediaWriter, is_one
from heedful.training.resume import Resumption
from heedful.wording import counted

FOLDER = "examples"  # in the folder of a run
PARTS = {"train": "train", "valid": "valid", "validation": "valid", "test": "test"}
TEXTS = ("language_model", "masked_lm", "word_vectors", "masked_patches")
WITH_PAIRS = ("classification", "regression")  # a second text may stand between the first one and the label
SPECIAL = ("tagging", "span_qa")
TAGGED = (("words", "tokens"), ("tags", "labels", "ner_tags"))
FIELDS = {1: ("source",), 2: ("source", "target"), 3: ("source", "pair", "target")}  # by the number of values of a row
ALONE = (1,)  # numbers of values where a row is one text or one file
PLAINEST = ("source", "text", "target", "label")  # names that come before others that are usual
USUAL = {
    "source": TEXT_NAMES | FILE_NAMES,
    "pair": PAIR_NAMES,
    "target": LABEL_NAMES | PAIR_NAMES | {"text", "caption", "transcript"},
}


def with_data(recipe: Recipe, data: object, folder: Path) -> Recipe:
    """Write data of a program to files, and return the recipe that reads them."""
    parts = {name: write_part(rows, recipe, folder / FOLDER, name) for name, rows in parts_of(data).items()}
    train = (parts["train"],) if "train" in parts else recipe.data.train
    changed = {name: parts.get(name, getattr(recipe.data, name)) for name in ("valid", "test")}
    return replace(recipe, data=replace(recipe.data, train=train, **changed))


def parts_of(data: object) -> dict[str, object]:
    """Return the rows of each part of the data: "train", "valid" and "test"."""
    if isinstance(data, Mapping) and "train" in data and data.keys() <= PARTS.keys():
        return {PARTS[name]: rows for name, rows in data.items() if rows is not None}
    return {"train": data}


def write_part(data: object, recipe: Recipe, folder: Path, name: str) -> CorpusConfig:
    """Write the rows of a part to a file of the kind that the task reads; return its corpus."""
    numbered = enumerate(rows_of(data, name), start=1)
    if recipe.task == "tagging":
        file, lines = folder / f"{name}.conll", (tagged(row, f"{name}, row {n}") for n, row in numbered)
    elif recipe.task == "span_qa":
        articles = [question(row, f"{name}, row {n}", n) for n, row in numbered]
        file, lines = folder / f"{name}.json", iter([json.dumps({"data": articles})] if articles else [])
    else:
        media = None if recipe.data.modality == "text" else MediaWriter(recipe, folder / name)
        examples = (example(row, recipe, name, n, media) for n, row in numbered)
        file, lines = folder / f"{name}.jsonl", map(json.dumps, examples)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{name}: there are no rows; give at least one example")
    width = 0 if recipe.task in SPECIAL else len(json.loads(first))
    text = "".join(f"{line}\n" for line in chain([first], lines))
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file) as stream:
            stream.write(text.encode("utf-8"))
    return CorpusConfig(source=str(file.absolute()), pair_field="pair" if width == len(FIELDS[3]) else None)


def rows_of(data: Any, name: str) -> Iterator[Any]:
    """Iterate over the rows of a data frame, of a mapping of columns, of an iterable, or of a sized data set."""
    for method in ("to_dicts", "to_pylist"):  # of polars and of pyarrow
        if hasattr(data, method):
            return iter(getattr(data, method)())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):  # of pandas
        return iter(data.to_dict(orient="records"))
    if isinstance(data, Mapping):
        columns = {key: values for key, values in data.items() if is_column(values)}
        lengths = {key: len(list(values)) for key, values in columns.items()}
        if len(columns) < len(data) or len(set(lengths.values())) > 1:
            told = ", ".join(f"{key!r}: {lengths.get(key, type(data[key]).__name__)}" for key in data)
            raise InputError(f"{name}: the columns of a mapping are lists of one length; these have {told}")
        return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, Iterable):
        return (
            data[number] for number in range(len(data))
        )  # of torch.utils.data, which need not raise an IndexError at its end
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise InputError(
            f"{name}: {described(data)} is not training data; give a list of rows, columns in a dictionary, or a data "
            "frame; a folder of files as a string or a path"
        )
    return iter(data)


def is_column(values: object) -> bool:
    """True if a value of a mapping is a column of values."""
    return isinstance(values, Iterable) and hasattr(values, "__len__") and not isinstance(values, str | bytes)


def example(row: object, recipe: Recipe, name: str, number: int, media: MediaWriter | None = None) -> dict[str, object]:
    """Return a row as an object with the keys of `FIELDS`; `media` writes pictures, sounds and videos to files."""
    place = f"{name}, row {number}"
    widths = widths_of(recipe.task)
    if media and widths == ALONE and is_one(row):
        row = (row,)
    values = named(row, recipe, widths, place) if isinstance(row, Mapping) else listed(row, widths, place)
    if media:
        values["source"] = media.name(values["source"], number, place)
    return {key: plain(value, place) for key, value in values.items()}


def widths_of(task: str) -> tuple[int, ...]:
    """The numbers of values that a row of a task may have; a task of one's own may have any."""
    if task in TEXTS:
        return ALONE
    return (2, 3) if task in WITH_PAIRS else (1, 2, 3) if TASKS.is_own(task) else (2,)


def listed(row: object, widths: Sequence[int], place: str) -> dict[str, object]:
    """Name the values of a tuple or list, or of a single text or path, by their order."""
    values = [row] if isinstance(row, str | PathLike) else list(row) if isinstance(row, list | tuple) else []
    if len(values) not in widths:
        wanted = " or ".join(f"({', '.join(FIELDS[width])})" for width in widths)
        raise InputError(f"{place}: {described(row)} is not an example; give {wanted}, or a dictionary")
    return dict(zip(FIELDS[len(values)], values, strict=True))


def named(row: Mapping[Any, object], recipe: Recipe, widths: Sequence[int], place: str) -> dict[str, object]:
    """Choose the values of a dictionary: as the recipe's corpus names them, by usual names, or by the order of keys."""
    if widths != ALONE and len(row) == 1 and isinstance(inner := next(iter(row.values())), Mapping):
        row = inner  # {"translation": {"en": ..., "de": ...}}, as data sets of translations have it
    languages = (recipe.data.source_language, recipe.data.target_language)
    if widths == (2,) and set(languages) <= row.keys():
        return dict(zip(FIELDS[2], map(row.__getitem__, languages), strict=True))
    corpus = next(iter(recipe.data.train), CorpusConfig(source=""))
    own = {"source": corpus.source_field, "pair": corpus.pair_field, "target": corpus.target_field}
    for width in sorted(widths, reverse=True):
        keys = [own[field] for field in FIELDS[width]]
        if None not in keys and set(keys) <= row.keys():
            return {field: row[key] for field, key in zip(FIELDS[width], keys, strict=True)}
    for width in sorted(widths, reverse=True):
        if chosen := by_usual_names(row, width):
            return chosen
    if len(row) in widths:
        return dict(zip(FIELDS[len(row)], row.values(), strict=True))
    wanted = " or ".join(", ".join(map(repr, FIELDS[width])) for width in widths)
    raise InputError(f"{place}: it has the keys {', '.join(map(repr, row))}; name those that are read {wanted}")


def by_usual_names(row: Mapping[Any, object], width: int) -> dict[str, object]:
    """Choose values by names that are usual for them; {} if one is missing."""
    chosen: dict[str, object] = {}
    names = sorted(((str(key).strip().lower(), key) for key in row), key=lambda pair: pair[0] not in PLAINEST)
    left = dict(names)
    if left.keys() <= LANGUAGE_NAMES:
        return {}
    for field in FIELDS[width]:
        key = next((left.pop(name) for name in list(left) if name in USUAL[field]), None)
        if key is None:
            return {}
        chosen[field] = row[key]
    return chosen


def plain(value: Any, place: str) -> object:
    """Return a number of NumPy as one of Python, the name of a path as text, and a missing value as None."""
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, Decimal):
        return float(value)
    if not isinstance(value, str | int | float | list | tuple | dict):
        raise InputError(f"{place}: {described(value)} is not a text or a number; convert it, such as by str")
    return value


def is_missing(value: Any) -> bool:
    """True for None, for NaN and for the NA and NaT of pandas, which is not imported for it."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))


def tagged(row: object, place: str) -> str:
    """Return a sentence and its tags as lines of a tagged file."""
    given: list[Any] = list(row) if isinstance(row, list | tuple) else []
    if isinstance(row, Mapping):
        given = [row[key] for keys in TAGGED for key in keys if key in row]
    if len(given) != 2 or not all(map(is_column, given)):
        raise InputError(f"{place}: {described(row)} is not a sentence; give (words, tags), two lists")
    words, tags = map(list, given)
    if any(map(is_missing, (*words, *tags))):
        raise InputError(f"{place}: a word or a tag is missing (None or NaN); fill it in, or take the row out")
    if len(words) != len(tags):
        raise InputError(f"{place}: {counted(len(words), 'words')} and {counted(len(tags), 'tags')}")
    pairs = [(str(word), str(tag)) for word, tag in zip(words, tags, strict=True)]
    if wrong := [word for word, _ in pairs if not word.strip() or set(word) & set("\t\r\n")]:
        raise InputError(f"{place}: {wrong[0]!r} is not a word; words are not empty and hold no tabs or line ends")
    return "".join(f"{word}\t{tag}\n" for word, tag in pairs)


def question(row: object, place: str, number: int) -> dict[str, object]:
    """Return a question on a text with its answers as an article in SQuAD's format."""
    asked: dict[Any, Any] = dict(row) if isinstance(row, Mapping) else {}
    if isinstance(row, tuple | list) and len(row) == 3:
        asked = dict(zip(("question", "context", "answer"), row, strict=True))
    if not {"question", "context"} <= asked.keys():
        raise InputError(f'{place}: {described(row)} is not a question; give "question", "context" and "answer"')
    context, answers = str(asked["context"]), asked.get("answers", asked.get("answer"))
    if isinstance(answers, Mapping):
        spelled = list(zip(answers["text"], map(int, answers["answer_start"]), strict=True))
    else:
        texts = [] if answers in (None, "") else [answers] if isinstance(answers, str) else list(answers or [])
        spelled = [(text, context.find(text)) for text in texts]
    if missing := [text for text, start in spelled if start < 0]:
        raise InputError(f"{place}: the context does not hold the answer {missing[0]!r}; answers are parts of it")
    found = [{"text": text, "answer_start": start} for text, start in spelled]
    entry = {
        "id": str(asked.get("id", number)),
        "question": str(asked["question"]),
        "answers": found,
        "is_impossible": not found,
    }
    return {"paragraphs": [{"context": context, "qas": [entry]}]}


@dataclass(frozen=True)
class TrainingResult:
    """Result of a finished training run: its folder, its number of updates and the scores of the final model.

    Attributes:
        folder: the folder of the run; the model is in `folder / "model"`, and `heedful.load(folder)` opens it.
        update: the number of updates of the run.
        scores: the scores of the final model on the validation set; empty without one.
    """

    folder: Path
    update: int
    scores: dict[str, float]

    @cached_property
    def predictor(self) -> AnyPredictor:
        """The final model as a predictor (a translator, a generator ...), on the device that `heedful.load` chooses."""
        return load_model(self.folder, "auto").use()

    @property
    def log(self) -> list[dict[str, Any]]:
        """Records of the training log, in order: an "update" and its measurements, such as "loss" or "valid_bleu"."""
        return records(self.folder / LOG)


def train(
    recipe: str | Path | Recipe | Mapping[str, Any],
    out: str | Path | None = None,
    data: object = None,
    overrides: Overrides = (),
    console: Console | None = None,
    callbacks: Iterable[object] = (),
    allow_change: Iterable[str] = (),
) -> TrainingResult:
    """Train a model in this process from a recipe; see `heedful.train`."""
    called = Callbacks(callbacks)
    resumption = Resumption(allowed=(allow_change,) if isinstance(allow_change, str) else tuple(allow_change))
    root = data if data is None or isinstance(data, str | PathLike) else None
    settings = as_recipe(recipe, overrides, root if root is None else Path(root))
    folder = Path("runs") / settings.name if out is None else Path(out)
    if root is None and data is not None:
        settings = given_data(settings, data, folder)
    console = console or Console(stderr=True)
    threads = torch.get_num_threads()
    try:
        outcome = loop.train(settings, folder, console, resumption=resumption, callbacks=called)
    except CallbackError as failed:
        raise failed.error from failed.error.__cause__
    finally:
        torch.set_num_threads(threads)
    if outcome.exit_code:
        if is_rank_zero():
            console.print(f"stopped and saved after update {outcome.update}; the same call goes on from there")
        signal.raise_signal(outcome.exit_code - 128)
    return TrainingResult(folder, outcome.update, final_scores(folder))


def given_data(recipe: Recipe, data: object, folder: Path) -> Recipe:
    """Write the data of this program into the folder of the run, and return the recipe that reads it."""
    if all_processes() > 1:
        raise InputError("data of a program is for runs of one process; save it to files, and name them in the recipe")
    with claim(folder):
        return with_data(recipe, data, folder)


def as_recipe(
    recipe: str | Path | Recipe | Mapping[str, Any], overrides: Overrides = (), data: str | Path | None = None
) -> Recipe:
    """Load the recipe of a run from a file, or make it from Python values."""
    root = None if data is None else Path(data)
    if isinstance(recipe, str | Path):
        return load_recipe(recipe, overrides, root)
    return make_recipe(recipe, overrides, root)
