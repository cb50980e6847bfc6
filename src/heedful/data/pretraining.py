"""Preparation of documents for masked language models (BERT): stored as sentences of token ids."""

from collections.abc import Callable, Iterator
from pathlib import Path

from heedful.config.schema import Recipe
from heedful.data.one_text import Form, PreparedText, check_documents, prepare_text
from heedful.data.passages import SentenceStore
from heedful.data.sentences import split_sentences
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted

Passages = PreparedText[SentenceStore]


def prepare_passages(recipe: Recipe, folder: Path, report: Callable[[str], None]) -> Passages:
    """Return the documents of a recipe as stored sentences, for a masked language model; see `one_text.prepare_text`.

    Raises:
        InputError: As in `heedful.data.one_text.prepare_text`; or the tokenizer has no <mask>.
    """
    check_passages(recipe)
    return prepare_text(recipe, folder, FORM, report)


def check_passages(recipe: Recipe) -> None:
    """Check that a recipe says what is needed to prepare documents for a masked language model; no text is read.

    Raises:
        InputError: As in `heedful.data.one_text.check_documents`; or the tokenizer has no <mask>, which replaces hidden
            tokens.
    """
    check_documents(recipe)
    path = recipe.tokenizer.path
    config = TokenizerPair.load(Path(path)).source.config if path else recipe.tokenizer
    if not config.mask:
        where = f"{path}: this tokenizer has" if path else "the tokenizer would have"
        raise InputError(f"{where} no <mask>, which hidden tokens are replaced with; set tokenizer.mask = true")


def _write(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> SentenceStore:
    documents = (tokenizer.encode_batch(split_sentences(text)) for text in texts)
    return SentenceStore.write(folder, documents, len(tokenizer))


def _size(store: SentenceStore) -> str:
    parts = {"documents": len(store), "sentences": len(store.sentences) - 1, "tokens": len(store.ids)}
    return ", ".join(counted(number, things) for things, number in parts.items())


FORM = Form(_write, SentenceStore.open, _size)
