"""Texts that are hard to write in some format, and documents with such texts, or with broken bytes."""

from collections.abc import Callable, Iterator

from hypothesis import strategies as st

from heedful.documents.document import Document, Segment
from heedful.errors import InputError

HARD = [
    *("a: b", "# no", "- item", "? key", "yes", "1.5", "null", "~", "it's", '"quoted"', "\\n", "\\", "%d %s", "a #b"),
    *("<b>&amp;</b>", "a --> b", "00:01.000 --> 00:02.000", "]]>", "{\\an8}", "[a, b]", "{a: b}", "*alias", "&anchor"),
    *("two\nlines", "tab\tand\rreturn", "\x00\x07\x1b\x7f\x9f", "\ud83d", "😀", "\ufeff", "\u2028", "\x85", "\uffff"),
    *("!tag", "| x", "> x", "@", "`", "---", "...", "<<", "=", "a:", "\xa0", "a\n\n\nb"),
    *("a\n b", " a", "a ", "\na", "a\n", "", " "),
]  # fmt: skip
words = st.text("abcßé你。", max_size=9) | st.sampled_from(HARD)
texts = st.lists(words, min_size=1, max_size=5).map(" ".join) | st.text(max_size=19) | st.sampled_from(HARD)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])


def encoded(content: str, encoding: str) -> bytes:
    """The bytes of a file, with a byte order mark where that is usual."""
    return ("\ufeff" * (encoding == "utf-16-be") + content).encode(encoding)


def changed(document: Document, draw: Callable[[st.SearchStrategy[str]], str]) -> list[Segment]:
    """A drawn text for each segment of a document, with its tags at the same places or at the end."""
    segments = []
    for segment in document.segments:
        text = draw(texts)
        tags = tuple(tag._replace(position=min(tag.position, len(text))) for tag in segment.tags)
        segments.append(Segment(text, tags))
    return segments


def replaced(value: object, new: Iterator[str]) -> object:
    """A value with the next text in place of each string that has words; whitespace at its edges stays."""
    if isinstance(value, dict):
        return {key: replaced(each, new) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, new) for each in value]
    if isinstance(value, str) and value.strip():
        return value[: len(value) - len(value.lstrip())] + next(new) + value[len(value.rstrip()) :]
    return value


def broken(draw: Callable, content: bytes) -> bytes:
    """A file with some bytes replaced by others."""
    for _ in range(draw(st.integers(0, 5))):
        begin = draw(st.integers(0, len(content)))
        new = draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"\\", b"<", b"</", b"-->", b"\n", b"[[", b"{", b": "])
        )
        content = content[:begin] + new + content[begin + draw(st.integers(0, 3)) :]
    return content


def check_that_only_input_errors_are_raised(read: Callable[[bytes, str], Document], data: bytes, name: str) -> None:
    try:
        document = read(data, name)
        message = ""
    except InputError as error:
        document, message = None, str(error)
    if document is None:
        assert message.startswith(f"{name}:")
        return
    assert document.with_segments(document.segments) == data or name.endswith((".po", ".xlf"))
    document.with_segments([segment._replace(text=segment.text + " x") for segment in document.segments])
