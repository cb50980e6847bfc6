"""XLIFF: ElementTree reads the new targets, and all else is the same."""

import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hard_texts import broken, changed, check_that_only_input_errors_are_raised, encoded, encodings, texts
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.xliff import read
from heedful.errors import InputError

NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
plain = texts.map(lambda text: NOT_IN_XML.sub("", text)).filter(str.strip)
OLD_CODES = [
    '<g id="1">{}</g>',
    '{}<x id="2"/>',
    '<bpt id="1">&lt;b></bpt>{}<ept id="1">&lt;/b></ept>',
    '<ph id="3">code</ph>{}',
]
NEW_CODES = ['<pc id="1">{}</pc>', '{}<ph id="2"/>', '<sc id="3"/>{}<ec startRef="3"/>', '{}<cp hex="0001"/> <g/>']


@st.composite
def files(draw: st.DrawFn, targets: tuple[str, ...]) -> str:
    is_old = draw(st.booleans())
    space = draw(st.sampled_from(["", "\n  "]))
    units = []
    for i in range(draw(st.integers(0, 4))):
        codes = st.sampled_from([*(OLD_CODES if is_old else NEW_CODES), "{}"])
        source = "".join(draw(codes).format(escape(text)) for text in draw(st.lists(plain, min_size=1, max_size=3)))
        target = draw(st.sampled_from(targets))
        source = f"<source>{source}</source>"
        if is_old:
            other = draw(
                st.sampled_from(["", "<alt-trans><source>x</source><target>y</target></alt-trans>", "<note>n</note>"])
            )
            units.append(f'<trans-unit id="{i}">{space}{source}{target}{other}{space}</trans-unit>')
        else:
            units.append(f'<unit id="{i}"><segment>{space}{source}{target}{space}</segment></unit>')
    body = "\n".join(units)
    declaration = draw(st.sampled_from(["", "<?xml version='1.0'?>\n", "<!-- note -->\n"]))
    if is_old:
        return (
            f'{declaration}<xliff version="1.2" xmlns="urn:a"><file original="f"><body>{body}</body></file></xliff>\n'
        )
    return f'{declaration}<x:xliff version="2.0" xmlns:x="urn:a" xmlns="urn:a"><file id="f">{body}</file></x:xliff>'


KEPT = ("<target>Ja</target>", "<target xml:lang='de'> <x id='1'/></target>", '<target state="new">Anders</target>')
MISSING = ("", "<target/>", "<target> </target>", '<target state="needs-translation"></target>')


@given(files(KEPT), encodings)
def test_a_file_with_all_targets_stays_the_same(content, encoding):
    document = read(encoded(content, encoding), "a.xlf")
    assert document.segments == []
    assert document.with_segments([]) == encoded(content, encoding)


@given(files(KEPT + MISSING), encodings, st.data())
def test_new_texts_are_read_and_all_else_stays(content, encoding, data):
    document = read(encoded(content, encoding), "a.xlf")
    segments = changed(document, data.draw)
    output = document.with_segments(segments).decode(encoding).removeprefix("\ufeff")
    before, after = ElementTree.fromstring(content), ElementTree.fromstring(output)
    new = iter(segments)
    for old_unit, unit in zip(units(before), units(after), strict=True):
        [source] = unit.findall("{urn:a}source")
        [target] = unit.findall("{urn:a}target")
        old = old_unit.find("{urn:a}target")
        codes = {"{urn:a}x", "{urn:a}ph", "{urn:a}bpt", "{urn:a}ept"}
        if old is not None and ("".join(old.itertext()).strip() or len(old)):
            assert ElementTree.tostring(target) == ElementTree.tostring(old)
        else:
            expected = NOT_IN_XML.sub("\ufffd", next(new).text)
            for code in [each for each in target.iter() if each.tag in codes]:
                code.text = ""
            text = "".join(source.itertext())
            assert "".join(target.itertext()).strip() == expected.strip()
            assert [each.tag for each in target.iter()][1:] == [each.tag for each in source.iter()][1:]
            assert target.get("state") in (None, "translated")
            assert bool(text)
        unit.remove(target)
        if old is not None:
            old_unit.remove(old)
    assert next(new, None) is None
    assert tree(before) == tree(after)


def units(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [*root.iter("{urn:a}trans-unit"), *root.iter("{urn:a}segment")]


def tree(root: ElementTree.Element) -> list[tuple]:
    """Elements, attributes and texts; whitespace between elements may be that of a target that was removed."""
    return [(each.tag, each.attrib, (each.text or "").strip()) for each in root.iter()]


@given(files(KEPT + MISSING), st.data())
def test_broken_files_are_refused_in_one_line(content, data):
    check_that_only_input_errors_are_raised(read, broken(data.draw, content.encode()), "a.xlf")


@given(st.binary(max_size=31) | st.text("<>/xliff='\"&;!- ", max_size=31).map(str.encode))
def test_arbitrary_bytes_are_refused_in_one_line(data):
    check_that_only_input_errors_are_raised(read, data, "a.xlf")


def unit(inside: str, attributes: str = "") -> str:
    return f"<xliff><trans-unit{attributes}>{inside}</trans-unit></xliff>"


def filled(content: str) -> str:
    """A file with each source in capital letters as its target."""
    document = read(content.encode(), "a.xlf")
    return document.with_segments(
        [segment._replace(text=segment.text.upper()) for segment in document.segments]
    ).decode()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a &amp; <g id='1'>b</g>", "A &amp; <g id='1'>B</g>"),
        ("<x id='1'/> <g id='2'>all</g>\n", "<x id='1'/> <g id='2'>ALL</g>\n"),
        ("a<ph id='1'>code <sub>c</sub></ph>b", "A<ph id='1'>code <sub>c</sub></ph>B"),
        ("a <mrk mtype='protected'>b</mrk> c", "A <mrk mtype='protected'>b</mrk> C"),
        ("a <mrk mtype='term'>b</mrk> c", "A <mrk mtype='term'>B</mrk> C"),
        ("a\n     b", "A B"),
        ("a\nb&#13;", "A\nB&#13;"),
        ("<![CDATA[<b>]]>ü<!-- note -->", "&lt;B&gt;Ü"),
        ("a]]&gt;b", "A]]&gt;B"),
    ],
)
def test_a_target_has_the_codes_of_the_source(source, target):
    assert filled(unit(f"<source>{source}</source>")) == unit(f"<source>{source}</source><target>{target}</target>")


def test_codes_are_tags_with_their_kinds():
    [segment] = read(
        unit("<source>a <g id='1'>b</g> <bx id='2'/>c<ex id='2'/> <x id='3'/>d</source>").encode(), "a.xlf"
    ).segments
    assert segment.text == "a b c d"
    assert [tag.kind for tag in segment.tags] == ["open", "close", "open", "close", "empty"]
    [segment] = read(unit("<source>a <bpt id='1'/>b <bpt id='2'/>c<ept id='1'/> d</source>").encode(), "a.xlf").segments
    assert [tag.kind for tag in segment.tags] == ["open", "empty", "close"]


def test_whitespace_is_kept_where_the_file_says_so():
    content = unit("<source>a\n     b</source>", ' xml:space="preserve"')
    assert filled(content) == content.replace("</source>", "</source><target>A\n     B</target>")


def test_what_must_not_be_translated_stays():
    content = unit("<source>a</source>", ' translate="no"')
    assert filled(content) == content
    units = unit("<source>a</source>") + unit("<source>b</source>", " translate='yes'")
    content = f"<xliff><group translate='no'>{units}"
    assert filled(f"{content}</group></xliff>").count("<target>") == 1
    content = unit("<source/>") + "<!-- -->"
    assert filled(content) == content


def test_a_copy_of_the_source_that_waits_for_a_translation_is_replaced():
    content = unit('<source>a</source><target state="new">a</target>')
    assert filled(content) == unit('<source>a</source><target state="translated">A</target>')
    content = unit('<source>a</source><target state="final">a</target>')
    assert filled(content) == content
    content = '<xliff><segment state="initial"><source>a</source></segment></xliff>'
    assert (
        filled(content) == '<xliff><segment state="translated"><source>a</source><target>A</target></segment></xliff>'
    )


def test_a_target_has_the_indentation_and_the_prefix_of_the_source():
    content = "<y:xliff xmlns:y='urn:a'><y:trans-unit>\n\t<y:source>a</y:source>\n</y:trans-unit></y:xliff>"
    assert filled(content) == content.replace("</y:source>", "</y:source>\n\t<y:target>A</y:target>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<xliff>\n<file></xliff>", "a.xlf:2: is not valid XML: mismatched tag"),
        ("", "a.xlf:1: is not valid XML: no element found"),
        ("<html/>", "a.xlf:1: is not an XLIFF file: its root is <html>"),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><xliff/>", "a.xlf:1: is in ISO-8859-1; convert the file to UTF-8"),
        ("\n<!DOCTYPE xliff [<!ENTITY a 'b'>]>\n<xliff>&a;</xliff>", "a.xlf:2: has a DOCTYPE"),
    ],
)
def test_the_message_names_the_line(content, message):
    with pytest.raises(InputError, match=message):
        read(content.encode(), "a.xlf")
