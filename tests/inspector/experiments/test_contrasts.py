"""A list of minimal pairs is read line by line, and a bad line is named by its number."""

from pathlib import Path

import pytest

from heedful.errors import InputError
from heedful.inspector.experiments.minimal_pairs import Contrast, contrasts

GOOD = "a b\ta c\t x\t y\tpair"


def test_lines_are_numbered_as_they_stand_in_the_file():
    found = contrasts(["# a comment\n", "\n", GOOD + "\r\n", GOOD.replace("pair", " control ")])
    assert found == [
        Contrast(3, ("a b", "a c"), (" x", " y"), "pair"),
        Contrast(4, ("a b", "a c"), (" x", " y"), "control"),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a\tb\tc\tpair", "line 2: has 4 columns instead of 5: text A,"),
        ("a b c d pair", "line 2: has 1 column "),
        ("a\t \tc\td\tpair", "line 2: text B is empty"),
        ("a\tb\tc\t\tpair", "line 2: form B is empty"),
        ("a\tb\tc\td\tfair", "line 2: the kind must be pair or control, not 'fair'"),
        ("a\tb\tc\t c\tpair", "line 2: the two forms are the same"),
    ],
)
def test_a_bad_line_is_named_by_its_number(line, words):
    with pytest.raises(InputError, match=words):
        contrasts([GOOD, line])


def test_a_list_without_lines_is_refused():
    with pytest.raises(InputError, match="the list is empty"):
        contrasts(["", "# nothing"])


def test_the_list_in_the_documentation_is_one():
    path = Path(__file__).parents[3] / "docs/how-to/pairs-scenes.tsv"
    found = contrasts(path.read_text(encoding="utf-8").splitlines())
    assert len(found) == 60
    assert {one.kind for one in found} == {"pair", "control"}
