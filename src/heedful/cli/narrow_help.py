"""Help on a terminal too narrow for a table of options: each option in a line, and below it what it does."""

import textwrap
from collections.abc import Iterable
from typing import Any

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
