"""The table of commands. A command's module is imported on first use; listing the commands imports none."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command


class Entry(NamedTuple):
    target: str  # the command's function, or a `typer.Typer`, as "module:name" relative to heedful.cli
    summary: str  # the first paragraph of the command's help, which the list of commands shows


TABLE = {
    "init": Entry(
        "init:init",
        "Analyse your data, hold out some of it for validation and test, and write a recipe with suitable sizes.",
    ),
    "train": Entry("train:train", "Train a model from a recipe, or resume an interrupted run."),
    "evaluate": Entry(
        "evaluate:evaluate",
        "Score a model on a test set, or score a file of translations; with --against, compare two systems.",
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
        "Check that batching, padding, caching, search, interruption and multi-process runs do not change the results.",
    ),
    "replay": Entry(
        "checks:replay",
        "Recompute one update of a run, and show the magnitude of every tensor.",
    ),
    "translate": Entry(
        "translate:translate",
        "Translate sentences, the lines of files, a table column, standard input, or documents.",
    ),
    "distill": Entry(
        "distill:distill",
        "Translate the training set of a recipe with a teacher, and write the recipe of a student that learns from it.",
    ),
    "transcribe": Entry(
        "transcribe:transcribe",
        "Transcribe the speech in audio files; one output line per file: the file, a tab, and the text.",
    ),
    "generate": Entry(
        "generate:generate",
        "Continue prompts with a language model; an empty prompt starts a new document.",
    ),
    "fill": Entry(
        "fill:fill",
        "Fill gaps in texts with a masked language model (BERT): the most likely words, with their probabilities.",
    ),
    "predict": Entry(
        "predict:predict",
        "Classify texts, images, audio or video, score or tag texts, or answer questions; one output line per input.",
    ),
    "caption": Entry(
        "caption:caption",
        "Write a caption for each image; one output line per image: the file, a tab, and the caption.",
    ),
    "search": Entry(
        "search:search",
        "Find the texts or images nearest in meaning to a query, with a model trained for ranking or retrieval.",
    ),
    "encode": Entry(
        "search:encode",
        "Write the vector of each text, for search or clustering, with a model trained for ranking or retrieval.",
    ),
    "attention": Entry(
        "inspect:attention",
        "Plot cross-attention: which source words, image patches or audio frames each target word attends to.",
    ),
    "inspect": Entry(
        "inspect:inspect",
        "Look inside a model in the browser: its attention heads, its computation step by step, and its beam search.",
    ),
    "export": Entry(
        "convert:export",
        "Write a model folder for sharing, in heedful's format (safetensors) or for other programs.",
    ),
    "convert": Entry("convert:convert", "Convert a model to or from another format; its outputs stay the same."),
    "info": Entry(
        "config:info",
        "Count the parameters of a model by kind: attention, feed-forward, embeddings, norms.",
    ),
    "doctor": Entry(
        "checks:doctor",
        "Measure how fast this machine is, and report what would make it faster. This takes a few seconds.",
    ),
    "data": Entry(
        "data:data",
        "Download public data sets that the recipes use, and check them against their checksums.",
    ),
    "reproduce": Entry(
        "reproduce:reproduce",
        "Download the data of a recipe, train and evaluate its model, and compare the score with the stored results.",
    ),
    "scenes": Entry(
        "corpora:scenes",
        "Generate a parallel corpus from a small grammar; each sentence has exactly one translation.",
    ),
    "stories": Entry(
        "corpora:stories",
        "Generate short stories from the grammar of `scenes`: documents to train a language model or BERT on.",
    ),
    "functions": Entry(
        "corpora:functions",
        "Generate descriptions of small Python functions, each with its code, to train a model that writes code.",
    ),
    "shapes": Entry(
        "corpora:shapes",
        "Generate a corpus of images of one to three shapes, each with one correct caption in English, German and "
        "Chinese.",
    ),
    "write": Entry(
        "translate:write",
        "Write a summary, a reply or an answer for each text; one output line per input.",
    ),
    "tokenizer": Entry(
        "tokenizer:app",
        "Train a tokenizer, encode and decode text, and measure how well a tokenizer fits a text.",
    ),
    "config": Entry("config:app", "Show, check and describe recipes, the configuration files for training."),
    "vectors": Entry(
        "vectors:app",
        "Compare words by their vectors: neighbours, analogies, similarities, plots and files.",
    ),
    "runs": Entry("runs:app", "List, check, compare and prune run folders."),
}


class Commands(Mapping[str, Any]):
    """Mapping from names to commands: looking up a command imports its module; listing the names imports nothing."""

    def __init__(self, table: Mapping[str, Entry]) -> None:
        self.table = table
        self.imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.imported:
            module, _, attribute = self.table[name].target.partition(":")
            app = function = getattr(import_module(f"heedful.cli.{module}"), attribute)
            if not isinstance(app, typer.Typer):
                app = typer.Typer(add_completion=False)
                app.command(name)(function)
            self.imported[name] = get_command(app)
        return self.imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def summarised(self, name: str) -> TyperCommand | None:
        """Return a stand-in for a command, with its name and summary, for help and completion; None if unknown."""
        return TyperCommand(name, help=self.table[name].summary) if name in self.table else None
