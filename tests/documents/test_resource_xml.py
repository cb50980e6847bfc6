"""Resources of Android and .NET: ElementTree reads the new texts, and all else is the same byte for byte."""

import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hard_texts import broken, changed, check_that_only_input_errors_are_raised, encoded, encodings, texts
from hypothesis import given
from hypothesis import strategies as st

from heedful.documents.resource_xml import read
from heedful.errors import InputError

NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
plain = texts.map(lambda text: NOT_IN_XML.sub("", text)).filter(str.strip)


def android(text: str) -> str:
    """A text with the escapes of Android and XML."""
    return escape(re.sub(r"""(['"\\@?])""", r"\\\1", text).replace("\n", "\\n"), {"\r": "&#13;"})


def shown(text: str) -> str:
    """The text that Android reads, but with its whitespace."""
    return re.sub(r"\\(.)|\"", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1] or ""), text)


@st.composite
def files(draw: st.DrawFn) -> str:
    text = draw(st.lists(plain, min_size=4, max_size=4))
    form = draw(st.sampled_from(["{}", "<b>{}</b> end", '"{}"', " {}<xliff:g id='x'>%d</xliff:g>\n"]))
    body = f"""<!-- note -->
    <string name="a">{form.format(android(text[0]))}</string>
    <string name="b" translatable="false">{android(text[1])}</string><color name="c">red</color>
    <plurals name="d"><item quantity="one">{android(text[2])}</item>
    <item quantity="other">{android(text[3])}</item></plurals>
    """
    return f'<?xml version="1.0"?>\n<resources xmlns:xliff="urn:a">{body}</resources>\n'


@given(files(), encodings)
def test_a_file_whose_texts_stay_the_same_stays_the_same(content, encoding):
    document = read(encoded(content, encoding), "strings.xml")
    assert document.with_segments(document.segments) == encoded(content, encoding)


@given(files(), encodings, st.data())
def test_new_texts_are_read_and_all_else_stays(content, encoding, data):
    document = read(encoded(content, encoding), "strings.xml")
    segments = changed(document, data.draw)
    output = document.with_segments(segments).decode(encoding).removeprefix("\ufeff")
    before, after = ElementTree.fromstring(content), ElementTree.fromstring(output)
    assert [(each.tag, each.attrib) for each in before.iter()] == [(each.tag, each.attrib) for each in after.iter()]
    new = iter([NOT_IN_XML.sub("\ufffd", segment.text) for segment in segments])
    for old, element in zip(before.iter(), after.iter(), strict=True):
        if (element.tag == "string" and "translatable" not in element.attrib) or element.tag == "item":
            assert next(new).strip() in shown("".join(element.itertext()))
        elif element.tag in ("string", "color"):
            assert element.text == old.text
    assert next(new, None) is None


@given(files(), st.data())
def test_broken_files_are_refused_in_one_line(content, data):
    check_that_only_input_errors_are_raised(read, broken(data.draw, content.encode()), "strings.xml")


def filled(content: str, change=str.upper) -> str:
    document = read(content.encode(), "strings.xml")
    return document.with_segments(
        [segment._replace(text=change(segment.text)) for segment in document.segments]
    ).decode()


@pytest.mark.parametrize(
    ("text", "new"),
    [
        (r"Don\'t <b>panic</b> &amp; co\n", r"DON\'T <b>PANIC</b> &amp; CO\n"),
        ('" Quoted  text"', '" QUOTED  TEXT"'),
        (r"\u00e9\ud83d\ude00 \@a", r"É😀 @A"),
        (r"\@a \?", r"\@A ?"),
        ("<xliff:g id='n'>%d</xliff:g> of <i/>all", "<xliff:g id='n'>%d</xliff:g> OF <i/>ALL"),
        ("<![CDATA[<b>]]>x", "&lt;B&gt;X"),
    ],
)
def test_escapes_and_tags_of_android(text, new):
    form = "<resources xmlns:xliff='urn:a'><string>{}</string></resources>"
    assert filled(form.format(text)) == form.format(new)


def test_only_strings_are_texts():
    content = "<resources><string/><style><item>a</item></style><string-array translatable='false'><item>b</item>"
    assert filled(f"{content}</string-array></resources>") == f"{content}</string-array></resources>"
    net = (
        "<root><resheader><value>a</value></resheader><data name='b'><value>{}</value><comment>c</comment></data>"
        "<data type='d'><value>e</value></data><data name='>>f'><value>g</value></data></root>"
    )
    assert filled(net.format(" x &lt; y\n")) == net.format(" X &lt; Y\n")


def test_other_files_are_refused():
    with pytest.raises(
        InputError, match=r"a\.xml:1: is neither an Android nor a \.NET file of strings: its root is <a>"
    ):
        read(b"<a/>", "a.xml")
