"""The catalogue of public data sets that recipes use; `heedful data` downloads them."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePath
from typing import Any


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file of a data set, with the SHA-256 of its content without compression or, if that is unknown, its lines."""

    source: str  # an address, or ARCHIVE#FILE, relative to the address of the data set
    size: int  # bytes
    sha256: str | None
    lines: int | None


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Folders of an archive, by the name that they get."""

    folders: Mapping[str, str]
    files: int
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """A table of sentence pairs in an archive, and the numbers of pairs held out from training."""

    table: str
    languages: Sequence[str]
    valid: int
    test: int
    size: int  # approximately, because the table grows


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A public data set: exactly one of `files`, `tree` and `pairs` describes what it consists of."""

    name: str
    content: str
    licence: str
    citation: str
    address: str
    files: Mapping[str, SourceFile] = field(default_factory=dict)
    tree: Tree | None = None
    pairs: Pairs | None = None

    @property
    def size(self) -> int:
        """Bytes on disk."""
        whole = self.tree or self.pairs
        return whole.size if whole else sum(file.size for file in self.files.values())

    @property
    def is_estimated(self) -> bool:
        """True if the size is an estimate, because the content of the files is not known here."""
        return self.pairs is not None or any(file.sha256 is None for file in self.files.values())


@cache
def public_sets() -> Mapping[str, DataSet]:
    """Return all public data sets by name."""
    tables = tomllib.loads(Path(__file__).with_name("public_sets.toml").read_text(encoding="utf-8"))
    return {name: data_set(name, table) for name, table in tables.items()}


def data_set(name: str, table: Mapping[str, Any]) -> DataSet:
    parts = {
        "files": {
            target: SourceFile(
                source=file["from"], size=file["size"], sha256=file.get("sha256"), lines=file.get("lines")
            )
            for target, file in table.get("files", {}).items()
        },
        "tree": Tree(**table["tree"]) if "tree" in table else None,
        "pairs": Pairs(**table["pairs"]) if "pairs" in table else None,
    }
    return DataSet(name=name, **{**table, **parts})


def download_command(source: str) -> str | None:
    """Return the command that downloads the public data set of a missing file; None for any other file."""
    name = next(iter(PurePath(source).parts), "")
    return f"heedful data {name} --out FOLDER" if name in public_sets() else None
