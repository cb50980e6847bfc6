"""Inline markup of Markdown: markdown-it parses it, and each of its tokens gets the range of characters that it is."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from heedful.documents.inline import Item

Rule = Callable[[StateInline, bool], bool]

# Markup that Markdown itself does not have: formulas, templates and footnotes.
_WORD = re.compile(
    r"\$\$[^$]+\$\$|\$(?![\s$])[^$\n]*?(?<![\s\\])\$(?!\d)|\{\{[^\n]*?\}\}|\{%[^\n]*?%\}|\{<[^\n]*?>\}", re.DOTALL
)
_EMPTY = re.compile(r"\[\^[^\]\s]+\]:?|\[![A-Z]+\]|\{[:#.][^{}\n]*\}")
_HTML = re.compile(r"<(/?)([a-zA-Z][\w-]*)[^>]*?(/?)>", re.DOTALL)
MAX_NESTING = 100  # of lists and quotes; markdown-it drops the texts of deeper ones
VOID = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr"})

_PAIRS = {"em": "em", "strong": "strong", "s": "s", "link": "link"}


class Span(NamedTuple):
    """Token and its range."""

    begin: int
    end: int
    token: Token


def parser() -> MarkdownIt:
    """Return a parser of blocks whose inline parser records ranges."""
    markdown = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    markdown.core.ruler.enableOnly(["normalize", "block"])
    markdown.inline.ruler2.disable("fragments_join")  # which joins tokens
    markdown.inline.ruler.before("escape", "protected", _protected)
    rules = markdown.inline.ruler
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        rules.at(name, _recording(name, rule))
    return markdown


def inline_items(markdown: MarkdownIt, content: str, references: dict[str, Any]) -> list[Item]:
    """Return the texts and tags of a paragraph; their ranges are in `content`. The name of an image is its label."""
    tokens = markdown.inline.parse(content, markdown, {"references": references}, [])
    spans = [Span(token.meta["begin"], token.meta["end"], token) for token in tokens if "end" in token.meta]
    spans.sort(key=lambda span: span.begin)
    items: list[Item] = []
    position = 0
    for begin, end, token in _without_halves(spans):
        if token.type == "text":  # a sign that turned out to be one
            continue
        if position < begin:
            items.append(Item("text", position, begin, content[position:begin]))
        items += _items_of(token, begin, end, content[begin:end])
        position = end
    return [*items, Item("text", position, len(content), content[position:])] if position < len(content) else items


def _items_of(token: Token, begin: int, end: int, source: str) -> Iterator[Item]:
    markup = re.sub(r"[ \t]*\n[ \t]*", " ", token.meta.get("markup") or source)
    name, _, side = token.type.rpartition("_")
    match token.type:
        case "text_special":
            yield Item("text", begin, end, token.content)
        case "softbreak":
            yield Item("text", begin, end, " ")
        case "hardbreak":
            yield Item("empty", begin, end, "", source, "hardbreak")
            yield Item("text", end, end, " ")
        case "html_inline":
            yield _html_item(begin, end, markup)
        case "image":
            yield Item("object", begin, end, "", markup, token.content)
        case "mark":
            yield Item("empty", begin, end, "", markup)
        case _ if name in _PAIRS and token.markup != "autolink":
            is_bound = token.meta.get("is_bound", False)
            yield Item("open" if side == "open" else "close", begin, end, "", markup, name, is_bound=is_bound)
        case _:
            yield Item("word", begin, end, "", markup)


def _html_item(begin: int, end: int, markup: str) -> Item:
    tag = _HTML.fullmatch(markup)
    if tag is None or tag[3] or tag[2].lower() in VOID:
        return Item("empty", begin, end, "", markup)
    return Item("close" if tag[1] else "open", begin, end, "", markup, f"<{tag[2].lower()}>")


def _without_halves(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield spans without the tokens that are a half of the sign ** or __, whose other half has the tag."""
    for span in spans:
        if span.token.type == "strong_open":
            yield span._replace(begin=span.begin - 1)
        elif span.token.type == "strong_close":
            yield span._replace(end=span.end + 1)
        elif span.token.type != "text" or span.token.content:
            yield span


def _recording(name: str, rule: Rule) -> Rule:
    """Return a rule that records the range of each token that it adds."""

    def recording(state: StateInline, silent: bool) -> bool:
        begin, count = state.pos, len(state.tokens)
        is_link = name == "link" and not silent and state.src[begin] == "["
        label_end = state.md.helpers.parseLinkLabel(state, begin, True) if is_link else -1
        success = rule(state, silent)
        if not success or silent:
            return success
        if is_link:
            opening = next(token for token in state.tokens[count:] if token.type == "link_open")
            source = state.src[label_end : state.pos]
            is_reference = not source.startswith("](")
            if source in ("]", "][]"):  # the text names the target as well, which is written out when the text changes
                source = f"][{state.src[begin + 1 : label_end]}]"
            opening.meta = {"begin": begin, "end": begin + 1, "is_bound": is_reference}
            closing = {"begin": label_end, "end": state.pos, "is_bound": is_reference, "markup": source}
            state.tokens[-1].meta = closing
        elif name in ("emphasis", "strikethrough"):  # one token for each sign
            end = state.pos
            for token in reversed(state.tokens):
                if end <= begin:
                    break
                token.meta = {"begin": end - len(token.content), "end": end}
                end -= len(token.content)
        elif name == "newline":
            state.tokens[-1].meta = {"begin": len(state.src[:begin].rstrip(" ")), "end": state.pos}
        elif len(state.tokens) > count:
            token = state.tokens[-1] if name != "autolink" else state.tokens[-3]
            token.meta = {"begin": begin, "end": state.pos}
        return success

    return recording


def _protected(state: StateInline, silent: bool) -> bool:
    """Parse what is not to be translated: a word of the sentence, or a mark."""
    if state.src[state.pos] not in "$[{":
        return False
    word = _WORD.match(state.src, state.pos, state.posMax)
    mark = word or _EMPTY.match(state.src, state.pos, state.posMax)
    if mark is None:
        return False
    if not silent:
        state.push("word" if word else "mark", "", 0)
    state.pos = mark.end()
    return True
