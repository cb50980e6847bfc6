"""Web pages: their texts, and the pages with other texts."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from document_checks import check_document, gaps, respelled
from heedful.documents.document import Segment, Tag
from heedful.documents.html import read
from heedful.documents.html_tokens import tokens
from heedful.errors import InputError

PAGE = b"""<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN">
<!--[if lt IE 9]><p>old browser</p><![endif]-->
<HTML lang="en"><HEAD><META CHARSET="utf-8"><title> News &amp; views </title>
<meta name=description content='All the "news"'><meta name="viewport" content="width=device-width">
<script>if (a < b && "<p>no</p>") { document.write("<\\/p>") }</script><style>p > a { content: "x" }</style></HEAD>
<BODY onload="go()">
<nav><ul><li><a href="/" title="Back to the start">Home</a><li><a href=/b>Blog</a></ul></nav>
<h1>Hello   <em>wide</em>
  world&nbsp;</h1>
<p>First <B>bold <I>and</B> crossed</I> text, 1 < 2 & 3 > 2, caf&eacute &copy2020.
<p>Use <code>a &lt; b</code> here, see <img src="a.png" alt="A cat"> and a line<br>break.
<pre>  Keep <b>this</b>
</pre>
<table><tr><td>One<td>Two</table>
<p translate="no">Heedful</p><div class="big notranslate"><p>also</p></div>
<form><label>Name <input placeholder="Your name"></label> <input type=submit value=Send>
<textarea>text</textarea><select><option value=1>First<option>Second</select><button type=button>Go</button></form>
<svg><title>none</title><text>none</text></svg>
<p>Tail</p></BODY></HTML>
<p"""


def texts(data: bytes, name: str = "page.html") -> list[str]:
    return [segment.text for segment in read(data, name).segments]


def test_the_texts_of_a_page_are_those_that_a_reader_sees() -> None:
    assert texts(PAGE) == [
        "News & views",
        'All the "news"',
        "Back to the start",
        "Home",
        "Blog",
        "Hello wide world",
        "First bold and crossed text, 1 < 2 & 3 > 2, café ©2020.",
        "Use  here, see  and a line break.",
        "A cat",
        "One",
        "Two",
        "Name",
        "Your name",
        "Send",
        "First",
        "Second",
        "Go",
        "Tail",
    ]


def test_a_page_keeps_all_else() -> None:
    check_document(read, PAGE, "page.html")


def test_inline_elements_are_tags() -> None:
    (segment,) = read(b'<p>See <a href="/x">the <b>page</b></a> now.</p>', "a.html").segments
    assert segment == Segment(
        "See the page now.",
        (
            Tag(4, '<a href="/x">', "open"),
            Tag(8, "<b>", "open"),
            Tag(12, "</b>", "close"),
            Tag(12, "</a>", "close"),
        ),
    )


def test_tags_around_a_whole_text_and_at_its_edges_are_outside_of_it() -> None:
    document = read(b"<p><img src=a> <a name=x></a><b><i>Whole</i> <!-- note --></b><br></p>", "a.html")
    assert document.segments == [Segment("Whole")]


def test_a_pair_of_tags_is_in_a_text_completely_or_not_at_all() -> None:
    document = check_document(read, b"<p><a><i><b>Now</b> or</i> <u>never</u></a></p>", "a.html")
    (segment,) = document.segments
    assert [tag.markup for tag in segment.tags] == ["<i>", "<b>", "</b>", "</i>", "<u>", "</u>"]


def test_code_at_the_edge_of_a_sentence_is_a_word_of_it() -> None:
    (segment,) = read(b"<p><code>f()</code> returns <kbd>x</kbd></p>", "a.html").segments
    assert segment == Segment(" returns ", (Tag(0, "<code>f()</code>", "word"), Tag(9, "<kbd>x</kbd>", "word")))


def test_a_value_of_a_template_is_a_word() -> None:
    document = check_document(read, b"<p><%= name %> sleeps<% if x < 3 %>.<% end %></p><p>50 <% of</p>", "a.html")
    name = Tag(0, "<%= name %>", "word")
    assert document.segments == [Segment(" sleeps.", (name, Tag(7, "<% if x < 3 %>", "empty"))), Segment("50 <% of")]


def test_pairs_that_cross_or_are_not_closed_are_single_tags() -> None:
    (segment,) = read(b"<p>a <b>b <i>c</b> d</i> <u>e f</p>", "a.html").segments
    assert [(tag.markup, tag.kind) for tag in segment.tags] == [
        ("<b>", "open"),
        ("<i>", "empty"),
        ("</b>", "close"),
        ("</i>", "empty"),
        ("<u>", "empty"),
    ]


def test_a_description_in_a_tag_is_translated_with_the_text_around_it() -> None:
    document = read(b'<p>A <img alt="cat"> and <img alt="dog"> sit.</p>', "a.html")
    text, _, dog = document.segments
    assert (
        document.with_segments([text, Segment("Katze"), dog]) == b'<p>A <img alt="Katze"> and <img alt="dog"> sit.</p>'
    )
    moved = Segment("Da   sitzen.", (text.tags[1]._replace(position=3), text.tags[0]._replace(position=4)))
    page = document.with_segments([moved, Segment("Katze"), Segment("Hund")])
    assert page == b'<p>Da <img alt="Hund"> <img alt="Katze"> sitzen.</p>'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"<p>a</p>b<P>c", ["a", "b", "c"]),
        (b"<p>a<br/>b", ["a b"]),
        (b"<p>a\0b</p>", ["ab"]),
        (b"<p>&lt;&#x41;&#66&unknown;&ampx", ["<AB&unknown;&x"]),
        (b'<img alt="a&copy=b&copy;c&copy">', ["a&copy=b\xc2\xa9c\xc2\xa9".encode("latin-1").decode()]),
        (b"<img alt=>a<img alt>b", ["ab"]),
        (b"<a title='x' title='y'>z</a>", ["x", "z"]),
        (b"<p>a <3 b</ c>d</p>", ["a <3 bd"]),
        (b"a<!-->b<!--->c<!-- -- > -->d<!x>e<?php echo '>' ?>f", ["abcdef"]),
        (b"<title>a <b> c</title>d", ["a <b> c", "d"]),
        (b"<title>a<p>b", ["a", "b"]),
        (b"<script>a<p>b", []),
        (b"<p>a<code>b</p><p>c</p>", ["a", "c"]),
        (b"<ul><li translate=no>a<li>b</ul>c", ["b", "c"]),
        (b"<p translate=no>a<div>b</div>", ["b"]),
        (b"<p>a<script>b</script>c<svg/><path/></svg>d", ["acd"]),
        (b"<a b='>x</a>", []),
        (b"x<a b=\"'>'\">y</a>", ["xy"]),
        (b"<![CDATA[a]]>b", ["b"]),
        (b"<p>&nbsp;</p> &#160; \xc2\xa0", []),
        (b"", []),
        (b"\xef\xbb\xbf<p>a", ["a"]),
        ("\ufeff<p>ü".encode("utf-16-be"), ["ü"]),
        ("\ufeff<p>ü".encode("utf-16-le"), ["ü"]),
        (b'<?xml version="1.0"?><p>a<script src="x"/>b<![CDATA[c]]>d</p>', ["abd"]),
        (b'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x "y>z">]><p>a</p>', ["a"]),
    ],
)
def test_odd_markup(source: bytes, expected: list[str]) -> None:
    assert texts(source) == expected
    check_document(read, source, "page.html")


def test_an_attribute_without_quotes_gets_them() -> None:
    document = read(b"<img alt=cat><img alt='dog'>", "a.html")
    page = document.with_segments([Segment("a \"b\" & 'c'"), Segment("a \"b\" & 'c'")])
    assert page == b"""<img alt="a &quot;b&quot; &amp; 'c'"><img alt='a "b" &amp; &#39;c&#39;'>"""
    assert texts(page) == ["a \"b\" & 'c'"] * 2


def test_a_page_is_read_and_written_in_the_encoding_that_it_declares() -> None:
    page = '<meta charset="windows-1251"><p>Привет'.encode("cp1251")
    document = read(page, "a.html")
    assert [segment.text for segment in document.segments] == ["Привет"]
    assert document.with_segments([Segment("Grüße, мир")]).endswith("<p>Gr&#252;&#223;e, мир".encode("cp1251"))


def test_bytes_that_are_not_of_the_declared_encoding_remain() -> None:
    page = b'<meta charset=utf-8><p title="\xff">a\xfe</p><p>b'
    document = check_document(read, page, "a.html")
    assert [segment.text for segment in document.segments] == ["\ufffd", "a\ufffd", "b"]


@pytest.mark.parametrize(
    "page", [b"<p>\xff", b"<meta charset=utf-7><p>a", b"<meta charset=hex><p>a", b"<meta charset=x>"]
)
def test_a_page_in_an_unknown_encoding_is_an_input_error(page: bytes) -> None:
    with pytest.raises(InputError, match=r"a\.html"):
        read(page, "a.html")


FRAGMENTS = """\
<p> </p> <P <b> </b> <i> </i> <br> <br/> <li> </li> <ul> </ul> <td> </td> <tr> <code> </code> <pre> </pre>
<script> </script> <title> </title> <textarea> </textarea> <svg> </svg> <a\thref="x"\ttitle="y"> </a>
<img\talt='z'> <img\talt=z> <img\talt="z&quot;&amp;"> <p\ttranslate=no> <i\tclass=notranslate> <!-- --> <!x>
<?php ?> <![CDATA[ ]]> < > & " ' = / &lt; &amp; &nbsp; &#160; &#10; &ampx &copy &#0; <3 </ </> a bc Ü 漢 =
<?xml\tversion='1.0'?> \xa0 \0 \x1c <input\ttype=submit\tvalue=a> <option\tlabel=x>
<meta\tname=description\tcontent=a> <p/> <script/> <select> <option> <button> <!DOCTYPE\thtml>
<!DOCTYPE\tx\t[ ]>"""
PARTS = [part.replace("\t", " ") for part in re.split("[ \n]+", FRAGMENTS)]
PAGES = st.lists(st.sampled_from([*PARTS, " ", "\n", "\r\n"]) | st.text(max_size=3)).map("".join)


@given(PAGES.map(lambda text: text.encode("utf-8", "replace")), st.sampled_from(["a.html", "a.xhtml"]))
@settings(max_examples=80)
def test_any_page_stays_the_same_or_changes_in_its_texts_only(page: bytes, name: str) -> None:
    check_document(read, page, name)


@given(st.binary(), st.sampled_from(["utf-8", "iso-8859-1", "gb18030", "shift_jis", "euc-kr", "big5", "-"]))
@settings(max_examples=50)
def test_any_bytes_stay_the_same(content: bytes, encoding: str) -> None:
    page = b"<meta charset=" + encoding.encode() + b">" + content
    try:
        document = read(page, "a.html")
    except InputError:
        return
    assert document.with_segments(document.segments) == page
    assert read(document.with_segments(respelled(document.segments)), "a.html")


@given(st.text(), st.sampled_from(["utf-8", "windows-1252", "gb18030", "shift_jis"]))
@example("\ud83d\ude00 \ud800 \0 <b>&amp;</b> \" '\r\n\t\u00a0&#38; ]]> -->", "utf-8")
@settings(max_examples=80)
def test_any_text_can_be_written(text: str, encoding: str) -> None:
    page = f"<meta charset={encoding}><p>a<i>b</i>c <img alt='d' title=e> f<p>g".encode()
    document = read(page, "a.html")
    first, *others = document.segments
    begin, middle = f"x{text}", f"{text}x"
    tags = (*(tag._replace(position=len(begin)) for tag in first.tags[:2]), first.tags[2]._replace(position=len(begin)))
    again = read(
        document.with_segments([Segment(begin + middle, tags), *(Segment(begin + "x") for _ in others)]), "a.html"
    )
    expected = [re.sub("[ \t\n\r\f]+", " ", written(part)) for part in (begin, middle)]
    assert again.segments[0].text == "".join(expected)
    assert [tag.kind for tag in again.segments[0].tags] == ["open", "close", "word"]
    assert [segment.text for segment in again.segments[1:3]] == [written(begin + "x")] * 2
    assert gaps(again) == gaps(document)


def written(text: str) -> str:
    """A text as a page can have it."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return re.sub("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", text)


@given(PAGES, st.booleans())
@settings(max_examples=50)
def test_tokens_are_the_whole_page(page: str, is_xml: bool) -> None:
    spans = [(token.begin, token.end) for token in tokens(page, is_xml=is_xml)]
    assert "".join(page[begin:end] for begin, end in spans) == page
    assert all(begin < end for begin, end in spans)


REPEATED = ["<b>", "<p><b>", "<", "<!--", "<title>", "&nbsp;", "<a b='", "</b>", "<a b=", "a <b>b</i>"]


@pytest.mark.parametrize("part", REPEATED)
def test_a_page_of_many_equal_parts_is_read(part: str) -> None:
    check_document(read, (part * 2000).encode(), "a.html")
