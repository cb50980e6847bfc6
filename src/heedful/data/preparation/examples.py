"""Preparation of labelled examples: rows of token ids and of targets, in a store for each corpus."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.overlap import Texts
from heedful.data.preparation.prepared_data import Preparation, PreparedData, at_least_one, one_store_each, prepare_data
from heedful.data.readers.filters import DropReport
from heedful.data.stores.arrays import SMALL_VOCABULARY
from heedful.data.stores.pair_store import PairStore, Rows
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import given_tokenizer, one_tokenizer
from heedful.wording import counted

Reader = Callable[[CorpusConfig, Tokenizer, DropReport], Iterator[Rows]]  # the examples of a corpus


def prepare_examples(
    recipe: Recipe,
    folder: Path,
    texts: Texts,
    read: Reader,
    report: Callable[[str], None],
    tokenizers: TokenizerPair | None = None,
) -> PreparedData[PairStore]:
    """Return the prepared examples of a recipe; see `prepare_data`."""
    if tokenizers is None:
        check_examples(recipe)
    data = recipe.data

    def write(place: Path, corpora: Sequence[CorpusConfig], tokenizers: TokenizerPair, drops: DropReport) -> None:
        (corpus,) = corpora
        rows = at_least_one(_counted(read(corpus, tokenizers.source, drops), corpus, drops), corpus.source, drops)
        store = PairStore.write(place, rows, max(len(tokenizers.source), SMALL_VOCABULARY))
        report(f"{corpus.source}: {counted(len(store), 'examples')}, {drops}")
        for sentence in remarks(drops, len(store), data.max_length):
            report(sentence)

    examples = Preparation(
        parts=one_store_each(data),
        tokenizers=lambda: one_tokenizer(recipe, chain.from_iterable(map(texts, data.train)), report),
        write=write,
        open=PairStore.open,
        texts=texts,
        settings=f", {data.max_length} tokens, {recipe.model.family}",
    )
    return prepare_data(recipe, folder, examples, report, tokenizers)


def _counted(rows: Iterable[Rows], corpus: CorpusConfig, drops: DropReport) -> Iterator[Rows]:
    """Yield examples unchanged, and count the tokens of their texts."""
    for text, targets in rows:
        drops.count_tokens(f"tokens of {corpus.source}", text)
        yield text, targets


def check_examples(recipe: Recipe) -> None:
    """Check that a recipe says what is needed to prepare labelled examples; no text is read."""
    if not recipe.data.train:
        raise InputError("the recipe names no training data; give it a [[data.train]] with source")
    given_tokenizer(recipe)


def remarks(drops: DropReport, count: int, max_length: int) -> Iterator[str]:
    """Yield sentences on odd examples among the `count` of a corpus: cut or empty texts, silent sounds."""
    kinds = {
        "cut": f"texts longer than data.max_length = {max_length:,} tokens, and cut to that",
        "empty": "empty texts, of which nothing can be told",
        "silent": "sounds in which nothing can be heard; leave them out unless they are examples of silence",
    }
    for remark, number, first in drops.remarks():
        yield f"{kinds[remark]}: {number:,} of {count:,} (first: {first})"
