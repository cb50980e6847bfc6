"""Image, audio and video files, with classes from the names of folders, or with classes or texts from a table."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.corpus import TABLES, WHOLE, corpus_files, part_of, read_rows
from heedful.data.readers.documents import drop_made_folders
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import ending_of, visible_files, visible_folders
from heedful.data.readers.labelled import class_of, classes, in_order
from heedful.errors import InputError
from heedful.media import audio, images, videos
from heedful.storage.paths import likely
from heedful.wording import counted

ENDINGS = {"image": images.ENDINGS, "audio": audio.ENDINGS, "video": videos.ENDINGS}
MAX_KINDS = 5  # number of kinds of unread files in a message
NOUNS = {"image": "images", "audio": "audio files", "video": "videos"}


class MediaFile(NamedTuple):
    """An image, audio or video file with its class or its text."""

    path: Path
    target: str  # empty if `data.labelled` is False
    line: int | None  # its line in the table that lists it, counted from 1; None if no table does

    def place(self, corpus: CorpusConfig) -> str:
        """Return the location of the file for messages: its path, and the line of the table that lists it."""
        return str(self.path) if self.line is None else f"{corpus.source}, line {self.line}: {self.path}"


def media_files(corpus: CorpusConfig, data: DataConfig, report: DropReport | None = None) -> Iterator[MediaFile]:
    """Yield the files of a corpus: from a folder by class and name, or in the order of a table (.csv, .tsv, .jsonl).

    In a folder, each subfolder is a class, and all files of the right kind below it belong to the class; `part` applies
    to each class. In a table, `source_field` contains the path of a file, relative to the table, and `target_field` its
    class or text; `part` applies to the rows. Rows with an empty class or text are left out. If `data.labelled` is
    False, the files directly in the folder are read as well, and only the file column of a table is read.
    """
    report = report or DropReport()
    source = corpus_files(corpus, data)[0]
    if not source.exists():
        remedy = likely(source, "correct the name, or give --data FOLDER")
        raise InputError(f"{source}: no such folder or table; {remedy}")
    if source.is_dir():
        drop_made_folders(source, report)
        yield from (_by_class if data.labelled else _unlabelled)(source, corpus, data)
        return
    if ending_of(source) not in TABLES or corpus.target is not None:
        raise InputError(
            f"{source}: {NOUNS[data.modality]} come from a folder with a subfolder for each class, or from one table "
            f"({', '.join(TABLES)}) that gives a file in each row"
        )
    if not data.labelled:
        for line, (name,) in read_rows(corpus, data, (corpus.source_field,), report):
            yield MediaFile(source.parent / name, "", line)
        return
    fields = (corpus.source_field, corpus.target_field)
    for line, (name, target) in read_rows(corpus, data, fields, report, label=corpus.target_field):
        if target.strip():
            yield MediaFile(source.parent / name, class_of(target.strip(), data.labels), line)
        else:
            report.drop("empty label", corpus.source, line)


def _by_class(folder: Path, corpus: CorpusConfig, data: DataConfig) -> Iterator[MediaFile]:
    count = 0
    for label in in_order([path.name for path in visible_folders(folder)]):
        try:
            # Linux allows any bytes in a file name, but the classes are stored in a recipe, which is UTF-8.
            label.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{folder}: the folder {label!a} is a class, but its name has bytes that are not UTF-8; rename it"
            ) from error
        files = files_below(folder / label, data)
        name = class_of(label, data.labels)
        yield from (MediaFile(path, name, None) for path in _part(files, corpus, f"files of the class {label!r}"))
        count += len(files)
    if not count:
        raise InputError(
            f"{folder}: contains no folders with {NOUNS[data.modality]} ({', '.join(ENDINGS[data.modality])}); put "
            f"the {NOUNS[data.modality]} of each class into a separate folder, or give a table of files"
        )


def _unlabelled(folder: Path, corpus: CorpusConfig, data: DataConfig) -> Iterator[MediaFile]:
    """Yield the files in a folder, and those below each of its subfolders. `part` applies to each of these groups."""
    # Files by the name of the subfolder that contains them, as a tuple: () for files directly in the folder.
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path in files_below(folder, data):
        groups.setdefault(path.relative_to(folder).parts[:-1][:1], []).append(path)
    if not groups:
        raise InputError(
            f"{folder}: contains no {NOUNS[data.modality]} ({', '.join(ENDINGS[data.modality])}); give another folder"
        )
    for name, files in groups.items():
        yield from (MediaFile(path, "", None) for path in _part(files, corpus, f"files of {folder.joinpath(*name)}"))


def _part(files: list[Path], corpus: CorpusConfig, unit: str) -> list[Path]:
    return files[slice(*part_of(corpus, len(files), unit))] if files and corpus.part != WHOLE else files


def files_below(folder: Path, data: DataConfig) -> list[Path]:
    """List the images, audio clips or videos anywhere below a folder, sorted by path, without hidden ones."""
    files = (path for path in visible_files(folder) if path.name.lower().endswith(ENDINGS[data.modality]))
    # Sort by the whole path: `part` splits this list, and the split must be the same on every system.
    return sorted(files, key=lambda path: path.relative_to(folder).as_posix())


def other_files(folder: Path, modality: str) -> str:
    """Return a message with the number of other files below a folder, by extension, or "" if there are none."""
    others = Counter(
        path.suffix.lower() or "without an extension"
        for path in visible_files(folder)
        if not path.name.lower().endswith(ENDINGS[modality])
    )
    if not others:
        return ""
    kinds = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common(MAX_KINDS))
    more = ", and more" if len(others) > MAX_KINDS else ""
    summary = f"{counted(others.total(), 'files')} of other kinds {'is' if others.total() == 1 else 'are'} left out"
    return f"{folder}: {summary}: {kinds}{more}"


def read_content(file: MediaFile, corpus: CorpusConfig) -> bytes:
    """Read all bytes of a file."""
    try:
        content = file.path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{file.place(corpus)}: no such file; {likely(file.path)}") from error
    except OSError as error:
        raise InputError(f"{file.place(corpus)}: cannot be read ({error.strerror or error})") from error
    if not content:
        raise InputError(f"{file.place(corpus)}: the file is empty; remove it, or save it again")
    return content


def media_labels(data: DataConfig) -> tuple[str, ...]:
    """Return the classes of a recipe: `data.labels`, or all classes of the training files, sorted."""
    return classes(data, lambda corpus: ((file.target, file.place(corpus)) for file in media_files(corpus, data)))
