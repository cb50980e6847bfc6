"""`heedful init`: from two files of text to a first recipe."""

import os
import re
import shlex
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.errors import InputError, RunError

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.data.corpus import Pair
    from heedful.data.proposal import Machine
    from heedful.data.survey import Side, Survey

BadUtf8 = Literal["error", "skip", "replace"]
Files = tuple[Path, Path]
Languages = tuple[str, str]

LANGUAGES = {"han": "zh", "kana": "ja", "hangul": "ko"}  # the scripts that write one language
FEW = 10_000  # pairs
ENDING = "the file's ending"
HELD_OUT = "held out"


def init(
    source: Annotated[Path, typer.Argument(help="Text with one sentence a line, plain or .gz.")],
    target: Annotated[Path, typer.Argument(help="Its translation, line by line.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write to.", show_default="SOURCE-TARGET")] = None,
    source_language: Annotated[str | None, typer.Option(help="Such as en.", show_default=ENDING)] = None,
    target_language: Annotated[str | None, typer.Option(help="Such as de.", show_default=ENDING)] = None,
    valid: Annotated[
        Files | None, typer.Option(metavar="SRC TGT", help="Validation text.", show_default=HELD_OUT)
    ] = None,
    test: Annotated[Files | None, typer.Option(metavar="SRC TGT", help="Test text.", show_default=HELD_OUT)] = None,
    bad_utf8: Annotated[BadUtf8, typer.Option(help="What to do about lines that are not UTF-8.")] = "error",
) -> None:
    """Look at a parallel text, hold out some of it for validation and test, and write a recipe with sizes that fit.

    The files themselves are left as they are, and nothing is overwritten.
    """
    from heedful.config.load import load_recipe
    from heedful.data.proposal import Texts, propose
    from heedful.data.survey import survey

    given = {part: pair for part, pair in (("valid", valid), ("test", test)) if pair}
    for pair in given.values():
        deque(pairs_of(pair, bad_utf8), maxlen=0)
    found = survey(pairs_of((source, target), bad_utf8))
    languages = (
        source_language or language_of(source, found.source, "src"),
        target_language or language_of(target, found.target, "tgt"),
    )
    folder = out or Path("-".join(languages))
    check_free(folder, languages)
    tell_text(found, languages)
    files = {"train": (source, target), **given}
    files |= hold_out(found, files, folder / "data", languages, bad_utf8)
    names = {part: [os.path.relpath(file, folder) for file in pair] for part, pair in files.items()}
    texts = Texts(folder.resolve().name, *languages, names["train"], names["valid"], names["test"], bad_utf8)
    write(folder / "config.toml", propose(found, this_machine(), texts))
    tell_recipe(load_recipe(folder), folder)


def pairs_of(files: Files, bad_utf8: BadUtf8) -> "Iterator[Pair]":
    """The pairs of two files."""
    from heedful.config.schema import CorpusConfig, DataConfig
    from heedful.data.corpus import read_pairs

    return read_pairs(CorpusConfig(source=str(files[0]), target=str(files[1])), DataConfig(bad_utf8=bad_utf8))


def language_of(file: Path, side: "Side", otherwise: str) -> str:
    """A language by the file's name, as in train.de.gz or de.txt, or by a script that writes only one."""
    codes = [part for part in file.name.split(".") if re.fullmatch(r"[a-z]{2}([-_][A-Za-z]{2,4})?", part)]
    codes = [code for code in codes if code != "gz"]
    return codes[-1] if codes else LANGUAGES.get(side.script or "", otherwise)


def check_free(folder: Path, languages: Languages) -> None:
    """Refuse what would overwrite files, or would make two files of one name."""
    for language in languages:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", language):
            raise InputError(f'"{language}" is no language code; give one such as en or zh-Hant')
    if languages[0] == languages[1]:
        raise InputError(f"both languages are {languages[0]}; give --source-language and --target-language")
    for path in (folder / "config.toml", folder / "data"):
        if path.exists():
            raise InputError(f"{path} is there already and stays as it is; name another folder with --out")


def hold_out(
    found: "Survey", files: dict[str, Files], folder: Path, languages: Languages, bad_utf8: BadUtf8
) -> dict[str, Files]:
    """Write the parts that are not given and what they leave for training; return the files of all that is written."""
    from heedful.data.arrays import published
    from heedful.data.survey import split

    missing = [part for part in ("valid", "test") if part not in files]
    if not missing:
        return {}
    parts = ["train", *missing]
    division = split(found, valid="valid" in missing, test="test" in missing)
    counts: Counter[str] = Counter()
    with published(folder) as temporary, ExitStack() as stack:
        streams = {
            part: [stack.enter_context((temporary / f"{part}.{language}").open("wb")) for language in languages]
            for part in parts
        }
        for part, pair in division.divide(pairs_of(files["train"], bad_utf8)):
            counts[part] += 1
            for stream, text in zip(streams[part], (pair.source, pair.target), strict=True):
                stream.write(text.encode() + b"\n")
    typer.echo(f"\nwritten to {folder}:")
    for part in parts:
        typer.echo(f"  {part:6}{counts[part]:>11,} pairs")
    if left := found.pairs - counts.total():
        typer.echo(f"  and {left:,} left out, as their source sentence is held out already")
    return {part: (folder / f"{part}.{languages[0]}", folder / f"{part}.{languages[1]}") for part in parts}


def this_machine() -> "Machine":
    """What training will run on."""
    import torch

    from heedful.data.proposal import Machine

    if torch.cuda.is_available():
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        return Machine(os.cpu_count() or 1, torch.cuda.is_bf16_supported(), memory)
    flags = Path("/proc/cpuinfo")
    return Machine(os.cpu_count() or 1, flags.exists() and "bf16" in flags.read_text())


def write(file: Path, text: str) -> None:
    """Write the recipe."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{file}: cannot be written ({error.strerror or error})") from error


def tell_text(found: "Survey", languages: Languages) -> None:
    """Say what the text looks like, and what is odd about it."""
    import numpy as np

    typer.echo(f"{found.pairs:,} pairs of sentences")
    for language, side in zip(languages, (found.source, found.target), strict=True):
        unit, lengths = ("characters", side.characters) if side.is_spaceless else ("words", side.words)
        half, most, longest = np.quantile(lengths, [0.5, 0.99, 1]).astype(int)
        script = f"{side.script} script" if side.script else "a script without a filter"
        typer.echo(f"  {language:4}{script}, {unit} a line: median {half}, 99 % up to {most}, longest {longest:,}")
    for count, what in (
        (found.repeated, "repeat an earlier pair; training leaves them out unless data.filters.duplicates = true"),
        (found.empty, "have an empty side; training leaves them out"),
        (found.copies, "are the same on both sides, which teaches to copy; remove them if that is not wanted"),
    ):
        if count:
            typer.echo(f"  {count:,} pairs ({count / found.pairs:.1%}) {what}")
    if found.pairs < FEW:
        typer.echo(f"  fewer than {FEW:,} pairs teach phrases rather than a language; find more text if you can")


def tell_recipe(recipe: "Recipe", folder: Path) -> None:
    """Say how large the model is, and what to type next."""
    from heedful.cli.info import summary
    from heedful.tasks.size import count_model

    vocabs = (recipe.tokenizer.vocab_size, recipe.tokenizer.vocab_size)
    total = count_model(recipe, *vocabs).total
    run = folder / "run"
    typer.echo(f"\n{folder / 'config.toml'}: {summary(recipe.model, vocabs)}: up to {total / 1e6:.1f}M parameters")
    typer.echo("\nnext:")
    for command in (
        ["heedful", "train", str(folder), "--out", str(run)],
        ["heedful", "evaluate", str(run)],
        ["heedful", "translate", "--model", str(run), "Some text."],
    ):
        typer.echo(f"  {shlex.join(command)}")
