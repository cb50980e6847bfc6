"""HTML and XHTML: blocks, such as paragraphs and table cells, are the texts, and inline elements in them are tags.

Some attributes are texts as well. Scripts, code, preformatted text and what is marked as not to be translated remain
as they are. Nothing has to be well-formed: the tokens are those of the HTML standard, and the elements nearly so.
"""

import codecs
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from html.entities import html5

from heedful.documents.document import MARKS, Place, Segment, TextDocument, decoded, with_tags
from heedful.documents.html_tokens import Attribute, Token, tokens
from heedful.documents.inline import BLANKS, EDGES, Item, Sentence, collapsed, places_of, printable
from heedful.errors import InputError


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


BLOCKS = _names(
    "address article aside blockquote body button caption center col colgroup dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main "
    "menu nav noframes noscript ol optgroup option p plaintext pre search section select summary table tbody td "
    "template tfoot th thead title tr ul xmp"
)
EMPTY_ELEMENTS = _names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
)
# Elements that remain as they are: those that are words of a sentence, those that take a place in it, and the others.
WORDS = _names("code kbd math samp tt var")
OBJECTS = _names("audio canvas embed iframe img input object svg textarea video")
HIDDEN = _names("noembed noframes plaintext pre listing rp rt rtc script style xmp")
PROTECTED = WORDS | OBJECTS | HIDDEN

# Elements that end where an element with such a name begins.
CELLS = frozenset({"td", "th"})
ROWS = CELLS | {"tr"}
GROUPS = ROWS | {"tbody", "tfoot", "thead"}
IMPLIED_ENDS = {
    "li": frozenset({"li"}),
    **dict.fromkeys(("dd", "dt"), frozenset({"dd", "dt"})),
    "option": frozenset({"option"}),
    "optgroup": frozenset({"option", "optgroup"}),
    **dict.fromkeys(("td", "th"), CELLS),
    "tr": ROWS,
    **dict.fromkeys(("tbody", "tfoot", "thead"), GROUPS),
}
MAX_DEPTH = 100  # inline elements that an implied end may close

ATTRIBUTES = _names("alt aria-description aria-label aria-placeholder aria-valuetext placeholder title")
LABELLED = frozenset({"option", "optgroup", "track"})  # by their attribute `label`
BUTTONS = frozenset({"button", "reset", "submit"})  # types of <input> whose value is visible
DESCRIPTIONS = re.compile(r"(og:|twitter:)?(title|description)|(og|twitter):image:alt", re.IGNORECASE)

# Names of encodings in web pages that stand for others (https://encoding.spec.whatwg.org/#names-and-labels).
ENCODINGS = {
    **dict.fromkeys(("ascii", "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "us-ascii"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("utf-16", "utf-16le", "utf-16be"), "utf-8"),  # which the declaration could not be read in
    "big5": "big5hkscs",
}
_DECLARATION = re.compile(
    rb"\s*<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)|<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)
_LABEL = re.compile(
    r"utf-?8|iso-?8859-?\d+|windows-\w+|cp(125\d|866|874|932|949)|koi8-[ru]|mac\w+|gb18030|big5hkscs|euc-jp|tis-620"
)
_EDGE = re.compile(rf"(?:[{BLANKS}]|&nbsp;|&#160;|&#xA0;|\u00a0)*+", re.IGNORECASE)
_REFERENCE = re.compile(r"&(?:#\d+;?|#[xX][0-9a-fA-F]+;?|[a-zA-Z0-9]+(?:;|(?![a-zA-Z0-9=])))")


def read(data: bytes, name: str) -> TextDocument:
    """Find the texts of a web page."""
    content, encoding = page_content(data, name)
    is_xml = name.lower().endswith((".xhtml", ".xht")) or content.lstrip().startswith("<?xml")
    return document(content, encoding, is_xml=is_xml)


def document(content: str, encoding: str, *, is_xml: bool) -> TextDocument:
    """Find the texts of a decoded page."""
    return TextDocument(content, encoding, list(_Page(content, encoding, is_xml).places()), errors="surrogateescape")


def page_content(data: bytes, name: str) -> tuple[str, str]:
    """Decode a page in the encoding that it declares; bytes that are not in this encoding become surrogates."""
    declaration = _DECLARATION.search(data[:4096])
    if declaration is None or data.startswith(tuple(MARKS.values())):
        return decoded(data, name)
    label = (declaration[1] or declaration[2]).decode("latin-1").lower()
    encoding = ENCODINGS.get(label, label)
    try:
        if not _LABEL.fullmatch(encoding):
            raise LookupError
        content = data.decode(encoding, "surrogateescape")
        if content.encode(encoding, "surrogateescape") == data:
            return content, codecs.lookup(encoding).name
    except (LookupError, UnicodeError):
        pass
    raise InputError(f"{name}: its encoding {label!r} cannot be written back exactly; convert the file to UTF-8")


@dataclass
class _Page:
    """Reader of a page: the elements that are open, and the texts and tags of the present paragraph."""

    content: str
    encoding: str
    is_xml: bool
    open_elements: list[str] = field(default_factory=list)
    depths: dict[str, int] = field(default_factory=dict)  # open elements by name
    items: list[Item] = field(default_factory=list)
    protected: Token | None = None  # the start tag of an element that remains as it is
    protected_depth: int = 0
    protected_end: int = 0
    protected_inner: tuple[tuple[int, Place], ...] = ()

    def places(self) -> Iterator[Place]:
        for token in tokens(self.content, is_xml=self.is_xml):
            if token.kind == "start":
                yield from self._start(token)
            elif token.kind == "end":
                yield from self._end(token)
            elif self.protected is None:
                self._add(token)
            self.protected_end = token.end
        self.open_elements.clear()
        yield from self._end_protected()
        yield from self._end_paragraph()

    def _add(self, token: Token) -> None:
        """Add a text or a comment to the paragraph."""
        source = self.content[token.begin : token.end]
        if token.kind == "text":
            self.items.append(Item("text", token.begin, token.end, printable(html.unescape(source), "")))
        else:
            kind = "word" if source.startswith(("<![CDATA[", "<%=")) else "empty"
            self.items.append(Item(kind, token.begin, token.end, markup=source))

    def _start(self, token: Token) -> Iterator[Place]:
        self._close_implied(token.name)
        yield from self._end_protected()
        is_block = token.name in BLOCKS
        is_empty = token.name in EMPTY_ELEMENTS or (self.is_xml and token.is_empty)
        if self.protected is None:
            if is_block:
                yield from self._end_paragraph()
            values = {attribute.name: attribute for attribute in token.attributes[::-1]}
            is_marked = self._is_marked(values)
            inner = () if is_marked else tuple(self._attribute_places(token, values))
            if not is_empty and (is_marked or token.name in PROTECTED):
                self.protected, self.protected_depth, self.protected_inner = token, len(self.open_elements), inner
            elif is_block:
                yield from (place for _, place in inner)
            else:
                self._add_tag(token, "empty" if is_empty else "open", inner)
        if not is_empty:
            self.open_elements.append(token.name)
            self.depths[token.name] = self.depths.get(token.name, 0) + 1

    def _end(self, token: Token) -> Iterator[Place]:
        if self.depths.get(token.name):
            while self._pop() != token.name:
                pass
        if self.protected is not None and len(self.open_elements) <= self.protected_depth:
            # The end tag of another element ends this one, too, but is not a part of it.
            is_own = token.name == self.protected.name and len(self.open_elements) == self.protected_depth
            self.protected_end = token.end if is_own else self.protected_end
            yield from self._end_protected()
            if is_own:
                return
        if self.protected is None:
            if token.name in BLOCKS:
                yield from self._end_paragraph()
            else:
                self._add_tag(token, "close", ())

    def _pop(self) -> str:
        name = self.open_elements.pop()
        self.depths[name] -= 1
        return name

    def _close_implied(self, name: str) -> None:
        """Close elements whose end tag may be omitted before the start tag of an element."""
        names = IMPLIED_ENDS.get(name, frozenset())
        names |= {"p"} if name in BLOCKS and name not in ("button", "option", "optgroup") else frozenset()
        while names:
            depth = len(self.open_elements) - 1
            lowest = max(depth - MAX_DEPTH, 0)
            while depth >= lowest and self.open_elements[depth] not in BLOCKS:
                depth -= 1
            if depth < lowest or self.open_elements[depth] not in names:
                return
            while len(self.open_elements) > depth:
                self._pop()

    def _add_tag(self, token: Token, kind: str, inner: tuple[tuple[int, Place], ...]) -> None:
        source = self.content[token.begin : token.end]
        if kind == "empty":
            is_hidden = any(
                attribute.name == "type" and self.content[attribute.begin : attribute.end].lower() == "hidden"
                for attribute in token.attributes
            )
            is_object = token.name in OBJECTS and not is_hidden
            self.items.append(Item("object" if is_object else "empty", token.begin, token.end, "", source, "", inner))
        else:
            kind = "open" if kind == "open" else "close"
            self.items.append(Item(kind, token.begin, token.end, "", source, token.name, inner))
        if token.name == "br":  # which separates words
            self.items.append(Item("text", token.end, token.end, " "))

    def _end_protected(self) -> Iterator[Place]:
        """End the element that remains as it is, if its parent has ended."""
        if self.protected is None or len(self.open_elements) > self.protected_depth:
            return
        token, self.protected = self.protected, None
        if token.name in BLOCKS:
            yield from (place for _, place in self.protected_inner)
            return
        kind = "empty" if token.name in HIDDEN else "object" if token.name in OBJECTS else "word"
        source = self.content[token.begin : self.protected_end]
        item = Item(kind, token.begin, self.protected_end, "", source, "", self.protected_inner)
        self.items.append(item)

    def _end_paragraph(self) -> Iterator[Place]:
        items, self.items = self.items, []
        yield from places_of(collapsed(items), self._place)

    def _place(self, items: Sequence[Item], sentence: Sentence) -> Place:
        begin, end = items[0].begin, items[-1].end
        if items[0].kind == "text":
            begin = self._without_edges(begin, items[0].end)[0]
        if items[-1].kind == "text":
            end = self._without_edges(items[-1].begin, end)[1]
        return Place(begin, end, sentence.segment, self._written, inner=sentence.inner)

    def _written(self, segment: Segment) -> str:
        return with_tags(segment, partial(self._escaped, specials="&<>"))

    def _is_marked(self, values: dict[str, Attribute]) -> bool:
        """Return True if the attributes of an element say that it is not to be translated."""
        translate, names = (self._value(values[name]) if name in values else "" for name in ("translate", "class"))
        return translate.strip().lower() == "no" or "notranslate" in names.split()

    def _value(self, attribute: Attribute) -> str:
        source = self.content[attribute.begin : attribute.end]
        return printable(_REFERENCE.sub(_decoded_in_attribute, source), "")

    def _attribute_places(self, token: Token, values: dict[str, Attribute]) -> Iterator[tuple[int, Place]]:
        """Yield the places of the attributes that people read, each with its position in the tag."""
        kind = self._value(values["type"]).strip().lower() if "type" in values else ""
        name = next((self._value(values[key]) for key in ("name", "property") if key in values), "")
        for attribute in sorted(values.values(), key=lambda attribute: attribute.begin):
            is_text = (
                (attribute.name in ATTRIBUTES and token.name not in ("link", "style", "script"))
                or (attribute.name == "label" and token.name in LABELLED)
                or (attribute.name == "value" and token.name == "input" and kind in BUTTONS)
                or (attribute.name == "content" and token.name == "meta" and DESCRIPTIONS.fullmatch(name.strip()))
            )
            text = self._value(attribute)
            if is_text and text.strip():
                begin, end = self._without_edges(attribute.begin, attribute.end)
                written = partial(self._written_attribute, attribute.quote)
                place = Place(begin, end, Segment(text.strip(EDGES)), written)
                yield begin - token.begin, place

    def _written_attribute(self, quote: str, segment: Segment) -> str:
        text = self._escaped(segment.text, "&<>\n\t" + (quote or '"'))
        return text if quote else f'"{text}"'

    def _without_edges(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of a text without the blanks at its edges, some of which may be character references."""
        blanks = _EDGE.match(self.content, begin, end)
        begin = blanks.end() if blanks else begin
        while begin < end:
            if self.content[end - 1] in EDGES:
                end -= 1
            elif self.content[end - 6 : end].lower() in ("&nbsp;", "&#160;", "&#xa0;") and end - 6 >= begin:
                end -= 6
            else:
                break
        return begin, end

    def _escaped(self, text: str, specials: str) -> str:
        text = re.sub(f"[{specials}\r\u00a0]", lambda match: f"&#{ord(match[0])};", printable(text))
        for reference, name in (("&#38;", "&amp;"), ("&#60;", "&lt;"), ("&#62;", "&gt;"), ("&#34;", "&quot;")):
            text = text.replace(reference, name)
        codec = self.encoding.removesuffix("-sig")
        if text.encode(codec, "replace").decode(codec) == text:
            return text
        return "".join(
            char if char.encode(codec, "ignore").decode(codec) == char else f"&#{ord(char)};" for char in text
        )


def _decoded_in_attribute(reference: re.Match[str]) -> str:
    """Decode a character reference; without a semicolon, a name counts only if it is complete."""
    source = reference[0]
    return html.unescape(source) if source[1] == "#" or source.endswith(";") or source[1:] in html5 else source
