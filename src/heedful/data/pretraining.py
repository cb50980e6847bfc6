"""Documents as sentences, which a masked language model is trained on."""

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
    """See `heedful.data.one_text.prepare_text`.

    Raises:
        InputError: As there; or the tokenizer has no <mask>.
    """
    check_passages(recipe)
    return prepare_text(recipe, folder, FORM, report)


def check_passages(recipe: Recipe) -> None:
    """Whether a recipe says what is needed to prepare passages; no text is read.

    Raises:
        InputError: As `heedful.data.one_text.check_documents`; or the tokenizer has no <mask>, which hidden tokens are
            replaced with.
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
