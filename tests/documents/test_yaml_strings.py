"""YAML: `yaml.safe_load` reads the new texts, and all else is the same byte for byte."""

from itertools import repeat

import pytest
import yaml
from hard_texts import broken, changed, check_that_only_input_errors_are_raised, encoded, encodings, replaced, texts
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.yaml_strings import read
from heedful.errors import InputError

plain = texts.map(lambda text: text.replace("\ud83d", ""))  # half a character has no UTF-8
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.dates() | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=7,
)


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@st.composite
def contents(draw: st.DrawFn) -> str:
    documents = draw(st.lists(values, min_size=1, max_size=2))
    return yaml.dump_all(
        documents,
        Dumper=Dumper,
        default_style=draw(st.sampled_from([None, "'", '"', "|", ">"])),
        default_flow_style=draw(st.sampled_from([None, True, False])),
        width=draw(st.sampled_from([13, 80])),
        indent=draw(st.sampled_from([2, 5])),
        allow_unicode=draw(st.booleans()),
        line_break=draw(st.sampled_from(["\n", "\r\n"])),
        explicit_end=draw(st.booleans()),
        sort_keys=False,
    )


ODD = [
    "a: Hello world # note\nb:   'it''s'   # c\n? complex key\n: - deep\n  -   deeper\n",
    "a: |+ # keep\n    one\n      two\n\n    three\n\n\nb: &x >-\n  folded\n  line\n\n  next\n# end\nc: *x\n",
    "a: >2\n\n   indented\n  not\nb: |1\n x\nc: [one, two three, {d: 'e'}, \"f\n  g\"] # h\n",
    "%YAML 1.1\n--- # first\n!!str text\n...\n--- |\n top\n---\n- &a !!str 12\n- *a\n",
    "a: plain\n  over\n\n  lines\nb: !!str\nc:\nd: ''\ne: yes\n",
    "defaults: &d {title: Hi, n: 1}\nother:\n  <<: *d\n  title: >\n    folded\n      more\n    less\n",
    "a: |\r\n  one\r\n\r\n  two\r\nb: 'x\r\n  y'\r\n",
    "a: >\n  " + "long words " * 11 + "\n\n\n\n\n  b\n  \n",
    "a:\n- |\n one\n\n  \n- |-\n  two\n   \n- >+\n\n  three\n\n",
    "tab: 'x\ty'\nliteral: |\n  \ta\n  b\nnext: line\x85end: \u2028 x\n",
    "{a: b, 'c':\"d\",e: [f,g]}",
    "plain at the top",
    "- - - x\n    - y\n  - z\n-\n  w\n",
    "- &a # comment\n  x\n- !!str &b |\n  y\n- *b\n",
]


@given(contents() | st.sampled_from(ODD), encodings)
def test_a_file_whose_texts_stay_the_same_stays_the_same(content, encoding):
    document = read(encoded(content, encoding), "a.yml")
    assert document.with_segments(document.segments) == encoded(content, encoding)


@given(contents(), encodings, st.data())
def test_new_texts_are_read_and_all_else_stays(content, encoding, data):
    document = read(encoded(content, encoding), "a.yml")
    segments = changed(document, data.draw)
    output = document.with_segments(segments).decode(encoding).removeprefix("\ufeff")
    new = iter([segment.text for segment in segments])
    assert list(yaml.safe_load_all(output)) == replaced(list(yaml.safe_load_all(content)), new)
    assert next(new, None) is None


@given(st.sampled_from(ODD), texts)
def test_a_new_text_is_read_in_every_style(content, text):
    document = read(content.encode(), "a.yml")
    output = document.with_segments([segment._replace(text=text) for segment in document.segments]).decode()
    assert list(yaml.safe_load_all(output)) == replaced(list(yaml.safe_load_all(content)), repeat(text))


@given(contents() | st.sampled_from(ODD), st.data())
def test_broken_files_are_refused_in_one_line(content, data):
    check_that_only_input_errors_are_raised(read, broken(data.draw, encoded(content, "utf-8")), "a.yml")


@given(st.binary(max_size=31) | st.text("|>-:#&*!%@ab'\"[]{}, \n", max_size=23).map(str.encode))
def test_arbitrary_bytes_are_refused_in_one_line(data):
    check_that_only_input_errors_are_raised(read, data, "a.yml")


def written(content: str, *new: str) -> str:
    document = read(content.encode(), "a.yml")
    pairs = zip(document.segments, new, strict=True)
    return document.with_segments([segment._replace(text=text) for segment, text in pairs]).decode()


def test_a_text_keeps_its_style_if_that_can_express_it():
    content = "a: Hi # c\nb: 'Hi'\nc: \"Hi\"\nd: |\n  Hi\ne: [Hi]\n"
    assert written(content, *["It's, yes?"] * 5) == (
        "a: It's, yes? # c\nb: 'It''s, yes?'\nc: \"It's, yes?\"\nd: |\n  It's, yes?\ne: [\"It's, yes?\"]\n"
    )
    assert written("a: Hi\nb: Hi\nc: Hi\nd: Hi", "a: b", "a #b", "yes", "12") == (
        'a: "a: b"\nb: "a #b"\nc: "yes"\nd: "12"'
    )


def test_a_folded_text_is_filled_again():
    content = "a: >-\n    " + "word " * 14 + "\n    end\n\n    next\nb: x\n"
    new = " ".join(["longer"] * 17)
    assert written(content, f"{new}\n\nA.", "x") == (
        "a: >-\n    " + " ".join(["longer"] * 11) + "\n    " + " ".join(["longer"] * 6) + "\n\n\n    A.\nb: x\n"
    )


def test_keys_numbers_aliases_and_other_tags_are_not_texts():
    content = "key: 1\nyes: no\na: &x text\nb: *x\nc: !custom text\nd: !!binary aGk=\ne: &f [*f, null]\nf: ! x\n"
    document = read(content.encode(), "a.yml")
    assert [segment.text for segment in document.segments] == ["text"]


def test_characters_are_escaped_where_the_file_escapes_them():
    assert written('a: "x\\u00e9"', "ü😀") == 'a: "\\xFC\\U0001F600"'
    assert written('a: "é\\x01"', "ü😀") == 'a: "ü😀"'


def test_comments_and_whitespace_stay():
    content = "# a\n\na:   x  # b\n#c\nd: |  # e\n    x\n\n  \n# f\ng: [ 'x' , # h\n  x ]\n\n--- # i\nx\n... # j\n"
    assert written(content, *["y"] * 5) == content.replace("x", "y")


def test_deep_nesting_is_refused():
    with pytest.raises(InputError, match="nested too deeply"):
        read(b"[" * 500, "a.yml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: b\nb: [c\n", "a.yml:3: is not valid YAML"),
        ("a: b\n  c: d\n", "a.yml:2: is not valid YAML: mapping values are not allowed here"),
        ("a: *b\n", "a.yml:1: is not valid YAML: found undefined alias"),
        ("a\n\x07", "a.yml:2: is not valid YAML: YAML does not allow the character U\\+0007"),
        ('a: "\\Uffffffff"', "a.yml:1: is not valid YAML"),
    ],
)
def test_the_message_names_the_line(content, message):
    with pytest.raises(InputError, match=message):
        read(content.encode(), "a.yml")
