"""Generated functions: their code does what the description says, and no part shares code with another."""

import json
import re
from math import prod

import pytest

from heedful.corpora.functions import function, function_files, split

NUMBERS = [[], [4], [-3, 0, 7, 12, 12, 5], list(range(-10, 25)), [20, 18, -6, 9, 9, 30]]
TEXTS = ["", "one", "the red letters end here", "Anna undid the latched oven and and under it", "reread unless"]

# A second reader of descriptions, which knows only English: words of a condition, of a change and of a result.
CONDITIONS = {
    r"even": lambda x: x in range(-100, 100, 2),
    r"odd": lambda x: x not in range(-100, 100, 2),
    r"positive": lambda x: x >= 1,
    r"negative": lambda x: x <= -1,
    r"greater than (\d+)": lambda x, k: x >= k + 1,
    r"less than (\d+)": lambda x, k: x <= k - 1,
    r"divisible by (\d+)": lambda x, k: x // k * k == x,
    r"not divisible by (\d+)": lambda x, k: x // k * k != x,
    r"between (\d+) and (\d+)": lambda x, low, high: x in range(low, high + 1),
    r"have more than (\d+) letters": lambda x, k: bool(x[k:]),
    r"have fewer than (\d+) letters": lambda x, k: not x[k - 1 :],
    r'start with "(.+)"': lambda x, text: x[: len(text)] == text,
    r'end with "(.+)"': lambda x, text: x[-len(text) :] == text,
    r'contain "(.+)"': lambda x, text: x.count(text) > 0,
    r'do not contain "(.+)"': lambda x, text: x.count(text) == 0,
}
CHANGES = {
    r"doubled": lambda x: x + x,
    r"squared": lambda x: x * x,
    r"with the opposite sign": lambda x: 0 - x,
    r"without its sign": lambda x: max(x, -x),
    r"increased by (\d+)": lambda x, k: x + k,
    r"decreased by (\d+)": lambda x, k: x - k,
    r"multiplied by (\d+)": lambda x, k: x * k,
    r"in capitals": lambda x: "".join(letter.upper() for letter in x),
    r"reversed": lambda x: "".join(reversed(x)),
    r"with a capital first letter": lambda x: x[:1].upper() + x[1:].lower(),
}
JOINED = {"spaces": " ", "hyphens": "-", "commas and spaces": ", ", "nothing": ""}
RESULTS = {
    r"the sum of (.*)": sum,
    r"the product of (.*)": prod,
    r"the largest of (.*), or 0 if there are none": lambda x: sorted(x)[-1] if x else 0,
    r"the smallest of (.*), or 0 if there are none": lambda x: sorted(x)[0] if x else 0,
    r"a list of (.*), in (?:ascending|alphabetical) order": sorted,
    r"a list of (.*), in (?:ascending|alphabetical) order and without repetitions": lambda x: sorted(dict.fromkeys(x)),
    r"a list of (.*), in reverse order": lambda x: list(reversed(x)),
    r"a list of the first (\d+) of (.*)": lambda x, k: [each for i, each in enumerate(x) if i < k],
    r"a list of the last (\d+) of (.*)": lambda x, k: [each for i, each in enumerate(x) if i >= len(x) - k],
    r"a list of (.*)": lambda x: x,
    r"a text of (.*), with (.*) between them": lambda x, name: JOINED[name].join(x),
    r"the first longest of (.*), or an empty text if there are none": lambda x: (
        next(each for each in x if len(each) == max(map(len, x))) if x else ""
    ),
    r"the number of letters in (.*)": lambda x: len("".join(x)),
}


def interpret(words, table):
    """The function for some words, with the numbers and texts in them, and what else they contain."""
    for pattern, compute in table.items():
        if match := re.fullmatch(pattern, words):
            values = [int(value) if value.isdigit() else value for value in match.groups()]
            return compute, values
    raise AssertionError(words)


def meets(words, item):
    if link := re.search(r" (and|or) (?!\d)", words):
        sides = meets(words[: link.start()], item), meets(words[link.end() :], item)
        return all(sides) if link[1] == "and" else any(sides)
    compute, values = interpret(words, CONDITIONS)
    return compute(item, *values)


def change(words, item):
    compute, values = interpret(words, CHANGES)
    return compute(item, *values)


def groups_of(pattern, words):
    match = re.fullmatch(pattern, words)
    assert match, words
    return match.groups()


def items_of(words, items):
    condition, changed = groups_of(r"the (?:numbers|words)(?: that (?:are )?(.*?))?(?:, each (.*))?", words)
    kept = [item for item in items if not condition or meets(condition, item)]
    return [change(changed, item) if changed else item for item in kept]


def expected(description, argument):
    [words] = groups_of(r"(?:Return|Write a function that returns) (.*)\.", description)
    if match := re.fullmatch(r"the number (.*) if it is (.*), and otherwise (.*)", words):
        return change(match[1] if meets(match[2], argument) else match[3], argument)
    items = argument.split() if isinstance(argument, str) else argument
    if match := re.fullmatch(r"(how many of the|whether all|whether any) (?:numbers|words) (?:are )?(.*)", words):
        truths = [meets(match[2], item) for item in items]
        return {"how": truths.count(True), "all": False not in truths, "any": True in truths}[
            match[1].split()[0] if match[1].startswith("how") else match[1].split()[1]
        ]
    compute, values = interpret(words, RESULTS)
    (which,) = (value for value in values if str(value).startswith("the "))
    return compute(items_of(which, items), *(value for value in values if value != which))


def run(code, argument):
    namespace = {}
    exec(code, namespace)  # our own grammar wrote it
    return namespace["f"](argument)


@pytest.fixture(scope="module")
def functions():
    return [function(seed=7, index=index) for index in range(3000)]


def test_code_does_what_the_description_says(functions):
    for description, code in functions:
        of_text, of_number = "(text: str)" in code, "(number: int)" in code
        for argument in TEXTS if of_text else range(-30, 30) if of_number else NUMBERS:
            assert run(code, argument) == expected(description, argument), (description, code, argument)


def test_all_kinds_occur(functions):
    descriptions = " ".join(description for description, _ in functions)
    names = [*CONDITIONS, *CHANGES, *JOINED, "how many", "whether all", "whether any", "product", "longest", "letters"]
    assert [name for name in names if not re.search(name, descriptions)] == []
    assert len({code for _, code in functions}) > 2000


def test_a_function_depends_on_the_seed_and_its_number_alone(functions):
    assert [function(seed=7, index=index) for index in range(9, 0, -1)] == functions[9:0:-1]
    assert function(seed=8, index=1) != functions[1]


def test_no_two_parts_share_code():
    parts = split(train=300, valid=20, test=20, seed=1)
    other = split(train=300, valid=20, test=20, seed=2)
    assert {part: len(items) for part, items in parts.items()} == {"train": 300, "valid": 20, "test": 20}
    codes = {part: {item.code for item in (*parts[part], *other[part])} for part in parts}
    assert len({item.code for items in parts.values() for item in items}) == 340
    assert not codes["train"] & (codes["valid"] | codes["test"])


def test_files_are_tables_of_descriptions_and_code():
    parts = split(train=5, valid=2, test=2, seed=1)
    files = function_files(parts)
    rows = [json.loads(line) for line in files["train.jsonl"].splitlines()]
    assert [(row["description"], row["code"]) for row in rows] == parts["train"]
