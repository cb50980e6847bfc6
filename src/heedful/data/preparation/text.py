"""Preparation of text for language models: a token stream for GPT, or stored sentences for BERT."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.prepared_data import Preparation, PreparedData, lines_of, one_store_for_all, prepare_data
from heedful.data.readers.documents import read_documents
from heedful.data.readers.filters import DropReport
from heedful.data.stream import Encoded, TokenStream
from heedful.errors import InputError
from heedful.text.coverage import UnknownTokens
from heedful.text.tokenizer import EOS, UNK, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer, one_tokenizer
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.passages import SentenceStore

CHUNK = 256  # documents encoded at a time

S = TypeVar("S", TokenStream, "SentenceStore")
Writer = Callable[[Path, Iterator[str], Tokenizer], str]  # writes the store of some documents, and says its size


def prepare_running_text(
    recipe: Recipe, folder: Path, report: Callable[[str], None], tokenizers: TokenizerPair | None = None
) -> PreparedData[TokenStream]:
    """Return the documents of a recipe as a stored token stream, for a language model; see `prepare_data`."""
    if tokenizers is None:
        check_documents(recipe)
    return _prepare(recipe, folder, _write_stream, TokenStream.open, report, tokenizers)


def prepare_passages(
    recipe: Recipe, folder: Path, report: Callable[[str], None], tokenizers: TokenizerPair | None = None
) -> "PreparedData[SentenceStore]":
    """Return the documents of a recipe as stored sentences, for a masked language model; see `prepare_data`."""
    from heedful.data.passages import SentenceStore

    if tokenizers is None:
        check_passages(recipe)
    return _prepare(recipe, folder, _write_sentences, SentenceStore.open, report, tokenizers)


def check_documents(recipe: Recipe) -> None:
    if not recipe.data.train:
        raise InputError("the recipe names no training text; give it a [[data.train]] with source")
    for corpus in recipe.data.train:
        if corpus.weight != 1:
            raise InputError(
                f"{corpus.source}: weight = {corpus.weight}; running text is read once an epoch, so leave weight out"
            )
    given_tokenizer(recipe)


def fewest_documents(recipe: Recipe, most: int) -> int:
    """Count the documents of the training and of the validation text, up to `most` each; return the smaller number."""
    parts = [recipe.data.train, *([(recipe.data.valid,)] if recipe.data.valid else [])]
    return min(sum(1 for _ in islice(all_texts(part, recipe, DropReport()), most)) for part in parts)


def check_passages(recipe: Recipe) -> None:
    check_documents(recipe)
    path = recipe.tokenizer.path
    config = TokenizerPair.load(Path(path)).source.config if path else recipe.tokenizer
    if not config.mask:
        where = f"{path}: this tokenizer has" if path else "the tokenizer would have"
        raise InputError(f"{where} no <mask>, which hidden tokens are replaced with; set tokenizer.mask = true")


def long_lines(corpus: CorpusConfig, data: DataConfig) -> Iterator[str]:
    """Yield the lines of the documents of a corpus that are long enough to be found again in other text."""
    return (line for document in read_documents(corpus, data) for line in lines_of(document.text))


def all_texts(corpora: Sequence[CorpusConfig], recipe: Recipe, drops: DropReport) -> Iterator[str]:
    """Yield the texts of all documents of some corpora; `drops` counts what is left out."""
    empty = True
    for corpus in corpora:
        for document in read_documents(corpus, recipe.data, drops):
            empty = False
            yield document.text
    if empty:
        raise InputError(f"{corpora[0].source}: no text is left ({drops}); check the files")


def _prepare(
    recipe: Recipe,
    folder: Path,
    write_texts: Writer,
    open_store: Callable[[Path], S],
    report: Callable[[str], None],
    given: TokenizerPair | None,
) -> PreparedData[S]:
    def write(place: Path, corpora: Sequence[CorpusConfig], tokenizers: TokenizerPair, drops: DropReport) -> None:
        size = write_texts(place, all_texts(corpora, recipe, drops), tokenizers.source)
        ids = open_store(place).ids
        tokens = UnknownTokens(int((ids != EOS).sum()), int((ids == UNK).sum()))
        drops.tokens[f"tokens of {', '.join(corpus.source for corpus in corpora)}"] = tokens
        report(f"{place.name}: {size}, {drops}")

    documents = Preparation(
        parts=one_store_for_all(recipe.data),
        tokenizers=lambda: one_tokenizer(recipe, all_texts(recipe.data.train, recipe, DropReport()), report),
        write=write,
        open=open_store,
        texts=lambda corpus: long_lines(corpus, recipe.data),
    )
    return prepare_data(recipe, folder, documents, report, given)


def _write_stream(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> str:
    def documents() -> Iterator[Encoded]:
        while chunk := list(islice(texts, CHUNK)):
            for text, ids in zip(chunk, tokenizer.encode_lines(chunk), strict=True):
                yield ids, len(text.encode("utf-8"))

    stream = TokenStream.write(folder, documents(), len(tokenizer))
    return _size(documents=len(stream.offsets) - 1, tokens=len(stream), bytes=stream.bytes)


def _write_sentences(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> str:
    from heedful.data.passages import SentenceStore
    from heedful.data.readers.documents import split_sentences

    documents = (tokenizer.encode_batch(split_sentences(text)) for text in texts)
    store = SentenceStore.write(folder, documents, len(tokenizer))
    return _size(documents=len(store), sentences=len(store.sentences) - 1, tokens=len(store.ids))


def _size(**parts: int) -> str:
    return ", ".join(counted(number, things) for things, number in parts.items())
