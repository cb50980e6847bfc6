"""Layouts of a user's own pictures, sounds or videos: which kind a folder or a table holds, and what is held out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from heedful.config.schema import DataConfig
from heedful.data.media.media_files import ENDINGS, files_below
from heedful.data.proposals.table_task import listed
from heedful.data.readers.columns import Column
from heedful.data.readers.documents import ENDINGS as TEXT_ENDINGS
from heedful.data.readers.files import ending_of
from heedful.data.readers.folders import visible_files, visible_folders
from heedful.data.readers.names import find_name, hint_of_name
from heedful.errors import InputError

Kind = Literal["image", "audio", "video"]
Share = tuple[float, float]

GUESSED: tuple[Kind, ...] = ("image", "audio")  # a video ends like a picture, so that the user has to ask for it
NAMES = {"train": ("train", "training"), "valid": ("valid", "val", "validation", "dev"), "test": ("test", "testing")}
UNLABELLED = ("unlabelled", "unlabeled", "unsup", "unsupervised", "unknown", "nolabel")  # folders that are no class
FILES = 0.9  # share of the values of a column of files that end like those of a kind


def kind_of_folder(folder: Path, kinds: Sequence[Kind] = GUESSED) -> Kind | None:
    """Tell which of some kinds of files a folder holds; None if it holds more files of text than of each of them."""
    names = [path.name.lower() for path in visible_files(folder)]
    counts = {kind: sum(name.endswith(ENDINGS[kind]) for name in names) for kind in kinds}
    kind = max(kinds, key=lambda kind: counts[kind])
    texts = sum(ending_of(name) in TEXT_ENDINGS for name in names)
    return kind if counts[kind] > texts else None


def file_column(columns: Sequence[Column], kinds: Sequence[Kind] = GUESSED) -> tuple[str, Kind] | None:
    """Find the column of a table that names files of one of some kinds, and which of them; None if there is none."""
    for column in columns:
        names = [value.strip().lower() for value in column.values]
        for kind in kinds:
            if sum(name.endswith(ENDINGS[kind]) for name in names) > FILES * len(names):
                return column.name, kind
    return None


def target_column(columns: Sequence[Column], files: str, wanted: str | None, name: str) -> Column:
    """Find the column of a table with the class of each file or, if there is none, with a text about each file.

    Args:
        columns: All columns.
        files: The name of the column of files.
        wanted: The name of the column that the user asks for, if so.
        name: The table, for messages.

    Raises:
        InputError: There is no such column, or several.
    """
    rest = [column for column in columns if column.name != files]
    if wanted is not None:
        known = [column.name for column in rest]
        named = [column for column in rest if column.name == find_name(wanted, known)]
        if not named:
            hint = hint_of_name(wanted, known)
            raise InputError(
                f"{name}: no column of classes or texts is named {wanted!r}{hint}; it has {listed(columns)}"
            )
        return named[0]
    classes = [column for column in rest if column.is_label]
    classes = [column for column in classes if column.is_called_label] or classes
    found = classes or [column for column in rest if column.is_text]
    if len(found) != 1:
        what = "classes" if classes else "classes or the texts"
        raise InputError(f"{name}: it has {listed(columns)}; say with --target-field which of them has the {what}")
    return found[0]


def parts_of_folder(folder: Path, data: DataConfig) -> dict[str, tuple[Path, Share]]:
    """Choose for each part, train, valid and test, a folder of classes and the share of its files.

    A folder that holds only folders with the usual names of parts has them; a part without one is held out of the
    training files. Otherwise all are held out of the folder, whose folders are classes.
    """
    children = [path for path in visible_folders(folder) if files_below(path, data)]
    known = {part: [path for path in children if path.name.lower() in names] for part, names in NAMES.items()}
    named = {part: paths[0] for part, paths in known.items() if paths}
    if "train" not in named or sum(map(len, known.values())) < len(children):
        named = {"train": folder}
    missing = [part for part in ("valid", "test") if part not in named]
    first = 1 - len(missing) / 10
    shares = {"train": (0.0, first)} | {
        part: (first + number / 10, first + (number + 1) / 10) for number, part in enumerate(missing)
    }
    rounded = {part: (round(begin, 1), round(end, 1)) for part, (begin, end) in shares.items()}
    return {part: (named.get(part, named["train"]), rounded.get(part, (0.0, 1.0))) for part in NAMES}
