"""XML: the places of elements, and what is rejected."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.documents.xml_tree import Element, escaped, parse, text_of
from heedful.errors import InputError


def elements(element: Element) -> list[Element]:
    return [element, *(each for child in element.children for each in elements(child))]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_places_are_those_of_characters(encoding: str) -> None:
    source = f'<?xml version="1.0" encoding="{encoding}"?>\r\n<é:a xmlns:é="urn:x" b="é&gt;>">é<b é:c=\'>"\'/>'
    source += "é<c>é</c\n><!-- > --><?d é?><![CDATA[<e>]]></é:a>\n"
    source = source if encoding == "iso-8859-1" else source.replace("<c>é", "<c>é漢😀")
    xml = parse(source.encode(encoding), "a", {"urn:x": "x"})
    assert [(each.name, xml.source(each)) for each in elements(xml.root)[1:]] == [
        ("b", "<b é:c='>\"'/>"),
        ("c", "<c>é</c\n>" if encoding == "iso-8859-1" else "<c>é漢😀</c\n>"),
        ("comment", "<!-- > -->"),
        ("instruction", "<?d é?>"),
    ]
    assert xml.root.name == "x:a"
    assert xml.root.attributes == {"b": "é>>"}
    assert xml.root.children[0].attributes == {"x:c": '>"'}
    assert xml.inner(xml.root).startswith("é<b")
    assert xml.inner(xml.root.children[1])[0] == "é"
    assert xml.source(xml.root).endswith("</é:a>")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"<a>\n<b></a>", "a.xml:2: is not well-formed XML"),
        (b"", "is not well-formed"),
        (b"\xff", "a.xml:1: is not UTF-8"),
        (b'<?xml version="1.0" encoding="utf-8"?><a>\xff</a>', "is not UTF-8"),
        (b"<a>" * 300 + b"</a>" * 300, "nested more than 250 deep"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "defines entities"),
        (b"<a>&b;</a>", "undefined entity"),
    ],
)
def test_what_cannot_be_read_is_an_input_error(data: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        parse(data, "a.xml", {})


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")))
@settings(max_examples=50)
def test_an_escaped_text_is_read_as_it_is(text: str) -> None:
    assert text_of(escaped(text)) == text
    xml = parse(f"<a>{escaped(text)}</a>".encode(), "a", {})
    assert text_of(xml.inner(xml.root)) == text


def test_texts_may_be_in_cdata() -> None:
    assert text_of("a &lt; &#66;&#x43; <![CDATA[&lt; <]]> &quot;&apos;&amp;amp;") == "a < BC &lt; < \"'&amp;"
