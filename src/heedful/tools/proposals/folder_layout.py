"""Layouts of a folder of texts: two languages, parts of a data set, a folder of texts for each class, or documents."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.data.readers.documents import ENDINGS
from heedful.data.readers.files import (
    FOREIGN_BEGINNINGS,
    BadUtf8,
    ending_of,
    open_bytes,
    visible_files,
    visible_folders,
)
from heedful.data.readers.rows import READERS
from heedful.errors import InputError
from heedful.storage.compression import without_compression
from heedful.text.languages import is_language
from heedful.tools.proposals.media_survey import NAMES, UNLABELLED
from heedful.tools.proposals.table_task import Certainty
from heedful.tools.proposals.text_shapes import shape_of

DATA = (*READERS, ".json", ".conll", ".conllu", ".iob", ".bio", ".txt", ".train", ".test", ".dev", ".label")
ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")
PACKED = (*ARCHIVES, ".parquet", ".arrow", ".npy", ".npz", ".bin", ".db", ".sqlite")
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|about|source|changelog|authors|credits)", re.IGNORECASE)
LANGUAGE = re.compile(r"^(.+)[-._]([a-z]{2,3})$")
PART = re.compile(r"(?<![a-z])(train(?:ing)?|val(?:id(?:ation)?)?|dev(?:el)?|test(?:ing)?)(?![a-z])")
NUMBERED = re.compile(r"\d+")  # names of messages, as of the 20 newsgroups
FEWEST_TEXTS = (5, 10)  # of a class: with fewer they are hardly classes, with as many they may be
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
    """Recognise the layout of a folder of texts."""
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
    known = sorted(names, key=lambda name: (len(name), name))
    best: dict[str, str] = {}
    for name in known:
        if part := part_of_name(name):
            best.setdefault(part, name)
    return {"train": known[0]} if len(known) == 1 else best


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
            found = {part: (stems[stem][source], stems[stem][target]) for part, stem in parts.items()}
            read = {file for couple in found.values() for file in couple}
            unused = tuple(file.name for file in files if file not in read)
            return FolderLayout("languages", found, unused=unused)
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
        found = {part: texts for part, texts in classes.items() if texts.keys() <= classes["train"].keys() and texts}
        read = {parts[part].name for part in found}
        unused = [path.name for path in children if path.name not in read]
        unused += [
            f"{parts[part].name}/{path.name}"
            for part in found
            for path in visible_folders(parts[part])
            if path.name not in found[part]
        ]
        return FolderLayout("classes", classes=found, unused=tuple(unused))
    found = classes_in(folder)
    if len(found) < 2 or all(part_of_name(name) for name in found):
        return None
    unused = tuple(path.name for path in children if path.name not in found)
    texts = [file for of_class in found.values() for file in of_class]
    fewest, mean = min(map(len, found.values())), sum(file.stat().st_size for file in texts) / len(texts)
    if fewest < FEWEST_TEXTS[0] or mean > LENGTHS[1]:
        return FolderLayout("documents", classes={"train": found}, certainty="likely", unused=unused)
    certainty: Certainty = "likely" if fewest >= FEWEST_TEXTS[1] and mean <= LENGTHS[0] else "unsure"
    return FolderLayout("classes", classes={"train": found}, certainty=certainty, unused=unused)


def classes_in(folder: Path) -> dict[str, list[Path]]:
    """The texts of each class: of each folder in a folder, but for those of texts without a class."""
    found = {path.name: texts_below(path) for path in visible_folders(folder) if path.name.lower() not in UNLABELLED}
    return {label: texts for label, texts in found.items() if texts}


def texts_below(folder: Path) -> list[Path]:
    """The texts below the folder of a class: files that end like texts, or messages with a number as their name."""
    return [
        file
        for file in visible_files(folder)
        if ending_of(file) in (".txt", ".text", ".md") or NUMBERED.fullmatch(file.name)
    ]
