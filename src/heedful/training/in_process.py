"""Training from a Python program or a notebook: `heedful.train`, on files or on data in memory."""

import json
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from io import BufferedIOBase
from itertools import chain
from math import isnan
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from heedful.checkpoint import claim, load_model
from heedful.config.load import Overrides, load_recipe, make_recipe
from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.readers.columns import FILE_NAMES, LABEL_NAMES, LANGUAGE_NAMES, PAIR_NAMES, TEXT_NAMES
from heedful.distributed import all_processes, is_rank_zero
from heedful.errors import InputError
from heedful.media.audio import MAX_RATE, as_samples, au
from heedful.media.images import pixels_of, png
from heedful.media.videos import animated_png
from heedful.predictors import AnyPredictor
from heedful.predictors.media_reader import GIVE, SINGLE, PillowImage
from heedful.predictors.predictor import described
from heedful.registry import TASKS
from heedful.storage.atomic import atomic_file, named_write_errors
from heedful.training import loop
from heedful.training.callbacks import CallbackError, Callbacks
from heedful.training.logger import LOG, final_scores, records
from heedful.training.resume import Resumption
from heedful.wording import counted

FOLDER = "examples"  # in the folder of a run
PARTS = {"train": "train", "valid": "valid", "validation": "valid", "test": "test"}
TEXTS = ("language_model", "masked_lm", "word_vectors", "masked_patches")
WITH_PAIRS = ("classification", "regression")  # a second text may stand between the first one and the label
SPECIAL = ("tagging", "span_qa")
TAGGED = (("words", "tokens"), ("tags", "labels", "ner_tags"))
RATES = "sampling_rate", "rate"  # keys of the samples a second, in the dictionary of an audio
FIELDS = {1: ("source",), 2: ("source", "target"), 3: ("source", "pair", "target")}  # by the number of values of a row
ALONE = (1,)  # numbers of values where a row is one text or one file
PLAINEST = ("source", "text", "target", "label")  # names that come before others that are usual
USUAL = {
    "source": TEXT_NAMES | FILE_NAMES,
    "pair": PAIR_NAMES,
    "target": LABEL_NAMES | PAIR_NAMES | {"text", "caption", "transcript"},
}


def with_data(recipe: Recipe, data: object, folder: Path) -> Recipe:
    """Write data of a program to files, and return the recipe that reads them.

    Args:
        recipe: the recipe, whose task says what a row is.
        data: rows for training; or a mapping from "train", "valid" and "test" to rows. Rows are an iterable of
            dictionaries, tuples or texts, a mapping from names of columns to values, or a data frame. Images, audio
            and videos are files, arrays or images of Pillow.
        folder: the folder of the run; the files are in `examples` below it, and are written only where they differ.
    """
    rows_by_part = {"train": data}
    if isinstance(data, Mapping) and "train" in data and data.keys() <= PARTS.keys():
        rows_by_part = {PARTS[name]: rows for name, rows in data.items() if rows is not None}
    parts = {name: write_part(rows, recipe, folder / FOLDER, name) for name, rows in rows_by_part.items()}
    train = (parts["train"],) if "train" in parts else recipe.data.train
    others = {name: parts.get(name, getattr(recipe.data, name)) for name in ("valid", "test")}
    return replace(recipe, data=replace(recipe.data, train=train, **others))


def write_part(data: object, recipe: Recipe, folder: Path, name: str) -> CorpusConfig:
    """Write the rows of a part to a file of the kind that the task reads; return its corpus."""
    numbered = enumerate(rows_of(data, name), start=1)
    if recipe.task == "tagging":
        file, lines = folder / f"{name}.conll", (tagged(row, f"{name}, row {n}") for n, row in numbered)
    elif recipe.task == "span_qa":
        articles = [question(row, f"{name}, row {n}", n) for n, row in numbered]
        file, lines = folder / f"{name}.json", iter([json.dumps({"data": articles})] if articles else [])
    else:
        examples = (example(row, recipe, folder, name, n) for n, row in numbered)
        file, lines = folder / f"{name}.jsonl", map(json.dumps, examples)
    # The first row is read before a file is made: it shows whether there are any rows, and how many values each has.
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
            sizes = ", ".join(f"{key!r}: {lengths.get(key, type(data[key]).__name__)}" for key in data)
            raise InputError(f"{name}: the columns of a mapping are lists of one length; these have {sizes}")
        return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, Iterable):
        # of torch.utils.data, which need not raise an IndexError at its end
        return (data[number] for number in range(len(data)))
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise InputError(
            f"{name}: {described(data)} is not training data; give a list of rows, columns in a dictionary, or a data "
            "frame; a folder of files as a string or a path"
        )
    return iter(data)


def is_column(values: object) -> bool:
    return isinstance(values, Iterable) and hasattr(values, "__len__") and not isinstance(values, str | bytes)


def example(row: object, recipe: Recipe, folder: Path, name: str, number: int) -> dict[str, object]:
    """Return a row as an object with the keys of `FIELDS`; an image, audio or video in it is written to a file."""
    place, task, is_text = f"{name}, row {number}", recipe.task, recipe.data.modality == "text"
    widths = ALONE if task in TEXTS else (2, 3) if task in WITH_PAIRS else (1, 2, 3) if TASKS.is_own(task) else (2,)

    # A dictionary is an example, or in data sets of Hugging Face a single image, audio or video.
    holds_media = isinstance(row, Mapping) and not row.keys().isdisjoint(("array", "bytes"))
    if not is_text and widths == ALONE and (holds_media or isinstance(row, SINGLE)):
        row = (row,)
    if isinstance(row, Mapping):
        values = named(row, recipe, widths, place)
    else:
        parts = [row] if isinstance(row, str | PathLike) else list(row) if isinstance(row, list | tuple) else []
        if len(parts) not in widths:
            forms = " or ".join(f"({', '.join(FIELDS[width])})" for width in widths)
            raise InputError(f"{place}: {described(row)} is not an example; give {forms}, or a dictionary")
        values = dict(zip(FIELDS[len(parts)], parts, strict=True))
    if not is_text:
        values["source"] = media_file(values["source"], recipe, folder / name, number, place)
    return {key: plain(value, place) for key, value in values.items()}


def named(row: Mapping[Any, object], recipe: Recipe, widths: Sequence[int], place: str) -> dict[str, object]:
    """Choose the values of a dictionary: as the recipe's corpus names them, by usual names, or by the order of keys."""
    if widths != ALONE and len(row) == 1 and isinstance(inner := next(iter(row.values())), Mapping):
        row = inner  # {"translation": {"en": ..., "de": ...}}, as data sets of translations have it
    languages = (recipe.data.source_language, recipe.data.target_language)
    if widths == (2,) and set(languages) <= row.keys():
        return dict(zip(FIELDS[2], map(row.__getitem__, languages), strict=True))
    # Names that the recipe gives come first, and of several forms of an example the one with more values.
    corpus = next(iter(recipe.data.train), CorpusConfig(source=""))
    own = {"source": corpus.source_field, "pair": corpus.pair_field, "target": corpus.target_field}
    for width in sorted(widths, reverse=True):
        keys = [own[field] for field in FIELDS[width]]
        if None not in keys and set(keys) <= row.keys():
            return {field: row[key] for field, key in zip(FIELDS[width], keys, strict=True)}
    for width in sorted(widths, reverse=True):
        if values := by_usual_names(row, width):
            return values
    if len(row) in widths:
        return dict(zip(FIELDS[len(row)], row.values(), strict=True))
    fields = " or ".join(", ".join(map(repr, FIELDS[width])) for width in widths)
    raise InputError(f"{place}: it has the keys {', '.join(map(repr, row))}; name those that are read {fields}")


def by_usual_names(row: Mapping[Any, object], width: int) -> dict[str, object]:
    """Choose values by names that are usual for them; {} if one is missing."""
    values: dict[str, object] = {}
    names = sorted(((str(key).strip().lower(), key) for key in row), key=lambda pair: pair[0] not in PLAINEST)
    keys = dict(names)
    if keys.keys() <= LANGUAGE_NAMES:
        return {}
    for field in FIELDS[width]:
        key = next((keys.pop(name) for name in list(keys) if name in USUAL[field]), None)
        if key is None:
            return {}
        values[field] = row[key]
    return values


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


def media_file(value: Any, recipe: Recipe, folder: Path, number: int, place: str) -> str:
    """Return the name of the file of an example: as given, or of the one that is written, relative to the table.

    Without a file, the value is what a predictor reads; audio may be (samples, rate). A dictionary has the keys "array"
    and "sampling_rate", or "bytes" and "path", as data sets of Hugging Face have them.
    """
    if isinstance(value, Mapping) and value.get("array") is not None:
        rates = [value[key] for key in RATES if key in value]
        value = (np.asarray(value["array"]), *rates) if rates else np.asarray(value["array"])
    elif isinstance(value, Mapping):
        value = next((value[key] for key in ("bytes", "path") if value.get(key) is not None), value)
    if isinstance(value, str | PathLike):
        return str(Path(value).absolute())
    try:
        content, ending = encoded(value, recipe)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    file = folder / f"{number}{ending}"
    with named_write_errors(file):
        folder.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)
    return f"{folder.name}/{file.name}"


def encoded(value: Any, recipe: Recipe) -> tuple[bytes, str]:
    """Return the bytes and the ending of a file that holds an image, audio or video; no bit of it is changed."""
    modality, rate = recipe.data.modality, recipe.audio.rate
    if modality == "audio" and isinstance(value, tuple | list) and len(value) == 2:
        value, rate = value
    if isinstance(value, bytes | BufferedIOBase):
        return (value if isinstance(value, bytes) else value.read()), ""
    if isinstance(value, PillowImage) and modality != "audio":
        value = pixels_of(value)
        value = value[None] if modality == "video" else value
    elif isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if not isinstance(value, np.ndarray):
        forms = " or (samples, samples a second)" if modality == "audio" else ""
        raise InputError(f"{described(value)} is not one of the files to learn from; give {GIVE}{forms}")
    if modality == "image":
        return png(value), ".png"
    if modality == "video":
        return animated_png(value), ".png"
    if not isinstance(rate, int | np.integer) or not 0 < rate <= MAX_RATE:
        raise InputError(f"{described(rate)} is not a number of samples a second; give a sound as (samples, rate)")
    return au(as_samples(value, int(rate)), int(rate)), ".au"


def tagged(row: object, place: str) -> str:
    """Return a sentence and its tags as lines of a tagged file."""
    columns: list[Any] = list(row) if isinstance(row, list | tuple) else []
    if isinstance(row, Mapping):
        columns = [row[key] for keys in TAGGED for key in keys if key in row]
    if len(columns) != 2 or not all(map(is_column, columns)):
        raise InputError(f"{place}: {described(row)} is not a sentence; give (words, tags), two lists")
    words, tags = map(list, columns)
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
    parts: dict[Any, Any] = dict(row) if isinstance(row, Mapping) else {}
    if isinstance(row, tuple | list) and len(row) == 3:
        parts = dict(zip(("question", "context", "answer"), row, strict=True))
    if not {"question", "context"} <= parts.keys():
        raise InputError(f'{place}: {described(row)} is not a question; give "question", "context" and "answer"')
    context, answers = str(parts["context"]), parts.get("answers", parts.get("answer"))
    if isinstance(answers, Mapping):
        places = list(zip(answers["text"], map(int, answers["answer_start"]), strict=True))
    else:
        texts = [] if answers in (None, "") else [answers] if isinstance(answers, str) else list(answers or [])
        places = [(text, context.find(text)) for text in texts]
    if missing := [text for text, start in places if start < 0]:
        raise InputError(f"{place}: the context does not hold the answer {missing[0]!r}; answers are parts of it")
    entry = {
        "id": str(parts.get("id", number)),
        "question": str(parts["question"]),
        "answers": [{"text": text, "answer_start": start} for text, start in places],
        "is_impossible": not places,
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
        if all_processes() > 1:
            raise InputError(
                "data of a program is for runs of one process; save it to files, and name them in the recipe"
            )
        with claim(folder):
            settings = with_data(settings, data, folder)
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


def as_recipe(
    recipe: str | Path | Recipe | Mapping[str, Any], overrides: Overrides = (), data: str | Path | None = None
) -> Recipe:
    root = None if data is None else Path(data)
    if isinstance(recipe, str | Path):
        return load_recipe(recipe, overrides, root)
    return make_recipe(recipe, overrides, root)
