"""What `heedful init` takes data for: files and folders are read to learn their shape, and their task is settled."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from heedful.cli.files import note_made_folders
from heedful.cli.init_labelled import LabelledRequest, init_answers, init_labelled, init_replies, init_tagged
from heedful.cli.init_text import PairsRequest, init_pairs, init_text
from heedful.cli.options import BadUtf8
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import columns_of
from heedful.data.readers.documents import document_files
from heedful.data.readers.files import RECIPE, RUN, ending_of, is_made, read_lines
from heedful.data.readers.labelled import MOST_LABELS, whole_labels
from heedful.data.readers.rows import READERS, separator_of
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.storage.compression import OPENERS
from heedful.tools.proposals.table_task import (
    ELSEWHERE,
    OF_LABELS,
    OF_ONE_TEXT,
    OF_REPLIES,
    Certainty,
    TaskChoice,
    choose,
    one_class,
)
from heedful.tools.proposals.text_shapes import records_of, shape_of

if TYPE_CHECKING:
    from heedful.data.readers.columns import Column
    from heedful.tools.proposals.folder_layout import FolderLayout
    from heedful.tools.proposals.text_shapes import TextShape


MODELS = {
    "translation": "a translator",
    "language_model": "a GPT (language model)",
    "masked_lm": "a BERT (masked_lm)",
    "classification": "a classifier",
    "regression": "a regression",
    "tagging": "a tagger",
    "span_qa": "question answering (span_qa)",
    "text_to_text": "answers to texts (text_to_text)",
    "summarisation": "summaries (summarisation)",
    "dialogue": "replies (dialogue)",
    "image_classification": "a classifier of pictures",
    "audio_classification": "a classifier of sounds",
    "video_classification": "a classifier of videos",
    "captioning": "captions of pictures",
    "speech_recognition": "speech recognition",
}
TARGETS = {
    "classification": "classes",
    "regression": "numbers",
    "translation": "translations",
    "text_to_text": "answers",
    "summarisation": "summaries",
    "dialogue": "replies",
    "captioning": "texts",
    "speech_recognition": "texts",
}
SHOWN = 12  # columns that are listed at most


@dataclass(frozen=True)
class Reading:
    """What a file or a folder is taken for."""

    source: Path
    content: str  # in words
    choice: TaskChoice  # the task, and the columns that it reads
    certainty: Certainty
    second: TaskChoice | None = None  # the next best choice
    unused: tuple[str, ...] = ()  # columns or folders that are not read
    command: tuple[str, ...] = ()  # arguments of the next best reading, if not those of `second` for the same source

    def command_of(self, choice: TaskChoice) -> str:
        """The command that asks for a choice."""
        return shlex.join(["heedful", "init", str(self.source), *choice.options()])

    def line(self) -> str:
        """The first line that `heedful init` prints."""
        other = shlex.join(["heedful", "init", *self.command]) if self.command else ""
        other = other or (self.command_of(self.second) if self.second else "")
        unused = ", ".join(map(repr, self.unused[:SHOWN])) + ", ..." * (len(self.unused) > SHOWN) or "nothing"
        return (
            f"{self.source}: {self.content}, taken for {MODELS[str(self.choice.task)]} ({self.certainty})"
            f"{columns_read(self.choice)}; not used: {unused}" + (f"; if that is wrong: {other}" if other else "")
        )


def columns_read(choice: TaskChoice) -> str:
    if choice.source is None:
        return ""
    inputs = "texts" if choice.task in ("translation", *OF_LABELS, *OF_ONE_TEXT, *OF_REPLIES) else "files"
    inputs = "dialogues" if choice.task == "dialogue" else inputs
    pair = f" and {choice.pair!r}" if choice.pair else ""
    target = f", {TARGETS.get(str(choice.task), 'classes')} in {choice.target!r}" if choice.target else ""
    return f": {inputs} in {choice.source!r}{pair}{target}"


def settled(reading: Reading) -> TaskChoice:
    """Print what data is taken for; where that is unsure, ask on a terminal, and refuse elsewhere."""
    if reading.certainty != "unsure":
        typer.echo(
            reading.line().encode(errors="backslashreplace").decode()
        )  # a name may have bytes that are not UTF-8
        return reading.choice
    choices = [choice for choice in (reading.choice, reading.second) if choice]
    options = [f"{MODELS[str(choice.task)]}{columns_read(choice)}" for choice in choices]
    if sys.stdin.isatty() and sys.stderr.isatty():
        typer.echo(f"{reading.source}: {reading.content}; what is it for?", err=True)
        for number, option in enumerate(options, start=1):
            typer.echo(f"  {number}: {option}", err=True)
        number = 0
        while not 1 <= number <= len(choices):
            number = typer.prompt("Number", type=int, err=True)
        return choices[number - 1]
    commands = "".join(
        f"\n  for {option}: {reading.command_of(choice)}" for option, choice in zip(options, choices, strict=True)
    )
    raise InputError(
        f"{reading.source}: {reading.content}; what is to be learned is unsure. Say it with one of these, or with "
        f"other columns (--task text_to_text, summarisation and dialogue learn to write the second text to the first; "
        f"for search {ELSEWHERE} has a recipe to copy):{commands}"
    )


OF_SHAPES = {
    "tagged": "tagging",
    "parts of speech": "tagging",
    "questions": "span_qa",
    ".conll": "tagging",
    ".json": "span_qa",
}
LINES: "dict[str, Certainty]" = {
    "fasttext": "certain",
    "labels": "likely",
    "first words": "unsure",
}  # with a label each
PLAIN = (".txt", ".text", ".md")
TEXTS = (*PLAIN, *OPENERS, ".jsonl", ".json")  # endings of files that are hardly one side of a translation


@dataclass(frozen=True)
class InitRequest:
    """Arguments of `heedful init` for one file or folder."""

    source: Path
    wanted: TaskChoice
    out: Path | None
    bad_utf8: BadUtf8
    given: Mapping[str, CorpusConfig] = field(default_factory=dict)  # text of a translator for validation and test
    languages: tuple[str | None, str | None] = (None, None)  # of a translator

    def check_options(self, task: str | None) -> None:
        """Refuse options for translations if the task is another one, as they would be ignored."""
        languages = zip(("source-language", "target-language"), self.languages, strict=True)
        for option, value in {**self.given, **dict(languages)}.items():
            if value is not None and task != "translation":
                raise InputError(f"--{option} is for translations, and this is to be a {task}; leave it out")


@dataclass(frozen=True)
class UnderstoodFile:
    """A file in a form that heedful trains on, and what the user's file holds."""

    path: Path  # the user's file, or a temporary one with the same records
    source: Path  # the user's file
    content: str  # of that, in words
    shape: "TextShape | None" = None  # if it is not what its name says

    @property
    def is_copy(self) -> bool:
        """True if the records were written to a temporary file."""
        return self.path != self.source

    @property
    def task(self) -> str | None:
        """The only task for which files of this form are, if there is one."""
        if self.shape is None:
            return None
        return OF_SHAPES.get(self.shape.kind) or (OF_SHAPES.get(self.path.suffix) if self.is_copy else None)

    @property
    def is_table(self) -> bool:
        """True if the file has columns."""
        return ending_of(self.path) in READERS and self.task is None


def init_folder(request: InitRequest) -> None:
    """Write the recipe for a folder."""
    from heedful.cli.init_media import init_media, media_request
    from heedful.tools.proposals.folder_layout import check_documents, layout_of

    if is_made(request.source):
        if not any((request.source / name).exists() for name in (RUN, "recipe.json", RECIPE)):
            raise InputError(
                f"{request.source}: holds a model of another toolkit, not data; to use it in heedful: heedful convert "
                f"{request.source} --out FOLDER"
            )
        raise InputError(f"{request.source}: holds a run, a model or a recipe, not data; name the folder of the data")
    note_made_folders(request.source)
    if request.wanted.task not in OF_ONE_TEXT and (table := table_of_files(request)):
        init_file(replace(request, source=table))
        return
    if media := media_request(request.source, request.wanted, request.out, request.bad_utf8):
        request.check_options(media.task)
        init_media(media)
        return
    as_text = request.wanted.task in OF_ONE_TEXT
    layout = layout_of(request.source, request.bad_utf8)
    if layout.kind == "languages" and not as_text:
        init_languages(request, layout)
    elif layout.kind == "parts" and not as_text:
        files = {part: file for part, (file,) in layout.files.items()}
        init_file(replace(request, source=files.pop("train")), files, layout.unused)
    elif layout.classes and not as_text and (layout.kind == "classes" or request.wanted.task == "classification"):
        init_classes(request, layout)
    else:
        if not as_text:
            check_documents(request.source, request.bad_utf8)
        init_understood(UnderstoodFile(request.source, request.source, "a folder of texts"), {}, request)


def table_of_files(request: InitRequest) -> Path | None:
    """The table that names the pictures, sounds or videos of a folder without folders of classes, if there is one."""
    from heedful.tools.proposals.folder_layout import loose_media, nothing_tells, several_tables, tables_of

    media = loose_media(request.source)
    if media is None:
        return None
    tables = tables_of(media, request.bad_utf8)
    if len(tables) > 1:
        raise several_tables(media, tables)
    folders = {path.parent for path in media.files}
    if not tables and request.source in folders:
        raise nothing_tells(media)
    if len(folders) == 1 and not any(ending_of(path) in READERS for path in request.source.iterdir()):
        return table_of_files(replace(request, source=folders.pop()))  # all are in one inner folder, which decides
    return tables[0] if tables else None


def init_languages(request: InitRequest, layout: "FolderLayout") -> None:
    """Write the recipe of a translator for a folder of files of two languages."""
    if request.wanted.task not in (None, "translation") or request.wanted.columns:
        raise InputError(
            f"{request.source}: holds texts and their translations, which are for --task translation alone"
        )
    parts = {part: CorpusConfig(source=str(a), target=str(b)) for part, (a, b) in layout.files.items()}
    train = parts.pop("train")
    content = f"{Path(train.source).name} with the translation {Path(str(train.target)).name}"
    content += "".join(f", {part} {Path(pair.source).name}" for part, pair in parts.items())
    command = (str(train.target), train.source)
    choice = TaskChoice("translation")
    settled(Reading(request.source, content, choice, "certain", None, layout.unused, command))
    init_pairs(PairsRequest(train, {**parts, **request.given}, request.out, *request.languages, request.bad_utf8))


def init_classes(request: InitRequest, layout: "FolderLayout") -> None:
    """Write the recipe of a classifier for a folder with a folder of texts for each class."""
    if request.wanted.task not in (None, "classification") or request.wanted.columns:
        raise InputError(f"{request.source}: holds a folder of texts for each class, for --task classification alone")
    parts = {part: sum(map(len, classes.values())) for part, classes in layout.classes.items()}
    content = "a folder of texts for each class" + (f" in {', '.join(parts)}" if len(parts) > 1 else "")
    certainty = "certain" if request.wanted.task else layout.certainty
    second = TaskChoice("language_model")
    choice = settled(Reading(request.source, content, TaskChoice("classification"), certainty, second, layout.unused))
    request.check_options(choice.task)
    if choice.task in OF_ONE_TEXT:
        init_folder(replace(request, wanted=choice))
        return
    with TemporaryDirectory(prefix="heedful-") as temporary:
        name = request.source.resolve().name.split(".")[0]
        corpora = {}
        for part, classes in layout.classes.items():
            table = Path(temporary, part, f"{name}.jsonl")
            table.parent.mkdir()
            with table.open("w", encoding="utf-8") as stream:
                for label, files in classes.items():
                    for file in files:
                        text = "\n".join(read_lines(file, bad_utf8=request.bad_utf8))
                        stream.write(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n")
            corpora[part] = CorpusConfig(source=str(table), source_field="text", target_field="label")
        train = corpora.pop("train")
        try:
            init_labelled(LabelledRequest(train, "classification", request.out, request.bad_utf8, corpora))
        except InputError as error:
            raise InputError(str(error).replace(train.source, str(request.source))) from error


def init_file(request: InitRequest, parts: Mapping[str, Path] | None = None, unused: tuple[str, ...] = ()) -> None:
    """Write the recipe for one file; `parts` are the files of validation and test, `unused` names of other files."""
    with TemporaryDirectory(prefix="heedful-") as temporary:
        files = [request.source, *(parts or {}).values()]
        folders = [Path(temporary, str(number)) for number in range(len(files))]
        try:
            forms = [understood_file(file, request, place) for file, place in zip(files, folders, strict=True)]
            others = dict(zip(parts or {}, (file.path for file in forms[1:]), strict=True))
            init_understood(forms[0], others, request, unused)
        except InputError as error:
            message = str(error)
            for file, place in zip(files, folders, strict=True):
                copy = str(place / copy_name(file, ""))
                for ending in (".jsonl", ".json", ".conll"):
                    message = message.replace(f"{copy}{ending}, line ", f"{file}, record ").replace(
                        copy + ending, str(file)
                    )
            raise InputError(message) from error


def copy_name(source: Path, ending: str) -> str:
    """The name of a temporary file, from which recipes are named as from the user's file."""
    return source.resolve().name.split(".")[0] + ending


def understood_file(path: Path, request: InitRequest, place: Path) -> UnderstoodFile:
    """Recognise the shape of a file; one that heedful does not train on as it is is written to a temporary file."""
    from heedful.tools.proposals.folder_layout import PACKED, packed_content

    if ending_of(path) in PACKED:
        raise InputError(f"{path}: holds {packed_content(path)}")
    task, bad_utf8 = request.wanted.task, request.bad_utf8
    shape = shape_of(path, bad_utf8)
    if shape and shape.remedy and task is None:
        commands = [TaskChoice("language_model"), *([TaskChoice("regression")] if shape.kind == "tabs" else [])]
        examples = " or ".join(Reading(path, "", choice, "unsure").command_of(choice) for choice in commands)
        raise InputError(
            f"{path}: holds {shape.content}, not running text; {shape.remedy}. To learn from the file: {examples}"
        )
    as_text = task in OF_ONE_TEXT and shape and shape.kind in (*LINES, *OF_SHAPES, "foreign")
    if shape is None or shape.kind == "foreign" or (as_text and not request.wanted.source):
        return UnderstoodFile(path, path, content_of(path, bad_utf8))
    if shape.kind in OF_SHAPES:
        return UnderstoodFile(path, path, shape.content, shape)
    with show_progress(f"reading {path}"):
        try:
            ending, lines = records_of(path, shape, bad_utf8)
            copy = place / copy_name(path, ending)
            copy.parent.mkdir(parents=True)
            with copy.open("w", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
        except InputError:
            if shape.kind == "json" and task in OF_ONE_TEXT:
                return UnderstoodFile(path, path, content_of(path, bad_utf8))
            raise
    return UnderstoodFile(copy, path, shape.content, shape)


def content_of(path: Path, bad_utf8: BadUtf8) -> str:
    """Say what a file holds by its name: a table, or running text."""
    if ending_of(path) not in READERS:
        return "running text"
    is_table = ending_of(path) != ".jsonl"
    return f"a table with {separator_of(path, bad_utf8)}" if is_table else "JSON objects, one a line"


def init_understood(
    file: UnderstoodFile, given: Mapping[str, Path], request: InitRequest, unused: tuple[str, ...] = ()
) -> None:
    """Settle the task of a file, and write its recipe; `given` are the files of validation and test, if any."""
    from heedful.cli.init_media import init_media, media_request

    wanted, bad_utf8 = request.wanted, request.bad_utf8
    columns: list[Column] = []
    if file.is_table:
        with show_progress(f"looking at the columns of {file.source}"):
            columns = columns_of(file.path, DataConfig(bad_utf8=bad_utf8))
        if media := media_request(file.path, wanted, request.out, bad_utf8, columns):
            if file.is_copy:  # names of files are relative to a table
                raise InputError(
                    f"{file.source}: {file.content} that name files; write one object a line into "
                    f"{file.source.with_suffix('.jsonl').name} next to it, and give that"
                )
            request.check_options(media.task)
            init_media(media)
            return
    reading = table_reading(file, columns, request) if file.is_table else reading_of(file, request)
    content = reading.content + "".join(f", {part} in {path.name}" for part, path in given.items())
    choice = settled(replace(reading, content=content, unused=(*reading.unused, *unused)))
    task = str(choice.task)
    request.check_options(task)
    if task in OF_ONE_TEXT and not file.is_table and file.source.suffix not in TEXTS and file.source.is_file():
        typer.echo("  for a translator, name its translation as a second file")

    def corpus_of(path: Path) -> CorpusConfig:
        return CorpusConfig(
            source=str(path),
            source_field=choice.source or CorpusConfig.source_field,
            pair_field=choice.pair,
            target_field=choice.target or CorpusConfig.target_field,
        )

    corpus = corpus_of(file.path)
    corpora = {part: corpus_of(path) for part, path in given.items()}
    if task in OF_ONE_TEXT:
        init_text(corpus, task, request.out, bad_utf8, copied=file.is_copy)
    elif task in OF_REPLIES:
        init_replies(LabelledRequest(corpus, task, request.out, bad_utf8, corpora, copied=file.is_copy))
    elif task in OF_LABELS:
        [target] = [column for column in columns if column.name == corpus.target_field]
        labels = labels_of(target, task, file.source)
        labelled = LabelledRequest(corpus, task, request.out, bad_utf8, corpora, target.notation, file.is_copy, labels)
        init_labelled(labelled)
    elif task in ("tagging", "span_qa"):
        (init_tagged if task == "tagging" else init_answers)(corpus, corpora, request.out, bad_utf8)
    else:
        corpora |= {part: request.given[part] for part in ("valid", "test") if part in request.given}
        if file.is_copy and {"valid", "test"} <= corpora.keys():
            raise InputError(f"{file.source}: holds {file.content}; write a table to train on as it is, .csv or .jsonl")
        init_pairs(PairsRequest(corpus, corpora, request.out, *request.languages, bad_utf8))


def labels_of(target: "Column", task: str, source: Path) -> tuple[str, ...]:
    """Return the classes of a column; none of a regression, whose numbers are refused if their commas are unclear."""
    if task == "regression" and target.notation == "unclear":
        example = next((value for value in sorted(target.values) if "," in value), "")
        raise InputError(
            f"{source}: the numbers in {target.name!r} have commas, as in {example}, which may be decimal points or "
            "separate thousands; write them with a decimal point and without separators"
        )
    labels = tuple(whole_labels(map(str.strip, target.values))) if task == "classification" else ()
    return labels if len(labels) <= MOST_LABELS else ()


def table_reading(file: UnderstoodFile, columns: "list[Column]", request: InitRequest) -> Reading:
    """Choose the task of a table and its columns."""
    choice, shape = request.wanted, file.shape
    if choice.task in ("tagging", "span_qa"):
        raise wrong_task(file, request)
    best, second, certainty = choose(columns, choice, str(file.source))
    if shape and shape.kind in LINES:
        second, certainty = TaskChoice("language_model"), "certain" if choice.task else LINES[shape.kind]
    single = one_class(columns)
    if choice.task is None and best.task in OF_ONE_TEXT and choice.source is None and single:
        raise InputError(
            f"{file.source}: all labels in {single.name!r} are {next(iter(single.values))!r}, and classification needs "
            "two classes; add texts of another class. For a language model of the texts: "
            f"{Reading(file.source, '', best, certainty).command_of(best)}"
        )
    unused = tuple(column.name for column in columns if column.name not in best.columns)
    return Reading(file.source, file.content, best, certainty, second, unused)


def reading_of(file: UnderstoodFile, request: InitRequest) -> Reading:
    """Choose the task of a file without columns: of running text, tagged words, or questions on passages."""
    wanted = request.wanted
    if file.task:
        if wanted.task not in (None, file.task):
            raise wrong_task(file, request)
        if wanted.columns:
            raise InputError(f"{file.source}: {file.content} have no columns to choose; leave the fields out")
        second = None if ending_of(file.source) in READERS else TaskChoice("language_model")  # a table as text is none
        is_likely = wanted.task is None and file.shape is not None and file.shape.kind == "parts of speech"
        choice, certainty = TaskChoice(file.task), "likely" if is_likely else "certain"
        return Reading(file.source, file.content, choice, certainty, second)
    check_running(file.source, wanted)
    task = wanted.task or "language_model"
    certainty = "certain" if wanted.task or ending_of(file.source) in PLAIN else "likely"
    second = TaskChoice("masked_lm" if task == "language_model" else "language_model")
    return Reading(file.source, file.content, TaskChoice(task, wanted.source), certainty, second)


def wrong_task(file: UnderstoodFile, request: InitRequest) -> InputError:
    """The error that a file is for another task than the one that is asked for."""
    good = (
        f"which is for --task {file.task}"
        if file.task
        else "and tags are words in lines (CoNLL), answers in SQuAD's JSON"
    )
    return InputError(f"--task {request.wanted.task}: {file.source} holds {file.content}, {good}")


def check_running(source: Path, wanted: TaskChoice) -> None:
    """Refuse columns, and tasks of labelled text, for running text."""
    one_column = source.is_dir() and wanted.source and not (wanted.pair or wanted.target)
    has_tables = one_column and any(
        ending_of(file) in READERS for file in document_files(CorpusConfig(source=str(source)), DataConfig())
    )
    if wanted.columns and not has_tables:
        raise InputError(f"{source}: has no columns; --source-field and the like are for .tsv, .csv and .jsonl files")
    if wanted.task not in (None, *OF_ONE_TEXT):
        raise InputError(
            f"--task {wanted.task}: {source} is one text; a translator takes a second file with the translation, line "
            f"by line, and a {wanted.task} model a .tsv, .csv or .jsonl file with texts and labels"
        )
