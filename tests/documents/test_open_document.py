"""OpenDocument files: their texts, and the files with other texts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_checks import check_document, check_members, zipped
from heedful.documents.document import Document, Segment, Tag
from heedful.documents.open_document import PREFIXES, read
from heedful.errors import InputError

NAMESPACES = " ".join(f'xmlns:{prefix}="{uri}"' for uri, prefix in PREFIXES.items())
STYLES = (
    '<style:style style:name="T1" style:family="text"><style:text-properties x:rsid="1" xmlns:x="urn:x"/></style:style>'
    '<style:style style:name="T2" style:family="text"><style:text-properties x:bold="1" xmlns:x="urn:x"/></style:style>'
)


def odt(body: str, **members: str) -> bytes:
    """A text document with a body; the names of other members are without their ending."""
    content = f"<office:automatic-styles>{STYLES}</office:automatic-styles><office:body>{body}</office:body>"
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": part("document-content", content),
            **{f"{name}.xml": text for name, text in members.items()},
            "Thumbnails/a.png": bytes(range(256)),
        }
    )


def part(name: str, content: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<office:{name} {NAMESPACES}>{content}</office:{name}>'


def texts(document: Document) -> list[str]:
    return [segment.text for segment in document.segments]


def test_spans_are_tags_unless_their_style_looks_like_none() -> None:
    plain, bold = (f'<text:span text:style-name="{style}">{{}}</text:span>' for style in ("T1", "T2"))
    body = f"<text:p>A {plain.format('plain')} {bold.format('bold')}.</text:p>"
    document = check_document(read, odt(body), "a.odt")
    tags = (Tag(8, '<text:span text:style-name="T2">', "open"), Tag(12, "</text:span>", "close"))
    assert document.segments == [Segment("A plain bold.", tags)]


def test_spaces_tabs_and_line_breaks_separate_words() -> None:
    body = '<text:h> one<text:s text:c="3"/>two<text:tab/>three<text:line-break/>\n four<text:s/></text:h>'
    document = check_document(read, odt(body), "a.odt")
    assert texts(document) == ["one two three four"]
    assert [(tag.position, tag.kind) for tag in document.segments[0].tags] == [(7, "empty"), (13, "empty")]


def test_notes_and_text_boxes_in_a_paragraph_have_texts() -> None:
    note = (
        "<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>The note.</text:p></text:note-body></text:note>"
    )
    frame = "<draw:frame><draw:text-box><text:p>Box</text:p></draw:text-box><svg:title>Image</svg:title></draw:frame>"
    document = check_document(read, odt(f"<text:p>Text{note} and {frame} more</text:p>"), "a.odt")
    assert texts(document) == ["Text and  more", "The note.", "Box", "Image"]
    assert [tag.kind for tag in document.segments[0].tags] == ["empty", "word"]


def test_fields_are_words_and_comments_and_deleted_texts_remain() -> None:
    body = (
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        "<text:p>Page <text:page-number>3</text:page-number> of"
        "<office:annotation><text:p>why?</text:p></office:annotation> it<text:soft-page-break/></text:p>"
    )
    document = check_document(read, odt(body), "a.odt")
    assert texts(document) == ["Page  of it"]
    assert [tag.kind for tag in document.segments[0].tags] == ["word", "empty"]


def test_headers_are_in_the_styles() -> None:
    styles = part("document-styles", "<style:header><text:p>Head</text:p></style:header>")
    data = odt("<text:list><text:list-item><text:p>Item</text:p></text:list-item></text:list>", styles=styles)
    document = check_document(read, data, "a.odt")
    assert texts(document) == ["Item", "Head"]
    new = document.with_segments([document.segments[0], Segment("Kopf")])
    check_members(data, new, ["styles.xml"])
    assert texts(read(new, "a.odt")) == ["Item", "Kopf"]


def test_an_encrypted_file_is_an_input_error() -> None:
    manifest = part("manifest", "<manifest:encryption-data/>")
    with pytest.raises(InputError, match="password"):
        read(odt("", **{"META-INF/manifest": manifest}), "a.odt")


@given(st.text(st.characters(exclude_categories=["Cc"])))
@settings(max_examples=40)
def test_any_text_can_be_written(text: str) -> None:
    document = read(odt('<text:p>a <text:span text:style-name="T2">b</text:span></text:p>'), "a.odt")
    (segment,) = document.segments
    tags = tuple(tag._replace(position=tag.position + len(text)) for tag in segment.tags)
    (again,) = read(document.with_segments([Segment(f"x{text}{segment.text}", tags)]), "a.odt").segments
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    expected = re.sub("[\ufffe\uffff]", "\ufffd", expected)
    assert again.text == re.sub(" +", " ", f"x{expected}{segment.text}")
    assert [tag.markup for tag in again.tags] == [tag.markup for tag in segment.tags]


PARTS = ["a", " ", " b ", "\n", "&amp;", "<text:s/>", "<text:tab/>", "<text:line-break/>", "<text:date>1</text:date>"]
PARTS += [
    "<!-- a -->",
    "<draw:frame/>",
    "<text:note><text:p>n</text:p></text:note>",
    "<text:span/>",
    "<text:bookmark/>",
]
CONTENTS = st.recursive(
    st.sampled_from(PARTS),
    lambda parts: st.builds(
        lambda style, inner: f'<text:span text:style-name="{style}">{"".join(inner)}</text:span>',
        st.sampled_from(["T1", "T2"]),
        st.lists(parts, max_size=4),
    ),
)


@given(st.lists(st.lists(CONTENTS, max_size=6).map("".join), max_size=3))
@settings(max_examples=40)
def test_any_document_stays_the_same_or_changes_in_its_texts_only(paragraphs: list[str]) -> None:
    check_document(read, odt("".join(f"<text:p>{paragraph}</text:p>" for paragraph in paragraphs)), "a.odt")
