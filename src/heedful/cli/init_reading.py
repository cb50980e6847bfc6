"""What `heedful init` takes data for: its first line, and the question, or the refusal, where it is unsure."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heedful.data.proposals.table_task import ELSEWHERE, OF_LABELS, OF_ONE_TEXT, OF_REPLIES, Certainty, TaskChoice
from heedful.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

MODELS = {
    "translation": "a translator",
    "language_model": "a GPT (language model)",
    "masked_lm": "a BERT (masked_lm)",
    "classification": "a classifier",
    "regression": "a regression",
    "tagging": "a tagger",
    "span_qa": "question answering (span_qa)",
    "text_to_text": "answers to texts (text_to_text)",
    "summarisation": "summaries (summarisation)",
    "dialogue": "replies (dialogue)",
    "image_classification": "a classifier of pictures",
    "audio_classification": "a classifier of sounds",
    "video_classification": "a classifier of videos",
    "captioning": "captions of pictures",
    "speech_recognition": "speech recognition",
}
TARGETS = {
    "classification": "classes",
    "regression": "numbers",
    "translation": "translations",
    "text_to_text": "answers",
    "summarisation": "summaries",
    "dialogue": "replies",
    "captioning": "texts",
    "speech_recognition": "texts",
}
SHOWN = 12  # columns that are listed at most


@dataclass(frozen=True)
class Reading:
    """What a file or a folder is taken for.

    Attributes:
        source: The file or folder.
        content: What it holds, in words.
        choice: The task, and the columns that it reads.
        certainty: How certain that is.
        second: The next best choice; None: there is no other.
        unused: Columns or folders that are not read.
        command: The arguments of the next best reading, if they are not those of `second` for the same source.
    """

    source: Path
    content: str
    choice: TaskChoice
    certainty: Certainty
    second: TaskChoice | None = None
    unused: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    def command_of(self, choice: TaskChoice) -> str:
        """The command that asks for a choice."""
        return shlex.join(["heedful", "init", str(self.source), *choice.options()])

    def line(self) -> str:
        """The first line that `heedful init` prints."""
        other = shlex.join(["heedful", "init", *self.command]) if self.command else ""
        other = other or (self.command_of(self.second) if self.second else "")
        return (
            f"{self.source}: {self.content}, taken for {MODELS[str(self.choice.task)]} ({self.certainty})"
            f"{columns_read(self.choice)}; not used: {listed_names(self.unused)}"
            + (f"; if that is wrong: {other}" if other else "")
        )


def columns_read(choice: TaskChoice) -> str:
    """Say which columns a choice reads, and for what."""
    if choice.source is None:
        return ""
    read = "texts" if choice.task in ("translation", *OF_LABELS, *OF_ONE_TEXT, *OF_REPLIES) else "files"
    read = "dialogues" if choice.task == "dialogue" else read
    pair = f" and {choice.pair!r}" if choice.pair else ""
    target = f", {TARGETS.get(str(choice.task), 'classes')} in {choice.target!r}" if choice.target else ""
    return f": {read} in {choice.source!r}{pair}{target}"


def listed_names(names: "Sequence[str]") -> str:
    """List names, at most a dozen of them; "nothing" if there are none."""
    return ", ".join(map(repr, names[:SHOWN])) + ", ..." * (len(names) > SHOWN) or "nothing"


def settled(reading: Reading) -> TaskChoice:
    """Print what data is taken for; where that is unsure, ask on a terminal, and refuse elsewhere.

    Raises:
        InputError: It is unsure, and nobody can be asked.
    """
    if reading.certainty != "unsure":
        typer.echo(
            reading.line().encode(errors="backslashreplace").decode()
        )  # a name may have bytes that are not UTF-8
        return reading.choice
    choices = [choice for choice in (reading.choice, reading.second) if choice]
    options = [f"{MODELS[str(choice.task)]}{columns_read(choice)}" for choice in choices]
    if sys.stdin.isatty() and sys.stderr.isatty():
        typer.echo(f"{reading.source}: {reading.content}; what is it for?", err=True)
        for number, option in enumerate(options, start=1):
            typer.echo(f"  {number}: {option}", err=True)
        number = 0
        while not 1 <= number <= len(choices):
            number = typer.prompt("Number", type=int, err=True)
        return choices[number - 1]
    commands = "".join(
        f"\n  for {option}: {reading.command_of(choice)}" for option, choice in zip(options, choices, strict=True)
    )
    raise InputError(
        f"{reading.source}: {reading.content}; what is to be learned is unsure. Say it with one of these, or with "
        f"other columns (--task text_to_text, summarisation and dialogue learn to write the second text to the first; "
        f"for search {ELSEWHERE} has a recipe to copy):{commands}"
    )
