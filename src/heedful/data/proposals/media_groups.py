"""Groups of pictures, sounds or videos that are kept in one part: the files of a speaker or a folder, and equal files.

A model that is tested on the speakers of its training is tested on less than it seems.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.media.media_files import MediaFile
from heedful.data.proposals.media_layout import GROUPS
from heedful.data.proposals.pair_survey import FEWEST_GROUPS, source_hash
from heedful.data.readers.columns import Column
from heedful.wording import counted

NAME_PARTS = re.compile(r"[_.-]+")
MOST_GROUPS = 0.5  # of the files: more groups, and a part of their names is a number of the file


MOST_ALONE = 0.1  # of the files: so many may have no group, such as a recording whose name is of another form


class Groups(NamedTuple):
    """The group of each file, None where it has none, and what the groups are, in words; None: no file has a group."""

    names: Sequence[str | None]
    what: str | None


def groups_of(files: Sequence[MediaFile], folder: Path | None, kind: str, column: Mapping[int, str] | None) -> Groups:
    """Find the groups of files: by a column of their table, by folders below their class, or by names of sounds.

    Args:
        files: The files.
        folder: The folder of the classes; None for a table.
        kind: "image", "audio" or "video"; names of sounds often say who speaks.
        column: The groups by the line of a table that has such a column.
    """
    tried = []
    if column is not None:
        tried.append(("speaker or group as the table says", [column.get(file.line or 0) for file in files]))
    if folder:
        tried.append(("folder below its class", [below_class(file, folder) for file in files]))
    if kind == "audio":
        tried.append(("speaker as the names of the files say", named_speakers(files)))
    for what, names in tried:
        found, alone = set(filter(None, names)), names.count(None)
        if len(found) >= FEWEST_GROUPS and alone <= MOST_ALONE * len(files):
            rest = f", and {counted(alone, 'files')} without one" if alone else ""
            return Groups(names, f"{what}, {len(found):,} of them such as {min(found)!r}{rest}")
    return Groups([None] * len(files), None)


def below_class(file: MediaFile, folder: Path) -> str | None:
    """The first folder below the folder of a file's class; None if it lies there itself."""
    parts = file.path.relative_to(folder).parts
    return parts[1] if len(parts) > 2 else None


def named_speakers(files: Sequence[MediaFile]) -> list[str | None]:
    """The part of each name that says who speaks, as in 0_jackson_12.wav; None where no part does.

    It has letters, comes again in files of other classes, and is not the class. Names of other than the usual number of
    parts say nothing.
    """
    nobody: list[str | None] = [None] * len(files)
    rows = [NAME_PARTS.split(file.path.stem) for file in files]
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    for place in range(usual):
        column = [row[place] if len(row) == usual else None for row in rows]
        classes: dict[str, set[str]] = defaultdict(set)
        for name, file in zip(column, files, strict=True):
            if name is not None:
                classes[name].add(file.target)
        shared = sum(len(found) > 1 for found in classes.values())
        named = all(re.search(r"[^\W\d]", name) for name in classes) and not classes.keys() & {f.target for f in files}
        if FEWEST_GROUPS <= len(classes) <= MOST_GROUPS * len(files) and named and 2 * shared > len(classes):
            return column
    return nobody


def hashes_of(groups: Sequence[str | None], digests: Sequence[str]) -> list[int]:
    """The hash of the group of each file, shared by the files of a group, and by equal files and all their groups."""
    keys = [
        [f"group {group}"] * (group is not None) + [f"bytes {digest}"]
        for group, digest in zip(groups, digests, strict=True)
    ]
    parent = {key: key for row in keys for key in row}

    def root(key: str) -> str:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, *others in keys:
        for other in others:
            low, high = sorted((root(first), root(other)))
            parent[high] = low
    return [source_hash(root(row[0])) for row in keys]


def group_column(columns: Sequence[Column], taken: Sequence[str]) -> str | None:
    """The column of a table that names speakers or other groups, by its name; None if there is none."""
    return next((column.name for column in columns if column.name.lower() in GROUPS and column.name not in taken), None)


def column_of(corpus: CorpusConfig, data: DataConfig, column: str) -> dict[int, str]:
    """Read a column of a table, by the line of each row.

    Raises:
        InputError: The table cannot be read.
    """
    from heedful.data.readers.corpus import read_rows

    rows = read_rows(corpus, data, (corpus.source_field, column), label=column)
    return {line: group.strip() for line, (_, group) in rows}
