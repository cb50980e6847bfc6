"""`heedful init`: survey the user's own text, hold some of it out, and write a first recipe."""

from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import BadUtf8, folder_to_write
from heedful.errors import InputError

Files = tuple[Path, Path]

ENDING = "the end of the file's name"
HELD_OUT = "held out"
TASKS = (
    "translation",
    "language_model",
    "masked_lm",
    "classification",
    "regression",
    "tagging",
    "span_qa",
    "text_to_text",
    "summarisation",
    "dialogue",
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
            help="Folder for the recipe and the text held out.",
            show_default="named after the languages or the file",
            callback=folder_to_write,
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help=f"Task of the model: {', '.join(TASKS)}.", show_default="what the text suggests")
    ] = None,
    source_field: Annotated[
        str | None,
        typer.Option(
            "--column", "--source-field", help="Column or key of the text, in a table.", show_default="guessed"
        ),
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

    The first line says what the data is taken for, how certain that is, and
    the command for the next best reading. Where it is unsure, it asks.

    Two files, one sentence a line, become a translator. One text or a folder
    of texts becomes a GPT, or a BERT with --task masked_lm. A table or a list
    of JSON objects becomes a classifier, a regression or a translator,
    whichever its columns suggest; so do the lines of fastText and TREC.
    Chats and instructions with answers become a model that replies.
    Tagged words (CoNLL) become a tagger, and questions on passages (SQuAD)
    question answering. A folder with a folder of pictures or of
    sounds for each class, or a table that names such files and their classes,
    becomes a classifier of them; with texts in place of classes, a model that
    writes captions of pictures or recognises speech. For videos (animated
    GIF, WebP or PNG) add --task video_classification. Your files are left as
    they are, and nothing is overwritten.
    """
    from heedful.cli.first_recipe import printed_at_the_end
    from heedful.cli.init_source import InitRequest, Reading, init_file, init_folder, settled
    from heedful.cli.init_text import PairsRequest, init_pairs
    from heedful.config.schema import CorpusConfig
    from heedful.storage.paths import nothing_at
    from heedful.text.languages import check_language
    from heedful.tools.proposals.table_task import ELSEWHERE, TaskChoice

    for option, code in (("--source-language", source_language), ("--target-language", target_language)):
        if code:
            check_language(code, option)
    files = [file for file in (source, target, *(valid or ()), *(test or ())) if file]
    refuse_same_files(files)
    for file in files if target else [source]:
        if not file.exists():
            raise InputError(nothing_at(file))
    choice = TaskChoice(task, source_field, pair_field, target_field)
    parts = {
        part: CorpusConfig(source=str(pair[0]), target=str(pair[1]))
        for part, pair in (("valid", valid), ("test", test))
        if pair
    }
    with printed_at_the_end():
        if target is None:
            if task not in (None, *TASKS):
                raise InputError(
                    f"--task {task}: `heedful init` writes recipes for {', '.join(TASKS)}; {ELSEWHERE} has recipes to "
                    "copy for ranking, and recipes/ more of them"
                )
            request = InitRequest(source, choice, out, bad_utf8, parts, (source_language, target_language))
            (init_folder if source.is_dir() else init_file)(request)
            return
        if task not in (None, "translation") or choice.columns:
            raise InputError(
                "two files are a text and its translation, line by line: leave --task and the fields out; texts and "
                "their labels belong into one .tsv, .csv or .jsonl file"
            )
        refuse_tables(source, target)
        content = f"line n of {target} is the translation of line n"
        settled(Reading(source, content, TaskChoice("translation"), "certain", TaskChoice("language_model")))
        corpus = CorpusConfig(source=str(source), target=str(target))
        init_pairs(PairsRequest(corpus, parts, out, source_language, target_language, bad_utf8))


def refuse_same_files(files: list[Path]) -> None:
    """Refuse input files of which two are the same file, even under different names."""
    for earlier, file in combinations(files, 2):
        if file.exists() and earlier.exists() and file.samefile(earlier):
            raise InputError(
                f"{earlier} and {file} are the same file; the two sides of a translation are different texts, and "
                "text for validation and test is none that is trained on, or its scores would mean nothing"
            )


def refuse_tables(*files: Path) -> None:
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import READERS

    for file in files:
        if ending_of(file) in READERS:
            raise InputError(f"{file}: holds both sides of what is to be learned; name it alone")
