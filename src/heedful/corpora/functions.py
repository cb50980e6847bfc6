"""Functions: an endless corpus of descriptions of small Python functions, each with its code.

A description combines a condition, a change of each item and a result, such as "Return the sum of the numbers that are
even and greater than 5, each squared." Parameters are annotated, so that other code can be tested against this code.
"""

import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from heedful.corpora.sampling import Sampler, divide

LETTERS = "abcdefghiklmnoprstuwy"
AFFIXES = (*LETTERS, "un", "re", "in", "ab", "st", "th", "er", "ed", "ly", "on", "an", "es")


class Function(NamedTuple):
    """A function: its description in English, and its code in Python."""

    description: str
    code: str


class Part(NamedTuple):
    """A part of a function, in words and in code."""

    words: str
    code: str


class Items(NamedTuple):
    """Items of a collection that meet a condition, perhaps changed: a function computes its result from them."""

    words: str
    name: str  # of an item
    collection: str
    condition: str
    value: str  # of an item, after the change

    @property
    def code(self) -> str:
        """The items as a generator expression, without parentheses."""
        return f"{self.value} for {self.name} in {self.collection}" + (
            f" if {self.condition}" if self.condition else ""
        )

    def loop(self, result: str, start: int, step: str) -> str:
        """Return the lines of a function that computes its result item by item."""
        lines = [f"{result} = {start}", f"for {self.name} in {self.collection}:"]
        lines += [f"    if {self.condition}:", f"        {step}"] if self.condition else [f"    {step}"]
        return block(*lines, f"return {result}")


def function(seed: int, index: int) -> Function:
    """Sample function `index` of the corpus with seed `seed`; it depends on these arguments alone."""
    draw = Sampler(random.Random(f"functions {seed} {index}"))
    parameter, kind = draw.one(KINDS)
    words, code = kind(draw)
    start = draw.one(("Return", "Write a function that returns"))
    return Function(f"{start} {words}.", f"def f({parameter}):\n{code}")


def of_number(draw: Sampler) -> Part:
    """Sample the result of a function that changes a number in one of two ways."""
    condition, first, second = number_condition(draw), number_change(draw), number_change(draw)
    while second == first:
        second = number_change(draw)
    lines = block(f"if {condition.code}:", f"    return {first.code}", f"return {second.code}")
    return Part(f"the number {first.words} if it is {condition.words}, and otherwise {second.words}", lines)


def of_numbers(draw: Sampler) -> Part:
    """Sample the result of a function of a list of numbers."""
    condition = combined(draw, number_condition) if draw.chance(0.8) else None
    if condition and draw.chance(0.25):
        return of_condition(draw, f"the numbers are {condition.words}", "number", "numbers", condition.code)
    change = number_change(draw) if draw.chance(0.5) else None
    items = items_of("the numbers", "that are", "number", "numbers", condition, change)
    return draw.one(
        (
            Part(f"the sum of {items.words}", returned(f"sum({items.code})")),
            Part(f"the product of {items.words}", items.loop("product", 1, f"product *= {items.value}")),
            Part(f"the largest of {items.words}, or 0 if there are none", returned(f"max(({items.code}), default=0)")),
            Part(f"the smallest of {items.words}, or 0 if there are none", returned(f"min(({items.code}), default=0)")),
            *arranged(draw, items),
        )
    )


def of_words(draw: Sampler) -> Part:
    """Sample the result of a function of the words of a text."""
    condition = combined(draw, word_condition) if draw.chance(0.8) else None
    if condition and draw.chance(0.25):
        return of_condition(draw, f"the words {condition.words}", "word", "text.split()", condition.code)
    change = draw.one(WORD_CHANGES) if draw.chance(0.5) else None
    items = items_of("the words", "that", "word", "text.split()", condition, change)
    separator, name = draw.one(((" ", "spaces"), ("-", "hyphens"), (", ", "commas and spaces"), ("", "nothing")))
    longest = f'max(({items.code}), key=len, default="")'
    return draw.one(
        (
            Part(f"a text of {items.words}, with {name} between them", returned(f'"{separator}".join({items.code})')),
            Part(f"the first longest of {items.words}, or an empty text if there are none", returned(longest)),
            Part(f"the number of letters in {items.words}", items.loop("letters", 0, f"letters += len({items.value})")),
            *arranged(draw, items),
        )
    )


def items_of(noun: str, link: str, name: str, collection: str, condition: Part | None, change: Part | None) -> Items:
    """Describe items with the words for their condition, after `link`, and for their change."""
    words = noun + (f" {link} {condition.words}" if condition else "") + (f", each {change.words}" if change else "")
    return Items(words, name, collection, condition.code if condition else "", change.code if change else name)


def of_condition(draw: Sampler, words: str, item: str, collection: str, condition: str) -> Part:
    """Sample a result that depends only on how many items meet a condition."""
    noun, rest = words.removeprefix("the ").split(" ", 1)
    return draw.one(
        (
            Part(f"how many of {words}", Items("", item, collection, condition, item).loop("count", 0, "count += 1")),
            Part(f"whether all {noun} {rest}", returned(f"all({condition} for {item} in {collection})")),
            Part(f"whether any {noun} {rest}", returned(f"any({condition} for {item} in {collection})")),
        )
    )


def arranged(draw: Sampler, items: Items) -> tuple[Part, ...]:
    """Return results that are a list of items in some order."""
    k, order = draw.number(2, 5), "ascending" if items.name == "number" else "alphabetical"
    return (
        Part(f"a list of {items.words}", returned(f"[{items.code}]")),
        Part(f"a list of {items.words}, in {order} order", returned(f"sorted({items.code})")),
        Part(f"a list of {items.words}, in reverse order", returned(f"[{items.code}][::-1]")),
        Part(
            f"a list of {items.words}, in {order} order and without repetitions", returned(f"sorted({{{items.code}}})")
        ),
        Part(f"a list of the first {k} of {items.words}", returned(f"[{items.code}][:{k}]")),
        Part(f"a list of the last {k} of {items.words}", returned(f"[{items.code}][-{k}:]")),
    )


def combined(draw: Sampler, condition: Callable[[Sampler], Part]) -> Part:
    """Sample a condition, or two that are joined by "and" or "or"."""
    first, second, link = condition(draw), condition(draw), draw.one(("and", "or"))
    if draw.chance(0.6) or first == second:
        return first
    return Part(f"{first.words} {link} {second.words}", f"{first.code} {link} {second.code}")


def number_condition(draw: Sampler) -> Part:
    """Sample a condition on a number, in words that follow "is" or "are"."""
    k, divisor = draw.number(0, 20), draw.number(3, 9)
    return draw.one(
        (
            Part("even", "number % 2 == 0"),
            Part("odd", "number % 2 == 1"),
            draw.one((Part("positive", "number > 0"), Part("negative", "number < 0"))),
            Part(f"greater than {k}", f"number > {k}"),
            Part(f"less than {k}", f"number < {k}"),
            Part(f"divisible by {divisor}", f"number % {divisor} == 0"),
            Part(f"not divisible by {divisor}", f"number % {divisor} != 0"),
            Part(f"between {k} and {k + divisor}", f"{k} <= number <= {k + divisor}"),
        )
    )


def word_condition(draw: Sampler) -> Part:
    """Sample a condition on words, in words that follow "that"."""
    k, letter, affix = draw.number(2, 6), draw.one(LETTERS), draw.one(AFFIXES)
    return draw.one(
        (
            Part(f"have more than {k} letters", f"len(word) > {k}"),
            Part(f"have fewer than {k} letters", f"len(word) < {k}"),
            Part(f'start with "{affix}"', f'word.startswith("{affix}")'),
            Part(f'end with "{affix}"', f'word.endswith("{affix}")'),
            Part(f'contain "{letter}"', f'"{letter}" in word'),
            Part(f'do not contain "{letter}"', f'"{letter}" not in word'),
        )
    )


def number_change(draw: Sampler) -> Part:
    """Sample a change of a number, in words that follow it."""
    k = draw.number(2, 12)
    return draw.one(
        (
            Part("doubled", "number * 2"),
            Part("squared", "number**2"),
            Part("with the opposite sign", "-number"),
            Part("without its sign", "abs(number)"),
            Part(f"increased by {k}", f"number + {k}"),
            Part(f"decreased by {k}", f"number - {k}"),
            Part(f"multiplied by {k}", f"number * {k}"),
        )
    )


WORD_CHANGES = (
    Part("in capitals", "word.upper()"),
    Part("reversed", "word[::-1]"),
    Part("with a capital first letter", "word.capitalize()"),
)


def block(*lines: str) -> str:
    """Indent the lines of a function."""
    return "\n".join(f"    {line}" for line in lines)


def returned(expression: str) -> str:
    return block(f"return {expression}")


KINDS = (("number: int", of_number), *(("numbers: list[int]", of_numbers),) * 3, *(("text: str", of_words),) * 2)


def split(
    train: int, valid: int, test: int, seed: int, done: Callable[[int], object] = lambda _: None
) -> dict[str, list[Function]]:
    """Sample functions with distinct code for training, validation and testing; for `done` see `divide`."""
    functions = (function(seed, index) for index in itertools.count())
    sizes = {"train": train, "valid": valid, "test": test}
    return divide(functions, lambda item: item.code, sizes, done)


def function_files(parts: Mapping[str, Sequence[Function]]) -> dict[str, str]:
    """Return the contents of tables by name, such as "train.jsonl": each row has a description and its code."""
    return {
        f"{part}.jsonl": "".join(json.dumps(each._asdict()) + "\n" for each in rows) for part, rows in parts.items()
    }
