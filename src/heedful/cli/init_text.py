"""`heedful init` on running text: a file, or a folder of files."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from heedful.cli.files import note_made_folders
from heedful.cli.first_recipe import (
    BadUtf8,
    free_folder,
    new_recipe,
    relative_path,
    script_of,
    tell_longest,
    tell_recipe,
    this_machine,
    write,
)
from heedful.cli.init_source import InitRequest, Reading, UnderstoodFile, init_file, init_understood, settled
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.tools.proposals.table_task import OF_ONE_TEXT, TaskChoice
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.tools.proposals.folder_layout import Classes, FolderLayout
    from heedful.tools.proposals.proposal import Corpora
    from heedful.tools.proposals.running_text import TextSurvey


def init_folder(request: InitRequest) -> None:
    """Write the recipe for a folder."""
    from heedful.cli.init_media import init_media, media_request
    from heedful.data.readers.files import RECIPE, RUN, is_made
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
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import READERS
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
    """Write the recipe of a classifier for a folder with a folder of texts for each class."""
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
    """Write the texts of some classes into a table of JSON objects."""
    from heedful.data.readers.files import read_lines

    with table.open("w", encoding="utf-8") as stream:
        for label, files in classes.items():
            for file in files:
                text = "\n".join(read_lines(file, bad_utf8=request.bad_utf8))
                stream.write(json.dumps({"text": text, "label": label}, ensure_ascii=False) + "\n")


PARTS = {"train": (0.0, 0.9), "valid": (0.9, 0.95), "test": (0.95, 1.0)}
FEWEST = 2000  # characters; a shorter text is refused
FEW = 300_000  # characters; with fewer there is a warning


def init_text(corpus: CorpusConfig, task: str, out: Path | None, bad_utf8: BadUtf8, *, copied: bool = False) -> None:
    """Write the recipe of a GPT or a BERT that learns from running text, which stays in place unless it is copied."""
    from heedful.config.load import load_recipe
    from heedful.data.readers.documents import document_lines
    from heedful.tools.proposals.proposal import Texts
    from heedful.tools.proposals.running_text import propose_bert, propose_gpt, survey_text

    folder = free_folder(Path(corpus.source), out, task)
    data = DataConfig(bad_utf8=bad_utf8)
    with show_progress(f"reading {corpus.source}", "lines") as progress:
        found = survey_text(progress.over(document_lines(corpus, data)), corpus.source)
    tell_text(found)
    if found.characters < FEWEST:
        raise InputError(
            f"{corpus.source}: {counted(found.characters, 'characters')}: too few to learn from and to hold some out; "
            f"give at least {FEWEST:,}"
        )
    with show_progress(f"dividing {corpus.source}", "parts", len(PARTS)) as progress:
        for part in progress.over(PARTS):
            check_part(part, corpus, data)
    text, copy = Path(corpus.source), Path("data", Path(corpus.source).name)
    corpus = replace(corpus, source=str(folder / copy)) if copied else corpus
    propose = propose_gpt if task == "language_model" else propose_bert
    texts = Texts(folder.resolve().name, bad_utf8, corpora_of(corpus, folder))
    recipe = propose(found, this_machine(), texts)
    with new_recipe(folder) as place:
        if copied:
            write(place / copy, text.read_text(encoding="utf-8"))
        write(place / "config.toml", recipe)
    typer.echo("\ntrained on the first 90 % of each file, validated on the next 5 %, tested on the last 5 %")
    example = found.beginning if task == "language_model" else f"{found.beginning} [MASK]"
    tell_recipe(load_recipe(folder), folder, example)


def check_part(part: str, corpus: CorpusConfig, data: DataConfig) -> None:
    """Make sure that the train, valid or test part of a running text is not empty."""
    from heedful.data.readers.documents import read_documents

    share = PARTS[part]
    if not any(document.text for document in read_documents(replace(corpus, part=share), data)):
        raise InputError(f"{corpus.source}: its {part} part, {share}, holds no text; give more text")


def corpora_of(corpus: CorpusConfig, folder: Path) -> "Corpora":
    """Return the recipe tables that name the train, valid and test parts of a text, relative to the recipe's folder."""
    from heedful.tools.proposals.proposal import Corpora

    source = {"source": relative_path(corpus.source, folder)}
    if corpus.source_field != CorpusConfig.source_field:
        source["source_field"] = corpus.source_field
    return Corpora(**{part: {**source, "part": list(share)} for part, share in PARTS.items()})


def tell_text(found: "TextSurvey") -> None:
    """Print what a running text looks like: files, characters, script, lines, words."""
    lines = counted(found.lines, "rows" if found.is_rows else "lines")
    paragraphs = "" if found.is_rows else f" in {counted(found.paragraphs, 'paragraphs')}"
    typer.echo(
        f"{counted(found.files, 'files')} of running text: {counted(found.characters, 'characters')}, "
        f"{len(found.letters):,} different, {script_of(found.script)}\n"
        f"  {lines}{paragraphs}, {counted(found.words, 'words')}"
    )
    tell_longest("line", found.longest, found.longest_at)
    if FEWEST <= found.characters < FEW:
        typer.echo(f"  fewer than {FEW:,} characters teach spelling rather than sense; find more text if you can")
