"""Preparation of documents for language models (GPT): stored as one stream of token ids."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from heedful.config.schema import Recipe
from heedful.data.one_text import Form, PreparedText, prepare_text
from heedful.data.stream import Encoded, TokenStream
from heedful.text.tokenizer import Tokenizer
from heedful.wording import counted

CHUNK = 256  # documents encoded at a time

RunningText = PreparedText[TokenStream]


def prepare_running_text(recipe: Recipe, folder: Path, report: Callable[[str], None]) -> RunningText:
    """Return the documents of a recipe as a stored token stream, for a language model; see `one_text.prepare_text`."""
    return prepare_text(recipe, folder, FORM, report)


def _write(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> TokenStream:
    return TokenStream.write(folder, _encoded(texts, tokenizer), len(tokenizer))


def _encoded(texts: Iterator[str], tokenizer: Tokenizer) -> Iterator[Encoded]:
    """The documents as ids, with the bytes of their text."""
    while chunk := list(islice(texts, CHUNK)):
        for text, ids in zip(chunk, tokenizer.encode_lines(chunk), strict=True):
            yield ids, len(text.encode("utf-8"))


def _size(stream: TokenStream) -> str:
    parts = {"documents": len(stream.offsets) - 1, "tokens": len(stream), "bytes": stream.bytes}
    return ", ".join(counted(number, things) for things, number in parts.items())


FORM = Form(_write, TokenStream.open, _size)
