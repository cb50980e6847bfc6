"""TOML: what is written reads back, and keys are found on their lines."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config.load import key_lines, read_toml, to_toml
from heedful.errors import InputError

KEYS = st.from_regex(r"[a-z_]{1,5}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.one_of(
    TEXT, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
TABLES = st.recursive(
    st.dictionaries(KEYS, PLAIN | st.lists(PLAIN, max_size=3), max_size=4),
    lambda inner: st.dictionaries(KEYS, PLAIN | inner | st.lists(inner, min_size=1, max_size=3), max_size=4),
    max_leaves=12,
)


@given(TABLES)
@settings(max_examples=50)
def test_what_is_written_reads_back(values: dict) -> None:
    assert tomllib.loads(to_toml(values)) == values


def test_every_character_is_escaped_as_toml_wants_it() -> None:
    text = "".join(map(chr, range(0x250))) + "\u2028\ufeff😀"
    assert tomllib.loads(to_toml({"a": text})) == {"a": text}


def test_nothing_is_written_for_none() -> None:
    assert to_toml({"a": None, "b": 3}) == "b = 3\n"


def test_keys_are_found_on_their_lines() -> None:
    text = """\
# comment = 1
name = "x"
[model]  # the model
  d_model=3
"heads" = 5

[[data.train]]
source = "a"
[[ data . train ]]
source = "b"
[data.filters]
max_tokens = 7
"""
    assert key_lines(text) == {
        "name": 2,
        "model": 3,
        "model.d_model": 4,
        "model.heads": 5,
        "data.train": 7,
        "data.train.0": 7,
        "data.train.0.source": 8,
        "data.train.1": 9,
        "data.train.1.source": 10,
        "data.filters": 11,
        "data.filters.max_tokens": 12,
    }


def test_windows_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(b"\xef\xbb\xbfname = 'x'\r\n[model]\r\nheads = 3\r\n")
    assert read_toml(file) == ({"name": "x", "model": {"heads": 3}}, {"name": 1, "model": 2, "model.heads": 3})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = 1\nnorm = pre\n", "line 2: 'norm = pre' is not valid TOML (Invalid value); strings need quotes, and"),
        (b"a = 1\na = 2\n", "line 2: 'a = 2': this key already has a value; remove one of the two"),
        (b"a = 1\n[model", "line 2: '[model' is not valid TOML"),
        (b"a = 1\nb = 'caf\xe9'\n", "line 2: not UTF-8 text"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_toml_names_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "a.toml"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_toml(file)
    assert str(caught.value).startswith(f"{file}")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("good.csv", b"text,label\nfine,1\n"),
        ("good.jsonl", b'{"text": "fine"}\n'),
        ("good.txt", b"caf\xe9\n"),
        ("good.tsv.gz", b"\x1f\x8b\x08"),
    ],
)
def test_a_text_that_is_given_as_a_recipe_is_sent_to_init(tmp_path: Path, name: str, content: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_toml(file)
    problem = f"{file}: this is a text file or a table, not a recipe; `heedful init {file}` writes a recipe for it"
    assert str(caught.value) == problem


def test_a_recipe_may_have_the_name_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "config.toml.txt").write_text("name = 'x'\n")
    assert read_toml(tmp_path / "config.toml.txt")[0] == {"name": "x"}


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read: Is a directory"):
        read_toml(tmp_path)
