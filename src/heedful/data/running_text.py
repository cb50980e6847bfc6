"""From documents to what a language model is trained on: one stream of tokens, kept as long as nothing of it changed.

folder/train       the training documents
folder/valid       the validation documents
folder/tokenizer   the vocabulary
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.digest import data_digest
from heedful.data.filters import DropReport
from heedful.data.one_text import check_corpora, text_tokenizer, texts
from heedful.data.reuse import made_once
from heedful.data.stream import Encoded, TokenStream
from heedful.errors import InputError
from heedful.text.pair import TokenizerPair
from heedful.text.tokenizer import Tokenizer

CHUNK = 256  # documents encoded at a time


@dataclass(frozen=True)
class RunningText:
    """Everything that training and validation read."""

    tokenizer: Tokenizer
    train: TokenStream
    valid: TokenStream | None
    digest: str
    report: DropReport


def prepare_running_text(recipe: Recipe, folder: Path, report: Callable[[str], None]) -> RunningText:
    """Return the prepared text of a recipe: from `folder` if it holds just that, otherwise made there.

    Args:
        recipe: Its data and tokenizer tables count.
        folder: A folder of its own. Text prepared from something else is replaced.
        report: Told in sentences what is done.

    Raises:
        InputError: The text cannot be used, nothing of it is left, or `folder` holds something else.
        RunError: The folder cannot be written.
    """
    check_corpora(recipe)
    digest = data_digest(recipe)
    return made_once(
        folder,
        digest,
        make=lambda temporary: _write(recipe, temporary, report),
        read=lambda drops: _open(recipe, folder, digest, drops),
        report=report,
    )


def _write(recipe: Recipe, folder: Path, report: Callable[[str], None]) -> DropReport:
    total = DropReport()
    tokenizer = text_tokenizer(recipe, report)
    TokenizerPair(tokenizer, tokenizer).save(folder / "tokenizer")
    parts = {"train": recipe.data.train, "valid": (recipe.data.valid,) if recipe.data.valid else ()}
    for name, corpora in parts.items():
        if corpora:
            drops = DropReport()
            stream = TokenStream.write(folder / name, _encoded(corpora, recipe, tokenizer, drops), len(tokenizer))
            size = f"{len(stream.offsets) - 1:,} documents, {len(stream):,} tokens, {stream.bytes:,} bytes"
            report(f"{name}: {size}, {drops}")
            total.merge(drops)
    return total


def _encoded(
    corpora: Sequence[CorpusConfig], recipe: Recipe, tokenizer: Tokenizer, drops: DropReport
) -> Iterator[Encoded]:
    """The documents as ids, with the bytes of their text.

    Raises:
        InputError: There is none.
    """
    found = (text for corpus in corpora for text in texts(corpus, recipe, drops))
    empty = True
    while chunk := list(islice(found, CHUNK)):
        empty = False
        for text, ids in zip(chunk, tokenizer.encode_lines(chunk), strict=True):
            yield ids, len(text.encode("utf-8"))
    if empty:
        raise InputError(f"{corpora[0].source}: no text is left ({drops}); check the files")


def _open(recipe: Recipe, folder: Path, digest: str, drops: DropReport) -> RunningText:
    return RunningText(
        tokenizer=TokenizerPair.load(folder / "tokenizer").source,
        train=TokenStream.open(folder / "train"),
        valid=TokenStream.open(folder / "valid") if recipe.data.valid else None,
        digest=digest,
        report=drops,
    )
