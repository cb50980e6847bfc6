"""Survey of a user's images, audio or videos: layout, sizes, classes or texts, copies, groups that stay in one part."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import TEXT_NAMES, Column
from heedful.data.readers.corpus import read_rows
from heedful.data.readers.documents import ENDINGS as TEXT_ENDINGS
from heedful.data.readers.files import ending_of, visible_files, visible_folders
from heedful.data.readers.media_files import ENDINGS, MediaFile, files_below, read_content
from heedful.data.readers.rows import find_name, hint_of_name
from heedful.errors import InputError
from heedful.media import audio, images, videos
from heedful.media.containers import HEAD, VIDEO_ENDINGS, container_format, container_frames
from heedful.tools.proposals.splits import MIN_GROUPS, text_hash
from heedful.tools.proposals.table_task import Certainty, list_columns
from heedful.tools.proposals.text_statistics import StatisticsBuilder, TextStatistics
from heedful.wording import counted

Kind = Literal["image", "audio", "video"]

GUESSED_KINDS: tuple[Kind, ...] = ("image", "audio", "video")
GUESSED_ENDINGS = {  # some extensions of images or audio may also be videos: these need --task
    "image": ENDINGS["image"],
    "audio": tuple(ending for ending in ENDINGS["audio"] if ending not in VIDEO_ENDINGS),
    "video": VIDEO_ENDINGS,
}
PART_NAMES = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "validation", "dev"),
    "test": ("test", "testing"),
}
GROUP_NAMES = (
    *("speaker", "speaker_id", "speakerid", "client_id", "user", "user_id", "subject", "subject_id", "patient"),
    *("patient_id", "person", "singer", "reader", "group", "session", "说话人", "发言人"),
)  # columns that say who speaks or is seen
UNLABELLED = ("unlabelled", "unlabeled", "unsup", "unsupervised", "nolabel")  # folders that are not a class
MIN_FILE_SHARE = 0.9  # minimum share of the values in a column of file names that have a media extension


def kind_of_folder(folder: Path, kinds: Sequence[Kind] = GUESSED_KINDS) -> Kind | None:
    """Return the most frequent kind of media in a folder; None if text files are at least as frequent.

    A text named like a file, such as 1.txt next to 1.wav, is about that file and does not count.
    """
    names = [path.name.lower() for path in visible_files(folder)]
    endings = GUESSED_ENDINGS if kinds == GUESSED_KINDS else ENDINGS
    counts = {kind: sum(name.endswith(endings[kind]) for name in names) for kind in kinds}
    kind = max(kinds, key=lambda kind: counts[kind])
    stems = {Path(name).stem for name in names if name.endswith(endings[kind])}
    texts = sum(ending_of(name) in TEXT_ENDINGS and Path(name).stem not in stems for name in names)
    return kind if counts[kind] > texts else None


def file_column(columns: Sequence[Column], kinds: Sequence[Kind] = GUESSED_KINDS) -> tuple[str, Kind] | None:
    """Find the table column with image, audio or video files, and their kind."""
    endings = GUESSED_ENDINGS if kinds == GUESSED_KINDS else ENDINGS
    for column in columns:
        names = [value.strip().lower() for value in column.values]
        for kind in kinds:
            if sum(name.endswith(endings[kind]) for name in names) > MIN_FILE_SHARE * len(names):
                return column.name, kind
    return None


class Target(NamedTuple):
    """The column with the class of each file, or with a text about it; how certain this is; the second-best column."""

    column: Column
    writes: bool  # True for texts, which a model learns to write
    certainty: Certainty
    second: Column | None  # None if the second choice is the same column, interpreted the other way


def target_of(columns: Sequence[Column], files: str, target: str | None, name: str) -> Target:
    """Find the table column with the class of each file or, if it is missing, with a text about each file."""
    rest = [column for column in columns if column.name != files]
    if target is not None:
        names = [column.name for column in rest]
        rest = [column for column in rest if column.name == find_name(target, names)]
        if not rest:
            hint = hint_of_name(target, names)
            raise InputError(
                f"{name}: no column of classes or texts is named {target!r}{hint}; it has {list_columns(columns)}"
            )
    texts = [column for column in rest if column.is_text or column.name.strip().lower() in TEXT_NAMES]
    groups = [column for column in rest if column.name.strip().lower() in GROUP_NAMES and target is None]
    classes = [column for column in rest if column.is_label and column not in (*texts, *groups)]
    classes = [column for column in classes if column.is_called_label] or ([] if texts else classes)
    fitting = classes or texts or rest * (target is not None)
    if len(fitting) != 1:
        what = "classes" if classes else "classes or the texts"
        table = f"{name}: it has {list_columns(columns)}"
        raise InputError(f"{table}; give the one with the {what} as --target-field")
    [column] = fitting
    certainty: Certainty = "certain"
    if column.is_label and not column.is_called_label:  # few distinct values: classes, or texts of single words
        certainty = "unsure" if not classes and 2 * column.spaces <= column.rows else "likely"
    return Target(column, not classes, certainty, texts[0] if classes and texts else None)


class FolderParts(NamedTuple):
    """The folder with the classes of each existing part, and the folders that are not read."""

    folders: dict[str, Path]
    unused: tuple[str, ...]


def parts_of_folder(folder: Path, data: DataConfig) -> FolderParts:
    """Find a folder of classes for each part (train, valid, test); without parts, the folder itself has the classes.

    Folders with the usual names of parts are parts if they contain folders, and one of them is the training part. Then
    other folders are not read.
    """
    children = visible_folders(folder)
    with_files = [path for path in children if files_below(path, data)]
    by_part = {part: [path for path in with_files if path.name.lower() in names] for part, names in PART_NAMES.items()}
    named = {part: paths[0] for part, paths in by_part.items() if paths}
    if named and len(named) == len(with_files) and not any(map(visible_folders, named.values())):
        raise InputError(
            f"{folder}: {', '.join(path.name for path in named.values())} are parts, not classes; put the files of "
            "each class into a folder in each of them, or give a table with the class of each file"
        )
    parts = {part: path for part, path in named.items() if visible_folders(path)}
    if "train" not in parts:
        unused = [path.name for path in children if path not in with_files or is_unlabelled(path)]
        return FolderParts({"train": folder}, tuple(unused))
    unused = [path.name for path in children if path not in parts.values()]
    for path in parts.values():
        unused += [f"{path.name}/{child.name}" for child in visible_folders(path) if is_unlabelled(child)]
    return FolderParts(parts, tuple(unused))


def is_unlabelled(folder: Path) -> bool:
    return folder.name.lower() in UNLABELLED


def other_kinds(folder: Path, kind: Kind) -> dict[str, int]:
    """Count the files of kinds other than the one that is read, by subfolder."""
    others = {ending for other in GUESSED_KINDS for ending in ENDINGS[other]} - set(ENDINGS[kind])
    counts = {
        path.name: sum(file.name.lower().endswith(tuple(others)) for file in visible_files(path))
        for path in visible_folders(folder)
    }
    return {name: count for name, count in counts.items() if count}


NAME_PARTS = re.compile(r"[_.-]+")
MAX_GROUPS = 0.5  # most groups, as a share of the files; with more, that part of the names is a file number
MAX_ALONE = 0.1  # share of the files that may be without a group, such as clips with another form of name


def groups_of(
    files: Sequence[MediaFile], folder: Path | None, kind: str, column: Mapping[int, str] | None
) -> tuple[Sequence[str | None], str | None]:
    """Find groups of files that must stay in one part, from a table column, folders below the class, or file names.

    Returns the group of each file (None for a file without one), and a description of the groups (None without any).
    """
    groupings: list[tuple[str, list[str | None]]] = []
    if column is not None:
        groupings.append(("the speaker or group in the table", [column.get(file.line or 0) for file in files]))
    if folder:
        parts = [file.path.relative_to(folder).parts for file in files]  # class, perhaps a folder, and name
        groupings.append(("the folder below the class", [part[1] if len(part) > 2 else None for part in parts]))
    if kind == "audio":
        groupings.append(("the speaker in the file names", speakers_in_names(files)))
    for what, names in groupings:
        groups, alone = set(filter(None, names)), names.count(None)
        if len(groups) >= MIN_GROUPS and alone <= MAX_ALONE * len(files):
            rest = f", and {counted(alone, 'files')} without one" if alone else ""
            return names, f"{what} ({len(groups):,}, such as {min(groups)!r}{rest})"
    return [None] * len(files), None


def speakers_in_names(files: Sequence[MediaFile]) -> list[str | None]:
    """Return the part of each file name that says who speaks, as in 0_jackson_12.wav; None if no part does.

    This part has letters, occurs in files of several classes, and is not the class. Names with an unusual number of
    parts are ignored.
    """
    rows = [NAME_PARTS.split(file.path.stem) for file in files]
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    targets = {file.target for file in files}
    for index in range(usual):
        column = [row[index] if len(row) == usual else None for row in rows]
        classes: dict[str, set[str]] = defaultdict(set)
        for name, file in zip(column, files, strict=True):
            if name is not None:
                classes[name].add(file.target)
        shared = sum(len(of_name) > 1 for of_name in classes.values())
        may_be_names = all(re.search(r"[^\W\d]", name) for name in classes) and not classes.keys() & targets
        if MIN_GROUPS <= len(classes) <= MAX_GROUPS * len(files) and may_be_names and 2 * shared > len(classes):
            return column
    return [None] * len(files)


def group_hashes(groups: Sequence[str | None], digests: Sequence[str]) -> list[int]:
    """Return a group hash for each file, the same for equal files, and for all files of the groups that they link."""
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
    return [text_hash(root(row[0])) for row in keys]


def group_column(columns: Sequence[Column], others: Sequence[str]) -> str | None:
    """Find the table column for speakers or other groups by its name, if it is not among `others`."""
    names = (column.name for column in columns if column.name.lower() in GROUP_NAMES)
    return next((name for name in names if name not in others), None)


def group_values(corpus: CorpusConfig, data: DataConfig, column: str) -> dict[int, str]:
    """Return the values of a table column by line number."""
    rows = read_rows(corpus, data, (corpus.source_field, column), label=column)
    return {line: group.strip() for line, (_, group) in rows}


GREY_MODES = {"1", "L", "LA", "F", "I", "I;16", "I;16B", "I;16L"}  # of Pillow
EXACT_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA"}  # of Pillow, whose pixels RGBA represents exactly
MAX_COLOUR_PIXELS = 2**16  # of an image that is decoded to see whether it is grey
SIDEWAYS = (5, 6, 7, 8)  # EXIF orientations with height and width swapped

F = TypeVar("F")


@dataclass(frozen=True)
class ImageFacts:
    height: int
    width: int
    is_grey: bool
    decoded: str = field(default="", kw_only=True, compare=False)  # a digest of its pixels, if all are decoded exactly


@dataclass(frozen=True)
class VideoFacts(ImageFacts):
    """The facts of the first frame, and the number of frames."""

    frames: int


@dataclass(frozen=True)
class AudioFacts:
    seconds: float
    rate: int  # samples per second
    channels: int
    silent: bool = False
    decoded: str = field(default="", kw_only=True, compare=False)  # a digest of its samples


@dataclass(frozen=True)
class MediaSurvey(Generic[F]):
    """Survey of images, audio files or videos."""

    labels: Counter[str]  # the classes or texts, and the number of files for each
    facts: list[F]  # the facts of each file that can be read
    # for each file, a digest of its pixels or samples, or else of its bytes; None for a file that cannot be read.
    # Equal images and audio files in different lossless formats have the same digest.
    digests: list[str | None]
    bad: list[str]  # an error message for each file that cannot be read
    copies: int  # number of files that are equal to an earlier one
    conflict: str | None  # description of two equal files with different classes or texts; None if there are none

    @property
    def texts(self) -> TextStatistics:
        """Statistics of the texts, one for each file, if the files have texts."""
        statistics = StatisticsBuilder()
        for text in self.labels.elements():
            statistics.add(text)
        return statistics.build()


def survey_media(files: Iterable[MediaFile], corpus: CorpusConfig, facts_of: Callable[[bytes], F]) -> MediaSurvey[F]:
    """Survey the files of a corpus; each is read once."""
    labels, facts, bad = Counter[str](), list[F](), list[str]()
    digests: list[str | None] = []
    first: dict[str, MediaFile] = {}
    conflict: str | None = None
    for file in files:
        try:
            content = read_content(file, corpus)
            try:
                facts.append(facts_of(content))
            except InputError as error:
                raise InputError(f"{file.place(corpus)}: {error}") from error
        except InputError as error:
            bad.append(str(error))
            digests.append(None)
            continue
        digest = getattr(facts[-1], "decoded", "") or blake2b(content, digest_size=16).hexdigest()
        earlier = first.setdefault(digest, file)
        if earlier.target != file.target and conflict is None:
            conflict = f"{earlier.path} ({earlier.target}) and {file.path} ({file.target})"
        labels[file.target] += 1
        digests.append(digest)
    if not facts:
        reason = f"no file can be read; the first error: {bad[0]}" if bad else "contains no files to read"
        raise InputError(f"{corpus.source}: {reason}")
    return MediaSurvey(labels, facts, digests, bad, len(facts) - len(first), conflict)


def image_facts(content: bytes) -> ImageFacts:
    """Return the displayed size of an image, whether it is grey, and a digest of its pixels.

    A large image in a colour mode counts as colour without a look at its pixels.
    """
    with images.opened(content, ImageConfig.max_pixels) as image:
        whole = image.size
        facts = displayed_facts(image)
        if image.mode not in EXACT_MODES or image.size != whole:
            return ImageFacts(*facts)
        digest = blake2b(str(whole).encode(), digest_size=16)
        digest.update(image.convert("RGBA").tobytes())
        return ImageFacts(*facts, decoded=digest.hexdigest())


def video_facts(content: bytes) -> VideoFacts:
    """Return the number of frames of a video, and the facts of the first one."""
    if kind := container_format(content[:HEAD]):
        counts: list[int] = []

        def first_frame(count: int) -> tuple[int]:
            videos.check_frames(count, VideoConfig())
            counts.append(count)
            return (0,)

        [first] = container_frames(content, kind, ImageConfig.max_pixels, first_frame)
        height, width = first.shape[:2]
        return VideoFacts(height, width, bool((first == first[:, :, :1]).all()), counts[-1])
    with images.opened(content, ImageConfig.max_pixels, videos.FORMATS, "video") as image:
        facts = displayed_facts(image)
        frames = getattr(image, "n_frames", 1)
        videos.check_frames(frames, VideoConfig())
        image.seek(frames - 1)
        image.load()  # the last frame shows whether the file is complete
        return VideoFacts(*facts, frames)


def displayed_facts(image: Any) -> tuple[int, int, bool]:
    """Return the height and the width of a Pillow image as it is displayed, and whether it is grey."""
    whole = image.size
    is_large = whole[0] * whole[1] > MAX_COLOUR_PIXELS
    if is_large:
        image.draft(None, (1, 1))  # a JPEG is read to its end, but as few pixels as possible are decoded
    reduced = image.size != whole
    image.load()  # shows whether the file is complete, and rotates a TIFF
    width, height = whole if reduced else image.size
    sideways = image.getexif().get(images.ORIENTATION) in SIDEWAYS
    is_grey = image.mode in GREY_MODES
    if not is_grey and not is_large:
        pixels = np.asarray(image.convert("RGB"))
        is_grey = bool((pixels == pixels[:, :, :1]).all())
    return (width, height, is_grey) if sideways else (height, width, is_grey)


def audio_facts(content: bytes) -> AudioFacts:
    with audio.open_audio(content) as clip:
        frames = audio.frames_of(clip, content)
        count, silent = 0, True
        digest = blake2b(f"{clip.samplerate} {clip.channels}".encode(), digest_size=16)
        for block in audio.blocks(clip, frames):
            count += len(audio.valid_samples(block))
            silent = silent and audio.is_silent(block)
            digest.update(block.tobytes())
        if not frames:
            raise InputError("it has no samples")
        audio.check_count(count, frames)
        seconds = frames / clip.samplerate
        return AudioFacts(seconds, clip.samplerate, clip.channels, silent, decoded=digest.hexdigest())


FACTS: dict[Kind, Callable[[bytes], Any]] = {"image": image_facts, "audio": audio_facts, "video": video_facts}
