"""Markdown: its texts, and the files with other texts."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from document_checks import check_document
from heedful.documents.document import Segment, Tag
from heedful.documents.markdown import read
from heedful.errors import InputError

README = """---
title: front matter
---

# A *small* tool #

A paragraph with **bold and *nested* text**, `code`, and [a link](https://a.b "t") over
two lines &amp; \\*stars\\*.<2 spaces>
After a break\\
and <b>HTML</b> $x_1$ and ![an image](a.png)[^1] end.

> A quote
> of two **bold
> lines**<2 spaces>
> here

- item one
  continued
- [name][ref] of it
  1. nested

| A | B *b* |
|---|---|
| c \\| d | `x` e |
|| last |

Setext
======

```
code
```

    indented code

<div>block</div>

[ref]: https://ref "title"
[^1]: The footnote.

![badge](x) **Whole** <https://auto.x>

$$
x = 1
$$

::: note
inside {{ name }} it
:::
""".replace("<2 spaces>", "  ")


def texts(content: str) -> list[str]:
    return [segment.text for segment in read(content.encode(), "a.md").segments]


def translated(content: str, *segments: Segment) -> str:
    return read(content.encode(), "a.md").with_segments(segments).decode()


def test_the_texts_of_a_file_are_those_that_a_reader_sees() -> None:
    assert texts(README) == [
        "A small tool",
        "A paragraph with bold and nested text, , and a link over two lines & *stars*. "
        "After a break and HTML  and  end.",
        "an image",
        "A quote of two bold lines here",
        "item one continued",
        "name of it",
        "nested",
        "A",
        "B b",
        "c | d",
        " e",
        "last",
        "Setext",
        "The footnote.",
        "badge",
        "Whole ",
        "inside  it",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_file_keeps_all_else(line_end: str) -> None:
    check_document(read, README.replace("\n", line_end).encode(), "a.md")


def test_inline_marks_are_tags() -> None:
    (segment,) = read(b"a *b* __c__ ~~d~~ [e](f) `g` <i>h</i> ***i*** [j] <k@l.m>\n\n[j]: x", "a.md").segments
    assert segment.text == "a b c d e  h i j "
    assert [(tag.position, tag.markup, tag.kind) for tag in segment.tags] == [
        (2, "*", "open"),
        (3, "*", "close"),
        (4, "__", "open"),
        (5, "__", "close"),
        (6, "~~", "open"),
        (7, "~~", "close"),
        (8, "[", "open"),
        (9, "](f)", "close"),
        (10, "`g`", "word"),
        (11, "<i>", "open"),
        (12, "</i>", "close"),
        (13, "*", "open"),
        (13, "**", "open"),
        (14, "**", "close"),
        (14, "*", "close"),
        (15, "[", "open"),
        (16, "][j]", "close"),
        (17, "<k@l.m>", "word"),
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("5 * 3 and snake_case, a < b", "5 * 3 and snake_case, a < b"),
        ("a *b* c", r"a \*b\* c"),
        ("# a", r"\# a"),
        ("- a", r"\- a"),
        ("1. a", r"1\. a"),
        ("[x]: y", r"\[x\]: y"),
        ("&amp; <b>", r"\&amp; \<b\>"),
        ("---", r"\-\-\-"),
        (":::", r"\:\:\:"),
        ("a\nb", "a b"),
        ("costs $5 or $6", "costs $5 or $6"),
    ],
)
def test_a_text_has_as_few_escapes_as_it_takes(text: str, written: str) -> None:
    assert translated("Text.", Segment(text)) == written


@pytest.mark.parametrize("end", ["", "[]"])
def test_a_link_whose_text_names_its_target_keeps_the_target(end: str) -> None:
    content = f"- [A b]{end}\n\n![c]{end}\n\n[a B]: x\n[c]: y\n"
    document = check_document(read, content.encode(), "a.md")
    (segment,) = document.segments
    assert document.with_segments([segment._replace(text="C d")]).decode().startswith("- [C d][A b]\n")


def test_emphasis_that_its_neighbours_would_undo_is_written_as_html() -> None:
    tags = (Tag(0, "**", "open"), Tag(4, "**", "close"))
    assert translated("**Now** go", Segment("„Ja“go", tags)) == "<strong>„Ja“</strong>go"
    assert translated("**Now** go", Segment(" a b go", tags)) == "**a b** go"


def test_a_cell_stays_on_its_line_and_in_its_column() -> None:
    table = "> | a | `b|` |\n> |---|---|\n> | *c* | d |\n"
    assert texts(table.replace("`b|`", "b")) == ["a", "b", "c", "d"]
    document = read(table.replace("`b|`", "b").encode(), "a.md")
    out = document.with_segments([Segment("x | y\nz"), *document.segments[1:]]).decode()
    assert out.splitlines()[0] == r"> | x \| y z | b |"


def test_a_description_of_an_image_in_a_sentence_is_translated() -> None:
    document = read(b"See ![a cat](cat.png) here.", "a.md")
    segment, _ = document.segments
    out = document.with_segments(
        [segment._replace(text="Da  ist.", tags=(segment.tags[0]._replace(position=3),)), Segment("[x]")]
    )
    assert out == rb"Da ![\[x\]](cat.png) ist."


def test_bytes_that_are_not_text_are_an_input_error() -> None:
    with pytest.raises(InputError, match=r"a\.md:2: is not UTF-8"):
        read(b"a\n\xff", "a.md")


PARTS = """# ## > - 1. * ** *** _ __ ~~ ` `` ``` [ ] ( ) ](x) [x] [x]: ![ < > <b> </b> <br>
<!-- --> <div> & &amp; &#42; \\ \\* | --- |--- || $ $$ {{
}} {% %} {.x} [^1] [^1]: [!NOTE] ::: +++ a bc. d, Ü 漢 “q” <http://x> === ![y](z) [y](z "t") :"""
PARTS = [*PARTS.split(), " ", "  ", "\n", "\n\n", "\r\n", "    ", "\t", "\\\n", "  \n", "\0", "\xa0"]
FILES = st.lists(st.sampled_from(PARTS) | st.text(max_size=2), max_size=25).map("".join)


@given(FILES)
@settings(max_examples=80)
def test_any_file_stays_the_same_or_changes_in_its_texts_only(content: str) -> None:
    data = content.encode("utf-8", "replace")
    document = read(data, "a.md")
    segments = document.segments
    assert document.with_segments(segments) == data
    again = read(document.with_segments([Segment(f"{s.text}x", s.tags) for s in segments]), "a.md")
    assert isinstance(again.segments, list)


@given(st.text(max_size=20) | FILES)
@example("\ud83d\ude00 \ud800 \0 <b>&amp;</b> \" ' \\")
@settings(max_examples=80)
def test_any_text_can_be_written(text: str) -> None:
    content = "# a\n\n> b *c* d\n> e\n\n- f\n\n| g | h |\n|---|---|\n| i | j |\n\nk\n="
    document = read(content.encode(), "a.md")
    new = [Segment(f"{text}{segment.text}") for segment in document.segments]
    new[1] = Segment(
        f"{text}b c{text} d", tuple(tag._replace(position=tag.position + len(text)) for tag in new[1].tags)
    )
    again = read(document.with_segments(new), "a.md")
    assert [words(segment.text) for segment in again.segments] == [words(segment.text) for segment in new]


def words(text: str) -> str:
    """A text as a file can have it."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = re.sub("[\x00-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", re.sub("[\t\n\r\v\f]", " ", text))
    return re.sub(" +", " ", text).strip()


WORDS = st.sampled_from(
    ["one", "two,", "*three*", "**four five**", "`six`", "[seven](x)", "<b>eight</b>", "nine.", "a*b*c"]
)


@given(st.lists(st.lists(WORDS, min_size=1).map(" ".join), min_size=1), st.sampled_from(["", "> ", "- ", "# "]))
@settings(max_examples=40)
def test_tags_stay_where_they_are(lines: list[str], prefix: str) -> None:
    content = "\n\n".join(f"{prefix}{line}" for line in lines)
    check_document(read, content.encode(), "a.md")


@pytest.mark.parametrize("part", ["[", "*a ", "`", "<", "> ", "![", "[a](", "**a*", "$a ", "{{", "|a", "- "])
def test_a_file_of_many_equal_parts_is_read(part: str) -> None:
    data = (part * 1000).encode()
    document = read(data, "a.md")
    assert document.with_segments(document.segments) == data
