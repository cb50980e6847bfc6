"""`heedful init` for a folder: two languages, parts of a data set, classes, or documents; or pictures and sounds."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from heedful.cli.files import note_made_folders
from heedful.cli.init_reading import Reading, settled
from heedful.cli.init_source import InitRequest, UnderstoodFile, init_file, init_understood
from heedful.config.schema import CorpusConfig
from heedful.data.proposals.table_task import OF_ONE_TEXT, TaskChoice
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.data.proposals.folder_layout import Classes, FolderLayout


def init_folder(request: InitRequest) -> None:
    """Write the recipe for a folder.

    Raises:
        InputError: The folder cannot be used, or it is unsure what for; or something would be overwritten.
        RunError: The folder of the recipe cannot be written.
    """
    from heedful.cli.init_media import init_media, media_request
    from heedful.data.proposals.folder_layout import check_documents, layout_of
    from heedful.data.readers.folders import is_made

    if is_made(request.source):
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
    """The table that names the pictures, sounds or videos of a folder without folders of classes; None for other ones.

    Raises:
        InputError: There are several, or nothing shows what the files are.
    """
    from heedful.data.proposals.loose_media import loose_media, nothing_tells, several_tables, tables_of

    media = loose_media(request.source)
    if media is None:
        return None
    tables = tables_of(media, request.bad_utf8)
    if len(tables) > 1:
        raise several_tables(media, tables)
    if not tables and any(path.parent == request.source for path in media.files):
        raise nothing_tells(media)
    return tables[0] if tables else None


def init_languages(request: InitRequest, layout: "FolderLayout") -> None:
    """Write the recipe of a translator for a folder of files of two languages.

    Raises:
        InputError: Another task is asked for, or as in `init_pairs`.
    """
    from heedful.cli.init_pairs import PairsRequest, init_pairs

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
    """Write the recipe of a classifier for a folder with a folder of texts for each class.

    Raises:
        InputError: Another task is asked for, or as in `init_labelled`.
    """
    from heedful.cli.init_labelled import LabelledRequest, init_labelled

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
            write_texts(table, classes, request)
            corpora[part] = CorpusConfig(source=str(table), source_field="text", target_field="label")
        train = corpora.pop("train")
        try:
            init_labelled(LabelledRequest(train, "classification", request.out, request.bad_utf8, corpora))
        except InputError as error:
            raise InputError(str(error).replace(train.source, str(request.source))) from error


def write_texts(table: Path, classes: "Classes", request: InitRequest) -> None:
    """Write the texts of some classes into a table of JSON objects.

    Raises:
        InputError: A text cannot be read.
    """
    from heedful.data.readers.files import read_lines

    with table.open("w", encoding="utf-8") as stream:
        for label, files in classes.items():
            for file in files:
                text = "\n".join(read_lines(file, bad_utf8=request.bad_utf8))
                stream.write(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n")
