"""A tokenizer on disk: a folder with tokenizer.json, in the library's format, and config.json, which describes it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.storage.atomic import atomic_file, named_write_errors
from heedful.storage.disk import read_small

FORMAT = 1
DEFINITION, DESCRIPTION = "tokenizer.json", "config.json"
LARGEST = 1 << 26  # bytes of tokenizer.json, that of a large foreign one
OF_A_RUN = ("joint", "dropout", "path")  # how a run uses its tokenizers; the other settings tell what a tokenizer is


@dataclass(frozen=True, kw_only=True)
class TokenizerDescription:
    """The contents of config.json in the folder of a tokenizer: format, checksum and settings."""

    format: int
    sha256: str  # checksum of tokenizer.json
    tokenizer: TokenizerConfig


def describe(definition: str, config: TokenizerConfig) -> str:
    """Return the text of config.json for a tokenizer: format, checksum of tokenizer.json, and settings."""
    settings = {key: value for key, value in asdict(config).items() if key not in OF_A_RUN}
    return json.dumps({"format": FORMAT, "sha256": digest(definition), "tokenizer": settings}, indent=2) + "\n"


def digest(text: str) -> str:
    """Return the SHA-256, in hex, of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def files(definition: str, config: TokenizerConfig) -> dict[str, bytes]:
    """Return the bytes of tokenizer.json and config.json of a tokenizer, by the names of the files."""
    return {DEFINITION: definition.encode("utf-8"), DESCRIPTION: describe(definition, config).encode("utf-8")}


def write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files of a tokenizer, each atomically, over an older tokenizer where one is there.

    Raises:
        InputError: The folder holds something else.
        RunError: The folder cannot be written.
    """
    refuse_foreign(folder)
    with named_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            with atomic_file(folder / name) as stream:
                stream.write(content)


def refuse_foreign(folder: Path) -> None:
    """Check that a tokenizer can be written to a folder without overwriting something else.

    Raises:
        InputError: `folder` is a file, or is not empty and holds no sound tokenizer.
    """
    if folder.is_dir() and any(folder.iterdir()):
        try:
            read(folder)
        except InputError as error:
            raise InputError(f"{folder} is not empty and holds no sound tokenizer; name another folder") from error
    elif folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder for the tokenizer")


def read(folder: Path) -> tuple[str, TokenizerConfig]:
    """Read the folder of a tokenizer: the text of tokenizer.json, and the configuration from config.json.

    Raises:
        InputError: A file is missing, damaged, or was not written by heedful.
    """
    definition = _read_text(folder / DEFINITION)
    try:
        description = TypeAdapter(TokenizerDescription).validate_json(_read_text(folder / DESCRIPTION), strict=True)
    except ValidationError as error:
        raise InputError(
            f"{folder / DESCRIPTION}: damaged, or not written by heedful; copy the tokenizer again, or train one with "
            "`heedful tokenizer train`"
        ) from error
    if description.format != FORMAT:
        raise InputError(
            f"{folder / DESCRIPTION}: has format {description.format}, and this heedful reads {FORMAT}; update heedful"
        )
    if description.sha256 != digest(definition):
        raise InputError(
            f"{folder / DEFINITION}: is not the file that {DESCRIPTION} beside it describes (other checksum): damaged "
            "or edited; copy the tokenizer again"
        )
    return definition, description.tokenizer


def _read_text(file: Path) -> str:
    try:
        return read_small(file, LARGEST).decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{file}: there is no such file; a tokenizer is a folder with {DEFINITION} and {DESCRIPTION}, as "
            "`heedful tokenizer train` writes it"
        ) from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: damaged, or not a tokenizer (not UTF-8); copy the tokenizer again") from error
