"""Folder layouts: texts in two languages, in parts, in classes or as documents; media with or without classes."""

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
from heedful.storage.disk import without_compression
from heedful.text.languages import is_language
from heedful.tools.proposals.media_survey import PART_NAMES, UNLABELLED, Kind, file_column, kind_of_folder
from heedful.tools.proposals.splits import Part
from heedful.tools.proposals.table_task import Certainty
from heedful.tools.proposals.text_shapes import shape_of
from heedful.wording import counted

DATA = (*READERS, ".json", ".conll", ".conllu", ".iob", ".bio", ".txt", ".train", ".test", ".dev", ".label")
ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")
PACKED = (*ARCHIVES, ".parquet", ".arrow", ".npy", ".npz", ".bin", ".db", ".sqlite")
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|about|source|changelog|authors|credits)", re.IGNORECASE)
LANGUAGE = re.compile(r"^(.+)[-._]([a-z]{2,3})$")
PART = re.compile(r"(?<![a-z])(train(?:ing)?|val(?:id(?:ation)?)?|dev(?:el)?|test(?:ing)?)(?![a-z])")
NUMBERED = re.compile(r"\d+")  # names of messages, as in 20 Newsgroups
MIN_TEXTS = 5  # per class
LIKELY_TEXTS = 10  # per class; folders with at least this many texts are likely to be classes
LIKELY_LENGTH = 20_000  # mean bytes per text; folders of texts up to this length are likely to be classes
MAX_LENGTH = 50_000  # mean bytes per text; longer texts are taken for documents, such as books

Classes = Mapping[str, list[Path]]  # the texts of each class


class FolderLayout(NamedTuple):
    """Layout of a folder of texts."""

    # two languages, one file per part, one folder per class, or documents
    kind: Literal["languages", "parts", "classes", "documents"]
    files: Mapping[str, tuple[Path, ...]] = {}  # the two files of each part, or for "parts" the one file of each
    classes: Mapping[str, Classes] = {}  # of each part; "train" has all classes, if it is the only part
    certainty: Certainty = "certain"
    unused: tuple[str, ...] = ()  # files and folders that are not read


def layout_of(folder: Path, bad_utf8: BadUtf8) -> FolderLayout:
    files = [path for path in visible_files(folder) if path.parent == folder and not ABOUT.search(path.name)]
    return (
        layout_of_languages(folder, files)
        or layout_of_classes(folder, files)
        or layout_of_parts(files, bad_utf8)
        or FolderLayout("documents", certainty="likely")
    )


def best_names(names: Iterable[str]) -> dict[str, str]:
    """Return the shortest name that mentions each part, such as dev.tsv; a single name is the training part."""
    shortest = sorted(names, key=lambda name: (len(name), name))
    best: dict[str, str] = {}
    for name in shortest:
        if match := PART.search(name.lower()):
            part: Part = "train" if match[1].startswith("train") else "test" if match[1].startswith("test") else "valid"
            best.setdefault(part, name)
    return {"train": shortest[0]} if len(shortest) == 1 else best


def layout_of_languages(folder: Path, files: list[Path]) -> FolderLayout | None:
    """Recognise files in two languages, such as train.en and train.de; None for other files."""
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
            used = {file for couple in couples.values() for file in couple}
            unused = tuple(file.name for file in files if file not in used)
            return FolderLayout("languages", couples, unused=unused)
    return None


def layout_of_parts(files: list[Path], bad_utf8: BadUtf8) -> FolderLayout | None:
    """Recognise a single data file, or one for each part; None for running text, or for files of unknown parts."""
    data = [file for file in files if ending_of(file) in DATA]
    data = [file for file in data if ending_of(file) in READERS or shape_of(file, bad_utf8)]
    parts = best_names(file.name for file in data)
    if "train" not in parts or (len(data) > 1 and len(parts) == 1):
        return None
    by_name = {file.name: file for file in data}
    unused = tuple(file.name for file in files if file.name not in parts.values())
    return FolderLayout("parts", {part: (by_name[name],) for part, name in parts.items()}, unused=unused)


def check_documents(folder: Path, bad_utf8: BadUtf8) -> None:
    """Reject a folder of data sets or archives rather than running text. Files such as README are ignored."""
    files = [file for file in visible_files(folder) if not ABOUT.search(file.name)]
    texts = [file for file in files if ending_of(file) in ENDINGS and ending_of(file) != ".json"]
    others = [file for file in files if ending_of(file) in (*DATA, *PACKED) and file not in texts]
    as_text = (
        f". To train a language model on the texts in the folder, run: heedful init {folder} --task language_model"
        if texts
        else ""
    )
    for file in texts:
        if ending_of(file) not in READERS and (shape := shape_of(file, bad_utf8)):
            remedy = shape.remedy or f"give one such file alone, as in: heedful init {file}"
            raise InputError(f"{file}: contains {shape.content}, not running text; {remedy}{as_text}")
    if sum(file.stat().st_size for file in others) > sum(file.stat().st_size for file in texts):
        packed = [file.name for file in others if ending_of(file) in PACKED]
        data = [file for file in others if file.name not in packed]
        archives = [name for name in packed if ending_of(name) in ARCHIVES]
        ways = [f"unpack {', '.join(archives[:3])}"] if archives else []
        ways += [] if archives else [f"{name} {packed_content(folder / name)}" for name in packed[:1]]
        ways += [f"give one file, as in: {' or '.join(f'heedful init {file}' for file in data[:2])}"] if data else []
        what = "little running text, and other files" if texts else "no running text, but other files"
        what = what if packed else "data sets, none of which is named train"
        raise InputError(f"{folder}: contains {what}; {', or '.join(ways)}{as_text}")


def packed_content(path: Path) -> str:
    """Describe what a packed or binary file contains, judging by its first bytes, and what to do with it."""
    if ending_of(path) in ARCHIVES:
        return "contains packed or binary data, not text; unpack it, and give the unpacked files"
    if ending_of(path) == ".npz":  # a zip archive with an array in each file
        return "contains NumPy arrays, not text; save audio as .wav, images as .png, and tables as .csv files"
    with open_bytes(path) as stream:
        head = stream.read(16)
    contents = [content for beginning, content in FOREIGN_BEGINNINGS.items() if head.startswith(beginning)]
    if contents:
        return f"is {contents[0]}"
    return "contains binary data, not text; save its contents as text, a table or media files"


def layout_of_classes(folder: Path, files: list[Path]) -> FolderLayout | None:
    """Recognise one folder of texts per class, directly or in each part; None for other folders.

    Without parts, folders of few texts or of long ones are taken for documents rather than classes.
    """
    children = visible_folders(folder)
    if any(ending_of(file) in ENDINGS for file in files):
        return None
    parts = {part: path for part, names in PART_NAMES.items() for path in children if path.name.lower() in names}
    classes = {part: classes_in(path) for part, path in parts.items()}
    if len(classes.get("train", {})) > 1:
        used = {part: texts for part, texts in classes.items() if texts.keys() <= classes["train"].keys() and texts}
        unused = [path.name for path in children if path not in [parts[part] for part in used]]
        for part, texts in used.items():
            inner = visible_folders(parts[part])
            unused += [f"{parts[part].name}/{path.name}" for path in inner if path.name not in texts]
        return FolderLayout("classes", classes=used, unused=tuple(unused))
    by_class = classes_in(folder)
    if len(by_class) < 2 or all(PART.search(name.lower()) for name in by_class):
        return None
    unused = tuple(path.name for path in children if path.name not in by_class)
    texts = [file for of_class in by_class.values() for file in of_class]
    fewest, mean = min(map(len, by_class.values())), sum(file.stat().st_size for file in texts) / len(texts)
    if fewest < MIN_TEXTS or mean > MAX_LENGTH:
        return FolderLayout("documents", classes={"train": by_class}, certainty="likely", unused=unused)
    certainty: Certainty = "likely" if fewest >= LIKELY_TEXTS and mean <= LIKELY_LENGTH else "unsure"
    return FolderLayout("classes", classes={"train": by_class}, certainty=certainty, unused=unused)


def classes_in(folder: Path) -> dict[str, list[Path]]:
    """Find the texts of each class (text files, or messages named by a number), one class per subfolder."""
    classes: dict[str, list[Path]] = {}
    for path in visible_folders(folder):
        files = visible_files(path) if path.name.lower() not in UNLABELLED else ()
        texts = [file for file in files if ending_of(file) in (".txt", ".text", ".md") or NUMBERED.fullmatch(file.name)]
        if texts:
            classes[path.name] = texts
    return classes


FIRST_WORD = re.compile(r"[^\W\d_]+|\d+")  # in a name, such as dog in dog12.wav
MAX_NAMES = 3  # in a message
TARGETS = {"image": "caption", "audio": "text", "video": "label"}


def media_table(folder: Path, bad_utf8: BadUtf8, parent: Path | None = None) -> Path | None:
    """Return the table that lists the images, audio or videos in a folder without class folders, if there is one.

    Raises:
        InputError: Several tables list them, or nothing shows their classes or texts.
    """
    kind = kind_of_folder(folder)
    if kind is None:
        return None
    media = files_below(folder, DataConfig(modality=kind))
    folders = {path.parent for path in media}
    if len(folders - {folder}) > 1:
        return None
    readable = sorted(path for path in folder.iterdir() if path.is_file() and ending_of(path) in READERS)
    tables = []
    for path in readable:
        with suppress(InputError):  # a table that cannot be read lists no files
            if file_column(columns_of(path, DataConfig(bad_utf8=bad_utf8)), (kind,)):
                tables.append(path)
    if len(tables) > 1:
        commands = " or ".join(f"heedful init {path}" for path in tables[:MAX_NAMES])
        raise InputError(f"{folder}: {len(tables)} tables list {NOUNS[kind]} in it; choose one: {commands}")
    if not tables and folder in folders:
        raise no_targets_error(folder, kind, media, parent)
    if len(folders) == 1 and not readable:
        return media_table(folders.pop(), bad_utf8, folder)  # all are in one subfolder, so look there
    return tables[0] if tables else None


def no_targets_error(folder: Path, kind: Kind, media: Sequence[Path], parent: Path | None = None) -> InputError:
    """Return the error for media files without classes or texts; its remedy depends on their names and nearby texts.

    `parent` is the folder that the user gave, if the files are all in its subfolder `folder`.
    """
    content = f"{folder}: contains {counted(len(media), NOUNS[kind])},"
    name = media[0].relative_to(folder).as_posix()
    table, target = folder / "files.csv", TARGETS[kind]

    def by_table(what: str, header: str) -> str:
        return (
            f"list each file with its {what} in a table, such as {table} with the lines {header} and {name},..., and "
            f"run: heedful init {table}"
        )

    if texts := texts_next_to(folder, media):
        return InputError(
            f"{content} apparently with their texts in {texts}; {by_table('text', f'file,{target}')}. To train on the "
            f"texts alone, run: heedful init {folder} --task language_model"
        )
    # The first words of the names may be the classes, if there are few of them and each has several files.
    words = [match[0] for path in media if (match := FIRST_WORD.search(path.stem))]
    names = sorted(set(words))
    has_few = len(words) == len(media) and 2 <= len(names) <= len(words) // 3
    if not has_few or min(map(words.count, names)) < 2:
        names = []
    beginnings = ", ".join(names[:MAX_NAMES]) + ", ..." * (len(names) > MAX_NAMES)
    suggestion = f" The names begin with {beginnings}: are these the classes?" if names else ""
    if parent and not names:
        suggestion = f" If {folder.name} is a class, add the folder of another class to {parent}."
    example = folder / (names[0] if names else "CLASS") / Path(name).name
    headers = f"file,label (or file,{target})" if target != "label" else "file,label"
    return InputError(
        f"{content} but nothing shows their classes or texts: neither one folder per class nor a table.{suggestion} "
        f"Put the {NOUNS[kind]} of each class into a folder, such as {example}; or {by_table('class or text', headers)}"
    )


def texts_next_to(folder: Path, media: Sequence[Path]) -> str | None:
    """Find the texts of media files: files with the same names, or one that lists them; return a name for messages."""
    stems = {path.stem for path in media}
    texts = [path for path in visible_files(folder) if path.suffix.lower() in (".txt", ".lab", ".trn")]
    if sum(path.stem in stems for path in texts) * 2 > len(stems):
        return f"{next(path.name for path in texts if path.stem in stems)} etc."
    for path in texts:
        words = [re.split(r"[\s|,]", line, maxsplit=1)[0] for line in read_lines(path, bad_utf8="replace")]
        if 2 * sum(Path(word).stem in stems for word in words if word) > max(1, len(words)):
            return path.name
    return None
