"""DOCX and PPTX: their texts, and the files with other texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from document_checks import check_document, check_members, zipped
from heedful.documents.document import Document, Segment, Tag, TextDocument
from heedful.documents.office import read

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OTHER = "http://schemas.openxmlformats.org/officeDocument/2006"
NAMESPACES = f'xmlns:w="{WORD}" xmlns:r="{OTHER}/relationships" xmlns:m="{OTHER}/math" xmlns:mc="urn:mc"'
TYPES = {
    "word/document.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    "word/header1.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.header+xml",
    "word/footnotes.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml",
    "word/comments.xml": "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml",
    "ppt/slides/slide2.xml": "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
    "ppt/slides/slide10.xml": "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
}
BOLD = "<w:rPr><w:b/></w:rPr>"


def office_file(**parts: str) -> bytes:
    """A file with parts, each with paragraphs in the namespace of Word."""
    names = {name.replace("/", "_").removesuffix(".xml"): name for name in TYPES}
    overrides = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in TYPES.items())
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{OTHER.removesuffix("officeDocument/2006")}package/2006/content-types">'
        f"{overrides}</Types>",
        "word/media/image1.bin": bytes(range(256)),
    }
    for part, content in parts.items():
        declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n'
        members[names[part]] = f"{declaration}<w:document {NAMESPACES}><w:body>{content}</w:body></w:document>"
    return zipped(members)


def docx(body: str) -> bytes:
    return office_file(word_document=body)


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def field(instruction: str, result: str) -> str:
    kinds = [f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")]
    return f"{kinds[0]}<w:r><w:instrText> {instruction} </w:instrText></w:r>{kinds[1]}{run(result)}{kinds[2]}"


def texts(document: Document) -> list[str]:
    return [segment.text for segment in document.segments]


def body(document: Document) -> str:
    content = document.parts["word/document.xml"].content
    return content[content.index("<w:body>") + 8 : content.index("</w:body>")]


def test_runs_with_the_same_look_are_one_text() -> None:
    language, session = '<w:rPr><w:lang w:val="en-US"/><w:noProof/></w:rPr>', ' w:rsidR="00A"'
    paragraph = (
        f"{run('Hello ')}<w:proofErr w:type='x'/>{run('wi', language)}{run('de').replace('r>', f'r{session}>', 1)}"
    )
    document = check_document(read, docx(f"<w:p{session}><w:pPr><w:jc/></w:pPr>{paragraph}</w:p>"), "a.docx")
    assert document.segments == [Segment("Hello wide")]


def test_the_less_frequent_formats_are_tags() -> None:
    document = check_document(
        read, docx(f"<w:p>{run('Go ', BOLD)}{run('now or later')}{run('!', BOLD)}</w:p>"), "a.docx"
    )
    opening = f"<w:r>{BOLD}"
    tags = (Tag(0, opening, "open"), Tag(3, "</w:r>", "close"), Tag(15, opening, "open"), Tag(16, "</w:r>", "close"))
    assert document.segments == [Segment("Go now or later!", tags)]
    new = read(
        document.with_segments([Segment("später Los!", (tags[0]._replace(position=7), tags[1]._replace(position=10)))]),
        "a",
    )
    assert body(new) == f"<w:p>{run('später ')}{run('Los', BOLD)}{run('!')}</w:p>"


def test_tabs_and_line_breaks_separate_words() -> None:
    paragraph = (
        "<w:r><w:tab/><w:t>one</w:t><w:br/><w:t>two</w:t><w:tab/></w:r><w:r><w:tab/><w:t>three</w:t><w:cr/></w:r>"
    )
    document = check_document(read, docx(f"<w:p>{paragraph}</w:p>"), "a.docx")
    assert texts(document) == ["one two  three"]
    assert [tag.position for tag in document.segments[0].tags] == [3, 7, 8]


def test_what_is_at_the_edges_of_a_text_stays_outside() -> None:
    paragraph = f"<w:r>{BOLD}<w:tab/><w:t xml:space='preserve'> a </w:t><w:footnoteReference w:id='1'/></w:r>"
    document = check_document(read, docx(f"<w:p>{paragraph}</w:p>"), "a.docx")
    assert document.segments == [Segment("a")]
    new = read(document.with_segments([Segment("b")]), "a.docx")
    reference = f"<w:r>{BOLD}<w:footnoteReference w:id='1'/></w:r>"
    assert (
        body(new) == f"<w:p><w:r>{BOLD}<w:tab/></w:r>{run(' ', BOLD)}{run('b', BOLD)}{run(' ', BOLD)}{reference}</w:p>"
    )


def test_a_field_is_a_word_and_a_link_is_a_pair_of_tags() -> None:
    link = '<w:hyperlink r:id="rId4">' + run("site", BOLD) + "</w:hyperlink>"
    fields = f"{field('PAGE', '3')}{run(' of ')}{field('HYPERLINK &quot;x&quot;', 'a link')}"
    document = check_document(read, docx(f"<w:p>{run('Page ')}{fields}{run(' or a ')}{link}</w:p>"), "a.docx")
    (segment,) = document.segments
    assert segment.text == "Page  of a link or a site"
    assert [(tag.position, tag.kind) for tag in segment.tags] == [
        (5, "word"),
        (9, "open"),
        (15, "close"),
        (21, "open"),
        (21, "open"),
        (25, "close"),
        (25, "close"),
    ]


def test_a_field_may_share_runs_with_texts() -> None:
    begin = field("PAGE", "3").removeprefix("<w:r>")
    paragraph = f"<w:r>{BOLD}<w:t xml:space='preserve'>Page </w:t>{begin}".removesuffix("</w:r>") + "<w:t>!</w:t></w:r>"
    document = check_document(read, docx(f"<w:p>{paragraph}</w:p>"), "a.docx")
    assert texts(document) == ["Page !"]


def test_a_field_over_several_paragraphs_remains() -> None:
    begin, end = field("TOC", "First").rsplit("<w:r><w:fldChar", 1)
    check_document(read, docx(f"<w:p>{begin}</w:p><w:p>{run('Second')}<w:r><w:fldChar{end}</w:p>"), "a.docx")


def test_a_text_box_is_translated_in_a_paragraph_that_is_translated() -> None:
    box = f"<mc:Choice><w:txbxContent><w:p>{run('Box')}</w:p></w:txbxContent></mc:Choice>"
    box = f"<w:r>{BOLD}<mc:AlternateContent>{box}{box.replace('Choice', 'Fallback')}</mc:AlternateContent></w:r>"
    document = check_document(read, docx(f"<w:p>{run('A')}{box}{run('B')}</w:p><w:p>{box}</w:p>"), "a.docx")
    assert texts(document) == ["AB", "Box", "Box", "Box", "Box"]


def test_deleted_texts_comments_and_formulas_remain() -> None:
    deleted = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    formula = "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>"
    paragraph = f"<w:p>{run('If ')}{formula}{deleted}<w:ins>{run(' new')}</w:ins></w:p>"
    data = office_file(word_document=paragraph, word_comments=f"<w:p>{run('no')}</w:p>")
    assert texts(check_document(read, data, "a.docx")) == ["If  new"]


def test_tables_controls_headers_and_footnotes_have_texts() -> None:
    control = "<w:sdt><w:sdtPr/><w:sdtContent><w:p>{}</w:p></w:sdtContent></w:sdt>"
    inline = f"<w:sdt><w:sdtPr><w:tag/></w:sdtPr><w:sdtContent>{run('in')}</w:sdtContent></w:sdt>{run(' line')}"
    table = f"<w:tbl><w:tr><w:tc><w:p>{run('cell')}</w:p></w:tc></w:tr></w:tbl>"
    data = office_file(
        word_header1=f"<w:p>{run('head')}</w:p>",
        word_document=table + control.format(run("control")) + control.format(inline),
        word_footnotes=f"<w:p>{run('note')}</w:p>",
    )
    assert texts(check_document(read, data, "a.docx")) == ["cell", "control", "in line", "note", "head"]


def test_slides_have_texts_in_their_order() -> None:
    slide = (
        '<a:p xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:pPr/>'
        '<a:r><a:rPr lang="en-US" dirty="0"/><a:t>Slide </a:t></a:r><a:r><a:rPr lang="en-GB"/><a:t>{}</a:t></a:r>'
        '<a:br/><a:r><a:rPr b="1" lang="de"/><a:t>bold</a:t></a:r><a:endParaRPr lang="en-US"/></a:p>'
    )
    data = office_file(ppt_slides_slide10=slide.format("10"), ppt_slides_slide2=slide.format("2"))
    document = check_document(read, data, "a.pptx")
    assert texts(document) == ["Slide 2 bold", "Slide 10 bold"]
    assert [tag.markup for tag in document.segments[0].tags] == ["<a:br/>", '<a:r><a:rPr b="1"/>', "</a:r>"]


def test_other_members_of_the_archive_remain() -> None:
    data = office_file(word_document=f"<w:p>{run('a')}</w:p>", word_header1=f"<w:p>{run('b')}</w:p>")
    document = read(data, "a.docx")
    new = document.with_segments([Segment("c"), document.segments[1]])
    check_members(data, new, ["word/document.xml"])
    assert texts(read(new, "a.docx")) == ["c", "b"]


@given(st.text(st.characters(exclude_categories=["Cc"])))
@settings(max_examples=30)
def test_any_text_can_be_written(text: str) -> None:
    data = docx(f"<w:p>{run('a ')}{run('b', BOLD)}<w:r><w:br/></w:r>{run('c')}</w:p>")
    document = read(data, "a.docx")
    (segment,) = document.segments
    new = f"x{text}y{text}z"
    positions = (1 + len(text), 2 + len(text), len(new) - 1)
    tags = tuple(tag._replace(position=position) for tag, position in zip(segment.tags, positions, strict=True))
    (again,) = read(document.with_segments([Segment(new, tags)]), "a.docx").segments
    expected = (
        text.encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})
    )
    # The line break takes the place of a space, and is one if there is none.
    separator = "" if text.endswith(" ") else " "
    assert again.text == f"x{expected}y{expected}{separator}z"
    assert [tag.markup for tag in again.tags] == [tag.markup for tag in segment.tags]


RUNS = ["<w:r><w:tab/></w:r>", "<w:bookmarkStart w:id='0'/>", "<w:r><w:drawing/></w:r>", "<w:r><w:t/></w:r>", "<w:r/>"]
RUNS += [field("PAGE", "1"), field("HYPERLINK x", "link"), "<w:r><w:t>a</w:t><w:br/><w:t>b</w:t></w:r>", "<!-- a -->"]
RUNS += [run(text, properties) for text in ("one", " ", " two ") for properties in ("", BOLD, "<w:rPr><w:i/></w:rPr>")]
RUNS += ["<w:r><w:fldChar w:fldCharType='begin'/></w:r>", "<w:r><w:t> </w:t><w:fldChar w:fldCharType='end'/></w:r>"]
PARAGRAPHS = st.recursive(
    st.sampled_from(RUNS),
    lambda parts: st.builds(
        lambda name, inner: f"<w:{name}>{''.join(inner)}</w:{name}>",
        st.sampled_from(["hyperlink", "ins", "del", "smartTag", "unknown"]),
        st.lists(parts, max_size=4),
    ),
)


@given(st.lists(st.lists(PARAGRAPHS, max_size=6).map("".join), max_size=3))
@settings(max_examples=20)
def test_any_document_stays_the_same_or_changes_in_its_texts_only(paragraphs: list[str]) -> None:
    check_document(read, docx("".join(f"<w:p>{paragraph}</w:p>" for paragraph in paragraphs)), "a.docx")


def test_an_empty_document_has_no_texts() -> None:
    document = check_document(read, docx("<w:p/>"), "a.docx")
    assert document.segments == []
    with pytest.raises(ValueError, match="segments"):
        document.with_segments([Segment("a")])
    assert isinstance(document.parts["word/document.xml"], TextDocument)
