"""`heedful init` for images, audio and videos: the recipe of a classifier or of a model that writes text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from heedful.cli.first_recipe import (
    free_folder,
    json_line,
    lengths_of,
    new_recipe,
    relative_path,
    report_dropped,
    report_few,
    report_lengths,
    report_parts,
    report_recipe,
    this_machine,
    write,
    write_parts,
)
from heedful.cli.init_labelled import ADVISED_EXAMPLES, PARTS, SHARE, report_classes, report_only_trained
from heedful.cli.init_source import Interpretation
from heedful.cli.init_text import SCRIPTS
from heedful.cli.options import BadUtf8
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.files import ending_of, visible_folders
from heedful.data.readers.labelled import MAX_LABELS, in_order, whole_labels
from heedful.data.readers.media_files import NOUNS, files_below, media_files, other_files
from heedful.data.readers.rows import READERS
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.tools.proposals.media_proposal import propose_classifier, propose_writer
from heedful.tools.proposals.media_survey import (
    FACTS,
    GUESSED_KINDS,
    UNLABELLED,
    file_column,
    group_column,
    group_hashes,
    group_values,
    groups_of,
    is_unlabelled,
    kind_of_folder,
    other_kinds,
    parts_of_folder,
    survey_media,
    target_of,
)
from heedful.tools.proposals.proposal import RecipeData
from heedful.tools.proposals.splits import MIN_GROUPS, Split, classes_not_held_out, split_by_class
from heedful.tools.proposals.table_task import TaskChoice
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.data.readers.columns import Column
    from heedful.data.readers.media_files import MediaFile
    from heedful.tools.proposals.media_survey import AudioFacts, ImageFacts, Kind, MediaSurvey, VideoFacts
    from heedful.tools.proposals.proposal import Keys

TASKS = {"image": "image_classification", "audio": "audio_classification", "video": "video_classification"}
TEXT_TASKS = {"image": "captioning", "audio": "speech_recognition"}
MOVING = (".gif", ".apng")  # extensions of images that are usually animated


@dataclass(frozen=True)
class MediaRequest:
    """Arguments of `heedful init` for images, audio or videos."""

    kind: "Kind"
    interpretation: Interpretation
    columns: "tuple[Column, ...]"  # of a table
    out: Path | None
    bad_utf8: BadUtf8

    @property
    def source(self) -> Path:
        return self.interpretation.source

    @property
    def corpus(self) -> CorpusConfig:
        """The folder, or the table with its columns."""
        choice = self.interpretation.choice
        if choice.source is None or choice.target is None:
            return CorpusConfig(source=str(self.source))
        return CorpusConfig(source=str(self.source), source_field=choice.source, target_field=choice.target)

    @property
    def task(self) -> str:
        return str(self.interpretation.choice.task)

    @property
    def writes(self) -> bool:
        """True if the files have texts, which the model learns to write; False if they have classes."""
        return self.task in TEXT_TASKS.values()

    @property
    def data(self) -> DataConfig:
        target = [
            column for column in self.columns if column.name == self.interpretation.choice.target and not self.writes
        ]
        labels = tuple(label for column in target for label in whole_labels(map(str.strip, column.values)))
        labels = labels if len(labels) <= MAX_LABELS else ()
        return DataConfig(modality=self.kind, bad_utf8=self.bad_utf8, labels=labels)


def media_request(
    source: Path, user_choice: TaskChoice, out: Path | None, bad_utf8: BadUtf8, columns: "Sequence[Column]" = ()
) -> MediaRequest | None:
    """Return the request for a folder or table of images, audio or videos; None for other data and other tasks.

    `columns` are the columns of a table.
    """
    if user_choice.task not in (None, *TASKS.values(), *TEXT_TASKS.values()) or not source.exists():
        return None
    kinds: tuple[Kind, ...] = ("video",) if user_choice.task == TASKS["video"] else GUESSED_KINDS
    interpretation: Interpretation | None = None
    if source.is_dir():
        kind = kind_of_folder(source, kinds)
        if kind and (user_choice.source or user_choice.target):
            raise InputError(f"{source}: a folder has no columns; leave out --source-field and --target-field")
        interpretation = interpret_folder(source, kind) if kind else None
    else:
        candidates = [column for column in columns if user_choice.source in (None, column.name)]
        files, kind = file_column(candidates, kinds) or (None, None)
        interpretation = interpret_media_table(source, columns, files, kind, user_choice) if files and kind else None
    if user_choice.task and (interpretation is None or interpretation.choice.task != user_choice.task):
        remedy = (
            "give a folder with one subfolder of files per class, or a table with a column of file names and one of "
            "classes or texts"
        )
        if interpretation and kind and user_choice.task not in (TASKS[kind], TEXT_TASKS.get(kind)):
            remedy = f"leave --task out, or use --task {interpretation.choice.task}"
        elif kind and user_choice.task == TEXT_TASKS.get(kind):
            remedy = "give a table with a column of file names and a column of texts"
        needed = next(k for tasks in (TASKS, TEXT_TASKS) for k, task in tasks.items() if task == user_choice.task)
        nouns = f"no {needed} files" if kind is None else NOUNS[kind]
        raise InputError(f"--task {user_choice.task}: {source} contains {nouns}; {remedy}")
    if interpretation is None or kind is None:
        return None
    if user_choice.pair:
        raise InputError(f"{source}: contains {NOUNS[kind]}; --pair-field is for pairs of texts, so leave it out")
    return MediaRequest(kind, interpretation, tuple(columns), out, bad_utf8)


def interpret_folder(source: Path, kind: "Kind") -> Interpretation:
    parts = parts_of_folder(source, DataConfig(modality=kind))
    loose = sum(path.parent == source for path in files_below(source, DataConfig(modality=kind)))
    content = f"{NOUNS[kind]}, one folder per class"
    command: tuple[str, ...] = ()
    if parts.folders["train"] != source:
        content += f" in {', '.join(path.name for path in parts.folders.values())}"
        command = (str(parts.folders["train"]),)
    elif kind == "image" and any(file.suffix.lower() in MOVING for file in source.rglob("*")):
        command = (str(source), "--task", TASKS["video"])
    others = [
        f"{name} ({counted(count, 'files')} of another kind)" for name, count in other_kinds(source, kind).items()
    ]
    others += [f"{counted(loose, NOUNS[kind])} outside these folders"] if loose else []
    unused = (*(name for name in parts.unused if not any(other.startswith(f"{name} (") for other in others)), *others)
    return Interpretation(source, content, TaskChoice(TASKS[kind]), "certain", None, unused, command)


def interpret_media_table(
    source: Path, columns: "Sequence[Column]", files: str, kind: "Kind", user_choice: TaskChoice
) -> Interpretation:
    """Decide which task a table of images, audio files or videos is for: predicting classes, or writing texts."""
    target, writes, certainty, other = target_of(columns, files, user_choice.target, str(source))
    writes = writes if user_choice.task is None else user_choice.task in TEXT_TASKS.values()
    tasks = TEXT_TASKS if writes else TASKS
    second: TaskChoice | None = None
    if kind in TEXT_TASKS and (other or target.is_label or writes):
        task = (TASKS if writes else TEXT_TASKS)[kind]
        second = TaskChoice(task, files, None, (other or target).name)
    choice = TaskChoice(tasks.get(kind), files, None, target.name)
    group = group_column(columns, choice.columns)
    unused = tuple(column.name for column in columns if column.name not in (*choice.columns, group))
    content = f"table of {NOUNS[kind]}"
    return Interpretation(source, content, choice, "given" if user_choice.task else certainty, second, unused)


def init_media(request: MediaRequest) -> None:
    """Write a recipe for an image, audio or video model, and hold out some of the files."""
    request = replace(request, interpretation=replace(request.interpretation, choice=request.interpretation.confirm()))
    folder = free_folder(request.source, request.out, request.task)
    parts = parts_of_folder(request.source, request.data).folders if request.source.is_dir() else {}
    surveyed = replace(request.corpus, source=str(parts.get("train", request.source)))
    with show_progress(f"reading {surveyed.source}", "files") as progress:
        all_files = media_files(surveyed, request.data, drops := DropReport())
        files = [file for file in progress.over(all_files) if not parts or file.target.lower() not in UNLABELLED]
        survey: MediaSurvey[Any] = survey_media(files, surveyed, FACTS[request.kind])
    report_dropped(drops)
    report_files(survey, request, are_given=len(parts) > 1)
    moving = [file.path for file in files if file.path.suffix.lower() in MOVING]
    if request.kind == "image" and moving:
        typer.echo(
            f"  {counted(len(moving), 'files')} ending in {' or '.join(MOVING)}: only the first frame is read; for "
            f"videos, add --task {TASKS['video']}"
        )
    with new_recipe(folder) as staging:
        corpora = hold_out(files, survey, request, parts, folder, staging)
        texts = RecipeData(folder.resolve().name, request.bad_utf8, corpora)
        if request.writes:
            language = SCRIPTS.get(survey.texts.script or "")
            recipe = propose_writer(request.kind, survey, language, this_machine(), texts)
        else:
            recipe = propose_classifier(request.kind, survey, in_order(survey.labels), this_machine(), texts)
        write(staging / "config.toml", recipe)
    report_recipe(folder, str(files[0].path))


def hold_out(
    files: "Sequence[MediaFile]",
    survey: "MediaSurvey[Any]",
    request: MediaRequest,
    parts: Mapping[str, Path],
    folder: Path,
    staging: Path,
) -> "dict[str, Keys]":
    """Write a table of files for each part, and report how the files are split; existing part folders are kept.

    The tables are written to `staging`, which is renamed to `folder` at the end. No two parts share a file, copies of a
    file, or files from the same speaker or folder, where these are known.
    """
    corpus = request.corpus
    other_parts = {part: path for part, path in parts.items() if part != "train"}
    source_field, target_field = ("file", "label") if parts else (corpus.source_field, corpus.target_field)
    readable = [(file, digest) for file, digest in zip(files, survey.digests, strict=True) if digest]

    # Files of a group, such as a speaker, are kept in one part.
    column = None if parts else group_column(request.columns, request.interpretation.choice.columns)
    values = group_values(corpus, request.data, column) if column else None
    groups, what = groups_of([file for file, _ in readable], parts.get("train"), request.kind, values)
    hashes = group_hashes(groups, [digest for _, digest in readable])
    members: dict[int, set[str]] = {}
    for hashed, (file, _) in zip(hashes, readable, strict=True):
        members.setdefault(hashed, set()).add("" if request.writes else file.target)
    missing = {"valid", "test"} - other_parts.keys()
    division = Split()
    if missing:
        min_groups = MIN_GROUPS if what else None
        division = split_by_class(members, SHARE, min_groups, source=corpus.source).without(other_parts.keys())
    divided = division.divide(
        zip(hashes, readable, strict=True), lambda item: item[1][1], lambda _: True, lambda item: item[0]
    )

    def line(file: "MediaFile") -> tuple[str]:
        path = relative_path(file.path, folder / "data")
        return (json_line({source_field: path, target_field: file.target}),)

    labelled = {  # files with a class, in part folders that also have files without one
        part: [
            file
            for file in media_files(CorpusConfig(source=str(path)), request.data)
            if file.target.lower() not in UNLABELLED
        ]
        for part, path in other_parts.items()
        if any(map(is_unlabelled, visible_folders(path)))
    }
    names = {part: (f"{part}.jsonl",) for part in PARTS if part not in other_parts or part in labelled}
    lines = [(part, line(file)) for part, (_, (file, _)) in divided]
    lines += [(part, line(file)) for part, of_part in labelled.items() for file in of_part]
    counts = write_parts(staging / "data", lines, names)
    report_parts(folder / "data", counts, "files", len(readable) + sum(map(len, labelled.values())), "content")
    if missing:
        typer.echo(
            f"  split by {what}; none is in two parts"
            if what
            else "  shuffled, because "
            + ("no column names a speaker or group" if request.columns else "nothing says which files belong together")
        )
        report_only_trained([] if other_parts else classes_not_held_out(members, division))
    fields = {"source_field": source_field, "target_field": target_field}
    corpora: dict[str, Keys] = {part: {"source": f"data/{part}.jsonl", **fields} for part in names}
    for part, path in other_parts.items():
        if part not in labelled:
            typer.echo(f"{part:6}{path}")
            corpora[part] = {"source": relative_path(path, folder)}
    return corpora


def report_files(survey: "MediaSurvey[Any]", request: MediaRequest, *, are_given: bool) -> None:
    """Print what the files look like, and what is odd about them; reject a single class, or too many."""
    corpus = request.corpus
    where = "one folder per class"
    if not request.source.is_dir():
        what = "text" if request.writes else "class"
        where = f"file in {corpus.source_field!r}, {what} in {corpus.target_field!r}"
    typer.echo(f"{counted(len(survey.facts), NOUNS[request.kind])}: {where}")
    {"image": report_sizes, "audio": report_seconds, "video": report_frames}[request.kind](survey.facts)
    if request.writes:
        report_lengths(*lengths_of(survey.texts))
        typer.echo(f"  {len(survey.labels):,} distinct texts")
    else:
        if len(survey.labels) < 2:
            source, remedy = request.source, "a classifier needs at least two classes"
            tables = sorted(path for path in source.glob("*") if ending_of(path) in READERS) if source.is_dir() else []
            if tables:  # which may contain the classes
                remedy = f"if a table in this folder has the classes, give the table, as in: heedful init {tables[0]}"
            name = next(iter(survey.labels))
            raise InputError(f"{corpus.source}: all files have the class {name!r}; {remedy}")
        if len(survey.labels) > MAX_LABELS:
            raise InputError(
                f"{corpus.source}: {len(survey.labels):,} distinct classes, but at most {MAX_LABELS:,} are "
                "supported; choose another column with --target-field"
            )
        report_classes(survey.labels, "files")
        if survey.conflict:
            typer.echo(f"  identical files with different classes: {survey.conflict}; correct one of the classes")
    if survey.copies:
        typer.echo(f"  copies of earlier files (same bytes, pixels or samples): {survey.copies:,}")
    if survey.bad:
        typer.echo(f"  {counted(len(survey.bad), 'files')} cannot be read; the first: {survey.bad[0]}")
        of_training = "they are left out of training; repair or remove any bad files in the other parts as well"
        typer.echo(f"    {of_training if are_given else 'they are left out of all parts'}")
    if request.source.is_dir() and (others := other_files(request.source, request.kind)):
        typer.echo(f"  {others}")
    report_few(len(survey.facts), ADVISED_EXAMPLES, "files", "little from scratch", "add more if you can")


def report_sizes(facts: "Sequence[ImageFacts]") -> None:
    sizes = Counter((one.height, one.width) for one in facts)
    [((height, width), count)] = sizes.most_common(1)
    colours = "grey" if all(one.is_grey for one in facts) else "in colour"
    others = "" if len(sizes) == 1 else f", the most common of {len(sizes):,} sizes ({count / len(facts):.0%})"
    typer.echo(f"  {colours}, {height} x {width} pixels (height x width){others}")


def report_frames(facts: "Sequence[VideoFacts]") -> None:
    report_sizes(facts)
    shortest, half, longest = np.quantile([one.frames for one in facts], [0, 0.5, 1]).round().astype(int)
    typer.echo(f"  frames: fewest {shortest:,}, median {half:,}, most {longest:,}")


def report_seconds(facts: "Sequence[AudioFacts]") -> None:
    half, most, longest = np.quantile([one.seconds for one in facts], [0.5, 0.99, 1])
    rates = [f"{rate:,}" for rate, _ in Counter(one.rate for one in facts).most_common(3)]
    typer.echo(f"  seconds: median {half:.1f}, 99% up to {most:.1f}, longest {longest:.1f}")
    typer.echo(f"  samples per second: {', '.join(rates)}")
    if silent := sum(one.silent for one in facts):
        typer.echo(f"  {counted(silent, 'silent audio files')}; remove them unless they are examples of silence")
