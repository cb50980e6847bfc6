"""Help on any terminal, and hints after a misspelt command or option, other toolkits' names included."""

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from heedful.cli.commands import TABLE, Commands

SMALLEST = 20  # columns that a line has at least


def narrow_help(context: Any, columns: int) -> str:
    """Format the help of a command in lines of at most `columns` columns, of which only longer words stick out."""
    command = context.command
    parts = [f"Usage: {context.command_path} {' '.join(command.collect_usage_pieces(context))}"]
    parts += (command.help or "").split("\n\n")
    lines = [line for part in parts for line in (*wrapped(part, columns), "")]
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    entries = [record for record in records if record]
    if hasattr(command, "commands"):
        listed = {name: command.get_command(context, name) for name in command.list_commands(context)}
        entries += [(name, inner.get_short_help_str(columns * 9)) for name, inner in listed.items()]
    return "\n".join([*lines, *(line for entry in entries for line in described(entry, columns))])


def described(entry: tuple[str, str], columns: int) -> Iterable[str]:
    """Format an option, an argument or a command: its name, and below it, indented, what it does."""
    name, text = entry
    return (*wrapped(name, columns), *wrapped(text, columns, "    "))


def wrapped(text: str, columns: int, indent: str = "") -> list[str]:
    """Wrap a text between words; no word is cut."""
    return textwrap.wrap(
        " ".join(text.split()),
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


NARROW = 60  # columns of a terminal; with fewer, a table would cut the names of options

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]  # the base class of all errors in a command line

COMMANDS = {  # by names in other toolkits, without - and _: the words after `heedful`
    "answer": "predict",
    "apply": "predict",
    "average": "train RECIPE --set train.average_last=5",
    "avgcheckpoints": "train RECIPE --set train.average_last=5",
    "ask": "predict",
    "bleu": "evaluate",
    "chat": "write",
    "classify": "predict",
    "complete": "generate",
    "create": "init",
    "decode": "translate",
    "embed": "encode",
    "embeddings": "encode",
    "eval": "evaluate",
    "finetune": "train RECIPE --set train.start=MODEL",
    "fit": "train",
    "heatmap": "attention",
    "help": "--help",
    "index": "search",
    "infer": "predict",
    "inference": "predict",
    "interactive": "translate",
    "learn": "train",
    "mask": "fill",
    "new": "init",
    "preprocess": "init",
    "prepare": "init",
    "pretrain": "train",
    "quickstart": "init",
    "recipes": "config presets",
    "resume": "train",
    "retrieve": "search",
    "run": "train",
    "sample": "generate",
    "score": "evaluate",
    "serve": "inspect",
    "setup": "init",
    "similar": "vectors nearest",
    "start": "init",
    "summarise": "write",
    "summarize": "write",
    "tag": "predict",
    "test": "evaluate",
    "tokenise": "tokenizer encode",
    "tokenize": "tokenizer encode",
    "transcript": "transcribe",
    "ui": "inspect",
    "validate": "evaluate",
    "version": "--version",
    "visualise": "inspect",
    "visualize": "inspect",
    "web": "inspect",
}
# By names in other toolkits: the options that do this, of which a command has one at most. Names of settings are not
# here: an option that overrides a setting has the other names of the setting.
OPTIONS = {
    "b": ("--batch-tokens",),
    "beams": ("--beam",),
    "checkpoint": ("--model",),
    "ckpt": ("--model",),
    "column": ("--source-field",),
    "compute_type": ("--precision",),
    "confusion": ("--plot",),
    "confusion_matrix": ("--plot",),
    "data_dir": ("--data",),
    "dataset": ("--data",),
    "gpus": ("--processes",),
    "half": ("--precision",),
    "hypothesis": ("--hypotheses",),
    "i": ("--input",),
    "input": ("--input", "--source"),
    "input_file": ("--input", "--source"),
    "k": ("--count", "--top-k"),
    "label": ("--target-field",),
    "label_column": ("--target-field",),
    "lang": ("--language", "--source-language"),
    "language": ("--language", "--source-language"),
    "length": ("--max-tokens",),
    "m": ("--model",),
    "max_length": ("--max-tokens", "--max-extra"),
    "max_new_tokens": ("--max-tokens", "--max-extra"),
    "metric": ("--metrics",),
    "min_length": ("--min-tokens",),
    "model_name_or_path": ("--model",),
    "model_path": ("--model",),
    "model_type": ("--kind", "--from"),
    "n": ("--samples", "--n-best", "--count"),
    "n_gpu": ("--processes",),
    "nproc_per_node": ("--processes",),
    "num_gpus": ("--processes", "--gpus"),
    "num_return_sequences": ("--samples", "--n-best"),
    "num_samples": ("--samples", "--n-best"),
    "o": ("--output", "--out"),
    "out": ("--output", "--out"),
    "outfile": ("--output", "--out"),
    "output": ("--output", "--out"),
    "output_dir": ("--out", "--output"),
    "output_file": ("--output", "--out"),
    "overwrite": ("--force",),
    "overwrite_output_dir": ("--force",),
    "ref": ("--reference",),
    "references": ("--reference",),
    "s": ("--source", "--seed"),
    "save_dir": ("--out", "--output"),
    "source_lang": ("--source-language", "--language"),
    "src": ("--input", "--source"),
    "src_lang": ("--source-language", "--language"),
    "target_lang": ("--target-language", "--language"),
    "test_file": ("--input", "--source"),
    "text_column": ("--source-field",),
    "tgt": ("--reference",),
    "tgt_lang": ("--target-language", "--language"),
    "topk": ("--top-k", "--count"),
    "topp": ("--top-p",),
    "world_size": ("--processes",),
    "y": ("--yes", "--force"),
}


class TerminalContext(typer.Context):
    """Context of a command whose help fits the terminal."""

    def get_help(self) -> str:
        """Print the help of the command, as typer does where this is called, and return nothing more to print."""
        columns = shutil.get_terminal_size().columns
        if columns >= NARROW:
            return super().get_help()

        typer.echo(narrow_help(self, max(columns, SMALLEST)))
        return ""


class HintedGroup(TyperGroup):
    """Group of all commands; an error about a command or an option that is not there says what may be meant."""

    context_class = TerminalContext
    commands: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(TABLE)

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of the commands, in the order of help."""
        del ctx
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command as help and shell completion list it, without its module; None without one of that name."""
        del ctx
        return self.commands.summarised(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the command that is named; the error where there is none names the one that does this."""
        try:
            name, listed, rest = super().resolve_command(ctx, args)
        except USAGE_ERROR as error:
            if meant := meant_command(args[0], self):
                _explain(error, f"No such command '{args[0]}'.", f"`heedful {meant}`")
            raise
        if name is None or listed is None:  # while a shell completes
            return name, listed, rest
        command = self.commands[name]
        for each in (command, *all_commands(command)):  # whose help fits the terminal as well
            each.context_class = TerminalContext
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error about an option that it lacks names the option or the key that does this."""
        arguments = [*ctx._protected_args, *ctx.args]
        try:
            return super().invoke(ctx)
        except USAGE_ERROR as error:
            option, command = getattr(error, "option_name", None), getattr(error, "ctx", None)
            if option and command and hasattr(error, "possibilities"):
                written = next((word.partition("=")[0] for word in arguments if word.startswith(option)), option)
                if meant := meant_option(written, command.command, self, getattr(error, "possibilities", None)):
                    _explain(error, f"No such option: {written}", meant)
            raise


def _explain(error: Any, problem: str, meant: str) -> None:
    error.message = f"{problem.rstrip('.')}. Did you mean {meant}?"
    error.possibilities = None


def meant_command(name: str, group: Any) -> str | None:
    """Find the words after `heedful` that do what a command of this name does elsewhere; None if none is known."""
    folded = re.sub(r"[-_]", "", name.lower())
    if folded in COMMANDS or folded in group.commands:
        return COMMANDS.get(folded, folded)
    inner = [words for words, _ in commands_of(group) if folded in (words[-1], "".join(words)) and words != (name,)]
    return "` or `heedful ".join(" ".join(words) for words in inner) or None


def meant_option(option: str, command: Any, group: Any, near: Sequence[str] | None) -> str | None:
    """Find what is meant by an option that a command does not have, as the end of a question; None: unknown."""
    from heedful.cli.options import option_of
    from heedful.config.keys import nearest, same_name

    name = option.lstrip("-").replace("-", "_").lower()
    spelled, own = f"--{name.replace('_', '-')}", options_of(command)
    keys = sorted(same_name(name), key=lambda key: not key.startswith(("train.", "optimizer.")))
    others = (*OPTIONS.get(name, ()), *(option_of(key.rpartition(".")[2]) for key in keys))
    same = [each for each in (spelled, *others) if each in own]
    same += [f"the argument {name.upper()}, without {option}"] if name in arguments_of(command) else []
    if same:
        return same[0]
    if keys and "--set" in own:
        return f"--set {keys[0]}=VALUE"
    if owned := [found for each in (spelled, *others) if (found := elsewhere(each, group))]:
        return owned[0]
    if keys:
        return f"`heedful train RECIPE --set {keys[0]}=VALUE`"
    if near:
        return " or ".join(near)
    close = nearest(name) if "--set" in own else []
    return f"--set {close[0]}=VALUE" if close else None


def elsewhere(option: str, group: Any) -> str:
    """Name an option together with the commands that have it; "" if none has."""
    owners = [" ".join(words) for words, command in commands_of(group) if option in options_of(command)]
    return f"{option} of `heedful {'`, `heedful '.join(owners)}`" if owners else ""


def options_of(command: Any) -> list[str]:
    """List the options of a command, in all their spellings."""
    return [spelling for parameter in command.params for spelling in parameter.opts if spelling.startswith("-")]


def arguments_of(command: Any) -> list[str]:
    """List the names of the arguments of a command, which are given without an option."""
    return [parameter.name for parameter in command.params if parameter.param_type_name == "argument"]


def all_commands(group: Any) -> Iterator[Any]:
    """Iterate over the commands and groups below a group; below a single command there are none."""
    for command in getattr(group, "commands", {}).values():
        yield command
        yield from all_commands(command)


def commands_of(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Iterate over all commands of a group and of the groups in it: the words that name each, and the command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands_of(command, (*before, name))
        else:
            yield (*before, name), command
