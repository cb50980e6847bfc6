"""`heedful init` for pictures, sounds and videos: the recipe of a classifier, or of a model that writes about them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from heedful.cli.first_recipe import (
    BadUtf8,
    free_folder,
    json_line,
    relative_path,
    tell_dropped,
    tell_lengths,
    tell_parts,
    tell_recipe,
    this_machine,
    write,
    write_parts,
)
from heedful.cli.init_labelled import FEW, PARTS, RARE, SHARE, SHOWN
from heedful.cli.init_languages import SCRIPTS
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.media.media_files import MediaFile
    from heedful.data.proposals.media_layout import Kind, Share
    from heedful.data.proposals.media_survey import MediaSurvey, PictureFacts, SoundFacts, VideoFacts
    from heedful.data.proposals.proposal import Corpora, Texts
    from heedful.data.proposals.table_task import TaskChoice
    from heedful.data.readers.columns import Column

TASKS = {"image": "image_classification", "audio": "audio_classification", "video": "video_classification"}
TEXT_TASKS = {"image": "captioning", "audio": "speech_recognition"}
MOVING = (".gif", ".apng")  # endings of pictures that are usually animated
FEWEST = 10  # files of a class, of which some can be held out


@dataclass(frozen=True)
class MediaRequest:
    """Arguments of `heedful init` for files that are no text: their kind, task and corpus, and the output folder."""

    kind: "Kind"
    task: str
    corpus: CorpusConfig  # a folder, or a table with its columns
    out: Path | None
    bad_utf8: BadUtf8

    @property
    def data(self) -> DataConfig:
        """The settings by which the files are found."""
        return DataConfig(modality=self.kind, bad_utf8=self.bad_utf8)

    @property
    def writes(self) -> bool:
        """True if the files have texts, which the model learns to write; False if they have classes."""
        return self.task in TEXT_TASKS.values()

    @property
    def source(self) -> Path:
        """The folder, or the table."""
        return Path(self.corpus.source)


def media_request(
    source: Path, wanted: "TaskChoice", out: Path | None, bad_utf8: BadUtf8, columns: "Sequence[Column]" = ()
) -> MediaRequest | None:
    """Make the request for a folder or a table of pictures, sounds or videos; None if there are none, or another task.

    `columns` are those of a table.

    Raises:
        InputError: The task does not fit the files, or the columns of the table do not tell their classes or texts.
    """
    from heedful.data.media.media_files import NOUNS
    from heedful.data.proposals.media_layout import GUESSED, file_column, kind_of_folder, target_column

    if wanted.task not in (None, *TASKS.values(), *TEXT_TASKS.values()) or not source.exists():
        return None
    corpus, tasks = CorpusConfig(source=str(source)), TASKS
    kinds: tuple[Kind, ...] = ("video",) if wanted.task == TASKS["video"] else GUESSED
    if source.is_dir():
        kind = kind_of_folder(source, kinds)
        if kind and (wanted.source or wanted.target):
            raise InputError(f"{source}: a folder has no columns; leave --source-field and --target-field out")
    elif columns:
        wanted_files = [column for column in columns if wanted.source in (None, column.name)]
        files, kind = file_column(wanted_files, kinds) or (None, None)
        if files:
            target = target_column(columns, files, wanted.target, str(source))
            corpus = replace(corpus, source_field=files, target_field=target.name)
            writes = target.is_text if wanted.task is None else wanted.task in TEXT_TASKS.values()
            tasks = TEXT_TASKS if writes else TASKS
    else:
        kind = None
    if wanted.task and (kind is None or tasks[kind] != wanted.task):
        raise InputError(
            f"--task {wanted.task}: {source} holds {'none of these files' if kind is None else NOUNS[kind]}; name "
            "a table with a column of files, or for classes a folder with a folder of files for each"
        )
    return MediaRequest(kind, tasks[kind], corpus, out, bad_utf8) if kind else None


def init_media(request: MediaRequest) -> None:
    """Write the recipe of a model of pictures, sounds or videos, and hold some of the files out.

    Raises:
        InputError: The files cannot be used, or something would be overwritten.
        RunError: The folder cannot be written.
    """
    from heedful.config.load import load_recipe
    from heedful.data.media.media_files import media_files
    from heedful.data.proposals.media_layout import parts_of_folder
    from heedful.data.proposals.media_survey import LOOKS, survey_media
    from heedful.data.proposals.proposal import Texts
    from heedful.data.readers.filters import DropReport

    folder = free_folder(request.source, request.out, request.task)
    parts = parts_of_folder(request.source, request.data) if request.source.is_dir() else {}
    surveyed = replace(request.corpus, source=str(parts["train"][0] if parts else request.source))
    with show_progress(f"reading {surveyed.source}", "files") as progress:
        files = list(progress.over(media_files(surveyed, request.data, drops := DropReport())))
        found: MediaSurvey[Any] = survey_media(files, surveyed, LOOKS[request.kind])
    tell_dropped(drops)
    tell_files(found, request)
    tell_moving([file.path for file in files], request)
    corpora = named_parts(parts, found, folder) if parts else hold_out(files, found, request, folder / "data")
    texts = Texts(folder.resolve().name, request.bad_utf8, corpora)
    write(folder / "config.toml", (proposed_text if request.writes else proposed)(found, request, texts))
    tell_recipe(load_recipe(folder), folder, str(files[0].path))


def proposed(found: "MediaSurvey[Any]", request: MediaRequest, texts: "Texts") -> str:
    """Write the recipe of a classifier, in TOML."""
    from heedful.data.proposals.media_proposal import PROPOSALS
    from heedful.data.readers.labelled import in_order

    return PROPOSALS[request.kind](found, in_order(found.labels), this_machine(), texts)


def proposed_text(found: "MediaSurvey[Any]", request: MediaRequest, texts: "Texts") -> str:
    """Write the recipe of a model that writes texts, in TOML."""
    from heedful.data.proposals.media_text_proposal import propose_captions, propose_transcripts

    propose: Any = propose_captions if request.kind == "image" else propose_transcripts
    return propose(found, SCRIPTS.get(found.side.script or ""), this_machine(), texts)


def named_parts(parts: "Mapping[str, tuple[Path, Share]]", found: "MediaSurvey[Any]", folder: Path) -> "Corpora":
    """Return the recipe tables that name the folder and the share of each part, and print what is held out.

    Raises:
        InputError: A class has too few files for that.
    """
    from heedful.data.proposals.proposal import Corpora

    rarest, count = min(found.labels.items(), key=lambda item: item[1])
    if parts["train"][1] != (0.0, 1.0) and count < FEWEST:
        raise InputError(
            f"{parts['train'][0]}: {counted(count, 'files')} of the class {rarest!r}, too few to hold some out; give "
            f"{FEWEST} or more of each class, or name the parts: folders train, valid and test with folders of classes"
        )
    keys: dict[str, dict[str, object]] = {}
    typer.echo("")
    for name, (path, share) in parts.items():
        keys[name] = {"source": relative_path(path, folder)}
        whole = share == (0.0, 1.0)
        keys[name] |= {} if whole else {"part": list(share)}
        typer.echo(f"{name:6}{path}" + ("" if whole else f", {share[0]:.0%} to {share[1]:.0%} of each class"))
    return Corpora(**keys)


def hold_out(files: "Sequence[MediaFile]", found: "MediaSurvey[Any]", request: MediaRequest, folder: Path) -> "Corpora":
    """Write tables of the training, validation and test files; no file is in two, nor a copy of it.

    Raises:
        InputError: There are too few files.
    """
    import numpy as np

    from heedful.data.proposals.pair_survey import source_hash, split
    from heedful.data.proposals.proposal import Corpora

    corpus = request.corpus
    readable = [(digest, file) for digest, file in zip(found.digests, files, strict=True) if digest]
    hashes = np.unique(np.array([source_hash(digest) for digest, _ in readable], dtype=np.uint64))
    division = split(hashes, valid=True, test=True, share=SHARE)
    divided = division.divide(readable, lambda item: item[0], lambda _: True)

    def line(file: "MediaFile") -> tuple[str]:
        path = relative_path(file.path, folder)
        return (json_line({corpus.source_field: path, corpus.target_field: file.target}),)

    names = {part: (f"{part}.jsonl",) for part in PARTS}
    counts = write_parts(folder, ((part, line(file)) for part, (_, file) in divided), names)
    tell_parts(folder, counts, "files", len(readable), "bytes")
    fields = {"source_field": corpus.source_field, "target_field": corpus.target_field}
    return Corpora(**{part: {"source": f"data/{part}.jsonl", **fields} for part in PARTS})


def tell_files(found: "MediaSurvey[Any]", request: MediaRequest) -> None:
    """Print what the files look like, and what is odd about them.

    Raises:
        InputError: There is one class only, or there are too many.
    """
    from heedful.data.media.media_files import NOUNS

    corpus = request.corpus
    where = "a folder for each class"
    if not request.source.is_dir():
        what = "text" if request.writes else "class"
        where = f"file in {corpus.source_field!r}, {what} in {corpus.target_field!r}"
    typer.echo(f"{counted(len(found.facts), NOUNS[request.kind])}: {where}")
    tell_facts = {"image": tell_sizes, "audio": tell_seconds, "video": tell_frames}
    tell_facts[request.kind](found.facts)
    (tell_texts if request.writes else tell_classes)(found, request)
    if found.copies:
        typer.echo(f"  {counted(found.copies, 'files')} equal to an earlier one, byte for byte")
    if found.bad:
        typer.echo(f"  {counted(len(found.bad), 'files')} cannot be read; the first: {found.bad[0]}")
        of_folder = "those in training will be left out; mend or remove those held out, which would stop their scoring"
        typer.echo(f"    {of_folder if request.source.is_dir() else 'they are left out of all parts'}")
    if len(found.facts) < FEW:
        typer.echo(f"  fewer than {FEW:,} files teach little from scratch; find more if you can")


def tell_texts(found: "MediaSurvey[Any]", _request: MediaRequest) -> None:
    """Print how long the texts are, and how many of them are different."""
    side = found.side
    unit, lengths = ("characters", side.characters) if side.is_spaceless else ("words", side.words)
    tell_lengths("", unit, lengths)
    typer.echo(f"  {len(found.labels):,} different texts")


def tell_classes(found: "MediaSurvey[Any]", request: MediaRequest) -> None:
    """Print the classes, and what is odd about them.

    Raises:
        InputError: There is one class only, or there are too many.
    """
    from heedful.data.readers.labelled import MOST_LABELS, dominance_line

    source = request.corpus.source
    if len(found.labels) < 2:
        remedy = remedy_for_one_class(request.source)
        raise InputError(f"{source}: all files are of the class {next(iter(found.labels))!r}; {remedy}")
    if len(found.labels) > MOST_LABELS:
        raise InputError(
            f"{source}: {len(found.labels):,} different classes, and more than {MOST_LABELS:,} are none; name "
            "another column with --target-field"
        )
    shown = [f"{label} ({count:,})" for label, count in found.labels.most_common(SHOWN)]
    typer.echo(f"  {len(found.labels):,} classes: {', '.join(shown)}{', ...' * (len(found.labels) > SHOWN)}")
    if line := dominance_line(found.labels):
        typer.echo(f"  {line}")
    if rare := [label for label, count in found.labels.items() if count < RARE]:
        typer.echo(f"  too rare to be learned, with fewer than {RARE} files: {', '.join(rare[:SHOWN])}; typing slips?")
    if found.torn:
        typer.echo(f"  equal files of different classes: {found.torn}; correct one of them")


def remedy_for_one_class(source: Path) -> str:
    """Say what to do about files of a single class: in their folder may lie tables that tell more of them."""
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import READERS

    tables = sorted(path for path in source.glob("*") if ending_of(path) in READERS) if source.is_dir() else []
    if not tables:
        return "two are needed"
    return f"if a table there tells the classes, name it, as in: heedful init {tables[0]}"


def tell_sizes(facts: "Sequence[PictureFacts]") -> None:
    """Print the sizes of pictures, and whether they are grey."""
    sizes = Counter((one.height, one.width) for one in facts)
    [((height, width), count)] = sizes.most_common(1)
    colours = "grey" if all(one.is_grey for one in facts) else "in colour"
    others = "" if len(sizes) == 1 else f", the most common of {len(sizes):,} sizes ({count / len(facts):.0%})"
    typer.echo(f"  {colours}, {height} x {width} pixels (height x width){others}")


def tell_frames(facts: "Sequence[VideoFacts]") -> None:
    """Print the sizes of videos, and how many frames they have."""
    import numpy as np

    tell_sizes(facts)
    shortest, half, longest = np.quantile([one.frames for one in facts], [0, 0.5, 1]).round().astype(int)
    typer.echo(f"  frames: fewest {shortest:,}, median {half:,}, most {longest:,}")


def tell_moving(paths: "Sequence[Path]", request: MediaRequest) -> None:
    """Print that files which are usually animated are read as still pictures, if they are."""
    moving = [path for path in paths if path.suffix.lower() in MOVING]
    if request.kind == "image" and moving:
        typer.echo(
            f"  {counted(len(moving), 'files')} ending in {' or '.join(MOVING)}: only the first frame is read; for "
            f"videos add --task {TASKS['video']}"
        )


def tell_seconds(facts: "Sequence[SoundFacts]") -> None:
    """Print the lengths and the rates of sounds."""
    import numpy as np

    half, most, longest = np.quantile([one.seconds for one in facts], [0.5, 0.99, 1])
    rates = [f"{rate:,}" for rate, _ in Counter(one.rate for one in facts).most_common(3)]
    typer.echo(f"  seconds: median {half:.1f}, 99 % up to {most:.1f}, longest {longest:.1f}")
    typer.echo(f"  samples a second: {', '.join(rates)}")
