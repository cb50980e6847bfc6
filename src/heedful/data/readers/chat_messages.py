"""Dialogues as lists of turns, or of messages with a role, as in the OpenAI and ShareGPT formats."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

MESSAGE_KEYS = (("role", "content"), ("from", "value"))  # of a message: its author and its text
ANSWERERS = frozenset(("assistant", "gpt", "model", "bot", "chatbot"))
TURN_SEPARATOR = "\t"  # between the turns of a context
SPACES = re.compile(r"[ \t]+")


class Turns(NamedTuple):
    """Turns of a dialogue, and the indices of the replies to be learned, counted from 0."""

    texts: list[Any]
    replies: list[int]


def turns_of(entries: Sequence[Any]) -> Turns:
    """Return the turns of a list of texts or of messages. An entry that is neither is returned unchanged.

    The replies are the messages of an assistant. If there are none, or in a list of texts, every turn is a reply. The
    first turn never is. Empty messages of other authors, such as a system prompt, are left out.
    """
    for author, text in MESSAGE_KEYS:
        if all(isinstance(message, dict) and {author, text} <= message.keys() for message in entries):
            messages = [(text_of_message(message[text]), message[author] in ANSWERERS) for message in entries]
            turns = [(content, is_reply) for content, is_reply in messages if content != "" or is_reply]
            # The first turn has no context, so it cannot be learned as a reply.
            replies = [index for index, (_, is_reply) in enumerate(turns) if index and is_reply]
            return Turns([content for content, _ in turns], replies or list(range(1, len(turns))))
    return Turns(list(entries), list(range(1, len(entries))))


def text_of_message(content: Any) -> Any:
    """Return the text of a message, whose content may be a list of text parts."""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join(str(part.get("text", "")) for part in content)
    return content


def one_turn(text: str) -> str:
    """Strip a turn, and reduce each run of spaces and tabs in it to one space, because tabs separate turns."""
    return SPACES.sub(" ", text.strip())


def context_of(entries: Sequence[Any]) -> str | None:
    """Join the turns of a context with tabs, leaving out an assistant's reply at the end.

    Return None if no turns remain, or if one of them is not text.
    """
    turns, _ = turns_of(entries)
    last = entries[-1] if entries else None
    is_reply = isinstance(last, dict) and any(last.get(author) in ANSWERERS for author, _ in MESSAGE_KEYS)
    context = turns[:-1] if is_reply else turns
    return (
        TURN_SEPARATOR.join(map(one_turn, context))
        if context and all(isinstance(turn, str) for turn in context)
        else None
    )


def is_dialogue(value: object) -> bool:
    """Return True for a list of two or more turns or messages, if one has several words or non-ASCII characters."""
    if not isinstance(value, list) or len(value) < 2:
        return False
    texts, _ = turns_of(value)
    return all(isinstance(text, str) for text in texts) and any(" " in text or not text.isascii() for text in texts)
