"""Preparation of sentence pairs, filtered and encoded, and of labelled examples: a store for each corpus."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.preparation.prepared_data import (
    VALID,
    Preparation,
    PreparedData,
    Texts,
    at_least_one,
    one_store_each,
    prepare_data,
)
from heedful.data.readers.corpus import PairReader, SentencePair, read_pairs
from heedful.data.readers.filters import DropReport, PairFilter
from heedful.data.stores import SMALL_VOCABULARY, PairStore, Rows
from heedful.errors import InputError
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import check_trainable, given_tokenizer, one_tokenizer, train_pair
from heedful.wording import counted

CHUNK = 4096  # pairs encoded at a time

T = TypeVar("T")


@dataclass(frozen=True)
class PreparedPairs(PreparedData[PairStore]):
    valid_text: list[tuple[str, str]]  # the raw pairs of `valid`, in its order


def prepare_pairs(
    recipe: Recipe,
    folder: Path,
    report: Callable[[str], None],
    read: PairReader = read_pairs,
    tokenizers: TokenizerPair | None = None,
) -> PreparedPairs:
    """Return the prepared sentence pairs of a recipe, which `read` reads; see `prepare_data`."""
    if tokenizers is None:
        check_pairs(recipe)
    data, pair_filter = recipe.data, PairFilter(recipe.data.filters)

    def write(place: Path, corpora: Sequence[CorpusConfig], tokenizers: TokenizerPair, drops: DropReport) -> None:
        (corpus,) = corpora

        def rows() -> Iterator[Rows]:
            pairs, trains = read(corpus, data, drops), place.name != VALID
            if trains:
                pairs = _clean_pairs(pairs, corpus, pair_filter, drops)
            while chunk := list(islice(pairs, CHUNK)):
                sources = tokenizers.source.encode_batch([pair.source for pair in chunk])
                targets = tokenizers.target.encode_batch([pair.target for pair in chunk])
                for pair, source, target in zip(chunk, sources, targets, strict=True):
                    row = [*source, EOS], [*target, EOS]
                    if trains and (reason := pair_filter.token_reason(len(row[0]), len(row[1]))):
                        drops.drop(reason, corpus.source, pair.line)
                        continue
                    drops.count_tokens(f"source tokens of {corpus.source}", row[0])
                    drops.count_tokens(f"target tokens of {corpus.target or corpus.source}", row[1])
                    yield row

        vocab_size = max(len(tokenizers.source), len(tokenizers.target))
        store = PairStore.write(place, some_pairs(rows(), corpus.source, drops), vocab_size)
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
        vocabularies = "one vocabulary" if tokenizers.joint else "a vocabulary for each language"
        raise InputError(f"{config.path}: holds {vocabularies}; set tokenizer.joint = {str(tokenizers.joint).lower()}")
    return tokenizers


def _tokenizers(recipe: Recipe, read: PairReader, report: Callable[[str], None]) -> TokenizerPair:
    """Load the tokenizers that the recipe names, or train them on the pairs that pass the text filters."""
    if (tokenizers := given_tokenizers(recipe)) is not None:
        return tokenizers
    config, data = recipe.tokenizer, recipe.data

    def clean_pairs(drops: DropReport) -> Iterator[SentencePair]:
        pair_filter = PairFilter(data.filters)
        for corpus in data.train:
            yield from _clean_pairs(read(corpus, data, drops), corpus, pair_filter, drops)

    drops = DropReport()
    # An empty text is found here, with the reasons, before the training of a tokenizer.
    next(some_pairs(clean_pairs(drops), "the training text", drops))
    report(f"training the {config.kind} tokenizer")
    sources = (pair.source for pair in clean_pairs(DropReport()))
    targets = (pair.target for pair in clean_pairs(DropReport()))
    return train_pair(sources, targets, config)


def _clean_pairs(
    pairs: Iterable[SentencePair], corpus: CorpusConfig, pair_filter: PairFilter, drops: DropReport
) -> Iterator[SentencePair]:
    for pair in pairs:
        if reason := pair_filter.text_reason(pair.source, pair.target):
            drops.drop(reason, corpus.source, pair.line)
        else:
            yield pair


def some_pairs(pairs: Iterable[T], name: str, drops: DropReport) -> Iterator[T]:
    return at_least_one(pairs, name, drops, "pairs", "check the files and data.filters")


Reader = Callable[[CorpusConfig, Tokenizer, DropReport], Iterator[Rows]]  # the examples of a corpus


def prepare_examples(
    recipe: Recipe,
    folder: Path,
    texts: Texts,
    read: Reader,
    report: Callable[[str], None],
    tokenizers: TokenizerPair | None = None,
) -> PreparedData[PairStore]:
    """Return the prepared examples of a recipe, whose rows `read` cuts to `data.max_length`; see `prepare_data`."""
    if tokenizers is None:
        check_examples(recipe)
    data = recipe.data

    def write(place: Path, corpora: Sequence[CorpusConfig], tokenizers: TokenizerPair, drops: DropReport) -> None:
        (corpus,) = corpora

        def rows() -> Iterator[Rows]:
            for text, targets in read(corpus, tokenizers.source, drops):
                drops.count_tokens(f"tokens of {corpus.source}", text)
                yield text, targets

        vocab_size = max(len(tokenizers.source), SMALL_VOCABULARY)
        store = PairStore.write(place, at_least_one(rows(), corpus.source, drops), vocab_size)
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


def check_examples(recipe: Recipe) -> None:
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
