"""Prepared data of a recipe: tokenizers and stores of token ids, made once and used again until something changes.

folder/train-0, train-1, ... or train   the training data
folder/valid                            the validation data; none is dropped
folder/tokenizer                        the vocabulary or vocabularies
folder/report.json                      what was dropped, and the digest of all that the data depends on

A test set is prepared as validation data without training data, with the tokenizers of a model.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.digest import data_digest, file_dates
from heedful.data.preparation.overlap import Texts, report_overlap
from heedful.data.readers.filters import DropReport, left_out_line
from heedful.data.stores.arrays import MappedFile
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.storage.manifest import MANIFEST
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.unknown_tokens import unknown_lines

REPORT = "report.json"  # counts of what was dropped and of unknown tokens, and the digest of all the data depends on
FORMAT = 2  # of the stores as well
DAMAGED = "damaged"  # stands for the digest of data whose report is damaged
VALID = "valid"  # name of the store of the validation data

MAY_MAKE: ContextVar[bool] = ContextVar("MAY_MAKE", default=True)

S = TypeVar("S", bound="Store")
T = TypeVar("T")


class Store(Protocol):
    """Interface of a store of prepared data: its files are mapped into memory."""

    @property
    def files(self) -> tuple[MappedFile, ...]:
        """The mapped files."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class PreparedData(Generic[S]):
    """Prepared training and validation data of a recipe: stores of token ids, with their tokenizers.

    Attributes:
        tokenizers: The tokenizers of source and target; the same one twice, if there is one kind of text.
        train: The stores of the training data.
        weights: The weights of the training corpora.
        valid: The store of the validation data, if there is any.
        digest: SHA-256 of all that the stores depend on.
        report: Counts of the examples that were left out when the stores were made.
    """

    tokenizers: TokenizerPair
    train: tuple[S, ...]
    weights: tuple[float, ...]
    valid: S | None
    digest: str
    report: DropReport

    def check_unchanged(self) -> None:
        """Check that no file of the stores has changed since it was opened.

        Raises:
            RunError: one has.
        """
        for store in (*self.train, *([self.valid] if self.valid is not None else [])):
            for file in store.files:
                file.check()


@dataclass(frozen=True, kw_only=True)
class Preparation(Generic[S]):
    """Preparation of one kind of data: how its tokenizers are made, and how its stores are written and opened.

    Attributes:
        parts: The corpora of each store by the name of its folder; the validation data comes last.
        tokenizers: Loads or trains the tokenizers.
        write: Writes the store of some corpora into a folder, and counts in the report what is left out.
        open: Opens a store.
        texts: Gives the texts of a corpus to look for in the training data.
        load: Reads the tokenizers from the folder to which they were saved.
        settings: What the stores depend on beside `data_digest`, in words.
    """

    parts: Mapping[str, Sequence[CorpusConfig]]
    tokenizers: Callable[[], TokenizerPair]
    write: Callable[[Path, Sequence[CorpusConfig], TokenizerPair, DropReport], None]
    open: Callable[[Path], S]
    texts: Texts
    load: Callable[[Path], TokenizerPair] = TokenizerPair.load
    settings: str = ""


def prepare_data(
    recipe: Recipe,
    folder: Path,
    preparation: Preparation[S],
    report: Callable[[str], None],
    tokenizers: TokenizerPair | None = None,
) -> PreparedData[S]:
    """Return the prepared data of a recipe: opened in `folder` if it is there, otherwise made there first.

    Args:
        recipe: Its data and tokenizer tables count.
        folder: A folder for this data alone. Data prepared from something else is replaced; a run that must not go on
            with other data first compares `data_digest(recipe)` with the digest it began with.
        preparation: How this kind of data is prepared.
        report: Called with sentences that say what is done.
        tokenizers: Those of a model that is tested: then the data is a test set alone, which is stored in `folder`
            anew and not kept for later. None: they are made from the data.

    Raises:
        InputError: The data cannot be used, nothing of it is left, or `folder` holds something else.
        RunError: The folder cannot be written.
    """

    def write(place: Path, tokenizers: TokenizerPair) -> DropReport:
        total = DropReport()
        for name, corpora in preparation.parts.items():
            drops = DropReport()
            preparation.write(place / name, corpora, tokenizers, drops)
            total.merge(drops)
        return total

    def make(temporary: Path) -> DropReport:
        tokenizers = preparation.tokenizers()
        tokenizers.save(temporary / "tokenizer")
        total = write(temporary, tokenizers)
        report_overlap(recipe.data, preparation.texts, report)
        if file_dates(recipe.data) != before and data_digest(recipe) != digest:
            raise InputError("a data file was changed while it was prepared: give the same command again")
        return total

    def opened(drops: DropReport, tokenizers: TokenizerPair | None = None) -> PreparedData[S]:
        for sentence in unknown_lines(drops.tokens, recipe.tokenizer):
            report(sentence)
        stores = [preparation.open(folder / name) for name in preparation.parts]
        if line := left_out_line(drops, sum(map(len, stores))):
            report(line)
        return PreparedData(
            tokenizers=preparation.load(folder / "tokenizer") if tokenizers is None else tokenizers,
            train=tuple(stores[:-1] if recipe.data.valid else stores),
            weights=tuple(corpus.weight for corpus in recipe.data.train),
            valid=stores[-1] if recipe.data.valid else None,
            digest=digest,
            report=drops,
        )

    if tokenizers is not None:
        digest = ""
        folder.mkdir(parents=True, exist_ok=True)
        with named_write_errors(folder):
            drops = write(folder, tokenizers)
        return opened(drops, tokenizers)
    before = file_dates(recipe.data)
    digest = data_digest(recipe)
    return made_once(folder, digest + preparation.settings, make, opened, report)


@contextmanager
def nothing_made() -> Iterator[None]:
    """Context manager: prepared data is only read, and where some would have to be made, an error is raised."""
    token = MAY_MAKE.set(False)
    try:
        yield
    finally:
        MAY_MAKE.reset(token)


def made_once(
    folder: Path,
    digest: str,
    make: Callable[[Path], DropReport],
    read: Callable[[DropReport], T],
    report: Callable[[str], None],
) -> T:
    """Read prepared data from a folder if its digest is the wanted one; otherwise make the data first.

    Args:
        folder: Where the data is. Data prepared from something else is replaced.
        digest: The digest of all that the data depends on.
        make: Writes the data to a temporary folder, which then gets its name, and returns what it dropped.
        read: Reads the data from `folder`, given what was dropped when it was made.
        report: Called with sentences that say what is done.

    Raises:
        InputError: `folder` holds something else, or what `make` and `read` raise, or within `nothing_made`.
        RunError: The folder cannot be written.
    """
    stored = _stored(folder)
    if stored and stored[1:] == (1, digest):
        report(f"{folder}: prepared again (an older version of heedful prepared it)")
    elif stored and stored[2] == DAMAGED:
        report(f"{folder}: prepared again ({REPORT} does not hold what was saved)")
    elif stored and stored[1:] == (FORMAT, digest):
        try:
            found = read(stored[0])
        except InputError as damage:
            report(f"{folder}: prepared again ({damage})")
        else:
            report(f"{folder}: prepared before, used again")
            return found
    if not MAY_MAKE.get():
        raise InputError(
            f"{folder}: prepared from other data or with other settings than the recipe's, damaged, "
            "or of an older version; train with this recipe, and name RUN/data of that run"
        )
    with named_write_errors(folder), atomic_folder(folder) as writer:
        drops = make(writer.path)
        tokens = {name: asdict(found) for name, found in drops.tokens.items()}
        document = {"format": FORMAT, "digest": digest, "dropped": drops.to_dict(), "tokens": tokens}
        writer.write(REPORT, [json.dumps(document, indent=2).encode()])
    return read(drops)


def _stored(folder: Path) -> tuple[DropReport, int, str] | None:
    """Return report, format and digest of the data in a folder; nothing where there is no folder, or an empty one."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return None
        stored = json.loads((folder / REPORT).read_bytes())
        drops = DropReport.from_dict(stored["dropped"], stored.get("tokens"))
        return drops, stored.get("format", 1), stored["digest"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if _holds_only_stores(folder):
            return DropReport(), FORMAT, DAMAGED
        raise InputError(f"{folder}: not a folder of prepared data; name another one, or delete it") from error


def _holds_only_stores(folder: Path) -> bool:
    """True if a folder has a report and stores, and nothing else but tokenizers: its report is damaged."""
    if not folder.is_dir() or not (folder / REPORT).is_file():
        return False
    others = [path for path in folder.iterdir() if path.name not in (REPORT, "tokenizer")]
    return bool(others) and all((path / MANIFEST).is_file() for path in others)


def one_store_each(data: DataConfig) -> Mapping[str, Sequence[CorpusConfig]]:
    """Map names of stores to their corpora: train-0, train-1, ... and valid."""
    train = {f"train-{number}": [corpus] for number, corpus in enumerate(data.train)}
    return {**train, **({VALID: [data.valid]} if data.valid else {})}


def one_store_for_all(data: DataConfig) -> Mapping[str, Sequence[CorpusConfig]]:
    """Name one store for all training corpora, train, and one for the validation data; or test for a test set alone."""
    train = {"train": data.train} if data.train else {}
    return {**train, **({VALID if train else "test": [data.valid]} if data.valid else {})}


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
