"""Ways to read a table: for each task the columns that suit it, and how plausible it is, by what the columns hold."""

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
ANSWERED = {  # usual names of columns: of texts, of what these are about, and of what is written to them
    "text_to_text": (("instruction", "prompt"), ("input", "context"), ("output", "completion", "response")),
    "summarisation": (("article", "document", "dialogue", "text"), (), ("summary", "highlights")),
}
SIDES = LANGUAGE_NAMES | {"source", "src", "target", "tgt", "translation", "原文", "译文"}
ELSEWHERE = "docs/how-to/ranking-summaries-dialogue.md"  # has recipes for tasks for which `init` writes none

# How plausible a reading is: by a name that says so, or ends so; by the contents; as what is left to learn; or barely.
NAMED, ENDING, SEEN, LEFT, BARELY = 4.0, 3.5, 2.0, 1.5, 1.0
PIXELS = 50  # columns of numbers that may be pixels
CLOSE = 0.4  # two readings that differ by less are equally plausible
SCORED_PAIR = 0.6  # more plausible than any label: a fraction next to two texts, the usual shape of their similarity

Certainty = Literal["certain", "likely", "unsure"]


@dataclass(frozen=True)
class TaskChoice:
    """A task and the columns that it reads; None stands for a choice that is still open, or not needed."""

    task: str | None = None
    source: str | None = None
    pair: str | None = None
    target: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.source, self.pair, self.target) if name is not None)

    def options(self) -> list[str]:
        """The options of `heedful init` that ask for this choice."""
        fields = {"--source-field": self.source, "--pair-field": self.pair, "--target-field": self.target}
        named = [("--task", self.task), *fields.items()]
        return [word for option, value in named if value is not None for word in (option, value)]


class TableReading(NamedTuple):
    """The best way to read a table, the second-best if there is one, and how certain the best one is."""

    best: TaskChoice
    second: TaskChoice | None
    certainty: Certainty


class Candidate(NamedTuple):
    """A way to read a table, and how plausible it is."""

    weight: float
    choice: TaskChoice


def choose(columns: Sequence[Column], wanted: TaskChoice, name: str) -> TableReading:
    """Choose the task and the columns of a table that are still open, by the contents of the columns."""
    wanted = as_named(columns, wanted, name)
    ranked = sorted(candidates(columns, wanted), key=lambda candidate: -candidate.weight)
    if not ranked:
        raise nothing_suits(columns, wanted, name)
    best, second = (*ranked, Candidate(0.0, TaskChoice()))[:2]
    is_close = best.weight - second.weight < CLOSE or (wanted.task is None and best.weight <= BARELY)
    certainty: Certainty = "unsure" if is_close else "certain" if best.weight >= NAMED else "likely"
    return TableReading(best.choice, second.choice if second.weight else None, certainty)


def as_named(columns: Sequence[Column], wanted: TaskChoice, name: str) -> TaskChoice:
    """Return the choices that are settled, with the names of columns as the table has them, whatever their case."""
    known = [column.name for column in columns]
    meant = {}
    for key in ("source", "pair", "target"):
        field = getattr(wanted, key)
        meant[key] = None if field is None else find_name(field, known)
        if field is not None and meant[key] is None:
            hint = hint_of_name(field, known)
            raise InputError(f"{name}: no column is named {field!r}{hint}; it has {listed(columns)}")
    return replace(wanted, **meant)


def candidates(columns: Sequence[Column], wanted: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of a table that suit what is wanted, each with the texts that suit its target."""
    for column in columns:
        if wanted.target in (None, column.name) and column.name not in (wanted.source, wanted.pair):
            others = [other for other in columns if other is not column]
            for task, weight in of_labels(column, wanted):
                for texts, less in texts_of(others, wanted, most=2):
                    is_scored_pair = len(texts) == 2 and task == "regression" and weight == SEEN
                    choice = TaskChoice(task, texts[0], texts[1] if len(texts) == 2 else None, column.name)
                    yield Candidate(weight - less + SCORED_PAIR * (is_scored_pair and column.has_fractions), choice)
                    # A few different values may be texts to write, by the name or as most have several words.
                    is_wordy = 2 * column.spaces > column.rows or column.name.strip().lower() in PAIR_NAMES
                    if task == "classification" and is_wordy and not column.all_numbers:
                        yield Candidate(LEFT - less, replace(choice, task="text_to_text"))
    yield from translations(columns, wanted)
    yield from answered(columns, wanted)
    yield from dialogues(columns, wanted)
    yield from of_one_text(columns, wanted)


def of_labels(column: Column, wanted: TaskChoice) -> Iterator[tuple[str, float]]:
    """Yield the tasks for which a column can be the target, classification and regression, with their weights."""
    is_target = wanted.target == column.name
    named = NAMED if column.is_called_label or is_target else ENDING if column.ends_like_label else SEEN
    weights: dict[str, float] = {}
    if column.is_score:
        weights = {"regression": named} | ({"classification": BARELY} if column.is_label else {})
    elif column.is_label and not column.is_note and (is_target or not column.is_id):
        may_be_score = column.all_numbers and len(column.values) > 2
        weights = {"classification": named} | ({"regression": BARELY} if may_be_score else {})
    elif is_target and column.all_numbers:
        weights = {"regression": named, "classification": BARELY}
    elif is_target and wanted.task == "classification":
        weights = {"classification": named}
    yield from ((task, weight) for task, weight in weights.items() if wanted.task in (None, task))


def texts_of(columns: Sequence[Column], wanted: TaskChoice, *, most: int) -> list[tuple[list[str], float]]:
    """The texts that a model may read: the columns, and how much less plausible they are than clear ones."""
    if wanted.source:
        return [([wanted.source, *([wanted.pair] if wanted.pair else [])], 0.0)]
    texts = [column for column in columns if column.is_text and not column.is_note]
    if not texts and most == 2:  # single words, as the pairs of words that people have compared
        wordy = [column for column in columns if not (column.all_numbers or column.lists or column.is_note)]
        texts = [column for column in wordy if len(column.values) > 1]
    if len(texts) <= most:
        return [([column.name for column in texts], 0.0)] if texts else []
    texts.sort(key=lambda column: -column.characters)
    couples = [couple for couple in combinations(texts, 2) if are_a_couple(*couple)] if most == 2 else []
    if couples:
        usual = [two for two in couples if all(one.name.strip().lower() in TEXT_NAMES | PAIR_NAMES for one in two)]
        couple = [column.name for column in (usual or couples)[0]]
        return [([column.name for column in columns if column.name in couple], 0.0)]
    named = [column for column in texts if column.name.strip().lower() in TEXT_NAMES]
    return [([column.name], 0.0) for column in named] if len(named) == 1 else [([column.name], 0.2) for column in texts]


def are_a_couple(first: Column, second: Column) -> bool:
    """True if the names of two columns say that they belong together: sentence1, sentence2; premise, hypothesis."""
    one, two = sorted(column.name.strip().lower() for column in (first, second))
    if any(one.replace(end, "") == two.replace(other, "") for end, other in (("1", "2"), ("a", "b"))):
        return not one.isdecimal()
    return {one, two}.issubset(TEXT_NAMES | PAIR_NAMES) and len({one, two} & PAIR_NAMES) == 1


def translations(columns: Sequence[Column], wanted: TaskChoice) -> Iterator[Candidate]:
    """Yield the reading of two texts as translations of each other, or as text and answer where that is asked for."""
    if wanted.task not in (None, "translation", *OF_REPLIES) or wanted.pair:
        return
    texts = [column for column in columns if column.is_text and not column.is_note]
    sides = [column for column in texts if column.name.strip().lower() in SIDES]
    texts = sides if len(sides) == 2 else texts
    by_name = {column.name: column for column in columns}
    columns_named = [by_name[name] for name in (wanted.source, wanted.target) if name]
    couple = [*columns_named, *(column for column in texts if column not in columns_named)]
    couple = couple[::-1] if wanted.target and not wanted.source else couple
    if len(couple) != 2 or (wanted.task is None and not all(column.is_text for column in couple)):
        return
    weight = LEFT if all(column.name.isdecimal() for column in couple) else BARELY
    weight = NAMED if len(sides) == 2 or wanted.task else weight
    yield Candidate(weight, TaskChoice(wanted.task or "translation", couple[0].name, None, couple[1].name))


def answered(columns: Sequence[Column], wanted: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of instructions with answers, and of texts with summaries, by the names of the columns."""
    by_name = {column.name.strip().lower(): column.name for column in columns if not column.lists}
    has_score = any(column.is_score and (column.is_called_label or column.ends_like_label) for column in columns)
    for task, usual in ANSWERED.items():
        source, pair, target = (next((by_name[name] for name in names if name in by_name), None) for names in usual)
        if wanted.task in (None, task) and not wanted.columns and source and target:
            yield Candidate(NAMED if has_score else NAMED + 1, TaskChoice(task, source, pair, target))


def dialogues(columns: Sequence[Column], wanted: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of columns of turns as dialogues, and of a text next to one as the reply."""
    if wanted.task not in (None, "dialogue") or wanted.pair:
        return
    replies = [column.name for column in columns if column.name.strip().lower() in PAIR_NAMES and column.is_text]
    target = wanted.target or (replies[0] if len(replies) == 1 else None)
    for column in columns:
        if column.is_dialogue and wanted.source in (None, column.name):
            is_clear = wanted.task or column.messages or not any(other.is_text for other in columns)
            choice = TaskChoice("dialogue", column.name, None, None if column.messages else target)
            yield Candidate(NAMED + 1 if is_clear or choice.target else BARELY, choice)


def of_one_text(columns: Sequence[Column], wanted: TaskChoice) -> Iterator[Candidate]:
    """Yield the readings of one column as running text."""
    if wanted.target or wanted.pair or wanted.task not in (None, *OF_ONE_TEXT):
        return
    is_only_text = sum(column.is_text for column in columns) == 1
    weights = {"language_model": LEFT if is_only_text else BARELY / 2, "masked_lm": BARELY / 4}
    for names, less in texts_of(columns, wanted, most=1):
        for task, weight in weights.items():
            if wanted.task in (None, task):
                sure = wanted.task or (len(columns) == 1 and task == "language_model")
                yield Candidate((NAMED if sure else weight) - less, TaskChoice(task, names[0]))


def nothing_suits(columns: Sequence[Column], wanted: TaskChoice, name: str) -> InputError:
    """The error that the columns of a table suit no task, or not the one that is asked for."""
    if wanted.task in WHAT and not wanted.target:
        what = f"say with --target-field which of them {WHAT[wanted.task]}"
    elif len(columns) >= PIXELS and all(column.all_numbers for column in columns):
        return InputError(
            f"{name}: holds {len(columns)} columns of numbers and no text, such as the pixels of pictures; heedful "
            "learns from pictures in files: write each as a file into a folder of its class, as "
            "recipes/mnist/unpack.py does, and give the folder above"
        )
    elif not texts_of(columns, wanted, most=2):
        return InputError(f"{name}: no column seems to be text: it has {listed(columns)}; name it with --source-field")
    else:
        what = "and what is to be learned cannot be told; say it with --task, --source-field and --target-field"
    return InputError(f"{name}: it has {listed(columns)}{',' if what.startswith('and') else ';'} {what}")


def one_class(columns: Sequence[Column]) -> Column | None:
    """The column of labels, by its name or as it has none, where all labels are equal; or None."""
    for column in columns:
        is_short = not column.lists and column.characters <= LABEL_CHARACTERS * column.rows
        may_be_labels = is_short and (column.is_called_label or column.name.isdecimal())
        if len(column.values) == 1 and column.rows > 1 and may_be_labels:
            return column
    return None


WHAT = {
    "classification": "has the classes",
    "regression": "has the numbers",
    "translation": "has the translations",
}


def listed(columns: Sequence[Column]) -> str:
    """List the columns of a table with what they seem to hold, for messages to people."""
    shown = [str(column) for column in columns[:12]]
    return "the columns " + ", ".join([*shown, "..."] if len(columns) > len(shown) else shown)
