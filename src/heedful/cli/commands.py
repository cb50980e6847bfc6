"""The table of commands. A command's module is imported when the command is used; a list of commands imports none."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command


class Entry(NamedTuple):
    place: str  # the function of the command, or a `typer.Typer`, as "module:name" below heedful.cli
    summary: str  # the first paragraph of the command's help, which the list of commands shows


TABLE = {
    "init": Entry(
        "init:init",
        "Look at your data, hold out some of it for validation and test, and write a recipe with sizes that fit.",
    ),
    "train": Entry("train:train", "Train a model as a recipe says, or resume a run that was interrupted."),
    "evaluate": Entry(
        "evaluate:evaluate",
        "Score a model on a test set, or a file of translations; with --against, compare two systems.",
    ),
    "plan": Entry(
        "plan:plan",
        "Plan a run on paper: memory, FLOPs, time, checkpoints and data. Nothing is trained, and no GPU is needed.",
    ),
    "compare": Entry(
        "compare:compare",
        "Train several systems on the same data, with the same budget, and write a report that compares them.",
    ),
    "verify": Entry(
        "checks:verify",
        "Check that batches, padding, caches, searches, interruptions and processes change no result of a model.",
    ),
    "replay": Entry(
        "checks:replay",
        "Compute one update of a run again, and show the size of every tensor on the way.",
    ),
    "translate": Entry(
        "translate:translate",
        "Translate sentences, the lines of files, a column of a table, or standard input; one in, one line out.",
    ),
    "transcribe": Entry(
        "transcribe:transcribe",
        "Write down the speech in files of sound; one file in, one line out: the file, a tab, and the text.",
    ),
    "generate": Entry(
        "generate:generate",
        "Continue prompts with a language model; an empty prompt begins a new document.",
    ),
    "fill": Entry(
        "fill:fill",
        "Fill gaps in texts with a masked language model (BERT): the most likely words, with their probabilities.",
    ),
    "predict": Entry(
        "predict:predict",
        "Classify texts, pictures, sounds or videos, score or tag texts, or answer questions; one in, one line out.",
    ),
    "caption": Entry(
        "caption:caption", "Write a caption for each picture; one line out: the file, a tab, and the text."
    ),
    "search": Entry(
        "search:search",
        "Find the texts or pictures nearest in meaning to a query, with a model trained for ranking or retrieval.",
    ),
    "encode": Entry(
        "search:encode",
        "Write the vector of each text, for search or clustering, with a model that was trained for ranking or "
        "retrieval.",
    ),
    "attention": Entry(
        "inspect:attention",
        "Draw cross-attention: which source words, parts of a picture or times of a sound each target word looks at.",
    ),
    "inspect": Entry(
        "inspect:inspect",
        "Look inside a model in the browser: its attention heads, its numbers step by step, and its beam search.",
    ),
    "export": Entry(
        "convert:export",
        "Write a model folder to share: all files that the model needs, without the paths of this machine.",
    ),
    "convert": Entry("convert:convert", "Convert a model: the same numbers in another format."),
    "info": Entry(
        "config:info",
        "Count the parameters of a model by kind: attention, feed-forward, embeddings, norms.",
    ),
    "doctor": Entry(
        "checks:doctor",
        "Measure how fast this machine computes, and say what would make it faster. It takes some seconds.",
    ),
    "scenes": Entry(
        "corpora:scenes",
        "Write a parallel corpus from a small grammar, of any size; each sentence has exactly one translation.",
    ),
    "stories": Entry(
        "corpora:stories",
        "Write short stories from the grammar of `scenes`: documents to train a language model or BERT on.",
    ),
    "shapes": Entry(
        "corpora:shapes",
        "Draw a corpus of pictures of one to three shapes, each with one right caption in English, German and Chinese.",
    ),
    "write": Entry(
        "translate:write",
        "Write a summary, a reply or an answer for each text; one line in, one line out.",
    ),
    "tokenizer": Entry(
        "tokenizer:app",
        "Train a tokenizer, encode and decode text, and measure how well a tokenizer fits a text.",
    ),
    "config": Entry("config:app", "Show, check and describe recipes, the configuration files of training."),
    "vectors": Entry(
        "vectors:app",
        "Compare words by their vectors: neighbours, analogies, similarities, pictures and files.",
    ),
    "runs": Entry("runs:app", "List, check, compare and prune the folders of runs."),
}


class Commands(Mapping[str, Any]):
    """The commands of a table by name: to look one up imports its module, to list the names imports nothing."""

    def __init__(self, table: Mapping[str, Entry]) -> None:
        self.table = table
        self.imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.imported:
            module, _, attribute = self.table[name].place.partition(":")
            part = getattr(import_module(f"heedful.cli.{module}"), attribute)
            app = part
            if not isinstance(part, typer.Typer):
                app = typer.Typer(add_completion=False)
                app.command(name)(part)
            self.imported[name] = get_command(app)
        return self.imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def summarised(self, name: str) -> TyperCommand | None:
        """Return a command that has the name and the summary of one of the table, and does nothing; None without one.

        Help and shell completion list commands by it.
        """
        return TyperCommand(name, help=self.table[name].summary) if name in self.table else None
