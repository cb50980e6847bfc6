"""Preparation of sentence pairs, filtered and encoded, and of labelled examples: one store per corpus."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from heedful.config.schema import CorpusConfig, Recipe, VariantConfig
from heedful.data.preparation.filters import PairFilter
from heedful.data.preparation.prepared_data import (
    VALID,
    DataFolder,
    PreparedData,
    Texts,
    at_least_one,
    one_store_each,
    require_training_data,
)
from heedful.data.preparation.variants import Variant, variants
from heedful.data.readers.corpus import ReadPairs, SentencePair, read_pairs
from heedful.data.readers.drop_report import DropReport
from heedful.data.stores import SMALL_VOCABULARY, PairStore, Rows
from heedful.errors import InputError
from heedful.text.tokenizer import EOS, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import check_trainable, existing_tokenizer, one_tokenizer, train_pair
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
    read: ReadPairs = read_pairs,
    tokenizers: TokenizerPair | None = None,
) -> PreparedPairs:
    """Return the prepared sentence pairs of a recipe; see `DataFolder`. `read` yields the pairs of a corpus."""
    if tokenizers is None:
        check_pairs(recipe)
    data = DataFolder(recipe, folder, PairStore.open, one_store_each(recipe.data), report, tokenizers)
    prepared = data.stored()
    if prepared is None:
        with data.build(lambda corpus: (pair.source for pair in read(corpus, recipe.data))):
            tokenizers = tokenizers or load_tokenizers(recipe) or _train_tokenizers(recipe, read, report)
            vocab_size = max(len(tokenizers.source), len(tokenizers.target))
            pair_filter = PairFilter(recipe.data.filters)  # one for all corpora, to find duplicates across them
            for store_folder, (corpus,), drops in data.new_stores(tokenizers):
                pairs, trains = read(corpus, recipe.data, drops), store_folder.name != VALID
                if trains:
                    pairs = _training_pairs(pairs, corpus, recipe.data.variants, pair_filter, drops)
                kinds = Counter[type[SentencePair]]()
                rows = _encode(pairs, corpus, tokenizers, pair_filter if trains else None, drops, kinds)
                store = PairStore.write(store_folder, some_pairs(rows, corpus.source, drops), vocab_size)
                copies = f" ({kinds[Variant]:,} of them variants)" if kinds[Variant] else ""
                report(f"{corpus.source}: {counted(len(store), 'pairs')}{copies}, {drops}")
        prepared = data.built()

    valid = recipe.data.valid
    if prepared.valid is None or valid is None:
        return PreparedPairs(**vars(prepared), valid_text=[])
    # Validation sentences are not filtered, so one may be too long for the model or take a lot of memory.
    lengths = prepared.valid.lengths.max(axis=1)
    index, positions = int(lengths.argmax()), recipe.model.learned_positions
    if lengths[index] > (positions or recipe.train.batch_tokens):
        line = next(islice(read(valid, recipe.data), index, None)).line
        sentence = f"{valid.source}, line {line}: a sentence of {lengths[index]:,} tokens"
        if positions:
            raise InputError(
                f"{sentence} is longer than model.max_positions = {positions:,}, the number of positions that the "
                "model learns; shorten or split it, or raise model.max_positions"
            )
        report(f"{sentence}: validating it takes time and memory that grow with the square of its length")
    # References are the raw texts: decoded ids lack what the tokenizer normalises or does not know.
    valid_text = [(pair.source, pair.target) for pair in read(valid, recipe.data)]
    return PreparedPairs(**vars(prepared), valid_text=valid_text)


def _encode(
    pairs: Iterator[SentencePair],
    corpus: CorpusConfig,
    tokenizers: TokenizerPair,
    pair_filter: PairFilter | None,
    drops: DropReport,
    kinds: Counter[type[SentencePair]],
) -> Iterator[Rows]:
    """Encode pairs chunk by chunk, and drop those that `pair_filter` finds too long or too unequal in length.

    `kinds` counts the encoded pairs by type, and `drops` the dropped pairs of the corpus, but not dropped variants.
    """
    while chunk := list(islice(pairs, CHUNK)):
        sources = tokenizers.source.encode_batch([pair.source for pair in chunk])
        targets = tokenizers.target.encode_batch([pair.target for pair in chunk])
        # Token filters run after the text filters, because only encoding shows how many tokens a text has.
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            row = [*source, EOS], [*target, EOS]
            if pair_filter and (reason := pair_filter.token_reason(len(row[0]), len(row[1]))):
                if not isinstance(pair, Variant):
                    drops.drop(reason, corpus.source, pair.line)
                continue
            kinds[type(pair)] += 1
            drops.count_tokens(f"source tokens of {corpus.source}", row[0])
            drops.count_tokens(f"target tokens of {corpus.target or corpus.source}", row[1])
            yield row


def check_pairs(recipe: Recipe) -> None:
    require_training_data(recipe, "text", "source and target")
    load_tokenizers(recipe)


def load_tokenizers(recipe: Recipe) -> TokenizerPair | None:
    """Load the tokenizers that a recipe specifies, or return None if they are to be trained.

    Raises an InputError if the settings rule out training, or if the loaded tokenizers contradict `tokenizer.joint`.
    """
    config = recipe.tokenizer
    if config.path is None:
        check_trainable(config)
        return None
    tokenizers = TokenizerPair.load(Path(config.path))
    if tokenizers.joint != config.joint:
        vocabularies = "one vocabulary" if tokenizers.joint else "two vocabularies"
        raise InputError(f"{config.path}: has {vocabularies}; set tokenizer.joint = {str(tokenizers.joint).lower()}")
    return tokenizers


def _train_tokenizers(recipe: Recipe, read: ReadPairs, report: Callable[[str], None]) -> TokenizerPair:
    """Train tokenizers on the pairs that pass the text filters."""
    data = recipe.data

    def clean_pairs(drops: DropReport) -> Iterator[SentencePair]:
        pair_filter = PairFilter(data.filters)
        for corpus in data.train:
            yield from _training_pairs(read(corpus, data, drops), corpus, data.variants, pair_filter, drops)

    # If no pairs are left, this raises an error with the reasons, before the trainer complains about empty text.
    drops = DropReport()
    next(some_pairs(clean_pairs(drops), "the training text", drops))
    report(f"training the {recipe.tokenizer.kind} tokenizer")
    # The data is read once for each side, because a single pass would have to store the texts of one side. Each time,
    # there is a new filter, because a filter would drop the pairs that it remembers as duplicates.
    sources = (pair.source for pair in clean_pairs(DropReport()))
    targets = (pair.target for pair in clean_pairs(DropReport()))
    return train_pair(sources, targets, recipe.tokenizer)


def _training_pairs(
    pairs: Iterable[SentencePair],
    corpus: CorpusConfig,
    config: VariantConfig,
    pair_filter: PairFilter,
    drops: DropReport,
) -> Iterator[SentencePair]:
    """Yield the pairs that pass the text filters, each followed by those of its variants that also pass them."""
    # The same filter checks variants, so that a variant that is also in the data is dropped as a duplicate.
    for pair in pairs:
        if reason := pair_filter.text_reason(pair.source, pair.target):
            drops.drop(reason, corpus.source, pair.line)
        else:
            yield pair
            yield from (
                each for each in variants(pair, config) if not pair_filter.text_reason(each.source, each.target)
            )


def some_pairs(pairs: Iterable[T], name: str, drops: DropReport) -> Iterator[T]:
    return at_least_one(pairs, name, drops, "pairs", "check the files and data.filters")


EncodeExamples = Callable[[CorpusConfig, Tokenizer, DropReport], Iterator[Rows]]  # encodes the examples of a corpus


def prepare_examples(
    recipe: Recipe,
    folder: Path,
    texts: Texts,
    read: EncodeExamples,
    report: Callable[[str], None],
    tokenizers: TokenizerPair | None = None,
) -> PreparedData[PairStore]:
    """Return the prepared examples of a recipe; see `DataFolder`.

    `read` encodes the examples of a corpus, truncated to `data.max_length`. `texts` yields the texts of a corpus, to
    train a tokenizer and to find test texts in the training data.
    """
    if tokenizers is None:
        check_examples(recipe)
    max_length = recipe.data.max_length
    data = DataFolder(
        recipe,
        folder,
        PairStore.open,
        one_store_each(recipe.data),
        report,
        tokenizers,
        settings=f", {max_length} tokens, {recipe.model.family}",
    )
    prepared = data.stored()
    if prepared is None:
        with data.build(texts):
            training_texts = chain.from_iterable(map(texts, recipe.data.train))
            tokenizers = tokenizers or one_tokenizer(recipe, training_texts, report)
            for store_folder, (corpus,), drops in data.new_stores(tokenizers):
                rows = _count_tokens(read(corpus, tokenizers.source, drops), corpus, drops)
                # Targets are stored as ids as well: as classes, or as the halves of a float32, which need all 16 bits.
                vocab_size = max(len(tokenizers.source), SMALL_VOCABULARY)
                store = PairStore.write(store_folder, at_least_one(rows, corpus.source, drops), vocab_size)
                report(f"{corpus.source}: {counted(len(store), 'examples')}, {drops}")
                for line in drops.remark_lines(len(store), max_length):
                    report(line)
        prepared = data.built()
    return prepared


def _count_tokens(rows: Iterable[Rows], corpus: CorpusConfig, drops: DropReport) -> Iterator[Rows]:
    for text, targets in rows:
        drops.count_tokens(f"tokens of {corpus.source}", text)
        yield text, targets


def check_examples(recipe: Recipe) -> None:
    require_training_data(recipe)
    existing_tokenizer(recipe)
