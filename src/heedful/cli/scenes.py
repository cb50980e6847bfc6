"""`heedful scenes` and `heedful stories`: write a parallel corpus with gold alignments and roles, or documents."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.corpus_folder import write_corpus
from heedful.cli.options import folder_to_write
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted


def scenes(
    languages: Annotated[str, typer.Argument(help="Languages: en-de or en-zh.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.", callback=folder_to_write)],
    train: Annotated[int, typer.Option(min=1, help="Sentence pairs for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, help="Sentence pairs for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, help="Sentence pairs for the test set.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers; another seed writes other sentences.")] = 1,
) -> None:
    """Write a parallel corpus from a small grammar, of any size; each sentence has exactly one translation.

    Beside the sentences there are their words, the role of each word and the
    word alignment. The same command always writes the same files. No training
    sentence is in the validation or test set, whatever the seed.
    """
    from heedful.data.scenes import split
    from heedful.data.scenes.corpus import corpus_files

    with show_progress("writing sentence pairs", "pairs", train + valid + test) as progress:
        parts = split(languages, train, valid, test, seed, progress.advance)
    write_corpus(out, {name: text.encode for name, text in corpus_files(languages, parts).items()}, "scenes")
    sample = parts["test"][0]
    typer.echo(f"{out}: {counted(train, 'pairs')} to train on, {valid:,} for validation, {test:,} for test; such as")
    typer.echo(f"  {sample.source.text}\n  {sample.target.text}")
    sides = {part: [str(out / f"{part}.{language}") for language in languages.split("-")] for part in parts}
    command = ["heedful", "init", *sides["train"], "--valid", *sides["valid"], "--test", *sides["test"]]
    typer.echo(f"next:\n  {shlex.join(command)}")


def stories(
    out: Annotated[Path, typer.Option(help="Folder to write to.", callback=folder_to_write)],
    language: Annotated[str, typer.Argument(help="Language: en, de or zh.")] = "en",
    train: Annotated[int, typer.Option(min=1, help="Stories for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, help="Stories for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, help="Stories for the test set.")] = 500,
    sentences: Annotated[tuple[int, int], typer.Option(min=2, help="Fewest and most sentences of a story.")] = (4, 9),
    seed: Annotated[int, typer.Option(help="Seed of the random numbers; another seed writes other stories.")] = 1,
) -> None:
    """Write short stories from the grammar of `scenes`: documents to train a language model or BERT on.

    The sentences of a story are about the same few people and things; each
    story is a paragraph. The same command always writes the same files. No
    training story is in the validation or test set, whatever the seed.
    """
    from heedful.data.scenes.story import split_stories, story_files

    fewest, most = sentences
    if fewest > most:
        raise InputError(f"--sentences {fewest} {most}: the fewest come first")
    with show_progress("writing stories", "stories", train + valid + test) as progress:
        parts = split_stories(language, train, valid, test, seed, range(fewest, most + 1), progress.advance)
    write_corpus(out, {name: text.encode for name, text in story_files(language, parts).items()}, "stories")
    typer.echo(f"{out}: {counted(train, 'stories')} to train on, {valid:,} for validation, {test:,} for test; such as")
    typer.echo("".join(f"  {sentence}\n" for sentence in parts["test"][0]), nl=False)
    typer.echo('in the recipe, tell that a document is a paragraph:\n  [data]\n  documents = "paragraph"')
