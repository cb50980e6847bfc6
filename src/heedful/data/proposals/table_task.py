"""Guesses a table's task (classification, regression, language model, translation) and its columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.data.readers.columns import Column
from heedful.data.readers.header import LANGUAGE_NAMES
from heedful.data.readers.names import find_name, hint_of_name
from heedful.errors import InputError

OF_ONE_TEXT = ("language_model", "masked_lm")
OF_LABELS = ("classification", "regression")
SIDES = LANGUAGE_NAMES | {"source", "src", "target", "tgt", "translation", "原文", "译文"}
ELSEWHERE = "docs/how-to/ranking-summaries-dialogue.md"  # has recipes for tasks for which `init` writes none


@dataclass(frozen=True)
class TaskChoice:
    """A task and the columns that it reads; None stands for a choice that is still open, or not needed."""

    task: str | None = None
    source: str | None = None
    pair: str | None = None
    target: str | None = None


def choose(columns: Sequence[Column], wanted: TaskChoice, name: str) -> TaskChoice:
    """Choose the task and the columns of a table that are still open, by the contents of the columns.

    Args:
        columns: All columns of the table.
        wanted: The choices that are settled.
        name: The file, for messages.

    Raises:
        InputError: A wanted column does not exist, or the contents do not tell the task or a column.
    """
    wanted = as_named(columns, wanted, name)
    if any(column.lists for column in columns) and not any(column.is_text for column in columns):
        raise InputError(
            f"{name}: it has {listed(columns)}; lists are dialogues, for which `heedful init` writes no recipe: "
            f"{ELSEWHERE} has one to copy"
        )
    task = wanted.task or task_of(columns, wanted, name)
    taken = {field for field in (wanted.source, wanted.pair, wanted.target) if field is not None}
    texts = [column.name for column in columns if column.is_text and column.name not in taken]
    target = wanted.target or target_of(columns, task, texts, wanted, name)
    texts = [wanted.source, *texts] if wanted.source else texts
    texts = [text for text in texts if text != target]
    if not texts:
        raise InputError(f"{name}: no column seems to be text: it has {listed(columns)}; name it with --source-field")
    if len(texts) > (2 if task in OF_LABELS else 1) and not wanted.source:
        raise InputError(f"{name}: it has {listed(columns)}; say with --source-field which text to read")
    is_pair = task in OF_LABELS and len(texts) == 2 and not wanted.source
    return TaskChoice(task, texts[0], wanted.pair or (texts[1] if is_pair else None), target)


def as_named(columns: Sequence[Column], wanted: TaskChoice, name: str) -> TaskChoice:
    """Return the choices that are settled, with the names of columns as the table has them, whatever their case.

    Raises:
        InputError: There is not such a column.
    """
    known = [column.name for column in columns]
    meant = {}
    for key in ("source", "pair", "target"):
        field = getattr(wanted, key)
        meant[key] = None if field is None else find_name(field, known)
        if field is not None and meant[key] is None:
            hint = hint_of_name(field, known)
            raise InputError(f"{name}: no column is named {field!r}{hint}; it has {listed(columns)}")
    return replace(wanted, **meant)


def task_of(columns: Sequence[Column], wanted: TaskChoice, name: str) -> str:
    """Guess the task from the columns of a table: classification, regression, language model or translation.

    Raises:
        InputError: The columns suggest no task, or one that needs a recipe from elsewhere.
    """
    rest = [column for column in columns if column.name not in (wanted.source, wanted.pair)]
    targets = [column for column in rest if wanted.target in (None, column.name)]
    if any(column.is_label for column in targets):
        return "classification"
    if any(column.all_numbers and (column.is_called_label or wanted.target) for column in targets):
        return "regression"
    texts = [column for column in columns if column.is_text]
    if len(texts) == 1 and wanted.target is None:
        return "language_model"
    if len(texts) == 2:
        if all(column.name.isdecimal() or column.name.strip().lower() in SIDES for column in texts):
            return "translation"
        raise InputError(
            f"{name}: it has {listed(columns)}. If one text is the translation of the other, say --task translation; "
            f"for search, summaries and answers {ELSEWHERE} has recipes to copy"
        )
    raise InputError(
        f"{name}: it has {listed(columns)}, and what is to be learned cannot be told; say it with --task, "
        "--source-field and --target-field"
    )


def target_of(columns: Sequence[Column], task: str, texts: Sequence[str], wanted: TaskChoice, name: str) -> str | None:
    """Find the target column of a table: with the labels, numbers or translations; None if the task needs none.

    Raises:
        InputError: There is no such column, or there are several.
    """
    if task in OF_ONE_TEXT:
        return None
    rest = [column for column in columns if column.name not in (wanted.source, wanted.pair)]
    found = {
        "classification": [column.name for column in rest if column.is_label],
        "regression": [column.name for column in rest if column.all_numbers and not column.is_id],
        "translation": [text for text in texts if wanted.source or text != texts[0]],
    }[task]
    called = [column.name for column in rest if column.name in found and column.is_called_label]
    if len(called) == 1 and task in OF_LABELS:
        return called[0]
    if len(found) != 1:
        raise InputError(f"{name}: it has {listed(columns)}; say with --target-field which of them {WHAT[task]}")
    return found[0]


WHAT = {
    "classification": "has the classes",
    "regression": "has the numbers",
    "translation": "has the translations",
}


def listed(columns: Sequence[Column]) -> str:
    """List the columns of a table with what they seem to hold, for messages to people."""
    shown = [str(column) for column in columns[:12]]
    return "the columns " + ", ".join([*shown, "..."] if len(columns) > len(shown) else shown)
