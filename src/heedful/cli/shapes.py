"""`heedful shapes`: write a corpus of drawn pictures with captions in three languages, and a box for each word."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.corpus_folder import write_corpus
from heedful.cli.options import folder_to_write
from heedful.progress import show_progress
from heedful.wording import counted

MOST_TRAIN, MOST_HELD_OUT = 900_000, 40_000  # of 1,442,232 captions; 1 in 16 is for validation, 1 for test


def shapes(
    out: Annotated[Path, typer.Option(help="Folder to write to.", callback=folder_to_write)],
    train: Annotated[int, typer.Option(min=1, max=MOST_TRAIN, help="Pictures for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, max=MOST_HELD_OUT, help="Pictures for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, max=MOST_HELD_OUT, help="Pictures for the test set.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers; another seed draws other pictures.")] = 1,
    speak: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE", help="Also write the captions in this language (en, de or zh) as sound, by espeak-ng."
        ),
    ] = None,
) -> None:
    """Draw a corpus of pictures of one to three shapes, each with one right caption in English, German and Chinese.

    A table in JSON Lines for each part names the pictures, their captions and,
    for each word of a caption, the box of the object that it is about. The same
    command always writes the same files, and goes on if it was interrupted. No
    caption for training is in the validation or test set, whatever the seed.
    """
    from heedful.data.shapes import LANGUAGES, caption, split
    from heedful.data.shapes.corpus import corpus_files

    speaker = None
    if speak is not None:
        import torch

        from heedful.data.shapes.speech import Speaker

        torch.set_num_threads(1)  # several would wait for each other longer than a short sound takes
        speaker = Speaker(speak)
    with show_progress("drawing pictures", "scenes", train + valid + test) as progress:
        parts = split(train, valid, test, seed, progress.advance)
        files = corpus_files(parts, speaker)
        progress.begin("files", len(files))
        write_corpus(out, files, "shapes", progress.advance)
    typer.echo(f"{out}: {counted(train, 'pictures')} to train on, {valid:,} for validation, {test:,} for test; such as")
    typer.echo("".join(f"  {caption(language, parts['test'][0]).text}\n" for language in LANGUAGES), nl=False)
