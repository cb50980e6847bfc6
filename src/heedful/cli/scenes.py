"""`heedful scenes`: write a parallel corpus about little scenes, with gold alignments and roles."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from heedful.errors import InputError, RunError


def scenes(
    languages: Annotated[str, typer.Argument(help="en-de or en-zh.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    train: Annotated[int, typer.Option(min=1, help="Sentence pairs to train on.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, help="Other pairs, to watch training.")] = 500,
    test: Annotated[int, typer.Option(min=1, help="Still other pairs, to score the model.")] = 500,
    seed: Annotated[int, typer.Option(help="Another seed writes other sentences.")] = 1,
) -> None:
    """Write sentence pairs of a small grammar: as many as you like, each with its only translation.

    Beside the text there are its words, the role of each word, and which words correspond. The same
    command writes the same files, and what it trains on is in no validation or test set of any seed.
    """
    from heedful.data.scenes import split
    from heedful.data.scenes.corpus import corpus_files

    parts = split(languages, train, valid, test, seed)
    write(out, {name: text.encode() for name, text in corpus_files(languages, parts).items()})
    sample = parts["test"][0]
    typer.echo(f"{out}: {train:,} pairs to train on, {valid:,} for validation, {test:,} for test; such as")
    typer.echo(f"  {sample.source.text}\n  {sample.target.text}")
    sides = {part: [str(out / f"{part}.{language}") for language in languages.split("-")] for part in parts}
    command = ["heedful", "init", *sides["train"], "--valid", *sides["valid"], "--test", *sides["test"]]
    typer.echo(f"next:\n  {shlex.join(command)}")


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files into a folder that holds nothing else; those that are there already stay as they are.

    Raises:
        InputError: The folder holds something else, or is none.
        RunError: Writing failed; once that is repaired, the same command goes on.
    """
    from heedful.cli.translate import writing

    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: this is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.name not in files or not path.is_file() or path.read_bytes() != files[path.name]:
                raise InputError(f"--out {folder}: {path.name} in it is none of these scenes; name an empty folder")
    except OSError as error:
        raise RunError(f"cannot write to {folder}: {error.strerror or error}; name another with --out") from error
    for name, content in files.items():
        with writing(folder / name) as stream:
            stream.write(content)
