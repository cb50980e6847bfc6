"""TOML files: reads values with the line of each key, and writes values as TOML."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.storage.compression import without_compression
from heedful.storage.disk import read_small

_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")
_ENTRY = re.compile(r"\s*([\w.\"' -]+?)\s*=")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TEXTS = (".csv", ".tsv", ".jsonl", ".txt", ".text", ".md")
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")


def read_toml(file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read the values of a TOML file, and the line of each dotted key.

    Raises:
        InputError: the file cannot be read, is not UTF-8, or is not TOML; the message names the line, or says that the
            file is a text and not a recipe.
    """
    try:
        text = read_small(file).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = f"{file}, line {line}: not UTF-8 text; save the recipe as UTF-8"
        raise InputError(_text_problem(file) or problem) from error
    try:
        return tomllib.loads(text), key_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(_text_problem(file) or _syntax_problem(file, text, str(error))) from error
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        raise InputError(f"{file}: brackets are nested too deeply, or a number is too long, for a recipe") from error


def _text_problem(file: Path) -> str | None:
    """Format the message about a training text given in place of a recipe; None for files of other names."""
    if not without_compression(file.name.lower()).endswith(_TEXTS):
        return None
    return f"{file}: a table or a text, and no recipe; `heedful init {file}` makes a recipe of it"


def _syntax_problem(file: Path, text: str, reason: str) -> str:
    """Format the parser's reason with the line itself, since most mistakes are visible in the line."""
    lines = text.split("\n")
    position = _POSITION.search(reason)
    number = int(position[1]) if position and position[1] else len(lines)
    reason = _POSITION.sub("", reason)
    remedy = "text needs quotes, truth is true or false" if reason == "Invalid value" else "see toml.io"
    return f"{file}, line {number}: {lines[number - 1].strip()!r} is not valid TOML ({reason}); {remedy}"


def key_lines(text: str) -> dict[str, int]:
    """Map each dotted key of a TOML text to its line, from 1; an array's tables count from 0 (`data.train.0.source`).

    Only headers and `key =` are read. Keys inside inline tables are missing, and a multi-line string may add false
    ones; both only make an error message less exact.
    """
    lines: dict[str, int] = {}
    seen: Counter[str] = Counter()
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = _dotted(header[2])
            lines.setdefault(table, number)
            if header[1]:
                seen[table] += 1
                table = f"{table}.{seen[table] - 1}"
                lines[table] = number
        elif entry := _ENTRY.match(line):
            lines.setdefault(f"{table}.{_dotted(entry[1])}".lstrip("."), number)
    return lines


def _dotted(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def to_toml(values: Mapping[str, Any]) -> str:
    """Format values as TOML that reads back equal: plain keys first, then tables; None values are left out."""
    return "\n".join(_lines(values, "")).lstrip("\n") + "\n"


def _lines(values: Mapping[str, Any], table: str) -> Iterator[str]:
    plain, tables, arrays = {}, {}, {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            tables[key] = value
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            arrays[key] = value
        elif value is not None:
            plain[key] = value
    yield from (f"{_key(key)} = {_value(value)}" for key, value in plain.items())
    for key, value in tables.items():
        yield from ("", f"[{table}{key}]", *_lines(value, f"{table}{key}."))
    for key, items in arrays.items():
        for item in items:
            yield from ("", f"[[{table}{key}]]", *_lines(item, f"{table}{key}."))


def _key(key: str) -> str:
    """The key of a value; the name of a class may have any characters."""
    return key if _BARE_KEY.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    # JSON's numbers, truth values and escapes are TOML's; only DEL must be escaped here and not there.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
