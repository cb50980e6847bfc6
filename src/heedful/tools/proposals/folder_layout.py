"""Layouts of a folder: texts in two languages, in parts, in classes or as documents; media with or without classes."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.config.schema import DataConfig
from heedful.data.readers.columns import columns_of
from heedful.data.readers.documents import ENDINGS
from heedful.data.readers.files import (
    FOREIGN_BEGINNINGS,
    BadUtf8,
    ending_of,
    open_bytes,
    read_lines,
    visible_files,
    visible_folders,
)
from heedful.data.readers.media_files import NOUNS, files_below
from heedful.data.readers.rows import READERS
from heedful.errors import InputError
from heedful.storage.compression import without_compression
from heedful.text.languages import is_language
from heedful.tools.proposals.media_survey import NAMES, UNLABELLED, Kind, file_column, kind_of_folder
from heedful.tools.proposals.table_task import Certainty
from heedful.tools.proposals.text_shapes import shape_of
from heedful.wording import counted

DATA = (*READERS, ".json", ".conll", ".conllu", ".iob", ".bio", ".txt", ".train", ".test", ".dev", ".label")
ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")
PACKED = (*ARCHIVES, ".parquet", ".arrow", ".npy", ".npz", ".bin", ".db", ".sqlite")
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|about|source|changelog|authors|credits)", re.IGNORECASE)
LANGUAGE = re.compile(r"^(.+)[-._]([a-z]{2,3})$")
PART = re.compile(r"(?<![a-z])(train(?:ing)?|val(?:id(?:ation)?)?|dev(?:el)?|test(?:ing)?)(?![a-z])")
NUMBERED = re.compile(r"\d+")  # names of messages, as of the 20 newsgroups
MIN_TEXTS = (5, 10)  # of a class: with fewer they are hardly classes, with as many they may be
LENGTHS = (20_000, 50_000)  # bytes of a text on average: up to which texts have classes, from which they are books

Part = Literal["train", "valid", "test"]
Classes = Mapping[str, list[Path]]  # the texts of each class


class FolderLayout(NamedTuple):
    """Layout of a folder of texts, and what else is in it."""

    # Two languages, one file for each part, a folder for each class, or documents
    kind: Literal["languages", "parts", "classes", "documents"]
    files: Mapping[str, tuple[Path, ...]] = {}  # of two languages the two files of each part; of parts the file of each
    # the classes of each part, of which the part "train" is all, if there is no other
    classes: Mapping[str, Classes] = {}
    certainty: Certainty = "certain"  # how certain the layout is
    unused: tuple[str, ...] = ()  # files and folders that are not read


def layout_of(folder: Path, bad_utf8: BadUtf8) -> FolderLayout:
    files = [path for path in visible_files(folder) if path.parent == folder and not ABOUT.search(path.name)]
    return (
        layout_of_languages(folder, files)
        or layout_of_classes(folder, files)
        or layout_of_parts(files, bad_utf8)
        or FolderLayout("documents", certainty="likely")
    )


def part_of_name(name: str) -> Part | None:
    """The part of a data set that a name stands for, as in dev.tsv and wnut17train.conll; None if it names none."""
    match = PART.search(name.lower())
    if match is None:
        return None
    return "train" if match[1].startswith("train") else "test" if match[1].startswith("test") else "valid"


def best_names(names: Iterable[str]) -> dict[str, str]:
    """The shortest name for each part; a single name that stands for none is the training part."""
    shortest = sorted(names, key=lambda name: (len(name), name))
    best: dict[str, str] = {}
    for name in shortest:
        if part := part_of_name(name):
            best.setdefault(part, name)
    return {"train": shortest[0]} if len(shortest) == 1 else best


def layout_of_languages(folder: Path, files: list[Path]) -> FolderLayout | None:
    """Recognise files of two languages, such as train.en and train.de; None for others."""
    stems: dict[str, dict[str, Path]] = defaultdict(dict)
    for file in files:
        match = LANGUAGE.match(without_compression(file.name).removesuffix(".txt"))
        if match and is_language(match[2]):
            stems[match[1]][match[2]] = file
    for languages in sorted({pair for texts in stems.values() for pair in combinations(sorted(texts), 2)}):
        source, target = languages if "-".join(languages[::-1]) not in folder.name else languages[::-1]
        parts = best_names(stem for stem, texts in stems.items() if {source, target} <= texts.keys())
        if "train" in parts:
            couples = {part: (stems[stem][source], stems[stem][target]) for part, stem in parts.items()}
            read = {file for couple in couples.values() for file in couple}
            unused = tuple(file.name for file in files if file not in read)
            return FolderLayout("languages", couples, unused=unused)
    return None


def layout_of_parts(files: list[Path], bad_utf8: BadUtf8) -> FolderLayout | None:
    """Recognise one file of data, or one for each part; None for running text, and for several such files."""
    data = [file for file in files if ending_of(file) in DATA]
    data = [file for file in data if ending_of(file) in READERS or shape_of(file, bad_utf8)]
    parts = best_names(file.name for file in data)
    if "train" not in parts or (len(data) > 1 and len(parts) == 1):
        return None
    named = {file.name: file for file in data}
    unused = tuple(file.name for file in files if file.name not in parts.values())
    return FolderLayout("parts", {part: (named[name],) for part, name in parts.items()}, unused=unused)


def check_documents(folder: Path, bad_utf8: BadUtf8) -> None:
    """Make sure that the files of a folder are running text, not data sets, archives, or a note on these."""
    files = [file for file in visible_files(folder) if not ABOUT.search(file.name)]
    texts = [file for file in files if ending_of(file) in ENDINGS and ending_of(file) != ".json"]
    others = [file for file in files if ending_of(file) in (*DATA, *PACKED) and file not in texts]
    as_text = f"For a language model of the texts in the folder: heedful init {folder} --task language_model"
    for file in texts:
        if ending_of(file) not in READERS and (shape := shape_of(file, bad_utf8)):
            if shape.remedy:
                raise InputError(f"{file}: holds {shape.content}, not running text; {shape.remedy}. {as_text}")
            raise InputError(
                f"{file}: holds {shape.content}, not running text; name one such file alone, as in: heedful init "
                f"{file}. {as_text}"
            )
    if sum(file.stat().st_size for file in others) > sum(file.stat().st_size for file in texts):
        packed = [file.name for file in others if ending_of(file) in PACKED]
        data = [file for file in others if file.name not in packed]
        archives = [name for name in packed if ending_of(name) in ARCHIVES]
        ways = [f"unpack {', '.join(archives[:3])}"] if archives else []
        ways += [] if archives else [f"{name} is {packed_content(folder / name)}" for name in packed[:1]]
        ways += [f"name one file, as in: {' or '.join(f'heedful init {file}' for file in data[:2])}"] if data else []
        what = "little running text, and other files" if packed else "data sets of which none is called train"
        raise InputError(f"{folder}: holds {what}; {', or '.join(ways)}. {as_text}")


def packed_content(path: Path) -> str:
    """What a packed or binary file holds by its first bytes, and what to do with it."""
    if ending_of(path) in ARCHIVES:
        return "packed or binary data, not text; unpack it, and give what comes out of it"
    if ending_of(path) == ".npz":  # a zip archive with an array in each file
        return "NumPy arrays, not text; save each as .wav if it is a sound, as .png if a picture, as .csv if a table"
    with open_bytes(path) as stream:
        head = stream.read(16)
    contents = [content for beginning, content in FOREIGN_BEGINNINGS.items() if head.startswith(beginning)]
    return (
        contents[0] if contents else "binary data, not text; save what it holds as text, as a table or as media files"
    )


def layout_of_classes(folder: Path, files: list[Path]) -> FolderLayout | None:
    """Recognise a folder of texts for each class, alone or in each part; None for other folders."""
    children = visible_folders(folder)
    if any(ending_of(file) in ENDINGS for file in files):
        return None
    parts = {part: path for part, names in NAMES.items() for path in children if path.name.lower() in names}
    classes = {part: classes_in(path) for part, path in parts.items()}
    if len(classes.get("train", {})) > 1:
        used = {part: texts for part, texts in classes.items() if texts.keys() <= classes["train"].keys() and texts}
        read = {parts[part].name for part in used}
        unused = [path.name for path in children if path.name not in read]
        unused += [
            f"{parts[part].name}/{path.name}"
            for part in used
            for path in visible_folders(parts[part])
            if path.name not in used[part]
        ]
        return FolderLayout("classes", classes=used, unused=tuple(unused))
    by_class = classes_in(folder)
    if len(by_class) < 2 or all(part_of_name(name) for name in by_class):
        return None
    unused = tuple(path.name for path in children if path.name not in by_class)
    texts = [file for of_class in by_class.values() for file in of_class]
    fewest, mean = min(map(len, by_class.values())), sum(file.stat().st_size for file in texts) / len(texts)
    if fewest < MIN_TEXTS[0] or mean > LENGTHS[1]:
        return FolderLayout("documents", classes={"train": by_class}, certainty="likely", unused=unused)
    certainty: Certainty = "likely" if fewest >= MIN_TEXTS[1] and mean <= LENGTHS[0] else "unsure"
    return FolderLayout("classes", classes={"train": by_class}, certainty=certainty, unused=unused)


def classes_in(folder: Path) -> dict[str, list[Path]]:
    """The texts of each class: of each folder in a folder, but for those of texts without a class.

    Texts are files that end so, and messages with a number as their name.
    """
    classes: dict[str, list[Path]] = {}
    for path in visible_folders(folder):
        files = visible_files(path) if path.name.lower() not in UNLABELLED else ()
        texts = [one for one in files if ending_of(one) in (".txt", ".text", ".md") or NUMBERED.fullmatch(one.name)]
        if texts:
            classes[path.name] = texts
    return classes


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
    commands = " or ".join(f"heedful init {path}" for path in tables[:SHOWN])
    return InputError(f"{media.folder}: {len(tables)} tables name {NOUNS[media.kind]} in it; name one: {commands}")


def nothing_tells(media: LooseMedia) -> InputError:
    """The error that nothing shows what the files of a folder show or say, with what their names or texts suggest."""
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
