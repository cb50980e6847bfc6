"""Layouts of a user's own pictures, sounds or videos: which kind a folder or a table holds, and what is held out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.config.schema import DataConfig
from heedful.data.media.containers import VIDEO_ENDINGS
from heedful.data.media.media_files import ENDINGS, files_below
from heedful.data.proposals.table_task import Certainty, listed
from heedful.data.readers.columns import Column
from heedful.data.readers.documents import ENDINGS as TEXT_ENDINGS
from heedful.data.readers.files import ending_of
from heedful.data.readers.folders import visible_files, visible_folders
from heedful.data.readers.header import TEXT_NAMES
from heedful.data.readers.names import find_name, hint_of_name
from heedful.errors import InputError

Kind = Literal["image", "audio", "video"]

GUESSED: tuple[Kind, ...] = ("image", "audio", "video")
OF_GUESS = {  # a video may end like a picture, and sound may be that of a video: the user has to ask for these
    "image": ENDINGS["image"],
    "audio": tuple(ending for ending in ENDINGS["audio"] if ending not in VIDEO_ENDINGS),
    "video": VIDEO_ENDINGS,
}
NAMES = {"train": ("train", "training"), "valid": ("valid", "val", "validation", "dev"), "test": ("test", "testing")}
GROUPS = (
    *("speaker", "speaker_id", "speakerid", "client_id", "user", "user_id", "subject", "subject_id", "patient"),
    *("patient_id", "person", "singer", "reader", "group", "session", "说话人", "发言人"),
)  # columns of who speaks or is seen
UNLABELLED = ("unlabelled", "unlabeled", "unsup", "unsupervised", "nolabel")  # folders that are no class
FILES = 0.9  # share of the values of a column of files that end like those of a kind


def kind_of_folder(folder: Path, kinds: Sequence[Kind] = GUESSED) -> Kind | None:
    """Tell which of some kinds of files a folder holds; None if it holds more files of text than of each of them.

    A text with the name of a file, such as 1.txt next to 1.wav, is about that file and does not count.
    """
    names = [path.name.lower() for path in visible_files(folder)]
    endings = OF_GUESS if kinds == GUESSED else ENDINGS
    counts = {kind: sum(name.endswith(endings[kind]) for name in names) for kind in kinds}
    kind = max(kinds, key=lambda kind: counts[kind])
    stems = {Path(name).stem for name in names if name.endswith(endings[kind])}
    texts = sum(ending_of(name) in TEXT_ENDINGS and Path(name).stem not in stems for name in names)
    return kind if counts[kind] > texts else None


def file_column(columns: Sequence[Column], kinds: Sequence[Kind] = GUESSED) -> tuple[str, Kind] | None:
    """Find the column of a table that names files of one of some kinds, and which of them; None if there is none."""
    endings = OF_GUESS if kinds == GUESSED else ENDINGS
    for column in columns:
        names = [value.strip().lower() for value in column.values]
        for kind in kinds:
            if sum(name.endswith(endings[kind]) for name in names) > FILES * len(names):
                return column.name, kind
    return None


class Target(NamedTuple):
    """The column with the class of each file, or with a text about it; how certain that is; and the next best."""

    column: Column
    writes: bool  # True for texts, which a model learns to write
    certainty: Certainty
    second: Column | None  # None: the same one, read the other way


def target_of(columns: Sequence[Column], files: str, wanted: str | None, name: str) -> Target:
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
        rest = [column for column in rest if column.name == find_name(wanted, known)]
        if not rest:
            hint = hint_of_name(wanted, known)
            raise InputError(
                f"{name}: no column of classes or texts is named {wanted!r}{hint}; it has {listed(columns)}"
            )
    texts = [column for column in rest if column.is_text or column.name.strip().lower() in TEXT_NAMES]
    groups = [column for column in rest if column.name.strip().lower() in GROUPS and wanted is None]
    classes = [column for column in rest if column.is_label and column not in (*texts, *groups)]
    classes = [column for column in classes if column.is_called_label] or ([] if texts else classes)
    found = classes or texts or rest * (wanted is not None)
    if len(found) != 1:
        what = "classes" if classes else "classes or the texts"
        raise InputError(f"{name}: it has {listed(columns)}; say with --target-field which of them has the {what}")
    [column] = found
    other = (texts if classes else [])[:1]
    is_clear = column.is_called_label or not column.is_label
    words = "unsure" if not classes and column.is_label and 2 * column.spaces <= column.rows else "likely"
    return Target(column, not classes, "certain" if is_clear else words, other[0] if other else None)


class FolderParts(NamedTuple):
    """The folder of classes of each part that is there, and the folders that are not read."""

    folders: dict[str, Path]
    unused: tuple[str, ...]


def parts_of_folder(folder: Path, data: DataConfig) -> FolderParts:
    """Choose for each part, train, valid and test, a folder of classes; without them the folder itself has the classes.

    Folders with the usual names of parts are parts if they hold folders with files; other folders are not read then.

    Raises:
        InputError: Parts are there, but no folders of classes in them.
    """
    children = visible_folders(folder)
    holding = [path for path in children if files_below(path, data)]
    known = {part: [path for path in holding if path.name.lower() in names] for part, names in NAMES.items()}
    named = {part: paths[0] for part, paths in known.items() if paths}
    if named and len(named) == len(holding) and not any(map(visible_folders, named.values())):
        raise InputError(
            f"{folder}: {', '.join(path.name for path in named.values())} are parts, not classes; put the files of "
            "each class into a folder in each of them, or name a table with the class of each file"
        )
    parts = {part: path for part, path in named.items() if visible_folders(path)}
    if "train" not in parts:
        parts = {"train": folder}
        return FolderParts(parts, tuple(path.name for path in children if path not in holding or is_unlabelled(path)))
    unused = [path.name for path in children if path not in parts.values()]
    unused += [
        f"{path.name}/{one.name}" for path in parts.values() for one in visible_folders(path) if is_unlabelled(one)
    ]
    return FolderParts(parts, tuple(unused))


def is_unlabelled(folder: Path) -> bool:
    """True if a folder holds files without a class, by its name."""
    return folder.name.lower() in UNLABELLED


def other_kinds(folder: Path, kind: Kind) -> dict[str, int]:
    """Count the files of other kinds than the one that is read, by the names of the folders in a folder."""
    others = tuple(ending for other in GUESSED if other != kind for ending in ENDINGS[other])
    others = tuple(ending for ending in others if ending not in ENDINGS[kind])
    counts = {
        path.name: sum(file.name.lower().endswith(others) for file in visible_files(path))
        for path in visible_folders(folder)
    }
    return {name: count for name, count in counts.items() if count}
