"""Preparation of text for language models, GPT and BERT: stored documents and one tokenizer, reused until a change.

folder/train       the training documents, as the kind of model needs them
folder/valid       the validation documents
folder/tokenizer   the vocabulary
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.digest import data_digest
from heedful.data.documents import read_documents
from heedful.data.examples import given_tokenizer, one_tokenizer
from heedful.data.filters import DropReport
from heedful.data.overlap import lines_of, report_overlap
from heedful.data.preprocessing_cache import made_once
from heedful.data.splits import text_parts
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

S = TypeVar("S")


@dataclass(frozen=True)
class Form(Generic[S]):
    """Format in which documents are stored for a kind of model: how to write, open and describe a store."""

    write: Callable[[Path, Iterator[str], Tokenizer], S]
    open: Callable[[Path], S]
    size: Callable[[S], str]  # the size of a store, in words for people


@dataclass(frozen=True)
class PreparedText(Generic[S]):
    """Prepared text of a recipe for a language model: stores for training and validation, and a tokenizer."""

    tokenizer: Tokenizer
    train: S
    valid: S | None
    digest: str
    report: DropReport


def prepare_text(recipe: Recipe, folder: Path, form: Form[S], report: Callable[[str], None]) -> PreparedText[S]:
    """Return the prepared text of a recipe for a language model: opened in `folder` if it is there, else made there.

    Args:
        recipe: Its data and tokenizer tables count.
        folder: A folder for this text alone. Text prepared from something else is replaced.
        form: The format in which documents are stored.
        report: Called with sentences that say what is done.

    Raises:
        InputError: The text cannot be used, nothing of it is left, or `folder` holds something else.
        RunError: The folder cannot be written.
    """
    check_documents(recipe)
    digest = data_digest(recipe)
    parts = text_parts(recipe.data)
    folders = [folder / name for name in parts]

    def make(temporary: Path) -> DropReport:
        total = DropReport()
        tokenizer = text_tokenizer(recipe, report)
        TokenizerPair(tokenizer, tokenizer).save(temporary / "tokenizer")
        for name, corpora in parts.items():
            drops = DropReport()
            stored = form.write(temporary / name, all_texts(corpora, recipe, drops), tokenizer)
            report(f"{name}: {form.size(stored)}, {drops}")
            total.merge(drops)
        report_overlap(recipe.data, lambda corpus: long_lines(corpus, recipe.data), report)
        return total

    def opened(drops: DropReport) -> PreparedText[S]:
        return PreparedText(
            tokenizer=TokenizerPair.load(folder / "tokenizer").source,
            train=form.open(folders[0]),
            valid=form.open(folders[-1]) if recipe.data.valid else None,
            digest=digest,
            report=drops,
        )

    return made_once(folder, digest, make, opened, report)


def check_documents(recipe: Recipe) -> None:
    """Check that a recipe says what is needed to prepare documents; no text is read.

    Raises:
        InputError: The recipe names no training text, a corpus has a weight, or its tokenizer can neither be loaded nor
            trained.
    """
    if not recipe.data.train:
        raise InputError("the recipe names no training text; give it a [[data.train]] with source")
    for corpus in recipe.data.train:
        if corpus.weight != 1:
            raise InputError(
                f"{corpus.source}: weight = {corpus.weight}; running text is read once an epoch, so leave weight out"
            )
    given_tokenizer(recipe)


def fewest_documents(recipe: Recipe, most: int) -> int:
    """Count the documents of the training and of the validation text, up to `most` each; return the smaller number.

    Raises:
        InputError: One of the texts has no documents.
    """
    parts = [recipe.data.train, *([(recipe.data.valid,)] if recipe.data.valid else [])]
    return min(sum(1 for _ in islice(all_texts(part, recipe, DropReport()), most)) for part in parts)


def text_tokenizer(recipe: Recipe, report: Callable[[str], None]) -> Tokenizer:
    """Return the tokenizer that a recipe for a language model names, or train one on its training documents.

    Raises:
        InputError: The recipe names a pair of different tokenizers, or there is no text to train on.
    """
    documents = all_texts(recipe.data.train, recipe, DropReport())
    return one_tokenizer(recipe, documents, report)


def long_lines(corpus: CorpusConfig, data: DataConfig) -> Iterator[str]:
    """Yield the lines of the documents of a corpus that are long enough to be found again in other text."""
    return (line for document in read_documents(corpus, data) for line in lines_of(document.text))


def all_texts(corpora: Sequence[CorpusConfig], recipe: Recipe, drops: DropReport) -> Iterator[str]:
    """Yield the texts of all documents of some corpora; `drops` counts what is left out.

    Raises:
        InputError: There is no document.
    """
    empty = True
    for corpus in corpora:
        for document in read_documents(corpus, recipe.data, drops):
            empty = False
            yield document.text
    if empty:
        raise InputError(f"{corpora[0].source}: no text is left ({drops}); check the files")
