"""Preparation of sentence pairs for encoder-decoders: filtered, encoded, and stored, a store for each corpus."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.prepared_data import (
    VALID,
    Preparation,
    PreparedData,
    at_least_one,
    one_store_each,
    prepare_data,
)
from heedful.data.readers.corpus import PairReader, SentencePair, read_pairs
from heedful.data.readers.filters import DropReport, PairFilter
from heedful.data.stores.pair_store import PairStore, Rows
from heedful.errors import InputError
from heedful.text.tokenizer import EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import check_trainable, train_pair
from heedful.wording import counted

CHUNK = 4096  # pairs encoded at a time

T = TypeVar("T")


@dataclass(frozen=True)
class PreparedPairs(PreparedData[PairStore]):
    """Prepared sentence pairs of a recipe, with the raw validation text."""

    valid_text: list[tuple[str, str]]  # the raw pairs of `valid`, in its order


def prepare_pairs(
    recipe: Recipe,
    folder: Path,
    report: Callable[[str], None],
    read: PairReader = read_pairs,
    tokenizers: TokenizerPair | None = None,
) -> PreparedPairs:
    """Return the prepared sentence pairs of a recipe; see `prepare_data`."""
    if tokenizers is None:
        check_pairs(recipe)
    data, pair_filter = recipe.data, PairFilter(recipe.data.filters)

    def write(place: Path, corpora: Sequence[CorpusConfig], tokenizers: TokenizerPair, drops: DropReport) -> None:
        (corpus,) = corpora
        pairs = read(corpus, data, drops)
        if place.name == VALID:
            rows = (pair_rows for _, pair_rows in _encode(pairs, tokenizers))
        else:
            encoded = _encode(_clean_pairs(pairs, corpus, pair_filter, drops), tokenizers)
            rows = _fitting_rows(encoded, corpus, pair_filter, drops)
        vocab_size = max(len(tokenizers.source), len(tokenizers.target))
        rows = _counted(some_pairs(rows, corpus.source, drops), corpus, drops)
        store = PairStore.write(place, rows, vocab_size)
        report(f"{corpus.source}: {counted(len(store), 'pairs')}, {drops}")

    pairs = Preparation(
        parts=one_store_each(data),
        tokenizers=lambda: _tokenizers(recipe, read, report),
        write=write,
        open=PairStore.open,
        texts=lambda corpus: (pair.source for pair in read(corpus, data)),
    )
    prepared = prepare_data(recipe, folder, pairs, report, tokenizers)
    if prepared.valid is not None:
        _check_lengths(recipe, prepared.valid, read, report)
    valid_text = [(pair.source, pair.target) for pair in read(data.valid, data)] if data.valid else []
    return PreparedPairs(**vars(prepared), valid_text=valid_text)


def _check_lengths(recipe: Recipe, valid: PairStore, read: PairReader, report: Callable[[str], None]) -> None:
    """Find a validation sentence that the model cannot read, or that takes much memory: none is filtered out."""
    corpus, lengths = recipe.data.valid, valid.lengths.max(axis=1)
    index = int(lengths.argmax())
    learned = recipe.model.learned_positions
    if corpus is None or lengths[index] <= (learned or recipe.train.batch_tokens):
        return
    line = next(islice(read(corpus, recipe.data), index, None)).line
    place = f"{corpus.source}, line {line}: a sentence of {lengths[index]:,} tokens"
    if learned:
        raise InputError(
            f"{place} is longer than model.max_positions = {learned:,}, the positions that the model learns; shorten "
            "or split it, or raise model.max_positions"
        )
    report(f"{place}: validating it takes time and memory that grow with the square of its length")


def check_pairs(recipe: Recipe) -> None:
    """Check that a recipe says what is needed to prepare sentence pairs; no text is read."""
    if not recipe.data.train:
        raise InputError("the recipe names no training text; give it a [[data.train]] with source and target")
    given_tokenizers(recipe)


def given_tokenizers(recipe: Recipe) -> TokenizerPair | None:
    """Load the tokenizers that a recipe names; None if they are to be trained, and the settings allow that."""
    config = recipe.tokenizer
    if config.path is None:
        check_trainable(config)
        return None
    tokenizers = TokenizerPair.load(Path(config.path))
    if tokenizers.joint != config.joint:
        held = "one vocabulary" if tokenizers.joint else "a vocabulary for each language"
        raise InputError(f"{config.path}: holds {held}; set tokenizer.joint = {str(tokenizers.joint).lower()}")
    return tokenizers


def _tokenizers(recipe: Recipe, read: PairReader, report: Callable[[str], None]) -> TokenizerPair:
    """Load the tokenizers that the recipe names, or train them on the pairs that pass the text filters."""
    given = given_tokenizers(recipe)
    if given is not None:
        return given
    config, data, drops = recipe.tokenizer, recipe.data, DropReport()
    next(some_pairs(_all_clean_pairs(data, read, drops), "the training text", drops))
    report(f"training the {config.kind} tokenizer")
    sources = (pair.source for pair in _all_clean_pairs(data, read, DropReport()))
    targets = (pair.target for pair in _all_clean_pairs(data, read, DropReport()))
    return train_pair(sources, targets, config)


def _all_clean_pairs(data: DataConfig, read: PairReader, drops: DropReport) -> Iterator[SentencePair]:
    pair_filter = PairFilter(data.filters)
    for corpus in data.train:
        yield from _clean_pairs(read(corpus, data, drops), corpus, pair_filter, drops)


def _clean_pairs(
    pairs: Iterable[SentencePair], corpus: CorpusConfig, pair_filter: PairFilter, drops: DropReport
) -> Iterator[SentencePair]:
    for pair in pairs:
        if reason := pair_filter.text_reason(pair.source, pair.target):
            drops.drop(reason, corpus.source, pair.line)
        else:
            yield pair


def _encode(pairs: Iterator[SentencePair], tokenizers: TokenizerPair) -> Iterator[tuple[SentencePair, Rows]]:
    while chunk := list(islice(pairs, CHUNK)):
        sources = tokenizers.source.encode_batch([pair.source for pair in chunk])
        targets = tokenizers.target.encode_batch([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            yield pair, ([*source, EOS], [*target, EOS])


def _fitting_rows(
    encoded: Iterable[tuple[SentencePair, Rows]], corpus: CorpusConfig, pair_filter: PairFilter, drops: DropReport
) -> Iterator[Rows]:
    for pair, (source, target) in encoded:
        if reason := pair_filter.token_reason(len(source), len(target)):
            drops.drop(reason, corpus.source, pair.line)
        else:
            yield source, target


def _counted(rows: Iterable[Rows], corpus: CorpusConfig, drops: DropReport) -> Iterator[Rows]:
    """Yield rows unchanged, and count their tokens on both sides."""
    for source, target in rows:
        drops.count_tokens(f"source tokens of {corpus.source}", source)
        drops.count_tokens(f"target tokens of {corpus.target or corpus.source}", target)
        yield source, target


def some_pairs(pairs: Iterable[T], name: str, drops: DropReport) -> Iterator[T]:
    """Yield pairs unchanged, and raise an error at the end if there was none; see `prepared_data.at_least_one`."""
    return at_least_one(pairs, name, drops, "pairs", "check the files and data.filters")
