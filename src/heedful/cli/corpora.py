"""`heedful scenes`, `heedful stories`, `heedful functions` and `heedful shapes`: synthetic corpora."""

import shlex
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import folder_to_write
from heedful.errors import InputError, RunError
from heedful.progress import show_progress
from heedful.wording import counted

Files = Mapping[str, Callable[[], bytes]]  # functions that return the content, by path relative to the folder
PARTS = ("train", "valid", "test")
# Of the distinct sentences that the grammar can produce, 1 in 16 is for validation, and 1 in 16 for test: beyond these
# numbers, ever more drawn sentences are repetitions.
MAX_PAIRS, MAX_HELD_OUT_PAIRS = 2_000_000, 100_000
Out = Annotated[Path, typer.Option(help="Folder to write to.", callback=folder_to_write)]


def write_corpus(folder: Path, files: Files, done: Callable[[int], object] = lambda _: None) -> None:
    """Write the files of a generated corpus into a folder that `reject_other_files` has accepted.

    Existing files stay unchanged; before anything is written, they are compared with the generated content. Each file
    is written completely or not at all, however the command ends. Only a power failure can leave damaged files, which
    the next call rejects. Files are generated one by one, so that they need not fit into memory together.
    """
    from heedful.storage.atomic import atomic_file, named_write_errors
    from heedful.storage.disk import UNFLUSHED

    with named_out_errors(folder):
        for name in (name for name in files if (folder / name).exists()):
            if (folder / name).read_bytes() != files[name]():
                raise InputError(
                    f"--out {folder}: contains a different {name}, as with another size or seed; choose an empty folder"
                )
            done(1)
    for name, content in files.items():
        path = folder / name
        if not path.exists():
            data = content()
            with named_write_errors(path):
                path.parent.mkdir(exist_ok=True)
                with atomic_file(path, UNFLUSHED) as stream:
                    stream.write(data)
            done(1)


def report_sizes(folder: Path, what: str, train: int, valid: int, test: int) -> None:
    """Print the sizes of the parts of a corpus; an example follows."""
    typer.echo(f"{folder}: {counted(train, what)} to train on, {valid:,} for validation, {test:,} for test, such as")


def reject_other_files(folder: Path, names: Collection[str], what: str) -> None:
    """Reject a folder that cannot be created, or that contains anything but files with these names."""
    from heedful.storage.atomic import TEMPORARY

    folders = {name.rpartition("/")[0] for name in names}
    with named_out_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.rglob("*"):
            # A temporary file that an interrupted command left counts as the file that it would have become.
            relative = path.relative_to(folder)
            name = relative.with_name(relative.name.removeprefix(TEMPORARY)).as_posix()
            if name not in (folders if path.is_dir() else names):
                raise InputError(
                    f"--out {folder}: contains {relative.as_posix()}, which does not belong to these {what}; choose an "
                    "empty folder"
                )


@contextmanager
def named_out_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(
            f"cannot write to {folder}: {error.strerror or error}; choose another folder with --out"
        ) from error


def scenes(
    languages: Annotated[str, typer.Argument(help="Languages: en-de, en-zh, or en-tree for trees.")],
    out: Out,
    train: Annotated[int, typer.Option(min=1, max=MAX_PAIRS, help="Sentence pairs for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT_PAIRS, help="Sentence pairs for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT_PAIRS, help="Sentence pairs for the test set.")] = 500,
    seed: Annotated[int, typer.Option(help="Random seed; a different seed gives different sentences.")] = 1,
) -> None:
    """Generate a parallel corpus from a small grammar; each sentence has exactly one translation.

    With en-tree, the translation of an English sentence is its constituency
    tree, such as (S (NP the cat) (VP is sleeping) .). Separate files contain the
    words of each sentence, their roles and the word alignment. The same command
    always writes the same files. No training sentence is in the validation or
    test set, whatever the seed.
    """
    from heedful.corpora.scenes import check_languages, split
    from heedful.corpora.scenes.corpus import corpus_files

    check_languages(languages)
    reject_other_files(out, corpus_files(languages, dict.fromkeys(PARTS, ())), "scenes")
    with show_progress("writing sentence pairs", "pairs", train + valid + test) as progress:
        parts = split(languages, train, valid, test, seed, progress.advance)
    write_corpus(out, {name: text.encode for name, text in corpus_files(languages, parts).items()})
    sample = parts["test"][0]
    report_sizes(out, "pairs", train, valid, test)
    typer.echo(f"  {sample.source.text}\n  {sample.target.text}")
    sides = {part: [str(out / f"{part}.{language}") for language in languages.split("-")] for part in parts}
    command = ["heedful", "init", *sides["train"], "--valid", *sides["valid"], "--test", *sides["test"]]
    typer.echo(f"next:\n  {shlex.join(command)}")


def stories(
    out: Out,
    language: Annotated[str, typer.Argument(help="Language: en, de or zh.")] = "en",
    train: Annotated[int, typer.Option(min=1, max=MAX_PAIRS, help="Stories for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT_PAIRS, help="Stories for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT_PAIRS, help="Stories for the test set.")] = 500,
    sentences: Annotated[
        tuple[int, int],
        typer.Option(min=2, metavar="MIN MAX", help="Minimum and maximum number of sentences in a story."),
    ] = (4, 9),
    facts: Annotated[
        bool,
        typer.Option("--facts", help="Write tables with a summary of each story and a dialogue about it."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed; a different seed gives different stories.")] = 1,
) -> None:
    """Generate short stories from the grammar of `scenes`: documents to train a language model or BERT on.

    The sentences of a story are about the same few people and things; each
    story is a paragraph. With --facts, each is a row of a table in JSON Lines,
    with a summary and a dialogue of questions with their correct answers. The
    same command always writes the same files. No training story is in the
    validation or test set, whatever the seed.
    """
    from heedful.corpora.scenes.stories import express, fact_files, split_stories, story_files

    fewest, most = sentences
    if fewest > most:
        raise InputError(f"--sentences {fewest} {most}: give the smaller number first")
    files = fact_files if facts else story_files
    reject_other_files(out, files(language, dict.fromkeys(PARTS, ())), "stories")
    with show_progress("writing stories", "stories", train + valid + test) as progress:
        parts = split_stories(train, valid, test, seed, range(fewest, most + 1), progress.advance)
    write_corpus(out, {name: text.encode for name, text in files(language, parts).items()})
    report_sizes(out, "stories", train, valid, test)
    typer.echo("".join(f"  {sentence}\n" for sentence in express(language, parts["test"][0])), nl=False)
    command = ["heedful", "init", str(out)]
    if facts:
        columns = ["--task", "summarisation", "--source-field", "story", "--target-field", "summary"]
        typer.echo(f"next:\n  for summaries: {shlex.join([*command, *columns])}\n  for dialogue: {shlex.join(command)}")
        return
    typer.echo(f"next:\n  {shlex.join(command)}")
    typer.echo('for a language model that writes whole stories, set documents = "paragraph" under [data] in its recipe')


def functions(
    out: Out,
    train: Annotated[int, typer.Option(min=1, max=MAX_PAIRS, help="Functions for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT_PAIRS, help="Functions for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT_PAIRS, help="Functions for the test set.")] = 500,
    seed: Annotated[int, typer.Option(help="Random seed; a different seed gives different functions.")] = 1,
) -> None:
    """Generate descriptions of small Python functions, each with its code, to train a model that writes code.

    The metric passes_tests runs what the model writes, in a process with
    limits, and compares its results with those of the code. The same command
    always writes the same files. No function for training is in the validation
    or test set, whatever the seed.
    """
    from heedful.corpora.functions import function_files, split

    reject_other_files(out, function_files(dict.fromkeys(PARTS, ())), "functions")
    with show_progress("writing functions", "functions", train + valid + test) as progress:
        parts = split(train, valid, test, seed, progress.advance)
    write_corpus(out, {name: text.encode for name, text in function_files(parts).items()})
    sample = parts["test"][0]
    report_sizes(out, "functions", train, valid, test)
    typer.echo(textwrap.indent(f"{sample.description}\n{sample.code}", "  "))
    command = ["heedful", "init", str(out), "--task", "text_to_text"]
    columns = ["--source-field", "description", "--target-field", "code"]
    typer.echo(f"next:\n  {shlex.join([*command, *columns])}")
    typer.echo('to test what the model writes, set metrics = ["passes_tests"] under [evaluate] in its recipe')


# Of 1,442,232 captions, 1 in 16 is held out for validation, and 1 in 16 for test.
MAX_TRAIN, MAX_HELD_OUT = 900_000, 40_000


def shapes(
    out: Out,
    train: Annotated[int, typer.Option(min=1, max=MAX_TRAIN, help="Images for training.")] = 20_000,
    valid: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT, help="Images for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, max=MAX_HELD_OUT, help="Images for the test set.")] = 500,
    seed: Annotated[int, typer.Option(help="Random seed; a different seed gives different images.")] = 1,
    speak: Annotated[
        str | None,
        typer.Option(
            metavar="LANGUAGE", help="Also write the captions in this language (en, de or zh) as audio, with espeak-ng."
        ),
    ] = None,
) -> None:
    """Generate a corpus of images of one to three shapes, each with one correct caption in English, German and Chinese.

    For each part, a table in JSON Lines lists the images, their captions and,
    for each word of a caption, the box of the object that it describes. The
    same command always writes the same files, and resumes if it was
    interrupted. No caption for training is in the validation or test set,
    whatever the seed.
    """
    from heedful.corpora.shapes import LANGUAGES, caption, scene, split
    from heedful.corpora.shapes.corpus import corpus_files

    speaker = None
    if speak is not None:
        import torch

        from heedful.corpora.shapes.corpus import Speaker

        torch.set_num_threads(1)  # for a short clip, several threads would mostly wait for each other
        speaker = Speaker(speak)
    # The names of the files depend only on the numbers of scenes.
    sizes = zip(PARTS, (train, valid, test), strict=True)
    reject_other_files(out, corpus_files({part: [scene(seed, 0)] * size for part, size in sizes}, speaker), "shapes")
    with show_progress("drawing images", "scenes", train + valid + test) as progress:
        parts = split(train, valid, test, seed, progress.advance)
        files = corpus_files(parts, speaker)
        progress.begin("files", len(files))
        write_corpus(out, files, progress.advance)
    report_sizes(out, "images", train, valid, test)
    typer.echo("".join(f"  {caption(language, parts['test'][0]).text}\n" for language in LANGUAGES), nl=False)
    command = ["heedful", "init", str(out / "train.jsonl"), "--task", "captioning", "--target-field", "en"]
    typer.echo(f"next:\n  {shlex.join(command)}")
