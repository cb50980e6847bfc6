"""Digest of all that prepared data depends on: the text, pictures or sounds, and how they are read and encoded."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from heedful.config.schema import CorpusConfig, DataConfig, Recipe
from heedful.data.readers.documents import text_files
from heedful.data.readers.files import TABLE_ENDINGS, ending_of, open_bytes
from heedful.errors import InputError
from heedful.storage.compression import without_compression
from heedful.text.tokenizer_pair import TokenizerPair

FORMAT = 2
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

    Raises:
        InputError: A text file cannot be read.
    """
    data, tokenizer = recipe.data, recipe.tokenizer
    parts = {
        "format": FORMAT,
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

    Raises:
        InputError: A text file cannot be read.
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
    from heedful.data.media.media_files import media_files

    return [[file.target, _file_digest(file.path)] for file in media_files(corpus, data)]


def _file_digest(path: Path) -> str:
    """The SHA-256 of all bytes of a picture or sound; of one that cannot be read, the reason."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return str(error.strerror)


def files_of(corpus: CorpusConfig, data: DataConfig) -> list[Path]:
    """Return the paths of all files of a corpus: its texts, or its pictures or sounds.

    Raises:
        InputError: A file that lists them cannot be read.
    """
    if data.modality == "text":
        return text_files(corpus, data)
    from heedful.data.media.media_files import media_files

    return [file.path for file in media_files(corpus, data)]


def _ending(path: Path) -> str:
    """The ending of a file name, which says how the file is read; of running text it stands as it is written."""
    ending = ending_of(path)
    return ending if ending in TABLE_ENDINGS else Path(without_compression(path.name)).suffix


def text_digest(path: Path) -> str:
    """Return the SHA-256 of the contents of a text file, decompressed if it is compressed.

    Raises:
        InputError: The file cannot be read.
    """
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def files_digest(files: Sequence[Path], folder: Path) -> str:
    """Return the SHA-256 of the names and contents of files below a folder.

    Raises:
        InputError: A file cannot be read.
    """
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
