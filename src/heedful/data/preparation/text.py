"""Preparation of text for language models: a token stream for GPT, or stored sentences for BERT."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.prepared_data import (
    DataFolder,
    PreparedData,
    at_least_one,
    lines_of,
    one_store_for_all,
    require_training_data,
)
from heedful.data.readers.documents import read_documents
from heedful.data.readers.drop_report import DropReport
from heedful.data.stream import Encoded, TokenStream
from heedful.errors import InputError
from heedful.text.coverage import UnknownTokens
from heedful.text.tokenizer import EOS, UNK, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import existing_tokenizer, one_tokenizer
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.passages import SentenceStore

CHUNK = 256  # documents encoded at a time

S = TypeVar("S", TokenStream, "SentenceStore")


def prepare_running_text(
    recipe: Recipe, folder: Path, report: Callable[[str], None], tokenizers: TokenizerPair | None = None
) -> PreparedData[TokenStream]:
    """Return the documents of a recipe as a stored token stream, for a language model; see `DataFolder`."""

    def write_stream(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> str:
        def documents() -> Iterator[Encoded]:
            # Documents are encoded in chunks: one at a time would leave cores idle, and all might not fit into memory.
            while chunk := list(islice(texts, CHUNK)):
                for text, ids in zip(chunk, tokenizer.encode_lines(chunk), strict=True):
                    yield ids, len(text.encode("utf-8"))

        stream = TokenStream.write(folder, documents(), len(tokenizer))
        return _size(documents=len(stream.offsets) - 1, tokens=len(stream), bytes=stream.bytes)

    if tokenizers is None:
        check_documents(recipe)
    return _prepare(recipe, folder, write_stream, TokenStream.open, report, tokenizers)


def prepare_passages(
    recipe: Recipe, folder: Path, report: Callable[[str], None], tokenizers: TokenizerPair | None = None
) -> "PreparedData[SentenceStore]":
    """Return the documents of a recipe as stored sentences, for a masked language model; see `DataFolder`."""
    from heedful.data.passages import SentenceStore
    from heedful.data.readers.documents import split_sentences

    def write_sentences(folder: Path, texts: Iterator[str], tokenizer: Tokenizer) -> str:
        documents = (tokenizer.encode_batch(split_sentences(text)) for text in texts)
        store = SentenceStore.write(folder, documents, len(tokenizer))
        return _size(documents=len(store), sentences=len(store.sentences) - 1, tokens=len(store.ids))

    if tokenizers is None:
        check_passages(recipe)
    return _prepare(recipe, folder, write_sentences, SentenceStore.open, report, tokenizers)


def _prepare(
    recipe: Recipe,
    folder: Path,
    write_texts: Callable[[Path, Iterator[str], Tokenizer], str],  # writes a store, and returns its size in words
    open_store: Callable[[Path], S],
    report: Callable[[str], None],
    tokenizers: TokenizerPair | None,
) -> PreparedData[S]:
    data = DataFolder(recipe, folder, open_store, one_store_for_all(recipe.data), report, tokenizers)
    prepared = data.stored()
    if prepared is None:
        with data.build(lambda corpus: long_lines(corpus, recipe.data)):
            if tokenizers is None:
                tokenizers = one_tokenizer(recipe, all_texts(recipe.data.train, recipe, DropReport()), report)
            for store_folder, corpora, drops in data.new_stores(tokenizers):
                size = write_texts(store_folder, all_texts(corpora, recipe, drops), tokenizers.source)
                # The stored ids are counted, because only `write_texts` sees the ids before they are stored.
                ids = open_store(store_folder).ids
                tokens = UnknownTokens(int((ids != EOS).sum()), int((ids == UNK).sum()))
                drops.tokens[f"tokens of {', '.join(corpus.source for corpus in corpora)}"] = tokens
                report(f"{store_folder.name}: {size}, {drops}")
        prepared = data.built()
    return prepared


def _size(**parts: int) -> str:
    return ", ".join(counted(number, things) for things, number in parts.items())


def check_documents(recipe: Recipe) -> None:
    require_training_data(recipe, "text")
    for corpus in recipe.data.train:
        if corpus.weight != 1:
            raise InputError(
                f"{corpus.source}: weight = {corpus.weight}; running text is read once per epoch, so leave weight out"
            )
    existing_tokenizer(recipe)


def check_passages(recipe: Recipe) -> None:
    check_documents(recipe)
    path = recipe.tokenizer.path
    config = TokenizerPair.load(Path(path)).source.config if path else recipe.tokenizer
    if not config.mask:
        where = f"{path}: this tokenizer has" if path else "the tokenizer would have"
        remedy = "give one that was trained with tokenizer.mask = true" if path else "set tokenizer.mask = true"
        raise InputError(f"{where} no <mask>, which replaces masked tokens; {remedy}")


def min_document_count(recipe: Recipe, most: int) -> int:
    """Return the number of training documents or, if smaller, of validation documents, counted up to `most`."""
    parts = [recipe.data.train, *([(recipe.data.valid,)] if recipe.data.valid else [])]
    return min(sum(1 for _ in islice(all_texts(part, recipe, DropReport()), most)) for part in parts)


def long_lines(corpus: CorpusConfig, data: DataConfig) -> Iterator[str]:
    """Yield the lines of a corpus of documents that are long enough to be found in other text."""
    return (line for document in read_documents(corpus, data) for line in lines_of(document.text))


def all_texts(corpora: Sequence[CorpusConfig], recipe: Recipe, drops: DropReport) -> Iterator[str]:
    """Yield the texts of all documents in some corpora; `drops` counts those that are left out."""
    texts = (document.text for corpus in corpora for document in read_documents(corpus, recipe.data, drops))
    source = corpora[0].source if corpora else ""  # an evaluation has no training corpora, and does not read them
    return at_least_one(texts, source, drops, "texts", "check the files")
