"""Ways to read a table: the tasks and columns that suit each other, and how plausible each combination is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

from heedful.data.readers.columns import LABEL_CHARACTERS, LANGUAGE_NAMES, PAIR_NAMES, TEXT_NAMES, Column
from heedful.data.readers.rows import find_name, hint_of_name
from heedful.errors import InputError

OF_ONE_TEXT = ("language_model", "masked_lm")
OF_LABELS = ("classification", "regression")
OF_REPLIES = ("text_to_text", "summarisation", "dialogue")
ANSWERED = {  # usual column names: of an instruction or text, of its input, and of the answer
    "text_to_text": (("instruction", "prompt"), ("input", "context"), ("output", "completion", "response")),
    "summarisation": (("article", "document", "dialogue", "text"), (), ("summary", "highlights")),
}
SIDES = LANGUAGE_NAMES | {"source", "src", "target", "tgt", "translation", "原文", "译文"}
TARGETS = {
    "classification": "classes",
    "regression": "numbers",
    "translation": "translations",
}
# The page with recipes for tasks that `init` does not support.
ELSEWHERE = 'the page "Search, summaries and dialogue" of the documentation'

# Weight of a reading, by the evidence for it: the column's name, the end of the name, the contents, or the lack of
# other columns. BARELY stands for hardly any evidence.
NAMED, ENDING, CONTENT, REMAINING, BARELY = 4.0, 3.5, 2.0, 1.5, 1.0
MIN_PIXELS = 50  # columns of numbers that may be pixels
CLOSE = 0.4  # two readings that differ by less are equally plausible
SCORED_PAIR = 0.6  # added for fractions next to two texts: they are usually similarities, not labels
MAX_COLUMNS = 12  # in a message

Certainty = Literal["given", "certain", "likely", "unsure"]  # given: the user chose the task


@dataclass(frozen=True)
class TaskChoice:
    """A task and the columns that it reads; None for a choice that is still open, or not needed."""

    task: str | None = None
    source: str | None = None
    pair: str | None = None
    target: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.source, self.pair, self.target) if name is not None)

    def options(self) -> list[str]:
        """Return the options of `heedful init` for this choice."""
        fields = {"--source-field": self.source, "--pair-field": self.pair, "--target-field": self.target}
        values = {"--task": self.task, **fields}
        return [word for option, value in values.items() if value is not None for word in (option, value)]


class Candidate(NamedTuple):
    """A way to read a table, and how plausible it is."""

    weight: float
    choice: TaskChoice


def choose_task(
    columns: Sequence[Column], request: TaskChoice, name: str
) -> tuple[TaskChoice, TaskChoice | None, Certainty]:
    """Choose the task and the columns that a request leaves open, judging by the names and contents of the columns.

    Returns the best choice, the second-best if there is one, and how certain the best one is.
    """
    names = [column.name for column in columns]
    fields = {}  # the requested columns, spelled as in the table
    for key in ("source", "pair", "target"):
        field = getattr(request, key)
        fields[key] = None if field is None else find_name(field, names)
        if field is not None and fields[key] is None:
            hint = hint_of_name(field, names)
            raise InputError(f"{name}: no column is named {field!r}{hint}; it has {list_columns(columns)}")
    request = replace(request, **fields)
    options = {"--source-field": request.source, "--pair-field": request.pair, "--target-field": request.target}
    for (option, column), (other, second_column) in combinations(options.items(), 2):
        if column is not None and column == second_column:
            raise InputError(f"{name}: {option} and {other} are the same column, {column!r}; choose different columns")
    ranked = sorted(candidates(columns, request), key=lambda candidate: -candidate.weight)
    if not ranked:
        raise no_task_error(columns, request, name)
    best, second = (*ranked, Candidate(0.0, TaskChoice()))[:2]
    is_close = best.weight - second.weight < CLOSE or (request.task is None and best.weight <= BARELY)
    certainty: Certainty = "unsure" if is_close else "certain" if best.weight >= NAMED else "likely"
    return best.choice, second.choice if second.weight else None, certainty


def candidates(columns: Sequence[Column], request: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of a table that suit a request."""
    yield from labelled_texts(columns, request)
    yield from translations(columns, request)
    yield from answers(columns, request)
    yield from dialogues(columns, request)
    yield from running_texts(columns, request)


def labelled_texts(columns: Sequence[Column], request: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings in which a column has the labels of texts or, with few values, the texts to write."""
    for column in columns:
        if request.target not in (None, column.name) or column.name in (request.source, request.pair):
            continue
        inputs = input_texts([other for other in columns if other is not column], request, most=2)
        for task, weight in label_tasks(column, request).items():
            if request.task not in (None, task):
                continue
            for texts, penalty in inputs:
                is_scored_pair = len(texts) == 2 and task == "regression" and weight == CONTENT
                choice = TaskChoice(task, texts[0], texts[1] if len(texts) == 2 else None, column.name)
                yield Candidate(weight - penalty + SCORED_PAIR * (is_scored_pair and column.has_fractions), choice)
                # Few distinct values may also be texts to write, if most have several words or the name suggests it.
                is_wordy = 2 * column.spaces > column.rows or column.name.strip().lower() in PAIR_NAMES
                if task == "classification" and is_wordy and not column.all_numbers:
                    yield Candidate(REMAINING - penalty, replace(choice, task="text_to_text"))


def label_tasks(column: Column, request: TaskChoice) -> dict[str, float]:
    """Return the tasks for which a column can be the target, classification and regression, with their weights."""
    is_target = request.target == column.name
    weight = NAMED if column.is_called_label or is_target else ENDING if column.ends_like_label else CONTENT
    if column.is_score:
        return {"regression": weight} | ({"classification": BARELY} if column.is_label else {})
    if column.is_label and not column.is_note and (is_target or not column.is_id):
        may_be_score = column.all_numbers and len(column.values) > 2
        return {"classification": weight} | ({"regression": BARELY} if may_be_score else {})
    if is_target and column.all_numbers:
        return {"regression": weight, "classification": BARELY}
    return {"classification": weight} if is_target and request.task == "classification" else {}


def input_texts(columns: Sequence[Column], request: TaskChoice, *, most: int) -> list[tuple[list[str], float]]:
    """Return each choice of at most `most` columns to read as texts, with a penalty, which is 0 for a clear choice."""
    if request.source:
        return [([request.source, *([request.pair] if request.pair else [])], 0.0)]
    texts = [column for column in columns if column.is_text and not column.is_note]
    if not texts and most == 2:  # single words, such as word pairs with human judgements
        wordy = [column for column in columns if not (column.all_numbers or column.lists or column.is_note)]
        texts = [column for column in wordy if len(column.values) > 1]
    if len(texts) <= most:
        return [([column.name for column in texts], 0.0)] if texts else []
    texts.sort(key=lambda column: -column.characters)
    pairs = [pair for pair in combinations(texts, 2) if is_text_pair(*pair)] if most == 2 else []
    if pairs:
        usual = [two for two in pairs if all(one.name.strip().lower() in TEXT_NAMES | PAIR_NAMES for one in two)]
        pair = [column.name for column in (usual or pairs)[0]]
        return [([column.name for column in columns if column.name in pair], 0.0)]
    named = [column for column in texts if column.name.strip().lower() in TEXT_NAMES]
    return [([column.name], 0.0) for column in named] if len(named) == 1 else [([column.name], 0.2) for column in texts]


def is_text_pair(first: Column, second: Column) -> bool:
    """Return True if two columns belong together by their names: sentence1, sentence2; premise, hypothesis."""
    one, two = sorted(column.name.strip().lower() for column in (first, second))
    if any(one.replace(end, "") == two.replace(other, "") for end, other in (("1", "2"), ("a", "b"))):
        return not one.isdecimal()
    return {one, two}.issubset(TEXT_NAMES | PAIR_NAMES) and len({one, two} & PAIR_NAMES) == 1


def translations(columns: Sequence[Column], request: TaskChoice) -> Iterator[Candidate]:
    """Yield the reading of two texts as translations of each other, or as text and answer if requested."""
    if request.task not in (None, "translation", *OF_REPLIES) or request.pair:
        return
    texts = [column for column in columns if column.is_text and not column.is_note]
    sides = [column for column in texts if column.name.strip().lower() in SIDES]
    texts = sides if len(sides) == 2 else texts
    by_name = {column.name: column for column in columns}
    requested = [by_name[name] for name in (request.source, request.target) if name]
    pair = [*requested, *(column for column in texts if column not in requested)]
    pair = pair[::-1] if request.target and not request.source else pair
    if len(pair) != 2 or (request.task is None and not all(column.is_text for column in pair)):
        return
    weight = REMAINING if all(column.name.isdecimal() for column in pair) else BARELY
    weight = NAMED if len(sides) == 2 or request.task else weight
    yield Candidate(weight, TaskChoice(request.task or "translation", pair[0].name, None, pair[1].name))


def answers(columns: Sequence[Column], request: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of instructions with answers, and of texts with summaries, based on the column names."""
    by_name = {column.name.strip().lower(): column.name for column in columns if not column.lists}
    has_score = any(column.is_score and (column.is_called_label or column.ends_like_label) for column in columns)
    for task, usual in ANSWERED.items():
        source, pair, target = (next((by_name[name] for name in names if name in by_name), None) for names in usual)
        if request.task in (None, task) and not request.columns and source and target:
            yield Candidate(NAMED if has_score else NAMED + 1, TaskChoice(task, source, pair, target))


def dialogues(columns: Sequence[Column], request: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of columns of turns as dialogues, and of a text next to such a column as the reply."""
    if request.task not in (None, "dialogue") or request.pair:
        return
    replies = [column.name for column in columns if column.name.strip().lower() in PAIR_NAMES and column.is_text]
    target = request.target or (replies[0] if len(replies) == 1 else None)
    for column in columns:
        if column.is_dialogue and request.source in (None, column.name):
            is_clear = request.task or column.messages or not any(other.is_text for other in columns)
            choice = TaskChoice("dialogue", column.name, None, None if column.messages else target)
            yield Candidate(NAMED + 1 if is_clear or choice.target else BARELY, choice)


def running_texts(columns: Sequence[Column], request: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of one column as running text."""
    if request.target or request.pair or request.task not in (None, *OF_ONE_TEXT):
        return
    is_only_text = sum(column.is_text for column in columns) == 1
    weights = {"language_model": REMAINING if is_only_text else BARELY / 2, "masked_lm": BARELY / 4}
    for names, penalty in input_texts(columns, request, most=1):
        for task, weight in weights.items():
            if request.task in (None, task):
                is_certain = request.task or (len(columns) == 1 and task == "language_model")
                yield Candidate((NAMED if is_certain else weight) - penalty, TaskChoice(task, names[0]))


def no_task_error(columns: Sequence[Column], request: TaskChoice, name: str) -> InputError:
    """Return an error for a table whose columns suit no task, or not the requested one."""
    table = f"{name}: it has {list_columns(columns)}"
    if request.task in TARGETS and not request.target:
        what = TARGETS[request.task]
        return InputError(
            f"{name}: no column clearly contains the {what} that --task {request.task} needs; it has "
            f"{list_columns(columns)}. Name the column with --target-field, or leave --task out"
        )
    if len(columns) >= MIN_PIXELS and all(column.all_numbers for column in columns):
        return InputError(
            f"{name}: contains {len(columns)} columns of numbers and no text; are they image pixels? heedful learns "
            "from image files: write each image to a file in a folder for its class, as recipes/mnist/unpack.py does, "
            "and give their parent folder"
        )
    if all(column.lists for column in columns):
        return InputError(
            f"{table}, but no text, and no dialogues with replies; give a table with a column of texts or of dialogues"
        )
    if not input_texts(columns, request, most=2):
        return InputError(
            f"{name}: no column seems to be text: it has {list_columns(columns)}; choose one with --source-field"
        )
    if request.task and request.target and (request.source or request.task in OF_LABELS):
        return InputError(
            f"{table}; {request.target!r} does not suit --task {request.task}: choose another column with "
            "--target-field, or leave --task out"
        )
    remedy = "the task is unclear: give --task, --source-field and --target-field"
    if request.task:
        remedy = (
            f"which of them --task {request.task} should use is unclear: give --source-field and --target-field, or "
            "leave --task out"
        )
    return InputError(f"{table}; {remedy}")


def one_class(columns: Sequence[Column]) -> Column | None:
    """Find a column in which all labels are equal; the column name must suggest labels, or be a number."""
    for column in columns:
        is_short = not column.lists and column.characters <= LABEL_CHARACTERS * column.rows
        may_be_labels = is_short and (column.is_called_label or column.name.isdecimal())
        if len(column.values) == 1 and column.rows > 1 and may_be_labels:
            return column
    return None


def list_columns(columns: Sequence[Column]) -> str:
    """List the columns of a table with what they seem to contain, for messages."""
    names = [str(column) for column in columns[:MAX_COLUMNS]]
    return "the columns " + ", ".join([*names, "..."] if len(columns) > len(names) else names)
