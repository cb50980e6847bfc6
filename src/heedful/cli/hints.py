"""Help for any terminal width, and hints for wrong numbers and for unknown commands and options."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from heedful.cli.commands import TABLE, Commands
from heedful.errors import InputError

MIN_COLUMNS = 20  # the minimum width of a help text
MAX_OWNERS = 3  # maximum number of commands suggested for an option that the given command lacks
MIN_TABLE_COLUMNS = 60  # a table in a narrower terminal would cut off the names of options

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]  # the base class of all errors in a command line
NUMBERS = {"int_parsing": "a whole number", "float_parsing": "a number"}  # by the type of pydantic's error

# The words after `heedful`, and the names of that command in other toolkits, without - and _.
OTHER_COMMANDS = {
    "--help": "help",
    "--version": "version",
    "attention": "heatmap",
    "config presets": "recipes",
    "encode": "embed embeddings",
    "evaluate": "bleu eval score test validate",
    "fill": "mask",
    "generate": "complete sample",
    "init": "create new preprocess prepare quickstart setup start",
    "inspect": "serve ui visualise visualize web",
    "predict": "answer apply ask classify infer inference tag",
    "search": "index retrieve",
    "tokenizer encode": "tokenise tokenize",
    "train": "fit learn pretrain resume run",
    "train RECIPE --set train.average_last=5": "average avgcheckpoints",
    "train RECIPE --set train.start=MODEL": "finetune",
    "transcribe": "transcript",
    "translate": "decode interactive",
    "vectors nearest": "neighbors neighbours similar",
    "write": "chat summarise summarize",
}
COMMANDS = {name: words for words, names in OTHER_COMMANDS.items() for name in names.split()}

# Alternative options, of which a command has at most one, and their names in other toolkits. Names of settings are not
# here: an option that overrides a setting shares the setting's other names.
OTHER_OPTIONS = {
    "--batch-tokens": "b",
    "--beam": "beams",
    "--count --top-k": "k top",
    "--data": "data_dir dataset",
    "--force": "overwrite overwrite_output_dir",
    "--hypotheses": "hypothesis prediction predictions translation translations",
    "--input": "i",
    "--input --source": "input input_file src test_file",
    "--kind --from": "model_type",
    "--language --source-language": "lang language",
    "--max-tokens": "length",
    "--max-tokens --max-extra": "max_length max_new_tokens",
    "--metrics": "metric",
    "--min-tokens": "min_length",
    "--model": "checkpoint ckpt m model_name_or_path model_path",
    "--out --output": "output_dir save_dir",
    "--output --out": "o out outfile output output_file",
    "--plot": "confusion confusion_matrix",
    "--precision": "compute_type half",
    "--processes": "gpus n_gpu nproc_per_node world_size",
    "--processes --gpus": "num_gpus",
    "--reference": "ref references target tgt",
    "--samples --n-best": "num_return_sequences num_samples",
    "--samples --n-best --count": "n",
    "--source --seed": "s",
    "--source-field": "column text_column text_field",
    "--source-language --language": "source_lang src_lang",
    "--target-field": "label label_column",
    "--target-language --language": "target_lang tgt_lang",
    "--top-k --count": "topk",
    "--top-p": "topp",
    "--yes --force": "y",
}
OPTIONS = {name: tuple(options.split()) for options, names in OTHER_OPTIONS.items() for name in names.split()}


class TerminalContext(typer.Context):
    """Command context that fits the help to the width of the terminal."""

    def get_help(self) -> str:
        """Print the help of the command, as typer's own method does, and return an empty string."""
        columns = shutil.get_terminal_size().columns
        if columns >= MIN_TABLE_COLUMNS:
            return super().get_help()

        typer.echo(narrow_help(self, max(columns, MIN_COLUMNS)))
        return ""


class HintedGroup(TyperGroup):
    """Group of all commands; the error about an unknown command or option suggests the one that may be meant."""

    context_class = TerminalContext
    commands: Any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(TABLE)

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command as listed in help and shell completion, without importing it; None for an unknown name."""
        del ctx
        return self.commands.summarised(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Import the command on the command line."""
        name, listed, rest = super().resolve_command(ctx, args)
        if name is None or listed is None:  # during shell completion
            return name, listed, rest
        command = self.commands[name]
        # The help of the command and of its subcommands also fits the terminal.
        for each in (command, *(inner for _, inner in commands_of(command))):
            each.context_class = TerminalContext
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the error about an unknown command or option suggests what may be meant."""
        arguments = [*ctx._protected_args, *ctx.args]
        try:
            return super().invoke(ctx)
        except USAGE_ERROR as usage_error:
            error: Any = usage_error
            if problem := number_problem(error) or pair_problem(error, self.commands, arguments):
                raise InputError(problem) from error
            option, command = getattr(error, "option_name", None), getattr(error, "ctx", None)
            extra = re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", str(error))
            if extra and "--set" in arguments and re.match(r"[\w.:]+=", extra[1]):
                values = [word for word in extra[1].split() if "=" in word]
                raise InputError(
                    f"--set takes one setting; repeat it for each: {' '.join(f'--set {value}' for value in values)}"
                ) from error
            if unknown := re.match("No such command '(.*?)'", str(error)):
                subgroup = command.info_name if command and command.command is not self else None
                if suggestion := meant_command(unknown[1], self, subgroup):
                    explain(error, unknown[0], f"`heedful {suggestion}`")
            if option and command and hasattr(error, "possibilities"):
                near = [name for name in error.possibilities or () if name != "--help"]  # which is rarely meant
                error.possibilities = near
                spelling = next((word.partition("=")[0] for word in arguments if word.startswith(option)), option)
                if suggestion := meant_option(spelling, command.command, self, near):
                    explain(error, f"No such option: {spelling}", suggestion)
            raise


def narrow_help(context: Any, columns: int) -> str:
    """Format the help of a command in lines of at most `columns` columns, except for longer words."""

    def wrapped(text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(
            " ".join(text.split()),
            columns,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    command = context.command
    parts = [f"Usage: {context.command_path} {' '.join(command.collect_usage_pieces(context))}"]
    parts += (command.help or "").split("\n\n")
    lines = [line for part in parts for line in (*wrapped(part), "")]
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    entries = [record for record in records if record]
    if hasattr(command, "commands"):
        listed = {name: command.get_command(context, name) for name in command.list_commands(context)}
        entries += [(name, inner.get_short_help_str(columns * 9)) for name, inner in listed.items()]
    for name, text in entries:
        lines += [*wrapped(name), *wrapped(text, "    ")]
    return "\n".join(lines)


def number_problem(error: Any) -> str | None:
    """Return a message for a value that is not a number, or not in the option's range; None for other errors."""
    details = getattr(error.__cause__, "errors", list)()  # of pydantic, which recent versions of typer use
    parameter = getattr(error, "param", None)
    if not details or parameter is None:
        return None
    from heedful.config.setting import BOUNDS, range_text
    from heedful.wording import either

    kind, value = details[0]["type"], details[0]["input"]
    name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
    if kind in NUMBERS:
        return f'{name} must be {NUMBERS[kind]}, but is "{value}"'
    if choices := re.search("is not one of (.*)[.]", details[0]["msg"]):
        allowed = either(f'"{choice}"' for choice in re.findall("'(.*?)'", choices[1]))
        return f'{name} must be {allowed}, but is "{value}"'
    limits = {bound: limit for bound, limit in details[0].get("ctx", {}).items() if bound in BOUNDS}
    number = f"{int(value):,}" if str(value).removeprefix("-").isdecimal() else value
    return f"{name} must be {range_text(limits)}, but is {number}" if limits else None


def pair_problem(error: Any, commands: Mapping[str, Any], arguments: Sequence[str]) -> str | None:
    """Return a message for an option that takes two values but has fewer; None for other errors."""
    if not (incomplete := re.fullmatch("Option '(.*?)' requires 2 arguments.", str(error))):
        return None
    option = incomplete[1]
    values = next(each.metavar for each in commands[arguments[0]].params if option in each.opts)
    return f"{option} needs two values: {option} {values}"


def explain(error: Any, problem: str, suggestion: str) -> None:
    error.message = f"{problem.rstrip('.')}. Did you mean {suggestion}?"
    error.possibilities = None


def name_options(message: str, arguments: Sequence[str]) -> str:
    """Name settings by the options with which the user set them: `--beam 2` instead of `decode.beam = 2`.

    Likewise, name the user's file instead of its temporary copy.
    """
    from heedful.cli.options import COPIED, name_copied, option_of
    from heedful.config.unknown_keys import same_name

    for option in {word.partition("=")[0] for word in arguments if word.startswith("--")}:
        for key in same_name(option[2:].replace("-", "_")):
            # Replace only whole keys with a table: `task` is also a word, and `beam.decode.beam` could be a file.
            if "." in key and option == option_of(key.rpartition(".")[2]):
                message = re.sub(rf"(invalid option: )?(?<![\w./-]){re.escape(key)}(?![\w.])( =)?", option, message)
                message = message.replace(f"{option} or {option}", option)
        for key in same_name(option[5:].replace("-", "_")) if option.startswith("--no-") else ():
            message = message.replace(f"set {key} = true", f"leave out {option}")
    if arguments[1:2] == ["evaluate"]:
        for field in ("source", "target", "pair"):
            message = re.sub(rf"(Set .*){field}_field", rf"\1--{field}-field", message)
    if any(copy in message for copy in COPIED):  # a copy has a name for its format, not the name of the user's file
        message = re.sub(r"give it a name that ends in \.(\w+)", r"give --input-format \1", message)
        message = message.replace("no columns, in .txt", "no columns, --input-format lines")
    return name_copied(message)


def meant_command(name: str, group: Any, subgroup: str | None = None) -> str | None:
    """Return the command, as the words after `heedful`, that an unknown name may mean; None if there is none.

    A command of the `subgroup` whose name precedes the unknown name comes first.
    """
    folded = re.sub(r"[-_]", "", name.lower())
    if subgroup:
        last = COMMANDS.get(folded, folded).rpartition(" ")[2]
        if last in getattr(group.commands[subgroup], "commands", {}):
            return f"{subgroup} {last}"
    if folded in COMMANDS or folded in group.commands:
        return COMMANDS.get(folded, folded)
    inner = [words for words, _ in commands_of(group) if folded in (words[-1], "".join(words)) and words != (name,)]
    return "` or `heedful ".join(" ".join(words) for words in inner) or None


def meant_option(option: str, command: Any, group: Any, near: Sequence[str] | None) -> str | None:
    """Return what an unknown option of a command may mean, as the end of a question; None if nothing is found.

    `near` are the command's options with a similar spelling.
    """
    from heedful.cli.options import option_of
    from heedful.config.unknown_keys import nearest, same_name

    name = option.lstrip("-").replace("-", "_").lower()
    long_form, own = f"--{name.replace('_', '-')}", options_of(command)
    keys = sorted(same_name(name), key=lambda key: not key.startswith(("train.", "optimizer.")))
    others = (long_form, *OPTIONS.get(name, ()), *(option_of(key.rpartition(".")[2]) for key in keys))
    for other in others:
        if other in own:
            return other
    if any(each.name == name and each.param_type_name == "argument" for each in command.params):
        return f"the argument {name.upper()}, without {option}"
    if keys and "--set" in own:
        return f"--set {keys[0]}=VALUE"
    for other in others:
        owners = [" ".join(words) for words, each in commands_of(group) if other in options_of(each)]
        if owners:
            hints = [f"`heedful {words} {other}`" for words in owners] if len(owners) <= MAX_OWNERS else near
            return " or ".join(hints or ()) or None
    if keys:
        return f"`heedful train RECIPE --set {keys[0]}=VALUE`"
    settings = [f"--set {key}=VALUE" for key in nearest(name)[:1]] if "--set" in own else []
    return " or ".join(near or settings) or None


def options_of(command: Any) -> list[str]:
    return [spelling for parameter in command.params for spelling in parameter.opts if spelling.startswith("-")]


def commands_of(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands and groups below a group: for each, the words on the command line, and the command."""
    for name, command in getattr(group, "commands", {}).items():
        yield (*before, name), command
        yield from commands_of(command, (*before, name))
