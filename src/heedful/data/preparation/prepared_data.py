"""Prepared data of a recipe: tokenizers and stores, reused until the digest of everything they depend on changes."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe, VariantConfig
from heedful.data.readers.documents import text_files
from heedful.data.readers.drop_report import DropReport, left_out_line
from heedful.data.readers.files import TABLE_ENDINGS, ending_of, open_bytes
from heedful.data.stores import MappedStore
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.storage.complete_folder import MANIFEST
from heedful.storage.disk import without_compression
from heedful.text.coverage import unknown_lines
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted

REPORT = "report.json"  # counts of dropped examples and unknown tokens, and the digest
TOKENIZER = "tokenizer"
VALID = "valid"  # name of the validation store
FORMAT = 2  # of the report and the stores
DAMAGED = "damaged"  # stands for the digest of data whose report is damaged

ALLOW_BUILD: ContextVar[bool] = ContextVar("ALLOW_BUILD", default=True)

Texts = Callable[[CorpusConfig], Iterable[str]]  # reads the texts of a corpus
S = TypeVar("S", bound=MappedStore)
T = TypeVar("T")


@dataclass(frozen=True)
class PreparedData(Generic[S]):
    """Prepared training and validation data of a recipe: stores with their tokenizers."""

    tokenizers: TokenizerPair  # of source and target; the same tokenizer twice if there is only one kind of text
    train: tuple[S, ...]
    weights: tuple[float, ...]  # of the training corpora
    valid: S | None
    digest: str  # the `data_digest` of the recipe; "" for a test set
    report: DropReport  # counts of examples that were left out of the stores, and of unknown tokens in the stores

    @property
    def stores(self) -> tuple[S, ...]:
        """All stores; the validation store, if any, is the last."""
        return self.train if self.valid is None else (*self.train, self.valid)

    def check_unchanged(self) -> None:
        for store in self.stores:
            for file in store.files:
                file.check()


@dataclass
class DataFolder(Generic[S]):
    """Folder for the prepared data of a recipe. The data is opened if it is up to date, and otherwise built.

    A preparation calls `stored` and, if that returns None, builds the data and opens it:

        with data.build(overlap_texts):
            for store_folder, corpora, drops in data.new_stores(tokenizers):
                ...  # write the store
        prepared = data.built()
    """

    recipe: Recipe  # its task, and its data and tokenizer tables are used
    # A folder for this data only. Data prepared from something else is replaced; a run that must not resume with
    # different data first compares `data_digest(recipe)` with the digest that it started with.
    folder: Path
    open_store: Callable[[Path], S]
    corpora: Mapping[str, Sequence[CorpusConfig]]  # of each store, by folder name; the validation data last
    report: Callable[[str], None]  # called with progress messages
    # The tokenizers of a model to be tested; the data is then only a test set, which is prepared again each time. None
    # to train or load the tokenizers that the recipe describes.
    test_tokenizers: TokenizerPair | None = None
    load_tokenizers: Callable[[Path], TokenizerPair] = TokenizerPair.load
    settings: str = ""  # text that is added to `data_digest`: the other settings on which the stores depend

    def __post_init__(self) -> None:
        self.drops = DropReport()
        self._new = self.folder  # the folder to which stores are written
        # The dates are read first, so that a file that changes while its digest is computed is detected at the end.
        self._dates = [] if self.test_tokenizers else file_dates(self.recipe.data)
        self.digest = "" if self.test_tokenizers else data_digest(self.recipe)

    def stored(self) -> PreparedData[S] | None:
        """Open the data of an earlier preparation; return None if it must be built."""
        if self.test_tokenizers:
            return None
        return load_stored(self.folder, self.digest + self.settings, self._open, self.report)

    @contextmanager
    def build(self, overlap_texts: Texts) -> Iterator[None]:
        """Context manager whose block builds the data, in a temporary folder that is renamed at the end.

        The block writes the stores. `overlap_texts` reads the texts of a corpus, to report validation and test texts
        that are also in the training data. A test set is written directly to the folder, and is not compared.
        """
        if self.test_tokenizers:
            self.folder.mkdir(parents=True, exist_ok=True)
            with named_write_errors(self.folder):
                yield
            return
        with new_folder(self.folder, self.digest + self.settings) as (temporary, drops):
            self._new, self.drops = temporary, drops
            yield
            report_overlap(self.recipe.data, overlap_texts, self.report)
            # Dates are cheap to compare, but an identical copy of a file has different dates: then the digest decides.
            if file_dates(self.recipe.data) != self._dates and data_digest(self.recipe) != self.digest:
                raise InputError("a data file changed while it was being prepared; run the same command again")

    def new_stores(self, tokenizers: TokenizerPair) -> Iterator[tuple[Path, Sequence[CorpusConfig], DropReport]]:
        """Yield the folder of each store to write, its corpora, and a report for its drops.

        The tokenizers are saved first, except for a test set.
        """
        if self.test_tokenizers is None:
            tokenizers.save(self._new / TOKENIZER)
        for name, corpora in self.corpora.items():
            drops = DropReport()
            yield self._new / name, corpora, drops
            self.drops.merge(drops)

    def built(self) -> PreparedData[S]:
        """Open the data that was built."""
        return self._open(self.drops)

    def _open(self, drops: DropReport) -> PreparedData[S]:
        data = self.recipe.data
        for line in unknown_lines(drops.tokens, self.recipe.tokenizer):
            self.report(line)
        stores = [self.open_store(self.folder / name) for name in self.corpora]
        if line := left_out_line(drops, sum(map(len, stores))):
            self.report(line)
        return PreparedData(
            tokenizers=self.test_tokenizers or self.load_tokenizers(self.folder / TOKENIZER),
            train=tuple(stores[:-1] if data.valid else stores),
            weights=tuple(corpus.weight for corpus in data.train),
            valid=stores[-1] if data.valid else None,
            digest=self.digest,
            report=drops,
        )


@contextmanager
def read_only() -> Iterator[None]:
    """Context manager in whose block prepared data is only read: data that has to be built raises an InputError."""
    token = ALLOW_BUILD.set(False)
    try:
        yield
    finally:
        ALLOW_BUILD.reset(token)


def load_or_build(
    folder: Path,
    digest: str,
    build: Callable[[Path], DropReport],
    read: Callable[[DropReport], T],
    report: Callable[[str], None],
) -> T:
    """Read prepared data from a folder if its digest matches; otherwise build the data first.

    Args:
        folder: The folder of the data. Data prepared from something else is replaced.
        digest: The digest of everything that the data depends on.
        build: Writes the data to a temporary folder, which is then renamed, and returns a report of what it dropped.
        read: Reads the data from `folder`; its argument is the report of what `build` dropped.
        report: Called with progress messages.

    Raises:
        InputError: `folder` contains anything other than prepared data, `build` or the subsequent `read` raises it, or
            data has to be built in `read_only`.
    """
    data = load_stored(folder, digest, read, report)
    if data is None:
        with new_folder(folder, digest) as (temporary, drops):
            drops.merge(build(temporary))
        data = read(drops)
    return data


def load_stored(folder: Path, digest: str, read: Callable[[DropReport], T], report: Callable[[str], None]) -> T | None:
    """Read the data in a folder, or return None if it must be built.

    `load_or_build` describes the arguments and errors.
    """
    stored = _stored_report(folder)
    if stored and stored[1:] == (1, digest):
        report(f"{folder}: preparing the data again (an older version of heedful prepared it)")
    elif stored and stored[2] == DAMAGED:
        report(f"{folder}: preparing the data again ({REPORT} does not match its checksum)")
    elif stored and stored[1:] == (FORMAT, digest):
        try:
            data = read(stored[0])
        except InputError as damage:
            report(f"{folder}: preparing the data again ({damage})")
        else:
            report(f"{folder}: using the data prepared earlier")
            return data
    if not ALLOW_BUILD.get():
        raise InputError(
            f"{folder}: has no valid data for this recipe: it is missing, damaged, from an older version, or prepared "
            "from different data or with different settings; train with this recipe, and give RUN/data of that run"
        )
    return None


@contextmanager
def new_folder(folder: Path, digest: str) -> Iterator[tuple[Path, DropReport]]:
    """Context manager that writes a folder of prepared data atomically.

    It yields the temporary folder, and the report that is stored with the data.
    """
    with named_write_errors(folder), atomic_folder(folder) as writer:
        drops = DropReport()
        yield writer.path, drops
        tokens = {name: asdict(counts) for name, counts in drops.tokens.items()}
        document = {"format": FORMAT, "digest": digest, "dropped": drops.to_dict(), "tokens": tokens}
        writer.write(REPORT, [json.dumps(document, indent=2).encode()])


def _stored_report(folder: Path) -> tuple[DropReport, int, str] | None:
    """Return the report, format and digest of the data in a folder, or None for a missing or empty folder.

    If only the report is damaged, the digest is `DAMAGED`.
    """
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return None
        stored = json.loads((folder / REPORT).read_bytes())
        drops = DropReport.from_dict(stored["dropped"], stored.get("tokens"))
        return drops, stored.get("format", 1), stored["digest"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # If everything except the report and the tokenizers is a store, only the report is damaged.
        if folder.is_dir() and (folder / REPORT).is_file():
            others = [path for path in folder.iterdir() if path.name not in (REPORT, TOKENIZER)]
            if others and all((path / MANIFEST).is_file() for path in others):
                return DropReport(), FORMAT, DAMAGED
        raise InputError(f"{folder}: not a folder with prepared data; choose another one, or delete it") from error


def one_store_each(data: DataConfig) -> Mapping[str, Sequence[CorpusConfig]]:
    """Map the names of stores to their corpora: "train-0", "train-1" and so on, and "valid"."""
    train = {f"train-{number}": [corpus] for number, corpus in enumerate(data.train)}
    return {**train, **({VALID: [data.valid]} if data.valid else {})}


def one_store_for_all(data: DataConfig) -> Mapping[str, Sequence[CorpusConfig]]:
    """Map "train" to all training corpora and "valid" to the validation data.

    Without training corpora, the data is a test set, and its store is named "test".
    """
    train = {"train": data.train} if data.train else {}
    return {**train, **({VALID if train else "test": [data.valid]} if data.valid else {})}


def require_training_data(recipe: Recipe, noun: str = "data", fields: str = "source") -> None:
    if not recipe.data.train:
        raise InputError(f"the recipe has no training {noun}; add a [[data.train]] table with {fields}")


def at_least_one(
    items: Iterable[T], name: str, drops: DropReport, unit: str = "examples", remedy: str = "check the file"
) -> Iterator[T]:
    """Yield examples or pairs unchanged, and raise an error at the end if there were none."""
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        problem = f"no {unit} are left ({drops})" if drops.counts else f"contains no {unit}"
        raise InputError(f"{name}: {problem}; {remedy}")


# Digest of everything that prepared data depends on.

DIGEST_FORMAT = 2
NOT_IN_DIGEST = {
    "root",
    "modality",
    "labelled",
    "label_mean",  # the stores contain the numbers unscaled
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
    "variants",
}
NOT_IN_CORPUS_DIGEST = {"source", "target", "weight"}


def data_digest(recipe: Recipe) -> str:
    """Return the SHA-256 of everything that prepared data of any kind depends on.

    This includes files, task, filters, variants and tokenizer settings. Settings that matter only for some kinds of
    data are in `DataFolder.settings`. File names (except extensions of text files), locations, modification times and
    compression do not matter, nor do corpus weights and BPE dropout. For an image, audio or video file that cannot be
    read, the reason takes the place of the contents; `data.preparation.media` rejects or skips such a file.
    """
    data = recipe.data
    tokenizer_path: list[str] | None = None
    if recipe.tokenizer.path:
        tokenizers = TokenizerPair.load(Path(recipe.tokenizer.path))
        tokenizer_path = [tokenizers.source.digest, tokenizers.target.digest]
    # BPE dropout is applied in training and does not change the stores. A tokenizer is identified by its content, not
    # by its path.
    parts: dict[str, object] = {
        "format": DIGEST_FORMAT,
        "task": recipe.task,
        "train": [_corpus_digest(corpus, data) for corpus in data.train],
        "valid": _corpus_digest(data.valid, data) if data.valid else None,
        "data": {key: value for key, value in asdict(data).items() if key not in NOT_IN_DIGEST},
        "tokenizer": asdict(recipe.tokenizer) | {"dropout": 0.0, "path": tokenizer_path},
    }
    if data.variants != VariantConfig():  # otherwise, the digest is the same as in versions without variants
        parts["variants"] = asdict(data.variants)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _corpus_digest(corpus: CorpusConfig, data: DataConfig) -> dict[str, Any]:
    files: list[list[str]] = []
    if data.modality == "text":
        for path in text_files(corpus, data):
            # A table's extension counts in lower case, as it does when the file is read; others count as written.
            ending = ending_of(path)
            key = ending if ending in TABLE_ENDINGS else Path(without_compression(path.name)).suffix
            files.append([key, text_digest(path)])
    else:
        from heedful.data.readers.media_files import media_files

        for file in media_files(corpus, data):
            try:
                with file.path.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                digest = str(error.strerror)
            files.append([file.target, digest])
    return {key: value for key, value in asdict(corpus).items() if key not in NOT_IN_CORPUS_DIGEST} | {"files": files}


def file_dates(data: DataConfig) -> list[tuple[int, ...]]:
    """Return the size, dates and inode of each training and validation file, which reveal most changes."""
    corpora = (*data.train, *([data.valid] if data.valid else []))
    paths = [path for corpus in corpora for path in files_of(corpus, data)]
    try:
        # A missing image or audio file counts as a bad file, which the preparation reports or skips.
        states = [path.stat() for path in paths if data.modality == "text" or path.exists()]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error
    return [(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino) for state in states]


def files_of(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    if data.modality == "text":
        return text_files(corpus, data)
    from heedful.data.readers.media_files import media_files

    return [file.path for file in media_files(corpus, data)]


def text_digest(path: Path) -> str:
    """Return the SHA-256 of the contents of a text file, decompressed if it is compressed."""
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def files_digest(files: Sequence[Path], folder: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        try:
            content = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error
        # Names matter as well: a search shows images with their paths, which must be the current ones.
        digest.update(json.dumps([file.relative_to(folder).as_posix(), content]).encode())
    return digest.hexdigest()


# Overlap of held-out and training data. A held-out text is shared if the training data contains the same text,
# character by character except for surrounding space, or a near copy: the same except for case, punctuation and space.
# Texts with different numbers are different texts. Memory grows only with the held-out text.

MAX_HELD_OUT = 200_000  # number of held-out texts that are looked up
MAX_EXAMPLES = 3  # in a message
MAX_EXAMPLE_CHARACTERS = 60
NON_ALPHANUMERIC = re.compile(r"[\W_]+")
MIN_LINE_CHARACTERS = 40  # in a line of running text: shorter ones recur by chance


@dataclass
class Overlap:
    """Counts of held-out texts that are also in the training data, exactly or nearly, with a few examples."""

    texts: int  # number of held-out texts that were looked up
    exact: int = 0
    near: int = 0  # near copies, exact ones excluded
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shared, limit = self.exact + self.near, MAX_EXAMPLE_CHARACTERS
        verb = "is" if shared == 1 else "are"
        short = (text if len(text) <= limit else text[: limit - 3] + "..." for text in self.examples)
        return (
            f"{shared:,} of {counted(self.texts, 'texts')} ({shared / self.texts:.1%}) {verb} also in the training "
            f"data ({self.exact:,} identical, {self.near:,} differing only in case or punctuation): "
            f"{'; '.join(map(repr, short))}. Such texts inflate the scores"
        )


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of running text that are long enough to be looked up in other text."""
    return (line for line in text.split("\n") if len(line) >= MIN_LINE_CHARACTERS)


def folded(text: str) -> str:
    """Remove case, punctuation and spaces from a text, to find near duplicates."""
    return NON_ALPHANUMERIC.sub("", text.casefold())


def overlap(held_out: Iterable[str], training: Iterable[str]) -> Overlap:
    """Count the held-out texts that are also in the training data, exactly or nearly.

    Only the first `MAX_HELD_OUT` held-out texts are looked up. Held-out and training texts are read once.
    """

    def hash_of(text: str) -> int:
        return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")

    def near_hash_of(text: str) -> int:
        # Texts of punctuation alone all fold to an empty text, and would be near copies of each other.
        return hash_of(folded(text) or text)

    texts = [text.strip() for text in islice(held_out, MAX_HELD_OUT) if text.strip()]
    exact, near = set(map(hash_of, texts)), set(map(near_hash_of, texts))
    shared_exact: set[int] = set()
    shared_near: set[int] = set()
    for text in training:
        # An exact copy is also a near copy, so one lookup is enough for most texts.
        if (key := near_hash_of(text.strip())) in near:
            shared_near.add(key)
            if (key := hash_of(text.strip())) in exact:
                shared_exact.add(key)
    total = Overlap(len(texts))
    for text in texts:
        is_exact = hash_of(text) in shared_exact
        is_near = not is_exact and near_hash_of(text) in shared_near
        total.exact += is_exact
        total.near += is_near
        if (is_exact or is_near) and len(total.examples) < MAX_EXAMPLES:
            total.examples.append(text)
    return total


def report_overlap(data: DataConfig, texts: Texts, report: Callable[[str], None]) -> None:
    for name, corpus in (("validation", data.valid), ("test", data.test)):
        if corpus is None:
            continue
        try:
            # This is only a report: a test set that cannot be read must not stop training.
            shared = overlap(texts(corpus), (text for part in data.train for text in texts(part)))
        except InputError as error:
            report(f"{name} data: not compared with the training data: {error}")
            continue
        if shared.examples:
            report(f"{name} data: {shared}")
