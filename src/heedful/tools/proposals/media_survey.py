"""Survey of a user's images, audio or videos: layout, sizes, classes or texts, copies, and groups kept in one part."""

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
from heedful.data.readers.documents import ENDINGS as TEXT_ENDINGS
from heedful.data.readers.files import ending_of, visible_files, visible_folders
from heedful.data.readers.media_files import ENDINGS, MediaFile, files_below, read_content
from heedful.data.readers.rows import find_name, hint_of_name
from heedful.errors import InputError
from heedful.media import audio, images, videos
from heedful.media.containers import HEAD, VIDEO_ENDINGS, container_format, container_frames
from heedful.tools.proposals.pairs import FEWEST_GROUPS, Side, TextStatistics, source_hash
from heedful.tools.proposals.table_task import Certainty, listed
from heedful.wording import counted

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
UNLABELLED = ("unlabelled", "unlabeled", "unsup", "unsupervised", "nolabel")  # folders that are not a class
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
    """Find the column of a table with the class of each file or, if there is none, with a text about each file."""
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
    fitting = classes or texts or rest * (wanted is not None)
    if len(fitting) != 1:
        what = "classes" if classes else "classes or the texts"
        raise InputError(f"{name}: it has {listed(columns)}; say with --target-field which of them has the {what}")
    [column] = fitting
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
    """
    children = visible_folders(folder)
    holding = [path for path in children if files_below(path, data)]
    by_part = {part: [path for path in holding if path.name.lower() in names] for part, names in NAMES.items()}
    named = {part: paths[0] for part, paths in by_part.items() if paths}
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


NAME_PARTS = re.compile(r"[_.-]+")
MAX_GROUPS = 0.5  # of the files: more groups, and a part of their names is a number of the file
MAX_ALONE = 0.1  # of the files: so many may have no group, such as a recording whose name is of another form


class Groups(NamedTuple):
    """The group of each file, None where it has none, and what the groups are, in words; None: no file has a group."""

    names: Sequence[str | None]
    what: str | None


def groups_of(files: Sequence[MediaFile], folder: Path | None, kind: str, column: Mapping[int, str] | None) -> Groups:
    """Find the groups of files: by a column of their table, by folders below their class, or by names of sounds."""
    groupings: list[tuple[str, list[str | None]]] = []
    if column is not None:
        groupings.append(("speaker or group as the table says", [column.get(file.line or 0) for file in files]))
    if folder:
        parts = [file.path.relative_to(folder).parts for file in files]  # class, perhaps a folder, and name
        groupings.append(("folder below its class", [part[1] if len(part) > 2 else None for part in parts]))
    if kind == "audio":
        groupings.append(("speaker as the names of the files say", named_speakers(files)))
    for what, names in groupings:
        groups, alone = set(filter(None, names)), names.count(None)
        if len(groups) >= FEWEST_GROUPS and alone <= MAX_ALONE * len(files):
            rest = f", and {counted(alone, 'files')} without one" if alone else ""
            return Groups(names, f"{what}, {len(groups):,} of them such as {min(groups)!r}{rest}")
    return Groups([None] * len(files), None)


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
        shared = sum(len(of_name) > 1 for of_name in classes.values())
        named = all(re.search(r"[^\W\d]", name) for name in classes) and not classes.keys() & {f.target for f in files}
        if FEWEST_GROUPS <= len(classes) <= MAX_GROUPS * len(files) and named and 2 * shared > len(classes):
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
    """Read a column of a table, by the line of each row."""
    from heedful.data.readers.corpus import read_rows

    rows = read_rows(corpus, data, (corpus.source_field, column), label=column)
    return {line: group.strip() for line, (_, group) in rows}


GREY_MODES = {"1", "L", "LA", "F", "I", "I;16", "I;16B", "I;16L"}  # of Pillow
EXACT_MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA"}  # of Pillow, whose pixels are all in RGBA
COLOURS_UP_TO = 2**16  # pixels of a picture that is unpacked to see whether it is grey
SIDEWAYS = (5, 6, 7, 8)  # orientations in EXIF data in which height and width change places

F = TypeVar("F")


@dataclass(frozen=True)
class PictureFacts:
    """Facts about a picture: its size, whether it is grey, and a digest of its pixels, if all of them are decoded."""

    height: int
    width: int
    is_grey: bool
    decoded: str = field(default="", kw_only=True, compare=False)


@dataclass(frozen=True)
class VideoFacts(PictureFacts):
    """Facts about a video: those of its first frame, and the number of frames."""

    frames: int


@dataclass(frozen=True)
class SoundFacts:
    """Facts about a sound: its length, samples a second, and channels, whether it is silent, and a digest of all."""

    seconds: float
    rate: int
    channels: int
    silent: bool = False
    decoded: str = field(default="", kw_only=True, compare=False)


@dataclass(frozen=True)
class MediaSurvey(Generic[F]):
    """Survey of pictures, sounds or videos."""

    labels: Counter[str]  # the classes or texts, and how many files each has
    facts: list[F]  # the facts of each file that can be read
    # for each file a digest of its pixels or samples, or else of its bytes; None for a file that cannot be read.
    # Equal pictures and sounds in different formats share it, if nothing is lost in these.
    digests: list[str | None]
    bad: list[str]  # a message for each of these
    copies: int  # number of files that are equal to an earlier one
    torn: str | None  # Two equal files of different classes or texts, in words; None if there are none

    @property
    def side(self) -> Side:
        """Statistics of the texts, one for each file, where files have texts."""
        tally = TextStatistics()
        for text in self.labels.elements():
            tally.add(text)
        return tally.side()


def survey_media(files: Iterable[MediaFile], corpus: CorpusConfig, look: Callable[[bytes], F]) -> MediaSurvey[F]:
    """Survey the files of a corpus, each read once."""
    labels, facts, bad = Counter[str](), list[F](), list[str]()
    digests: list[str | None] = []
    first: dict[str, MediaFile] = {}
    torn: str | None = None
    for file in files:
        try:
            content = read_content(file, corpus)
            try:
                facts.append(look(content))
            except InputError as error:
                raise InputError(f"{file.place(corpus)}: {error}") from error
        except InputError as error:
            bad.append(str(error))
            digests.append(None)
            continue
        digest = getattr(facts[-1], "decoded", "") or blake2b(content, digest_size=16).hexdigest()
        earlier = first.setdefault(digest, file)
        if earlier.target != file.target and torn is None:
            torn = f"{earlier.path} ({earlier.target}) and {file.path} ({file.target})"
        labels[file.target] += 1
        digests.append(digest)
    if not facts:
        raise InputError(f"{corpus.source}: no file can be read; the first: {bad[0] if bad else 'there is none'}")
    return MediaSurvey(labels, facts, digests, bad, len(facts) - len(first), torn)


def look_at_picture(content: bytes) -> PictureFacts:
    """Find the size of a picture, as it is seen, and whether it is grey; a large one of a mode with colours is not."""
    with images.opened(content, ImageConfig.max_pixels) as picture:
        whole = picture.size
        facts = facts_of_picture(picture)
        is_exact = picture.mode in EXACT_MODES and picture.size == whole
        if not is_exact:
            return PictureFacts(*facts)
        digest = blake2b(str(whole).encode(), digest_size=16)
        digest.update(picture.convert("RGBA").tobytes())
        return PictureFacts(*facts, decoded=digest.hexdigest())


def look_at_video(content: bytes) -> VideoFacts:
    """Find the number of frames of a video, and the facts of the first one."""
    if kind := container_format(content[:HEAD]):
        return look_at_container(content, kind)
    with images.opened(content, ImageConfig.max_pixels, videos.FORMATS, "video") as picture:
        first = facts_of_picture(picture)
        frames = getattr(picture, "n_frames", 1)
        videos.check_frames(frames, VideoConfig())
        picture.seek(frames - 1)
        picture.load()  # the last frame tells whether the file is whole
        return VideoFacts(*first, frames)


def look_at_container(content: bytes, kind: str) -> VideoFacts:
    """Find the facts of a video of a phone, a camera or a browser, all frames of which are decoded."""
    counts: list[int] = []

    def choose(count: int) -> tuple[int]:
        videos.check_frames(count, VideoConfig())
        counts.append(count)
        return (0,)

    [first] = container_frames(content, kind, ImageConfig.max_pixels, choose)
    height, width = first.shape[:2]
    return VideoFacts(height, width, bool((first == first[:, :, :1]).all()), counts[-1])


def facts_of_picture(picture: Any) -> tuple[int, int, bool]:
    """Find the height and the width of a picture of Pillow as it is seen, and whether it is grey."""
    whole = picture.size
    is_large = whole[0] * whole[1] > COLOURS_UP_TO
    if is_large:
        picture.draft(None, (1, 1))  # a JPEG is read to its end, and the fewest of its pixels are computed
    reduced = picture.size != whole
    picture.load()  # which tells whether the file is whole, and turns a TIFF
    width, height = whole if reduced else picture.size
    sideways = picture.getexif().get(images.ORIENTATION) in SIDEWAYS
    is_grey = picture.mode in GREY_MODES
    if not is_grey and not is_large:
        pixels = np.asarray(picture.convert("RGB"))
        is_grey = bool((pixels == pixels[:, :, :1]).all())
    return (width, height, is_grey) if sideways else (height, width, is_grey)


def listen_to_sound(content: bytes) -> SoundFacts:
    with audio.open_sound(content) as sound:
        frames = audio.frames_of(sound, content)
        count, silent = 0, True
        digest = blake2b(f"{sound.samplerate} {sound.channels}".encode(), digest_size=16)
        for block in audio.blocks(sound, frames):
            count += len(audio.checked(block))
            silent = silent and audio.is_silent(block)
            digest.update(block.tobytes())
        if not frames:
            raise InputError("it has no samples")
        audio.check_count(count, frames)
        seconds = frames / sound.samplerate
        return SoundFacts(seconds, sound.samplerate, sound.channels, silent, decoded=digest.hexdigest())


LOOKS: dict[Kind, Callable[[bytes], Any]] = {
    "image": look_at_picture,
    "audio": listen_to_sound,
    "video": look_at_video,
}
