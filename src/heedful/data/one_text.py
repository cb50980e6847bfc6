"""What language models of both kinds share: documents, and one tokenizer for all of them."""

from collections.abc import Callable, Iterator

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.documents import read_documents
from heedful.data.examples import one_tokenizer
from heedful.data.filters import DropReport
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer


def check_corpora(recipe: Recipe) -> None:
    """Whether the corpora of a recipe can be joined to one text.

    Raises:
        InputError: There is none, or one has a weight.
    """
    if not recipe.data.train:
        raise InputError("the recipe names no training text; give it a [[data.train]] with source")
    for corpus in recipe.data.train:
        if corpus.weight != 1:
            raise InputError(
                f"{corpus.source}: weight = {corpus.weight}; running text is read once an epoch, so leave weight out"
            )


def text_tokenizer(recipe: Recipe, report: Callable[[str], None]) -> Tokenizer:
    """The tokenizer of a recipe for one kind of text: the one that it names, or one trained on its training documents.

    Raises:
        InputError: It names a pair of different ones, or there is no text to train on.
    """
    documents = (text for corpus in recipe.data.train for text in texts(corpus, recipe, DropReport()))
    return one_tokenizer(recipe, documents, report)


def texts(corpus: CorpusConfig, recipe: Recipe, drops: DropReport) -> Iterator[str]:
    """The documents of a corpus; `drops` counts what is left out."""
    return (document.text for document in read_documents(corpus, recipe.data, drops))
