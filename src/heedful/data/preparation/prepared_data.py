"""Prepared data of a recipe: tokenizers and stores of token ids, built once for each digest of all they depend on."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.preparation.overlap import Texts, report_overlap
from heedful.data.readers.documents import text_files
from heedful.data.readers.files import TABLE_ENDINGS, ending_of, open_bytes
from heedful.data.readers.filters import DropReport, left_out_line
from heedful.data.stores.arrays import MappedFile
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.storage.compression import without_compression
from heedful.storage.manifest import MANIFEST
from heedful.text.coverage import unknown_lines
from heedful.text.tokenizer_pair import TokenizerPair

DIGEST_FORMAT = 2
UNREAD = {
    "root",
    "modality",
    "labelled",
    "label_mean",  # the stores hold the numbers as they are
    "label_scale",
    "bad_files",
    "truncated_files",
    "train",
    "valid",
    "test",
    "source_language",
    "target_language",
    "max_length",
    "words",
    "cross_documents",
}
UNNAMED = {"source", "target", "weight"}


def data_digest(recipe: Recipe) -> str:
    """Return the SHA-256 of all that prepared data depends on: the files, task, filters and tokenizer settings.

    Names, places, dates and compression of the files do not count, nor do the weights of corpora and BPE dropout. Of a
    picture or sound that cannot be read, only that counts: `heedful.data.preparation.media` refuses or skips it.
    """
    data, tokenizer = recipe.data, recipe.tokenizer
    parts = {
        "format": DIGEST_FORMAT,
        "task": recipe.task,
        "train": [_corpus_key(corpus, data) for corpus in data.train],
        "valid": _corpus_key(data.valid, data) if data.valid else None,
        "data": {key: value for key, value in asdict(data).items() if key not in UNREAD},
        "tokenizer": asdict(tokenizer)
        | {"path": _tokenizer_key(tokenizer.path) if tokenizer.path else None, "dropout": 0.0},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def file_dates(data: DataConfig) -> list[tuple[int, ...]]:
    """Return size, dates and inode of each file of training and validation, by which most changes show.

    A picture or sound that is not there has none: `heedful.data.preparation.media` refuses or skips it.
    """
    corpora = (*data.train, *([data.valid] if data.valid else []))
    paths = [path for corpus in corpora for path in files_of(corpus, data)]
    try:
        states = [path.stat() for path in paths if data.modality == "text" or path.exists()]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error
    return [(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino) for state in states]


def _corpus_key(corpus: CorpusConfig, data: DataConfig) -> dict[str, object]:
    settings = {key: value for key, value in asdict(corpus).items() if key not in UNNAMED}
    return {**settings, "files": _contents(corpus, data)}


def _contents(corpus: CorpusConfig, data: DataConfig) -> list[list[str]]:
    if data.modality == "text":
        return [[_ending(path), text_digest(path)] for path in text_files(corpus, data)]
    from heedful.data.readers.media_files import media_files

    return [[file.target, _file_digest(file.path)] for file in media_files(corpus, data)]


def _file_digest(path: Path) -> str:
    """The SHA-256 of all bytes of a picture or sound; of one that cannot be read, the reason."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return str(error.strerror)


def files_of(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    """Return the paths of all files of a corpus: its texts, or its pictures or sounds."""
    if data.modality == "text":
        return text_files(corpus, data)
    from heedful.data.readers.media_files import media_files

    return [file.path for file in media_files(corpus, data)]


def _ending(path: Path) -> str:
    """The ending of a file name, which says how the file is read; of running text it stands as it is written."""
    ending = ending_of(path)
    return ending if ending in TABLE_ENDINGS else Path(without_compression(path.name)).suffix


def text_digest(path: Path) -> str:
    """Return the SHA-256 of the contents of a text file, decompressed if it is compressed."""
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def files_digest(files: Sequence[Path], folder: Path) -> str:
    """Return the SHA-256 of the names and contents of files below a folder."""
    digest = hashlib.sha256()
    for file in files:
        try:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error
        digest.update(json.dumps([file.relative_to(folder).as_posix(), content]).encode())
    return digest.hexdigest()


def _tokenizer_key(path: str) -> list[str]:
    tokenizers = TokenizerPair.load(Path(path))
    return [tokenizers.source.digest, tokenizers.target.digest]


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

    @property
    def stores(self) -> tuple[S, ...]:
        """All stores, that of the validation data last."""
        return self.train if self.valid is None else (*self.train, self.valid)

    def check_unchanged(self) -> None:
        """Check that no file of the stores has changed since it was opened."""
        for store in self.stores:
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
    """Yield examples or pairs unchanged, and raise an error at the end if there was none."""
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise InputError(f"{name}: no {unit} are left ({drops}); {remedy}")
