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
from heedful.distributed.reducer import is_rank_zero, num_processes
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
from heedful.training.resume import ResumeOptions
from heedful.wording import counted

EXAMPLES_FOLDER = "examples"  # in a run folder
PARTS = {"train": "train", "valid": "valid", "validation": "valid", "test": "test"}

# Tasks by the form of their examples; all others learn from pairs (source, target).
TEXT_TASKS = ("language_model", "masked_lm", "word_vectors", "masked_patches")
TASKS_WITH_PAIRS = ("classification", "regression")  # with or without a second text between the first one and the label
TASKS_WITH_FORMATS = ("tagging", "span_qa")

FIELDS = {1: ("source",), 2: ("source", "target"), 3: ("source", "pair", "target")}  # by the number of values in a row
SINGLE_VALUE = (1,)  # number of values if a row is one text or one file
TAGGED_NAMES = (("words", "tokens"), ("tags", "labels", "ner_tags"))
RATE_NAMES = "sampling_rate", "rate"  # keys of the rate in audio given as a dictionary
PREFERRED_NAMES = ("source", "text", "target", "label")  # take precedence over other usual names
USUAL_NAMES = {
    "source": TEXT_NAMES | FILE_NAMES,
    "pair": PAIR_NAMES,
    "target": LABEL_NAMES | PAIR_NAMES | {"text", "caption", "transcript"},
}


def with_data(recipe: Recipe, data: object, folder: Path) -> Recipe:
    """Write training data in memory to files, and return the recipe that reads them.

    Args:
        recipe: The recipe, whose task determines what a row is.
        data: Rows for training, or a mapping from "train", "valid" and "test" to rows. Rows are an iterable of
            dictionaries, tuples or strings, a mapping from column names to values, or a data frame. Images, audio and
            videos are files, arrays or Pillow images.
        folder: The run folder. The files are written to its subfolder `examples`, unless they exist with this content.
    """
    rows_by_part = {"train": data}
    # If there are other keys as well, "train" is a column of a table.
    if isinstance(data, Mapping) and "train" in data and data.keys() <= PARTS.keys():
        rows_by_part = {PARTS[name]: rows for name, rows in data.items() if rows is not None}
    parts = {name: write_part(rows, recipe, folder / EXAMPLES_FOLDER, name) for name, rows in rows_by_part.items()}
    train = (parts["train"],) if "train" in parts else recipe.data.train
    others = {name: parts.get(name, getattr(recipe.data, name)) for name in ("valid", "test")}
    return replace(recipe, data=replace(recipe.data, train=train, **others))


def write_part(data: object, recipe: Recipe, folder: Path, name: str) -> CorpusConfig:
    """Write the rows of a part to a file in the task's format; return the settings of a corpus with this file."""
    numbered = enumerate(rows_of(data, name), start=1)
    if recipe.task == "tagging":
        file, lines = folder / f"{name}.conll", (conll_lines(row, f"{name}, row {n}") for n, row in numbered)
    elif recipe.task == "span_qa":
        articles = [squad_article(row, f"{name}, row {n}", n) for n, row in numbered]
        file, lines = folder / f"{name}.json", iter([json.dumps({"data": articles})] if articles else [])
    else:
        examples = (example(row, recipe, folder, name, n) for n, row in numbered)
        file, lines = folder / f"{name}.jsonl", map(json.dumps, examples)
    # The first row shows whether there are any rows, and how many values each row has.
    first = next(lines, None)
    if first is None:
        raise InputError(f"{name}: the data is empty; give at least one row")
    width = 0 if recipe.task in TASKS_WITH_FORMATS else len(json.loads(first))
    text = "".join(f"{line}\n" for line in chain([first], lines))
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(file) as stream:
            stream.write(text.encode("utf-8"))
    return CorpusConfig(source=str(file.absolute()), pair_field="pair" if width == len(FIELDS[3]) else None)


def rows_of(data: Any, name: str) -> Iterator[Any]:
    """Return an iterator over the rows of a data frame, a mapping of columns, an iterable, or a map-style dataset."""
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
            raise InputError(f"{name}: the columns of a mapping must be lists of equal length, but are {sizes}")
        return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, Iterable):
        # a torch.utils.data.Dataset, which need not raise an IndexError at its end
        return (data[number] for number in range(len(data)))
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise InputError(
            f"{name}: {described(data)} is not training data; give a list of rows, a dictionary of columns, a data "
            "frame, or the path of a folder of files"
        )
    return iter(data)


def is_column(values: object) -> bool:
    return isinstance(values, Iterable) and hasattr(values, "__len__") and not isinstance(values, str | bytes)


def example(row: object, recipe: Recipe, folder: Path, name: str, number: int) -> dict[str, object]:
    """Convert a row to a dictionary whose keys are names in `FIELDS`; write any image, audio or video to a file."""
    where, task, is_text = f"{name}, row {number}", recipe.task, recipe.data.modality == "text"
    widths: tuple[int, ...] = (2,)
    if task in TEXT_TASKS:
        widths = SINGLE_VALUE
    elif task in TASKS_WITH_PAIRS:
        widths = (2, 3)
    elif TASKS.is_custom(task):
        widths = (1, 2, 3)

    # A dictionary is an example or, in Hugging Face datasets, a single image, audio or video.
    holds_media = isinstance(row, Mapping) and not row.keys().isdisjoint(("array", "bytes"))
    if not is_text and widths == SINGLE_VALUE and (holds_media or isinstance(row, SINGLE)):
        row = (row,)
    if isinstance(row, Mapping):
        values = values_by_name(row, recipe, widths, where)
    else:
        parts = [row] if isinstance(row, str | PathLike) else list(row) if isinstance(row, list | tuple) else []
        if len(parts) not in widths:
            forms = " or ".join(f"({', '.join(FIELDS[width])})" for width in widths)
            raise InputError(f"{where}: {described(row)} is not an example; give {forms}, or a dictionary")
        values = dict(zip(FIELDS[len(parts)], parts, strict=True))
    if not is_text:
        values["source"] = media_file(values["source"], recipe, folder / name, number, where)
    return {key: json_value(value, where) for key, value in values.items()}


def values_by_name(row: Mapping[Any, object], recipe: Recipe, widths: Sequence[int], where: str) -> dict[str, object]:
    """Select the values of a dictionary: by the recipe's names, by usual names, or by the order of the keys."""
    if widths != SINGLE_VALUE and len(row) == 1 and isinstance(inner := next(iter(row.values())), Mapping):
        row = inner  # {"translation": {"en": ..., "de": ...}}, as in Hugging Face datasets
    languages = (recipe.data.source_language, recipe.data.target_language)
    if widths == (2,) and set(languages) <= row.keys():
        return dict(zip(FIELDS[2], map(row.__getitem__, languages), strict=True))
    # The recipe's names take precedence; if several forms of an example match, the one with the most values wins.
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
    raise InputError(f"{where}: cannot tell which keys to read ({', '.join(map(repr, row))}); name them {fields}")


def by_usual_names(row: Mapping[Any, object], width: int) -> dict[str, object]:
    """Select values by the usual names of columns; return {} if one is missing or all keys are languages."""
    values: dict[str, object] = {}
    names = sorted(((str(key).strip().lower(), key) for key in row), key=lambda pair: pair[0] not in PREFERRED_NAMES)
    keys = dict(names)
    if keys.keys() <= LANGUAGE_NAMES:
        return {}
    for field in FIELDS[width]:
        key = next((keys.pop(name) for name in list(keys) if name in USUAL_NAMES[field]), None)
        if key is None:
            return {}
        values[field] = row[key]
    return values


def json_value(value: Any, where: str) -> object:
    """Convert a NumPy number or a Decimal to a Python number, a path to a string, and a missing value to None."""
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, Decimal):
        return float(value)
    if not isinstance(value, str | int | float | list | tuple | dict):
        raise InputError(f"{where}: {described(value)} is not a string or a number; convert it, for example with str()")
    return value


def is_missing(value: Any) -> bool:
    """Return True for None, NaN, and pandas' NA and NaT; pandas need not be installed."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and isnan(value))


def media_file(value: Any, recipe: Recipe, folder: Path, number: int, where: str) -> str:
    """Return the path of an example's media file, after writing it unless the value is already a path.

    A given path is made absolute; the path of a new file is relative to the folder of the JSONL file. The value is any
    input that a predictor accepts, (samples, rate) for audio, or a dictionary as in Hugging Face datasets, with the
    keys "array" and "sampling_rate", or "bytes" and "path".
    """
    if isinstance(value, Mapping) and value.get("array") is not None:
        rates = [value[key] for key in RATE_NAMES if key in value]
        value = (np.asarray(value["array"]), *rates) if rates else np.asarray(value["array"])
    elif isinstance(value, Mapping):
        value = next((value[key] for key in ("bytes", "path") if value.get(key) is not None), value)
    if isinstance(value, str | PathLike):
        return str(Path(value).absolute())
    try:
        content, ending = encode_media(value, recipe)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    file = folder / f"{number}{ending}"
    with named_write_errors(file):
        folder.mkdir(parents=True, exist_ok=True)
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)
    return f"{folder.name}/{file.name}"


def encode_media(value: Any, recipe: Recipe) -> tuple[bytes, str]:
    """Encode an image, audio or video losslessly; return the bytes of the file and its file name extension.

    A value that is already encoded, as bytes or an open file, is not changed and gets no extension.
    """
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
        forms = " or (samples, rate)" if modality == "audio" else ""
        raise InputError(f"{described(value)} cannot be read as {modality}; give {GIVE}{forms}")
    if modality == "image":
        return png(value), ".png"
    if modality == "video":
        return animated_png(value), ".png"
    if not isinstance(rate, int | np.integer) or not 0 < rate <= MAX_RATE:
        raise InputError(f"{described(rate)} is not a sample rate; give audio as (samples, rate)")
    return au(as_samples(value, int(rate)), int(rate)), ".au"


def conll_lines(row: object, where: str) -> str:
    """Return a sentence and its tags as lines of a CoNLL file."""
    columns: list[Any] = list(row) if isinstance(row, list | tuple) else []
    if isinstance(row, Mapping):
        columns = [row[key] for keys in TAGGED_NAMES for key in keys if key in row]
    if len(columns) != 2 or not all(map(is_column, columns)):
        raise InputError(f"{where}: {described(row)} is not a sentence; give (words, tags), two lists")
    words, tags = map(list, columns)
    if any(map(is_missing, (*words, *tags))):
        raise InputError(f"{where}: a word or a tag is missing (None or NaN); fill it in, or remove the row")
    if len(words) != len(tags):
        raise InputError(
            f"{where}: {counted(len(words), 'words')} but {counted(len(tags), 'tags')}; give one tag per word"
        )
    pairs = [(str(word), str(tag)) for word, tag in zip(words, tags, strict=True)]
    if invalid := [word for word, _ in pairs if not word.strip() or set(word) & set("\t\r\n")]:
        raise InputError(
            f"{where}: {invalid[0]!r} is not a word; words must not be empty or contain tabs or line breaks"
        )
    return "".join(f"{word}\t{tag}\n" for word, tag in pairs)


def squad_article(row: object, where: str, number: int) -> dict[str, object]:
    """Return a question with its context and answers as an article in SQuAD format."""
    parts: dict[Any, Any] = dict(row) if isinstance(row, Mapping) else {}
    if isinstance(row, tuple | list) and len(row) == 3:
        parts = dict(zip(("question", "context", "answer"), row, strict=True))
    if not {"question", "context"} <= parts.keys():
        raise InputError(f'{where}: {described(row)} is not a question; give "question", "context" and "answer"')
    context, answers = str(parts["context"]), parts.get("answers", parts.get("answer"))
    if isinstance(answers, Mapping):
        spans = list(zip(answers["text"], map(int, answers["answer_start"]), strict=True))
    else:
        texts = [] if answers in (None, "") else [answers] if isinstance(answers, str) else list(answers or [])
        # An answer without a position is located at its first occurrence in the context.
        spans = [(text, context.find(text)) for text in texts]
    if missing := [text for text, start in spans if start < 0]:
        raise InputError(
            f"{where}: the context does not contain the answer {missing[0]!r}; an answer must be a span of its context"
        )
    entry = {
        "id": str(parts.get("id", number)),
        "question": str(parts["question"]),
        "answers": [{"text": text, "answer_start": start} for text, start in spans],
        "is_impossible": not spans,
    }
    return {"paragraphs": [{"context": context, "qas": [entry]}]}


@dataclass(frozen=True)
class TrainingResult:
    """Result of a finished training run: its folder, its number of updates and the scores of the final model.

    Attributes:
        folder: The run folder; the model is in `folder / "model"`, and `heedful.load(folder)` opens it.
        update: The number of updates of the run.
        scores: The scores of the final model on the validation set; empty without one.
    """

    folder: Path
    update: int
    scores: dict[str, float]

    @cached_property
    def predictor(self) -> AnyPredictor:
        """The final model as a predictor (translator, generator, ...), on the device that `heedful.load` chooses."""
        return load_model(self.folder, "auto").use()

    @property
    def log(self) -> list[dict[str, Any]]:
        """Records of the training log, in order; each has an "update" and values such as "loss" or "valid_bleu"."""
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
    checked_callbacks = Callbacks(callbacks)
    changes = (allow_change,) if isinstance(allow_change, str) else tuple(allow_change)
    root = Path(data) if isinstance(data, str | PathLike) else None
    settings = as_recipe(recipe, overrides, root)
    folder = Path("runs") / settings.name if out is None else Path(out)
    if root is None and data is not None:
        if num_processes() > 1:
            raise InputError(
                "data in memory works only in a single process; save it to files, and name them in the recipe"
            )
        # Without the claim, this would overwrite the examples of another run that is training in this folder.
        with claim(folder):
            settings = with_data(settings, data, folder)
    console = console or Console(stderr=True)
    threads = torch.get_num_threads()
    try:
        options = ResumeOptions(allowed_changes=changes)
        outcome = loop.train(settings, folder, console, resume_options=options, callbacks=checked_callbacks)
    except CallbackError as failure:
        # The caller gets the callback's exception, without the wrapper in its traceback.
        raise failure.error from failure.error.__cause__
    finally:
        # The loop has set the number of threads of this process; restore the caller's.
        torch.set_num_threads(threads)
    if outcome.exit_code:
        if is_rank_zero():
            console.print(f"stopped and saved after update {outcome.update}; the same call resumes the run")
        # Training only noted the signal, so that it could save first. Raise it again: Ctrl-C then reaches the caller as
        # a KeyboardInterrupt.
        signal.raise_signal(outcome.exit_code - 128)
    return TrainingResult(folder, outcome.update, final_scores(folder))


def as_recipe(
    recipe: str | Path | Recipe | Mapping[str, Any], overrides: Overrides = (), root: Path | None = None
) -> Recipe:
    if isinstance(recipe, str | Path):
        return load_recipe(recipe, overrides, root)
    return make_recipe(recipe, overrides, root)
