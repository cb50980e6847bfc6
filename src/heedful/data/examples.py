"""Preparation of labelled examples: rows of token ids and of targets, stored and reused until something changes.

folder/train-0, train-1, ...   the examples of each training corpus
folder/valid                   the validation examples
folder/tokenizer               the vocabulary
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from heedful.config.schema import CorpusConfig, Recipe
from heedful.data.arrays import SMALL_VOCABULARY
from heedful.data.corpus_stores import Stores, at_least_one, named_corpora, open_stores
from heedful.data.digest import data_digest
from heedful.data.filters import DropReport
from heedful.data.overlap import Texts, report_overlap
from heedful.data.pair_store import PairStore, Rows
from heedful.data.preprocessing_cache import made_once
from heedful.errors import InputError
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import check_trainable, train_tokenizer
from heedful.wording import counted

Reader = Callable[[CorpusConfig, Tokenizer, DropReport], Iterator[Rows]]  # the examples of a corpus


@dataclass(frozen=True)
class Examples(Stores):
    """Prepared examples of a recipe for training and validation, such as for classification, with their tokenizer."""

    tokenizer: Tokenizer


def prepare_examples(
    recipe: Recipe, folder: Path, texts: Texts, read: Reader, report: Callable[[str], None]
) -> Examples:
    """Return the prepared examples of a recipe: opened in `folder` if they are there, otherwise made there first.

    Args:
        recipe: Its data and tokenizer tables count, with `data.max_length`, to which rows are cut here, and the family
            of its model.
        folder: A folder for these examples alone. Data prepared from something else is replaced.
        texts: Gives the texts of a corpus, to train a tokenizer on if the recipe names none.
        read: Reads the examples of a corpus. Targets are below 65,536.
        report: Called with sentences that say what is done.

    Raises:
        InputError: The data cannot be used, nothing of it is left, or `folder` holds something else.
        RunError: The folder cannot be written.
    """
    check_examples(recipe)
    digest = data_digest(recipe)

    def make(temporary: Path) -> DropReport:
        tokenizer = one_tokenizer(recipe, chain.from_iterable(map(texts, recipe.data.train)), report)
        TokenizerPair(tokenizer, tokenizer).save(temporary / "tokenizer")
        total = DropReport()
        for name, corpus in named_corpora(recipe.data).items():
            drops = DropReport()
            rows = at_least_one(read(corpus, tokenizer, drops), corpus.source, drops)
            store = PairStore.write(temporary / name, rows, max(len(tokenizer), SMALL_VOCABULARY))
            report(f"{corpus.source}: {counted(len(store), 'examples')}, {drops}")
            for sentence in remarks(drops, len(store), recipe.data.max_length):
                report(sentence)
            total.merge(drops)
        report_overlap(recipe.data, texts, report)
        return total

    def opened(drops: DropReport) -> Examples:
        tokenizer = TokenizerPair.load(folder / "tokenizer").source
        return Examples(**vars(open_stores(folder, recipe.data, digest, drops)), tokenizer=tokenizer)

    whole_digest = f"{digest}, {recipe.data.max_length} tokens, {recipe.model.family}"
    return made_once(folder, whole_digest, make, opened, report)


def check_examples(recipe: Recipe) -> None:
    """Check that a recipe says what is needed to prepare labelled examples; no text is read.

    Raises:
        InputError: The recipe names no training data, or its tokenizer can neither be loaded nor trained.
    """
    if not recipe.data.train:
        raise InputError("the recipe names no training data; give it a [[data.train]] with source")
    given_tokenizer(recipe)


def remarks(drops: DropReport, count: int, max_length: int) -> Iterator[str]:
    """Yield sentences for people about odd examples among the `count` of a corpus: texts that are cut or empty."""
    kinds = {
        "cut": f"texts longer than data.max_length = {max_length:,} tokens, and cut to that",
        "empty": "empty texts, of which nothing can be told",
    }
    for remark, number, first in drops.remarks():
        yield f"{kinds[remark]}: {number:,} of {count:,} (first: {first})"


def one_tokenizer(recipe: Recipe, texts: Iterable[str], report: Callable[[str], None]) -> Tokenizer:
    """Return the tokenizer that a recipe names, or train one on `texts`.

    Raises:
        InputError: The recipe names a pair of different tokenizers, or there is no text to train on.
    """
    given = given_tokenizer(recipe)
    if given is not None:
        return given
    report(f"training the {recipe.tokenizer.kind} tokenizer")
    return train_tokenizer(texts, recipe.tokenizer)


def given_tokenizer(recipe: Recipe) -> Tokenizer | None:
    """Load the tokenizer that a recipe names; None if one is to be trained, and the settings allow that.

    Raises:
        InputError: The recipe names a pair of different tokenizers, or none that can be loaded; or none can be trained.
    """
    path = recipe.tokenizer.path
    if path is None:
        check_trainable(recipe.tokenizer)
        return None
    pair = TokenizerPair.load(Path(path))
    if not pair.joint:
        raise InputError(f"{path}: holds a tokenizer for each of two languages; name the folder of one")
    return pair.source
