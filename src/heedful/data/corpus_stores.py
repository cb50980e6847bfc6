"""Prepared corpora of a recipe as stores of token ids: folder/train-0, folder/train-1, ..., and folder/valid.

A test set alone, which stands for training and validation data, is stored once: in folder/valid.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.filters import DropReport
from heedful.data.pair_store import PairStore
from heedful.data.splits import is_test_set
from heedful.errors import InputError

VALID = "valid"

T = TypeVar("T")


@dataclass(frozen=True)
class Stores:
    """Prepared training and validation data of a recipe: a store of token ids for each corpus.

    Attributes:
        train: A store for each training corpus.
        weights: The weights of the training corpora.
        valid: The validation examples, if there are any.
        digest: SHA-256 of all that the stores depend on.
        report: Counts of the examples that were left out when the stores were made.
    """

    train: tuple[PairStore, ...]
    weights: tuple[float, ...]
    valid: PairStore | None
    digest: str
    report: DropReport


def open_stores(folder: Path, data: DataConfig, digest: str, report: DropReport) -> Stores:
    """Open the prepared stores of all corpora of a recipe.

    Raises:
        InputError: A store is missing or damaged.
    """
    stores = {name: PairStore.open(folder / name) for name in named_corpora(data)}
    train = tuple(stores[name] for name in train_names(data))
    weights = tuple(corpus.weight for corpus in data.train)
    return Stores(train=train, weights=weights, valid=stores.get(VALID), digest=digest, report=report)


def named_corpora(data: DataConfig) -> dict[str, CorpusConfig]:
    """The corpora of a recipe by the folder names of their stores, those for training first, "valid" last."""
    valid = {VALID: data.valid} if data.valid else {}
    return dict(zip(train_names(data), data.train, strict=True)) | valid


def train_names(data: DataConfig) -> list[str]:
    """The folder names of the stores of a recipe's training corpora: train-0, train-1, ..."""
    return [VALID] if is_test_set(data) else [f"train-{number}" for number in range(len(data.train))]


def at_least_one(
    items: Iterable[T], name: str, drops: DropReport, unit: str = "examples", remedy: str = "check the file"
) -> Iterator[T]:
    """Yield examples or pairs unchanged, and raise an error at the end if there was none.

    Args:
        items: Examples or pairs.
        name: The file that they come from, for the message.
        drops: Counts of the items that were left out before.
        unit: The name of the items, for the message.
        remedy: Advice if all were left out, for the message.

    Raises:
        InputError: There is no item; the message says for which reasons items were dropped.
    """
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise InputError(f"{name}: no {unit} are left ({drops}); {remedy}")
