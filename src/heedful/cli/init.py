"""`heedful init`: survey the user's own data, hold some of it out, and write a first recipe."""

import json
from difflib import get_close_matches
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import BadUtf8, folder_to_write
from heedful.errors import InputError
from heedful.wording import did_you_mean

Files = tuple[Path, Path]

ENDING = "from the file's extension"
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


def two_files(param: typer.CallbackParam, value: Files | None) -> Files | None:
    """Return the text and the translation given for an option; reject another option in the place of the second."""
    if value and (other := next((str(file) for file in value if str(file).startswith("--")), None)):
        raise InputError(
            f"{param.opts[0]} needs two files, the text and its translation, before {other}: {param.opts[0]} SRC TGT"
        )
    return value


def init(
    source: Annotated[
        Path,
        typer.Argument(
            help="Text file, table (.tsv, .csv or .jsonl), or folder of texts, images, audio files or videos."
        ),
    ],
    target: Annotated[
        Path | None, typer.Argument(help="Line-by-line translation of the text file.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the recipe and the held-out text.",
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
        typer.Option(help="Column or key of the label, score or translation.", show_default="guessed"),
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
            metavar="SRC TGT",
            help="Validation set of a translator: text and translation.",
            show_default=HELD_OUT,
            callback=two_files,
        ),
    ] = None,
    test: Annotated[
        Files | None,
        typer.Option(
            metavar="SRC TGT",
            help="Test set of a translator: text and translation.",
            show_default=HELD_OUT,
            callback=two_files,
        ),
    ] = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Write recipes for a fast translator and for a teacher whose translations it learns.",
        ),
    ] = False,
    bad_utf8: Annotated[
        BadUtf8, typer.Option(help="For lines that are not UTF-8: stop with an error, skip them, or replace bad bytes.")
    ] = "error",
) -> None:
    """Analyse your data, hold out some of it for validation and test, and write a recipe with suitable sizes.

    The first line of the output says how the data is interpreted and with what
    confidence, and gives the command for the second-best interpretation.
    If `init` is unsure, it asks.

    The data determines the model that the recipe trains. Two files with one
    sentence per line: a translator. A text or a folder of texts: a GPT, or a
    BERT with --task masked_lm. A table or a list of JSON objects: a classifier,
    a regression model or a translator, depending on its columns; files in the
    format of fastText or TREC: a classifier. Chats, and instructions with
    answers: a model that replies. Tagged words (CoNLL): a tagger. Questions
    about passages (SQuAD): a question-answering model. A folder with a
    subfolder of images or audio files for each class, or a table of such files
    and their classes: a classifier; with texts instead of classes, a model that
    captions images or recognises speech. For videos (animated GIF, WebP or PNG)
    add --task video_classification.

    Your files stay unchanged, and nothing is overwritten.
    """
    from heedful.cli.first_recipe import printed_at_the_end
    from heedful.cli.init_source import InitRequest, Interpretation, init_file, init_folder
    from heedful.cli.init_text import PairsRequest, init_pairs
    from heedful.config.schema import CorpusConfig
    from heedful.data.readers.files import ending_of
    from heedful.data.readers.rows import READERS
    from heedful.storage.paths import nothing_at
    from heedful.text.languages import check_language
    from heedful.tools.proposals.table_task import TaskChoice
    from heedful.tools.proposals.text_shapes import shape_of

    check_task(task)
    for option, code in (("--source-language", source_language), ("--target-language", target_language)):
        if code:
            check_language(code, option)
    files = [file for file in (source, target, *(valid or ()), *(test or ())) if file]
    for earlier, file in combinations(files, 2):
        if file.exists() and earlier.exists() and file.samefile(earlier):
            same = f"{file} is given twice" if earlier == file else f"{earlier} and {file} are the same file"
            raise InputError(
                f"{same}; the source and its translation must be different files, and "
                "validation and test text must not be training text, or the scores are meaningless"
            )
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
            request = InitRequest(source, choice, out, bad_utf8, parts, (source_language, target_language), fast)
            (init_folder if source.is_dir() else init_file)(request)
            return
        if task not in (None, "translation") or choice.columns:
            others = [option for option in choice.options()[::2] if (option, task) != ("--task", "translation")]
            raise InputError(
                f"two files are read as a text and its translation, line by line: leave out {' and '.join(others)}; "
                "texts and their labels belong in one .tsv, .csv or .jsonl file"
            )
        for file in (source, target):
            if ending_of(file) in READERS:
                raise InputError(f"{file}: is a table, which contains both sides of the pairs; give only the table")
            if (shape := shape_of(file, bad_utf8)) and shape.kind == "foreign":
                raise InputError(f"{file}: contains {shape.content}, not one sentence per line; {shape.remedy}")
        content = f"parallel text (line n of {target} translates line n of {source})"
        second = TaskChoice("language_model")
        Interpretation(source, content, TaskChoice("translation"), "certain", second).confirm()
        corpus = CorpusConfig(source=str(source), target=str(target))
        init_pairs(PairsRequest(corpus, parts, out, source_language, target_language, bad_utf8, fast))


def check_task(task: str | None) -> None:
    """Check that this command writes recipes for a task."""
    from heedful.registry import TASKS as KNOWN
    from heedful.tools.proposals.table_task import ELSEWHERE

    if task is None or task in TASKS:
        return
    near = get_close_matches(task, TASKS, n=1, cutoff=0.7)
    if near and task not in KNOWN:
        raise InputError(f"--task {task}: unknown task; {did_you_mean(near[:1])}")
    if task not in KNOWN:
        raise InputError(
            f"--task {json.dumps(task, ensure_ascii=False)}: unknown task; choose one of {', '.join(TASKS)}"
        )
    raise InputError(
        f"--task {task}: `heedful init` does not write recipes for this task; choose one of {', '.join(TASKS)}. "
        f"For ranking see {ELSEWHERE}; recipes/ has more examples"
    )
