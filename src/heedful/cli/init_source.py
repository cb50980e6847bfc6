"""Recognition of data for `heedful init`: the shape of files and folders, and the task that they are for."""

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
from heedful.cli.first_recipe import listed
from heedful.cli.init_labelled import LabelledRequest, init_answers, init_labelled, init_replies, init_tagged
from heedful.cli.init_text import PairsRequest, init_pairs, init_text
from heedful.cli.options import BadUtf8
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import columns_of
from heedful.data.readers.documents import document_files
from heedful.data.readers.files import RECIPE, RUN, ending_of, is_run_model_or_recipe, read_lines, visible_files
from heedful.data.readers.labelled import MAX_LABELS, whole_labels
from heedful.data.readers.rows import READERS, separator_of
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.storage.disk import OPENERS
from heedful.tools.proposals.table_task import (
    ELSEWHERE,
    OF_LABELS,
    OF_ONE_TEXT,
    OF_REPLIES,
    Certainty,
    TaskChoice,
    choose_task,
    one_class,
)
from heedful.tools.proposals.text_shapes import records_of, shape_of

if TYPE_CHECKING:
    from heedful.data.readers.columns import Column
    from heedful.tools.proposals.folder_layout import FolderLayout
    from heedful.tools.proposals.text_shapes import TextShape


MODELS = {
    "translation": "a translator",
    "language_model": "a GPT",
    "masked_lm": "a BERT",
    "classification": "a classifier",
    "regression": "a regression model",
    "tagging": "a tagger",
    "span_qa": "a question-answering model",
    "text_to_text": "a text-to-text model",
    "summarisation": "a summariser",
    "dialogue": "a dialogue model",
    "image_classification": "an image classifier",
    "audio_classification": "an audio classifier",
    "video_classification": "a video classifier",
    "captioning": "an image captioner",
    "speech_recognition": "a speech recogniser",
}
DATA = {  # what the data of each task is called
    "translation": "translation",
    "language_model": "GPT training",
    "masked_lm": "BERT training",
    "classification": "classification",
    "regression": "regression",
    "tagging": "tagging",
    "span_qa": "question-answering",
    "text_to_text": "text-to-text",
    "summarisation": "summarisation",
    "dialogue": "dialogue",
    "image_classification": "image classification",
    "audio_classification": "audio classification",
    "video_classification": "video classification",
    "captioning": "image captioning",
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
MAX_SHOWN = 12  # maximum number of unused columns or folders that are listed


@dataclass(frozen=True)
class Interpretation:
    """The task that a file or a folder seems to be for."""

    source: Path
    content: str  # description of what the source contains
    choice: TaskChoice  # the task, and the columns that it reads
    certainty: Certainty
    second: TaskChoice | None = None  # the next best choice
    unused: tuple[str, ...] = ()  # columns or folders that are not read
    command: tuple[str, ...] = ()  # arguments of the next best command, if `second` does not give it

    def command_of(self, choice: TaskChoice) -> str:
        """Return the `heedful init` command for a choice."""
        return shlex.join(["heedful", "init", str(self.source), *choice.options()])

    def line(self) -> str:
        """Format the first line that `heedful init` prints."""
        other = shlex.join(["heedful", "init", *self.command]) if self.command else ""
        other = other or (self.command_of(self.second) if self.second else "")
        confidence = f"confidence: {self.certainty}"
        if self.certainty == "given":
            confidence, other = "as set by --task", ""
        unused = listed(map(repr, self.unused), MAX_SHOWN)
        return (
            f"{self.source}: {self.content}, interpreted as {DATA[str(self.choice.task)]} data "
            f"({confidence})"
            + columns_read(self.choice)
            + (f"; not used: {unused}" if unused else "")
            + (f"; if this is wrong, run: {other}" if other else "")
        )

    def confirm(self) -> TaskChoice:
        """Print the interpretation, and return its choice; if it is unclear, ask at a terminal or raise an error."""
        if self.certainty != "unsure":
            # A name may contain bytes that are not UTF-8.
            typer.echo(self.line().encode(errors="backslashreplace").decode())
            return self.choice
        choices = [choice for choice in (self.choice, self.second) if choice]
        options = [f"{MODELS[str(choice.task)]}{columns_read(choice)}" for choice in choices]
        if sys.stdin.isatty() and sys.stderr.isatty():
            typer.echo(f"{self.source}: {self.content}; which model should the recipe train?", err=True)
            for number, option in enumerate(options, start=1):
                typer.echo(f"  {number}: {option}", err=True)
            number = 0
            while not 1 <= number <= len(choices):
                number = typer.prompt("Number", type=int, err=True)
            return choices[number - 1]
        commands = "".join(
            f"\n  for {option}: {self.command_of(choice)}" for option, choice in zip(options, choices, strict=True)
        )
        raise InputError(
            f"{self.source}: {self.content}; the task is unclear. Choose it with one of these commands, or with other "
            "columns (--task text_to_text, summarisation and dialogue learn to write the second text from the first; "
            f"for search, see the example recipe in {ELSEWHERE}):{commands}"
        )


def columns_read(choice: TaskChoice) -> str:
    if choice.source is None:
        return ""
    inputs = "texts" if choice.task in ("translation", *OF_LABELS, *OF_ONE_TEXT, *OF_REPLIES) else "files"
    inputs = "dialogues" if choice.task == "dialogue" else inputs
    pair = f" and {choice.pair!r}" if choice.pair else ""
    target = f", {TARGETS.get(str(choice.task), 'classes')} in {choice.target!r}" if choice.target else ""
    return f": {inputs} in {choice.source!r}{pair}{target}"


TASK_OF_SHAPE = {
    "tagged": "tagging",
    "parts of speech": "tagging",
    "questions": "span_qa",
    ".conll": "tagging",
    ".json": "span_qa",
}
# How certain it is that lines of a shape have labels.
CERTAINTY_OF_LINES: "dict[str, Certainty]" = {"fasttext": "certain", "labels": "likely", "first words": "unsure"}
MEDIA_DATA = "a folder with one subfolder of files per class, or a table of file names and classes"
FORMATS = {  # of the data for tasks that do not read a table of texts and labels
    "translation": "a second file with the line-by-line translation, or a table with both sides",
    "image_classification": MEDIA_DATA,
    "audio_classification": MEDIA_DATA,
    "video_classification": MEDIA_DATA,
    "captioning": "a table of image files and their captions",
    "speech_recognition": "a table of audio files and their transcripts",
    "tagging": "a file with a word and its tag on each line (CoNLL)",
    "span_qa": "a JSON file in SQuAD's format",
}
NO_COLUMNS = "leave out --source-field and similar options"
PLAIN = (".txt", ".text", ".md")
TEXTS = (*PLAIN, *OPENERS, ".jsonl", ".json")  # extensions of files that are rarely one side of a translation


@dataclass(frozen=True)
class InitRequest:
    """Arguments of `heedful init` for one file or folder."""

    source: Path
    choice: TaskChoice  # what the user has chosen; the rest is None
    out: Path | None
    bad_utf8: BadUtf8
    parts: Mapping[str, CorpusConfig] = field(default_factory=dict)  # a translator's validation and test sets
    languages: tuple[str | None, str | None] = (None, None)  # of a translator
    fast: bool = False  # write the recipe of a fast translator

    def check_options(self, task: str | None) -> None:
        """Reject options for translations if the task is another one, because they would be ignored."""
        languages = zip(("source-language", "target-language"), self.languages, strict=True)
        for option, value in {**self.parts, **dict(languages), "fast": self.fast or None}.items():
            if value is not None and task != "translation":
                raise InputError(f"--{option} is for translations, but the task is {task}; leave it out")


@dataclass(frozen=True)
class RecognisedFile:
    """A file in a form that heedful trains on, and what the user's file contains."""

    path: Path  # the user's file, or a temporary one with the same records
    source: Path  # the user's file
    content: str  # description of what the user's file contains
    shape: "TextShape | None" = None  # if it is not what the name suggests

    @property
    def is_copy(self) -> bool:
        """True if the records were written to a temporary file."""
        return self.path != self.source

    @property
    def task(self) -> str | None:
        """Task that all files of this form are for; None if the task depends on the content or the user."""
        if self.shape is None:
            return None
        return TASK_OF_SHAPE.get(self.shape.kind) or (TASK_OF_SHAPE.get(self.path.suffix) if self.is_copy else None)

    @property
    def is_table(self) -> bool:
        """True if the file has columns."""
        return ending_of(self.path) in READERS and self.task is None


def init_folder(request: InitRequest) -> None:
    """Write the recipe for a folder."""
    from heedful.cli.init_media import init_media, media_request
    from heedful.data.readers.media_files import NOUNS
    from heedful.tools.proposals.folder_layout import check_documents, layout_of, media_table
    from heedful.tools.proposals.media_survey import kind_of_folder

    if is_run_model_or_recipe(request.source):
        if not any((request.source / name).exists() for name in (RUN, "recipe.json", RECIPE)):
            raise InputError(
                f"{request.source}: contains a model from another toolkit, not data; to use it in heedful, run: "
                f"heedful convert {request.source} --out FOLDER"
            )
        raise InputError(
            f"{request.source}: contains a run, a model or a recipe; give a folder with nothing but data, or move the "
            "other files out of this one"
        )
    note_made_folders(request.source)
    if next(visible_files(request.source), None) is None:
        raise InputError(f"{request.source}: contains no files to train on; give another folder")
    if request.choice.task not in OF_ONE_TEXT and (table := media_table(request.source, request.bad_utf8)):
        init_file(replace(request, source=table))
        return
    if media := media_request(request.source, request.choice, request.out, request.bad_utf8):
        request.check_options(media.task)
        init_media(media)
        return
    as_text = request.choice.task in OF_ONE_TEXT
    layout = layout_of(request.source, request.bad_utf8)
    if layout.kind == "languages" and not as_text:
        init_languages(request, layout)
    elif layout.kind == "parts" and not as_text:
        files = {part: file for part, (file,) in layout.files.items()}
        init_file(replace(request, source=files.pop("train")), files, layout.unused)
    elif layout.classes and not as_text and (layout.kind == "classes" or request.choice.task == "classification"):
        init_classes(request, layout)
    else:
        if not as_text:
            if kind := kind_of_folder(request.source):
                raise InputError(
                    f"--task {request.choice.task}: {request.source} contains {NOUNS[kind]}; leave --task out, or give "
                    + FORMATS.get(str(request.choice.task), "a .tsv, .csv or .jsonl file with texts and labels")
                )
            check_documents(request.source, request.bad_utf8)
        init_recognised(RecognisedFile(request.source, request.source, "folder of texts"), {}, request)


def init_languages(request: InitRequest, layout: "FolderLayout") -> None:
    """Write the recipe of a translator for a folder of files in two languages."""
    if request.choice.columns:
        raise InputError(f"{request.source}: contains texts and their translations, not tables; {NO_COLUMNS}")
    if request.choice.task not in (None, "translation"):
        raise InputError(
            f"{request.source}: contains texts and their translations, which only --task translation can use"
        )
    parts = {part: CorpusConfig(source=str(a), target=str(b)) for part, (a, b) in layout.files.items()}
    train = parts.pop("train")
    content = f"{Path(train.source).name} with its translation {Path(str(train.target)).name}"
    names = {"valid": "validation set", "test": "test set"}
    content += "".join(f", {names[part]} {Path(pair.source).name}" for part, pair in parts.items())
    command = (str(train.target), train.source)
    choice = TaskChoice("translation")
    Interpretation(request.source, content, choice, "certain", None, layout.unused, command).confirm()
    init_pairs(
        PairsRequest(train, {**parts, **request.parts}, request.out, *request.languages, request.bad_utf8, request.fast)
    )


def init_classes(request: InitRequest, layout: "FolderLayout") -> None:
    """Write the recipe of a classifier for a folder with one folder of texts per class."""
    if request.choice.columns:
        raise InputError(f"{request.source}: contains one folder of texts per class, not tables; {NO_COLUMNS}")
    if request.choice.task not in (None, "classification"):
        raise InputError(
            f"{request.source}: contains one folder of texts per class, which only --task classification can use"
        )
    parts = {part: sum(map(len, classes.values())) for part, classes in layout.classes.items()}
    content = "one folder of texts per class" + (f" in {', '.join(parts)}" if len(parts) > 1 else "")
    certainty = "given" if request.choice.task else layout.certainty
    second = TaskChoice("language_model")
    best = TaskChoice("classification")
    choice = Interpretation(request.source, content, best, certainty, second, layout.unused).confirm()
    request.check_options(choice.task)
    if choice.task in OF_ONE_TEXT:
        init_folder(replace(request, choice=choice))
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
    """Write the recipe for one file; `parts` are the validation and test files, `unused` the names of other files."""
    with TemporaryDirectory(prefix="heedful-") as temporary:
        files = [request.source, *(parts or {}).values()]
        folders = [Path(temporary, str(number)) for number in range(len(files))]
        try:
            forms = [recognise_file(file, request, folder) for file, folder in zip(files, folders, strict=True)]
            others = dict(zip(parts or {}, (file.path for file in forms[1:]), strict=True))
            init_recognised(forms[0], others, request, unused)
        except InputError as error:
            message = str(error)
            for file, folder in zip(files, folders, strict=True):
                copy = str(folder / copy_name(file, ""))
                for ending in (".jsonl", ".json", ".conll"):
                    message = message.replace(f"{copy}{ending}, line ", f"{file}, record ").replace(
                        copy + ending, str(file)
                    )
            raise InputError(message) from error


def copy_name(source: Path, ending: str) -> str:
    """Return the name for a temporary copy of a file; a recipe gets the same name from the copy as from the file."""
    return source.resolve().name.split(".")[0] + ending


def recognise_file(path: Path, request: InitRequest, folder: Path) -> RecognisedFile:
    """Recognise the shape of a file; if heedful cannot read it directly, write its records to a temporary `folder`."""
    from heedful.tools.proposals.folder_layout import PACKED, packed_content

    if ending_of(path) in PACKED:
        raise InputError(f"{path}: {packed_content(path)}")
    task, bad_utf8 = request.choice.task, request.bad_utf8
    shape = shape_of(path, bad_utf8)
    if shape and shape.remedy and task is None:
        commands = [TaskChoice("language_model"), *([TaskChoice("regression")] if shape.kind == "tabs" else [])]
        examples = " or ".join(Interpretation(path, "", choice, "unsure").command_of(choice) for choice in commands)
        raise InputError(
            f"{path}: contains {shape.content}, not running text; {shape.remedy}. To train on the file, run: {examples}"
        )
    as_text = task in OF_ONE_TEXT and shape and shape.kind in (*CERTAINTY_OF_LINES, *TASK_OF_SHAPE, "foreign")
    if shape is None or shape.kind == "foreign" or (as_text and not request.choice.source):
        is_foreign = shape is not None and shape.kind == "foreign" and ending_of(path) not in READERS
        return RecognisedFile(path, path, shape.content if shape and is_foreign else content_of(path, bad_utf8))
    if shape.kind in TASK_OF_SHAPE:
        return RecognisedFile(path, path, shape.content, shape)
    with show_progress(f"reading {path}"):
        try:
            ending, lines = records_of(path, shape, bad_utf8)
            copy = folder / copy_name(path, ending)
            copy.parent.mkdir(parents=True)
            with copy.open("w", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines)
        except InputError:
            if shape.kind == "json" and task in OF_ONE_TEXT:
                return RecognisedFile(path, path, content_of(path, bad_utf8))
            raise
    return RecognisedFile(copy, path, shape.content, shape)


def content_of(path: Path, bad_utf8: BadUtf8) -> str:
    """Describe what a file contains, judging by its name and, for the separator of a table, its first lines."""
    if ending_of(path) not in READERS:
        return "running text"
    is_table = ending_of(path) != ".jsonl"
    if not is_table:
        return "JSON objects, one per line"
    return f"{separator_of(path, bad_utf8).removesuffix('s')}-separated table"


def init_recognised(
    file: RecognisedFile, parts: Mapping[str, Path], request: InitRequest, unused: tuple[str, ...] = ()
) -> None:
    """Determine the task of a file, and write its recipe; `parts` are the validation and test files, if any."""
    from heedful.cli.init_media import init_media, media_request

    bad_utf8 = request.bad_utf8
    columns: list[Column] = []
    if file.is_table:
        with show_progress(f"looking at the columns of {file.source}"):
            columns = columns_of(file.path, DataConfig(bad_utf8=bad_utf8))
        if media := media_request(file.path, request.choice, request.out, bad_utf8, columns):
            if file.is_copy:  # file names are relative to the table
                raise InputError(
                    f"{file.source}: {file.content}; because it contains file names, write one object per line to "
                    f"{file.source.with_suffix('.jsonl').name} next to it, and give that file"
                )
            request.check_options(media.task)
            init_media(media)
            return
    interpretation = interpret_table(file, columns, request) if file.is_table else interpret_file(file, request)
    content = interpretation.content + "".join(f", {part} in {path.name}" for part, path in parts.items())
    choice = replace(interpretation, content=content, unused=(*interpretation.unused, *unused)).confirm()
    task = str(choice.task)
    request.check_options(task)
    if task in OF_ONE_TEXT and not file.is_table and file.source.suffix not in TEXTS and file.source.is_file():
        typer.echo("  to train a translator, give the file with the translations as a second argument")

    def corpus_of(path: Path) -> CorpusConfig:
        return CorpusConfig(
            source=str(path),
            source_field=choice.source or CorpusConfig.source_field,
            pair_field=choice.pair,
            target_field=choice.target or CorpusConfig.target_field,
        )

    corpus = corpus_of(file.path)
    corpora = {part: corpus_of(path) for part, path in parts.items()}
    if task in OF_ONE_TEXT:
        init_text(corpus, task, request.out, bad_utf8, copied=file.is_copy)
    elif task == "translation":
        corpora |= {part: request.parts[part] for part in ("valid", "test") if part in request.parts}
        if file.is_copy and {"valid", "test"} <= corpora.keys():
            raise InputError(
                f"{file.source}: {file.content}, which cannot be used with --valid and --test; save it as .csv or "
                ".jsonl"
            )
        init_pairs(PairsRequest(corpus, corpora, request.out, *request.languages, bad_utf8, request.fast))
    else:
        labelled = LabelledRequest(corpus, task, request.out, bad_utf8, corpora, is_copy=file.is_copy)
        if task in OF_LABELS:
            [target] = [column for column in columns if column.name == corpus.target_field]
            if task == "regression" and target.notation == "unclear":
                example = next((value for value in sorted(target.values) if "," in value), "")
                raise InputError(
                    f"{file.source}: the numbers in {target.name!r} have commas, as in {example}, which may be decimal "
                    "or thousands separators; write them with a decimal point and without thousands separators"
                )
            labels = tuple(whole_labels(map(str.strip, target.values))) if task == "classification" else ()
            labelled = replace(labelled, notation=target.notation, labels=labels if len(labels) <= MAX_LABELS else ())
        inits = {**dict.fromkeys(OF_REPLIES, init_replies), "tagging": init_tagged, "span_qa": init_answers}
        inits.get(task, init_labelled)(labelled)


def interpret_table(file: RecognisedFile, columns: "list[Column]", request: InitRequest) -> Interpretation:
    """Choose the task of a table and its columns."""
    choice, shape = request.choice, file.shape
    if choice.task in ("tagging", "span_qa"):
        raise wrong_task(file, request)
    single = one_class(columns)
    if choice.task == "classification" and single and choice.target in (None, single.name):
        others = [column for column in columns if column.is_label and column is not single and not column.is_id]
        if choice.target or not others:
            raise InputError(
                f"{file.source}: all labels in {single.name!r} are {next(iter(single.values))!r}, but classification "
                "needs at least two classes; add texts of another class"
                + (", or choose another column with --target-field" if others else "")
            )
    best, second, certainty = choose_task(columns, choice, str(file.source))
    if shape and shape.kind in CERTAINTY_OF_LINES:
        second, certainty = TaskChoice("language_model"), "given" if choice.task else CERTAINTY_OF_LINES[shape.kind]
    if choice.task is None and best.task in OF_ONE_TEXT and choice.source is None and single:
        raise InputError(
            f"{file.source}: all labels in {single.name!r} are {next(iter(single.values))!r}, but classification needs "
            "at least two classes; add texts of another class. To train a language model on the texts instead, run: "
            f"{Interpretation(file.source, '', best, certainty).command_of(best)}"
        )
    unused = tuple(column.name for column in columns if column.name not in best.columns)
    return Interpretation(file.source, file.content, best, certainty, second, unused)


def interpret_file(file: RecognisedFile, request: InitRequest) -> Interpretation:
    """Choose the task of a file without columns: running text, tagged words, or questions about passages."""
    source, user_choice = file.source, request.choice
    if file.task:
        if user_choice.task not in (None, file.task):
            raise wrong_task(file, request)
        if user_choice.columns:
            raise InputError(f"{source}: {file.content} have no columns; leave out the column options")
        second = None if ending_of(source) in READERS else TaskChoice("language_model")  # a table is not running text
        is_likely = user_choice.task is None and file.shape is not None and file.shape.kind == "parts of speech"
        choice, certainty = TaskChoice(file.task), "likely" if is_likely else "certain"
        return Interpretation(file.source, file.content, choice, certainty, second)
    one_column = source.is_dir() and user_choice.source and not (user_choice.pair or user_choice.target)
    has_tables = one_column and any(
        ending_of(path) in READERS for path in document_files(CorpusConfig(source=str(source)), DataConfig())
    )
    if user_choice.columns and not has_tables:
        raise InputError(
            f"{source}: has no columns; --source-field and similar options are for .tsv, .csv and .jsonl files"
        )
    if user_choice.task not in (None, *OF_ONE_TEXT):
        content = "is a folder of texts" if source.is_dir() else f"contains {file.content}"
        raise InputError(
            f"--task {user_choice.task}: {source} {content} without labels or translations; give "
            f"{FORMATS.get(user_choice.task, 'a .tsv, .csv or .jsonl file with texts and labels')}"
        )
    task = user_choice.task or "language_model"
    certainty: Certainty = "given" if user_choice.task else "certain" if ending_of(source) in PLAIN else "likely"
    second = TaskChoice("masked_lm" if task == "language_model" else "language_model")
    return Interpretation(source, file.content, TaskChoice(task, user_choice.source), certainty, second)


def wrong_task(file: RecognisedFile, request: InitRequest) -> InputError:
    task = request.choice.task
    remedy = f"use --task {file.task}" if file.task else "leave --task out, or give " + FORMATS[str(task)]
    return InputError(f"--task {task}: does not suit {file.source} ({file.content}); {remedy}")
