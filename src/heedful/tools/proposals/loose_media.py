"""Pictures, sounds or videos in a folder without folders of classes: tables that name them, or what is missing."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import DataConfig
from heedful.data.readers.columns import columns_of
from heedful.data.readers.files import BadUtf8, ending_of, read_lines, visible_files
from heedful.data.readers.media_files import NOUNS, files_below
from heedful.data.readers.rows import READERS
from heedful.errors import InputError
from heedful.tools.proposals.media_survey import Kind, file_column, kind_of_folder
from heedful.wording import counted

FIRST_WORD = re.compile(r"[^\W\d_]+|\d+")  # of a name, such as dog in dog12.wav
SHOWN = 3  # names in a message
TARGETS = {"image": "caption", "audio": "text", "video": "label"}


class LooseMedia(NamedTuple):
    """Files of one kind below a folder that are not in folders of classes."""

    folder: Path
    kind: Kind
    files: list[Path]


def loose_media(folder: Path) -> LooseMedia | None:
    """The pictures, sounds or videos of a folder if fewer than two folders in it hold some; None for other folders."""
    kind = kind_of_folder(folder)
    if kind is None:
        return None
    files = files_below(folder, DataConfig(modality=kind))
    return LooseMedia(folder, kind, files) if len({path.parent for path in files} - {folder}) < 2 else None


def tables_of(media: LooseMedia, bad_utf8: BadUtf8) -> list[Path]:
    """The tables in the folder of some files that name them, by name; one that cannot be read names none."""
    naming = []
    for path in sorted(path for path in media.folder.iterdir() if path.is_file() and ending_of(path) in READERS):
        with suppress(InputError):
            if file_column(columns_of(path, DataConfig(bad_utf8=bad_utf8)), (media.kind,)):
                naming.append(path)
    return naming


def several_tables(media: LooseMedia, tables: Sequence[Path]) -> InputError:
    """The error that several tables name the files of a folder."""
    commands = " or ".join(f"heedful init {path}" for path in tables[:SHOWN])
    return InputError(f"{media.folder}: {len(tables)} tables name {NOUNS[media.kind]} in it; name one: {commands}")


def nothing_tells(media: LooseMedia) -> InputError:
    """The error that nothing tells what the files of a folder show or say, with what their names or texts suggest."""
    folder, noun = media.folder, NOUNS[media.kind]
    holds = f"{folder}: holds {counted(len(media.files), noun)}, and"
    name = media.files[0].relative_to(folder).as_posix()
    table = folder / "files.csv"

    def by_table(what: str, header: str) -> str:
        return (
            f"name each file with its {what} in a table, as {table} with the lines {header} and {name},..., and give "
            f"that: heedful init {table}"
        )

    target = TARGETS[media.kind]
    if texts := texts_next_to(media):
        return InputError(
            f"{holds} {texts} with their texts, as it seems; {by_table('text', f'file,{target}')}. To learn from the "
            f"texts alone: heedful init {folder} --task language_model"
        )
    names = name_classes(media.files)
    begin = ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)
    suggestion = f" The names begin with {begin}: are these the classes?" if names else ""
    place = folder / (names[0] if names else "CLASS") / Path(name).name
    headers = f"file,label (or file,{target})" if target != "label" else "file,label"
    return InputError(
        f"{holds} nothing shows their classes or texts: there is no folder for each class, and no table.{suggestion} "
        f"Put the {noun} of each class into a folder, as {place}; or {by_table('class or text', headers)}"
    )


def texts_next_to(media: LooseMedia) -> str | None:
    """Name what seems to have a text for each file: texts with the same names, or one with lines that begin so."""
    stems = {path.stem for path in media.files}
    texts = [path for path in visible_files(media.folder) if path.suffix.lower() in (".txt", ".lab", ".trn")]
    if sum(path.stem in stems for path in texts) * 2 > len(stems):
        return f"{next(path.name for path in texts if path.stem in stems)} and the like"
    for path in texts:
        words = [re.split(r"[\s|,]", line, maxsplit=1)[0] for line in read_lines(path, bad_utf8="replace")]
        if 2 * sum(Path(word).stem in stems for word in words if word) > max(1, len(words)):
            return path.name
    return None


def name_classes(files: Sequence[Path]) -> list[str]:
    """The first words of the names of files if they may be classes: a few, each of several files; else nothing."""
    words = [match[0] for path in files if (match := FIRST_WORD.search(path.stem))]
    different = sorted(set(words))
    may_be = len(words) == len(files) and 2 <= len(different) <= len(files) // 3
    return different if may_be and min(map(words.count, different)) > 1 else []
