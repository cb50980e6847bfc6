"""Prepared data of a recipe: tokenizers and stores of token ids, built once for each digest of all they depend on."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.readers.documents import text_files
from heedful.data.readers.files import TABLE_ENDINGS, ending_of, open_bytes
from heedful.data.readers.filters import DropReport, folded, left_out_line
from heedful.data.stores import MappedStore
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.storage.compression import without_compression
from heedful.storage.manifest import MANIFEST
from heedful.text.coverage import unknown_lines
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.wording import counted

Texts = Callable[[CorpusConfig], Iterable[str]]  # gives the texts of a corpus

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

    Names, places, dates and compression of the files do not count, nor do the weights of corpora and BPE dropout. Of an
    image or audio file that cannot be read, only the reason counts: `data.preparation.media` refuses or skips it.
    """
    data = recipe.data
    parts: dict[str, object] = {
        "format": DIGEST_FORMAT,
        "task": recipe.task,
        "train": [_corpus_key(corpus, data) for corpus in data.train],
        "valid": _corpus_key(data.valid, data) if data.valid else None,
        "data": {key: value for key, value in asdict(data).items() if key not in UNREAD},
        "tokenizer": asdict(recipe.tokenizer) | {"dropout": 0.0, "path": None},
    }
    if recipe.tokenizer.path:
        tokenizers = TokenizerPair.load(Path(recipe.tokenizer.path))
        digests = [tokenizers.source.digest, tokenizers.target.digest]
        parts["tokenizer"] = asdict(recipe.tokenizer) | {"dropout": 0.0, "path": digests}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def file_dates(data: DataConfig) -> list[tuple[int, ...]]:
    """Return size, dates and inode of each file of training and validation, by which most changes show."""
    corpora = (*data.train, *([data.valid] if data.valid else []))
    paths = [path for corpus in corpora for path in files_of(corpus, data)]
    try:
        states = [path.stat() for path in paths if data.modality == "text" or path.exists()]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read ({error.strerror})") from error
    return [(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino) for state in states]


def _corpus_key(corpus: CorpusConfig, data: DataConfig) -> dict[str, Any]:
    files: list[list[str]] = []
    if data.modality == "text":
        for path in text_files(corpus, data):
            ending = ending_of(path)  # says how the file is read; of running text it counts as it is written
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
    return {key: value for key, value in asdict(corpus).items() if key not in UNNAMED} | {"files": files}


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
        digest.update(json.dumps([file.relative_to(folder).as_posix(), content]).encode())
    return digest.hexdigest()


REPORT = "report.json"  # counts of what was dropped and of unknown tokens, and the digest of all the data depends on
FORMAT = 2  # of the stores as well
DAMAGED = "damaged"  # in place of the digest of data whose report is damaged
VALID = "valid"  # name of the store of the validation data

ALLOW_BUILD: ContextVar[bool] = ContextVar("ALLOW_BUILD", default=True)

S = TypeVar("S", bound=MappedStore)
T = TypeVar("T")


@dataclass(frozen=True)
class PreparedData(Generic[S]):
    """Prepared training and validation data of a recipe: stores of token ids, with their tokenizers."""

    tokenizers: TokenizerPair  # of source and target; the same one twice, if there is one kind of text
    train: tuple[S, ...]
    weights: tuple[float, ...]  # of the training corpora
    valid: S | None
    digest: str  # SHA-256 of all that the stores depend on
    report: DropReport  # counts of the examples that were left out when the stores were made

    @property
    def stores(self) -> tuple[S, ...]:
        """All stores, that of the validation data last."""
        return self.train if self.valid is None else (*self.train, self.valid)

    def check_unchanged(self) -> None:
        for store in self.stores:
            for file in store.files:
                file.check()


@dataclass(frozen=True, kw_only=True)
class Preparation(Generic[S]):
    """Preparation of one kind of data: how its tokenizers are made, and how its stores are written and opened."""

    parts: Mapping[str, Sequence[CorpusConfig]]  # the corpora of each store by its folder; the validation data is last
    tokenizers: Callable[[], TokenizerPair]  # loads or trains them
    write: Callable[[Path, Sequence[CorpusConfig], TokenizerPair, DropReport], None]  # counts what is left out
    open: Callable[[Path], S]
    texts: Texts  # to look for in the training data
    load: Callable[[Path], TokenizerPair] = TokenizerPair.load
    settings: str = ""  # what the stores depend on besides `data_digest`, in words


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
        folder: A folder for this data alone. Data prepared from something else is replaced; a run that must not resume
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

    def build(temporary: Path) -> DropReport:
        tokenizers = preparation.tokenizers()
        tokenizers.save(temporary / "tokenizer")
        total = write(temporary, tokenizers)
        report_overlap(recipe.data, preparation.texts, report)
        if file_dates(recipe.data) != dates and data_digest(recipe) != digest:
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
    # Dates first: a file that changes while its digest is computed is found at the end.
    dates, digest = file_dates(recipe.data), data_digest(recipe)
    return load_or_build(folder, digest + preparation.settings, build, opened, report)


@contextmanager
def read_only() -> Iterator[None]:
    """Context manager: prepared data is only read, and where some would have to be made, an error is raised."""
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
    """Read prepared data from a folder if its digest is the wanted one; otherwise build the data first.

    Args:
        folder: Where the data is. Data prepared from something else is replaced.
        digest: The digest of all that the data depends on.
        build: Writes the data to a temporary folder, which then gets its name, and returns what it dropped.
        read: Reads the data from `folder`, given what was dropped when it was made.
        report: Called with sentences that say what is done.

    Raises:
        InputError: `folder` holds something else, or what `build` and `read` raise, or within `read_only`.
    """
    stored = _stored(folder)
    if stored and stored[1:] == (1, digest):
        report(f"{folder}: prepared again (an older version of heedful prepared it)")
    elif stored and stored[2] == DAMAGED:
        report(f"{folder}: prepared again ({REPORT} does not hold what was saved)")
    elif stored and stored[1:] == (FORMAT, digest):
        try:
            prepared = read(stored[0])
        except InputError as damage:
            report(f"{folder}: prepared again ({damage})")
        else:
            report(f"{folder}: prepared before, used again")
            return prepared
    if not ALLOW_BUILD.get():
        raise InputError(
            f"{folder}: prepared from other data or with other settings than the recipe's, damaged, "
            "or of an older version; train with this recipe, and name RUN/data of that run"
        )
    with named_write_errors(folder), atomic_folder(folder) as writer:
        drops = build(writer.path)
        tokens = {name: asdict(counts) for name, counts in drops.tokens.items()}
        document = {"format": FORMAT, "digest": digest, "dropped": drops.to_dict(), "tokens": tokens}
        writer.write(REPORT, [json.dumps(document, indent=2).encode()])
    return read(drops)


made_once = load_or_build  # its former name


def _stored(folder: Path) -> tuple[DropReport, int, str] | None:
    """Return report, format and digest of the data in a folder; nothing where there is no folder, or an empty one."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return None
        stored = json.loads((folder / REPORT).read_bytes())
        drops = DropReport.from_dict(stored["dropped"], stored.get("tokens"))
        return drops, stored.get("format", 1), stored["digest"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # a report, stores, and nothing else but tokenizers: only the report is damaged
        if folder.is_dir() and (folder / REPORT).is_file():
            others = [path for path in folder.iterdir() if path.name not in (REPORT, "tokenizer")]
            if others and all((path / MANIFEST).is_file() for path in others):
                return DropReport(), FORMAT, DAMAGED
        raise InputError(f"{folder}: not a folder of prepared data; name another one, or delete it") from error


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


# Overlap of held-out and training data. A held-out text is shared if the same text is in the training data, character
# by character but for space around it, or almost: the same but for case, punctuation and space. Texts with different
# numbers are different texts. Memory grows with the held-out text only.

LOOKED_UP = 200_000  # held-out texts
SHOWN = 3  # examples in a message
SHOWN_CHARACTERS = 60
MIN_LINE_CHARACTERS = 40  # characters of a line of running text: shorter ones recur by chance


@dataclass
class Overlap:
    """Counts of held-out texts that are in the training data as well, exactly or nearly, with a few examples."""

    texts: int  # held-out texts that were looked up
    exact: int = 0
    near: int = 0  # near copies, exact ones left out
    examples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shared = self.exact + self.near
        examples = "; ".join(
            repr(text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "...")
            for text in self.examples
        )
        return (
            f"{shared:,} of {counted(self.texts, 'texts')} ({shared / self.texts:.1%}) also in the training data, "
            f"{self.exact:,} word for word and {self.near:,} but for case and punctuation: {examples}. "
            "They make its scores better than they would be on new text"
        )


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of running text that are long enough to be looked up elsewhere: shorter ones recur by chance."""
    return (line for line in text.split("\n") if len(line) >= MIN_LINE_CHARACTERS)


def overlap(held_out: Iterable[str], training: Iterable[str]) -> Overlap:
    """Count the held-out texts that are in the training data, too, exactly or nearly; both are read once."""
    texts = [text.strip() for text in islice(held_out, LOOKED_UP) if text.strip()]
    exact, near = {_key(text) for text in texts}, {_near_key(text) for text in texts}
    shared_exact: set[int] = set()
    shared_near: set[int] = set()
    for text in training:
        # An exact copy is a near copy, too, so that one look-up is enough for most texts.
        if (key := _near_key(text.strip())) in near:
            shared_near.add(key)
            if (key := _key(text.strip())) in exact:
                shared_exact.add(key)
    total = Overlap(len(texts))
    for text in texts:
        is_exact = _key(text) in shared_exact
        is_near = not is_exact and _near_key(text) in shared_near
        total.exact += is_exact
        total.near += is_near
        if (is_exact or is_near) and len(total.examples) < SHOWN:
            total.examples.append(text)
    return total


def report_overlap(data: DataConfig, texts: Texts, report: Callable[[str], None]) -> None:
    for name, corpus in (("validation", data.valid), ("test", data.test)):
        if corpus is None:
            continue
        try:
            shared = overlap(texts(corpus), (text for part in data.train for text in texts(part)))
        except InputError as error:
            report(f"{name} data: not compared with the training data: {error}")
            continue
        if shared.examples:
            report(f"{name} data: {shared}")


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")


def _near_key(text: str) -> int:
    return _key(folded(text) or text)
