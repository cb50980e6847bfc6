"""`heedful init`: survey the user's own text, hold some of it out, and write a first recipe."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.first_recipe import BadUtf8
from heedful.errors import InputError
from heedful.progress import show_progress

if TYPE_CHECKING:
    from heedful.data.proposals.table_task import TaskChoice

Files = tuple[Path, Path]

ENDING = "the end of the file's name"
HELD_OUT = "held out"
TASKS = (
    "translation",
    "language_model",
    "masked_lm",
    "classification",
    "regression",
    "image_classification",
    "audio_classification",
    "video_classification",
    "captioning",
    "speech_recognition",
)


def init(
    source: Annotated[
        Path,
        typer.Argument(help="Text file, table (.tsv, .csv or .jsonl), or folder of texts, pictures, sounds or videos."),
    ],
    target: Annotated[
        Path | None, typer.Argument(help="Translation of the text file, line by line.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the recipe and the text held out.", show_default="named after the languages or the file"
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help=f"Task of the model: {', '.join(TASKS)}.", show_default="what the text suggests")
    ] = None,
    source_field: Annotated[
        str | None, typer.Option(help="Column or key of the text, in a table.", show_default="guessed")
    ] = None,
    pair_field: Annotated[
        str | None, typer.Option(help="Column or key of a second text, to classify pairs of texts.", show_default=False)
    ] = None,
    target_field: Annotated[
        str | None,
        typer.Option(help="Column or key of the label, the score or the translation.", show_default="guessed"),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(help="Language of the source text, such as en.", show_default=ENDING)
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Language of the translation, such as de.", show_default=ENDING)
    ] = None,
    valid: Annotated[
        Files | None,
        typer.Option(
            metavar="SRC TGT", help="Validation set of a translator: text and translation.", show_default=HELD_OUT
        ),
    ] = None,
    test: Annotated[
        Files | None,
        typer.Option(metavar="SRC TGT", help="Test set of a translator: text and translation.", show_default=HELD_OUT),
    ] = None,
    bad_utf8: Annotated[
        BadUtf8, typer.Option(help="Lines that are not UTF-8: stop with an error, skip them, or replace the bad bytes.")
    ] = "error",
) -> None:
    """Look at your data, hold out some of it for validation and test, and write a recipe with sizes that fit.

    Two files, one sentence a line, become a translator. One text or a folder
    of texts becomes a GPT, or a BERT with --task masked_lm. A table or a list
    of JSON objects becomes a classifier, a regression or a translator,
    whichever its columns suggest. A folder with a folder of pictures or of
    sounds for each class, or a table that names such files and their classes,
    becomes a classifier of them; with texts in place of classes, a model that
    writes captions of pictures or recognises speech. For videos (animated
    GIF, WebP or PNG) add --task video_classification. Your files are left as
    they are, and nothing is overwritten.
    """
    from heedful.cli.init_labelled import init_labelled
    from heedful.cli.init_media import init_media, media_request
    from heedful.cli.init_pairs import PairsRequest, init_pairs
    from heedful.cli.init_text import init_text
    from heedful.config.schema import CorpusConfig
    from heedful.data.proposals.table_task import OF_LABELS, OF_ONE_TEXT, TaskChoice

    languages = {"--source-language": source_language, "--target-language": target_language}
    check_codes(languages)
    check_files([file for file in (source, target, *(valid or ()), *(test or ())) if file])
    wanted = TaskChoice(task, source_field, pair_field, target_field)
    if target is None and (request := media_request(source, wanted, out, bad_utf8)):
        check_options(TaskChoice(request.task), {"--valid": valid, "--test": test, **languages})
        init_media(request)
        return
    if target is None:
        wanted = choice_for(source, wanted, bad_utf8)
    else:
        check_two_files(source, target, wanted)
        wanted = TaskChoice("translation")
    check_options(wanted, {"--valid": valid, "--test": test, **languages})
    corpus = CorpusConfig(
        source=str(source),
        target=None if target is None else str(target),
        source_field=wanted.source or CorpusConfig.source_field,
        pair_field=wanted.pair,
        target_field=wanted.target or CorpusConfig.target_field,
    )
    if wanted.task in OF_ONE_TEXT:
        init_text(corpus, str(wanted.task), out, bad_utf8)
    elif wanted.task in OF_LABELS:
        init_labelled(corpus, str(wanted.task), out, bad_utf8)
    else:
        given = {part: pair for part, pair in (("valid", valid), ("test", test)) if pair}
        init_pairs(PairsRequest(corpus, given, out, source_language, target_language, bad_utf8))


def choice_for(source: Path, wanted: "TaskChoice", bad_utf8: BadUtf8) -> "TaskChoice":
    """Choose the task for one file or folder, and the columns of a table that the task reads.

    Raises:
        InputError: The file or folder is not there, or the task cannot be told from it.
    """
    from heedful.config.schema import CorpusConfig, DataConfig
    from heedful.data.proposals.table_task import ELSEWHERE, OF_ONE_TEXT, TaskChoice, choose
    from heedful.data.proposals.text_shapes import shape_of
    from heedful.data.readers.columns import columns_of
    from heedful.data.readers.documents import ENDINGS, document_files
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import READERS

    if wanted.task not in (None, *TASKS):
        raise InputError(
            f"--task {wanted.task}: `heedful init` writes recipes for {', '.join(TASKS)}; {ELSEWHERE} has recipes to "
            "copy for ranking, summaries, answers and dialogues, and recipes/ more of them"
        )
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder; check the name")
    suffix = ending_of(source)
    if source.is_file() and suffix in READERS:
        with show_progress(f"looking at the columns of {source}"):
            columns = columns_of(source, DataConfig(bad_utf8=bad_utf8))
        return choose(columns, wanted, str(source))
    files = document_files(CorpusConfig(source=str(source)), DataConfig())
    if wanted.pair or wanted.target or (wanted.source and not any(ending_of(file) in READERS for file in files)):
        raise InputError(f"{source}: has no columns; --source-field and the like are for .tsv, .csv and .jsonl files")
    if wanted.task not in (None, *OF_ONE_TEXT):
        raise InputError(
            f"--task {wanted.task}: {source} is one text; a translator takes a second file with the translation, line "
            f"by line, and a {wanted.task} model a .tsv, .csv or .jsonl file with texts and labels"
        )
    if wanted.task is None and source.is_file() and (shape := shape_of(source, bad_utf8)):
        raise InputError(
            f"{source}: holds {shape.content}, not running text; {shape.remedy}. For a language model of the file "
            f"as it is: heedful init {source} --task language_model"
        )
    if suffix not in ENDINGS and source.is_file():
        typer.echo(f"{source} alone is read as running text; for a translator, name its translation as a second file")
    return TaskChoice(wanted.task or "language_model", wanted.source)


def check_codes(languages: Mapping[str, str | None]) -> None:
    """Make sure that the languages given as options are known language codes.

    Raises:
        InputError: A language code is unknown.
    """
    from heedful.text.languages import check_language

    for option, code in languages.items():
        if code:
            check_language(code, option)


def check_files(files: Sequence[Path]) -> None:
    """Refuse input files of which two are the same file, even under different names.

    Raises:
        InputError: Two of the files are the same.
    """
    for earlier, file in combinations(files, 2):
        if file.exists() and earlier.exists() and file.samefile(earlier):
            raise InputError(
                f"{earlier} and {file} are the same file; the two sides of a translation are different texts, and "
                "text for validation and test is none that is trained on, or its scores would mean nothing"
            )


def check_two_files(source: Path, target: Path, wanted: "TaskChoice") -> None:
    """Refuse files and options that do not suit a text and its translation in two files.

    Raises:
        InputError: One of the files is a table, or an option is for one file only.
    """
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import READERS

    if wanted.task not in (None, "translation") or wanted.source or wanted.pair or wanted.target:
        raise InputError(
            "two files are a text and its translation, line by line: leave --task and the fields out; texts and their "
            "labels belong into one .tsv, .csv or .jsonl file"
        )
    for file in (source, target):
        if ending_of(file) in READERS:
            raise InputError(f"{file}: holds both sides of what is to be learned; name it alone")


def check_options(wanted: "TaskChoice", translations: dict[str, object]) -> None:
    """Refuse options for translations if the task is another one, as they would be ignored.

    Raises:
        InputError: An option for translations is given for another task.
    """
    for option, value in translations.items():
        if value is not None and wanted.task != "translation":
            raise InputError(f"{option} is for translations, and this is to be a {wanted.task}; leave it out")
