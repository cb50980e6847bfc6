"""Dialogues as lists of turns, or of messages that say whose they are, as those of OpenAI and ShareGPT."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

KEYS = (("role", "content"), ("from", "value"))  # of a message: who says what
ANSWERERS = frozenset(("assistant", "gpt", "model", "bot", "chatbot"))
BETWEEN = "\t"  # between the turns of a context
SPACES = re.compile(r"[ \t]+")


class Turns(NamedTuple):
    """Turns of a dialogue, of which some are replies to be learned, by their places from 0."""

    texts: list[Any]
    replies: list[int]


def turns_of(entries: Sequence[Any]) -> Turns:
    """The turns of a list of texts or of messages; a turn that is not a text is as it is in the list.

    Of messages those of an assistant are replies, and of texts all but the first; so of messages without an assistant.
    A message without text that is not a reply, as of an empty system prompt, is not a turn.
    """
    for who, what in KEYS:
        if all(isinstance(message, dict) and {who, what} <= message.keys() for message in entries):
            messages = [(text_of_message(message[what]), message[who] in ANSWERERS) for message in entries]
            turns = [(text, is_reply) for text, is_reply in messages if text != "" or is_reply]
            replies = [place for place, (_, is_reply) in enumerate(turns) if place and is_reply]
            return Turns([text for text, _ in turns], replies or list(range(1, len(turns))))
    return Turns(list(entries), list(range(1, len(entries))))


def text_of_message(content: Any) -> Any:
    """The text of a message, whose content may be a list of parts that are texts."""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content


def one_turn(text: str) -> str:
    """A turn without the tabs that would end it."""
    return SPACES.sub(" ", text.strip())


def context_of(entries: Sequence[Any]) -> str | None:
    """The context to reply to, in one text: all turns, but for a reply of an assistant at the end; None of others."""
    turns, _ = turns_of(entries)
    last = entries[-1] if entries else None
    is_reply = isinstance(last, dict) and any(last.get(who) in ANSWERERS for who, _ in KEYS)
    context = turns[:-1] if is_reply else turns
    return BETWEEN.join(map(one_turn, context)) if context and all(isinstance(turn, str) for turn in context) else None


def is_dialogue(value: object) -> bool:
    """True if a value is a list of turns, of which one has several words, or of messages."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    texts, _ = turns_of(value)
    return all(isinstance(text, str) for text in texts) and any(" " in text or not text.isascii() for text in texts)
