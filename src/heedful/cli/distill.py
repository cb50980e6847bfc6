"""`heedful distill`: have a teacher translate a recipe's training set, and write the recipe of a student."""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.answering import recipe_of, settings
from heedful.config.schema import CorpusConfig, DecodeConfig
from heedful.errors import InputError
from heedful.wording import either

if TYPE_CHECKING:
    from heedful.config.schema import Recipe

SOURCES, TRANSLATIONS = "sources", "translations"
TASKS = ("translation", "summarisation", "text_to_text")  # of the student and its teachers


def distill(
    recipe: Annotated[Path, typer.Argument(help="Recipe of the student: a folder with config.toml, or a TOML file.")],
    teacher: Annotated[
        list[str],
        typer.Option(
            help="Model or run folder of a teacher, or the name of a bundled model. Can be repeated: the student "
            "learns the translations of each teacher."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the translations and the new recipe.",
            show_default=False,
            callback=options.folder_to_write,
        ),
    ],
    keep_original: Annotated[
        bool, typer.Option("--keep-original", help="Train the student on the original translations as well.")
    ] = False,
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with more source texts, one per line, without translations: the student learns the teacher's "
            "translations of them. Can be repeated.",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    beam: options.Beam = None,
    device: options.Device = "auto",
    precision: options.Precision = "float32",
    engine: options.Engine = "auto",
) -> None:
    """Translate the training set of a recipe with a teacher, and write the recipe of a student that learns from it.

    This is sequence-level knowledge distillation (Kim & Rush 2016): the student
    learns the teacher's translations instead of the original ones, which vary more.
    A small student comes closer to a large teacher in this way, and loses less
    with greedy search (--beam 1). With --sources, it also learns from texts that
    nobody has translated (forward translation).

    The source texts are written to OUT/sources, and the translations by each
    teacher to a folder in OUT/translations. OUT/config.toml is the recipe of
    the student, with these files as its training set; the validation and test
    sets stay the same. After an interruption, the same command resumes.
    Commands that run at the same time share the work.
    """
    from heedful.cli.translate import FolderTranslation, translate_folder
    from heedful.config.load import load_recipe, read_toml, recipe_file, to_toml
    from heedful.data.readers.files import TABLE_ENDINGS, check_text, ending_of
    from heedful.jobs import SHARD_LINES
    from heedful.storage.atomic import atomic_file, named_write_errors

    file = recipe_file(recipe)
    student = load_recipe(file, data_root=data)
    supported = either(f'"{task}"' for task in TASKS)
    if student.task not in TASKS:
        raise InputError(f'{file}: the task is "{student.task}", but for distillation, it must be {supported}')
    if not student.data.train:
        raise InputError(f"{file}: has no training data to translate; set data.train")
    for model in teacher:  # before anything is written
        if (task := recipe_of(model).task) not in TASKS:
            raise InputError(f'--teacher {model}: its task is "{task}", but that of a teacher must be {supported}')
    for path in sources or ():
        if ending_of(path) in TABLE_ENDINGS:
            raise InputError(f"--sources {path}: is a table; save its texts to a file with one text per line")
        check_text(path)
    values, _ = read_toml(file)
    originals = student.data.train if keep_original else ()
    more = [str(file.absolute()) for file in sources or ()]
    corpora = (*student.data.train, *(CorpusConfig(source=path, target=path) for path in more))
    content = to_toml(distilled(values, student, out, len(teacher), corpora, originals)).encode()
    if (out / "config.toml").exists() and (out / "config.toml").read_bytes() != content:
        raise InputError(
            f"{out / 'config.toml'}: already contains a different recipe; choose another folder with --out"
        )
    if out.exists() and any(out.iterdir()) and not (out / TRANSLATIONS).exists():
        raise InputError(f"--out {out}: contains other files; choose a new folder")

    with named_write_errors(out):
        (out / TRANSLATIONS).mkdir(parents=True, exist_ok=True)
        write_sources(out / SOURCES, corpora, student)
    search = settings({"beam": beam}, DecodeConfig)
    for number, model in enumerate(teacher, 1):
        folders = (out / SOURCES, out / TRANSLATIONS / str(number))
        task = FolderTranslation(
            *folders, [model], device, precision, engine, search, False, SHARD_LINES, literals=False
        )
        translate_folder(task, ray=False)
    with named_write_errors(out), atomic_file(out / "config.toml") as stream:
        stream.write(content)
    typer.echo(f"{out / 'config.toml'}: the recipe of the student; next:")
    typer.echo(f"  {shlex.join(['heedful', 'train', str(out), '--out', str(out / 'run')])}")


def changes(corpus: CorpusConfig) -> dict[str, Any]:
    """Return the settings of a corpus that differ from their defaults, as TOML values."""
    defaults = {field.name: field.default for field in fields(corpus)}
    values = {key: value for key, value in asdict(corpus).items() if value != defaults[key]}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def file_name(number: int) -> str:
    return f"train-{number}.txt"


def write_sources(folder: Path, corpora: Sequence[CorpusConfig], recipe: "Recipe") -> None:
    """Write the source texts of corpora to a folder; if it exists, check that it contains them."""
    from heedful.storage.atomic import atomic_folder

    if not folder.exists():
        with atomic_folder(folder) as writer:
            for number, corpus in enumerate(corpora, 1):
                writer.write(file_name(number), source_lines(corpus, recipe))
        return
    files = {file_name(number): corpus for number, corpus in enumerate(corpora, 1)}
    if {path.name for path in folder.iterdir()} != files.keys():
        raise InputError(f"{folder}: contains the texts of other sources; choose another folder with --out")
    for name, corpus in files.items():
        with (folder / name).open("rb") as stream:
            if any(before != now for before, now in zip_longest(stream, source_lines(corpus, recipe))):
                raise InputError(
                    f"{folder / name}: was written from other texts than those now in {corpus.source}; restore them, "
                    "or choose another folder with --out"
                )


def source_lines(corpus: CorpusConfig, recipe: "Recipe") -> Iterator[bytes]:
    """Yield the source texts of a corpus as lines."""
    from heedful.data.readers.corpus import read_pairs

    for pair in read_pairs(corpus, recipe.data):
        yield " ".join(pair.source.splitlines()).encode() + b"\n"


def distilled(
    values: dict[str, Any],
    recipe: "Recipe",
    out: Path,
    teachers: int,
    corpora: Sequence[CorpusConfig],
    originals: Sequence[CorpusConfig],
) -> dict[str, Any]:
    """Return the values of a student's recipe, which trains on the translations of `corpora`, and on `originals`.

    Paths of corpora are relative to the recipe's data folder, whose own path is relative to `out`.
    """
    root = Path(recipe.data.root)
    train = [changes(corpus) for corpus in originals]
    for teacher in range(1, teachers + 1):
        for number, corpus in enumerate(corpora, 1):
            pair = (SOURCES, f"{TRANSLATIONS}/{teacher}")
            source, target = (os.path.relpath((out / side / file_name(number)).absolute(), root) for side in pair)
            train.append(changes(CorpusConfig(source=source, target=target, weight=corpus.weight)))
    return {
        **values,
        "data": {**values.get("data", {}), "root": os.path.relpath(root, out.absolute()), "train": train},
    }
