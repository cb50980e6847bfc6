"""Loading of recipes from TOML files, presets and overrides, and formatting of recipes as TOML."""

import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from heedful.config.defaults import over_presets
from heedful.config.keys import hints_of, hints_of_keys, table_of
from heedful.config.schema import Recipe
from heedful.config.setting import descriptions, setting_in
from heedful.config.user_code import check_task_name, import_class
from heedful.config.validate import KEY, OPTIONS, adapter_of, architecture_in, recipe_from_dict
from heedful.errors import InputError
from heedful.storage.disk import read_small, without_compression
from heedful.wording import either

__all__ = ["load_preset", "load_recipe", "make_recipe", "recipe_from_dict", "recipe_schema", "recipe_to_dict"]

FILE = "config.toml"  # in the folder of a recipe
MAX_NAMES = 3  # recipes in an error message
Overrides = Sequence[str] | Mapping[str, Any]

_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")
_ENTRY = re.compile(r"\s*([\w.\"' -]+?)\s*=")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DATA_EXTENSIONS = (".csv", ".tsv", ".jsonl", ".txt", ".text", ".md")
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")


class Override(NamedTuple):
    """Override of a recipe key: the key, its new value, and what messages call the override, such as "--set a.b=1"."""

    key: str
    value: Any
    name: str


def load_recipe(path: str | Path, overrides: Overrides = (), data_root: Path | None = None) -> Recipe:
    """Load a recipe from a TOML file or a recipe folder, and validate it.

    Args:
        path: A TOML file, or a folder with a `config.toml`. Its key `preset` names one or more presets, which
            the values in the file override; a later preset overrides an earlier one.
        overrides: `key=value`, such as `optimizer.lr=3e-4` or `data.train.0.source=more.en`, as if written in the
            file. A value that is not valid TOML is taken as text, and `null` resets a key to None. Alternatively, a
            mapping from such keys to Python values.
        data_root: The data folder, which replaces `data.root`. Without it, a relative `data.root` is resolved against
            the recipe's folder. Relative paths of data, tokenizers and word vectors are resolved against `data.root`,
            which is absolute in the result; those of start models, against the current folder.

    Raises:
        InputError: the file cannot be read, or values are invalid; the message lists up to eight problems.
    """
    file = recipe_file(Path(path))
    values, lines = read_toml(file)
    locations = {key: f"{file}, line {line}" for key, line in lines.items()}
    recipe = _resolve(values, overrides, locations, str(file))
    return _anchor(recipe, os.path.abspath(file.parent / recipe.data.root if data_root is None else data_root))


def make_recipe(recipe: Recipe | Mapping[str, Any], overrides: Overrides = (), data_root: Path | None = None) -> Recipe:
    """Make a recipe from another recipe, or from nested mappings like the tables of a TOML file; see `load_recipe`.

    A relative data folder is resolved against the current folder.
    """
    if not isinstance(recipe, Recipe | Mapping):
        raise InputError(
            f"a {type(recipe).__name__} is not a recipe; give a dictionary of its tables, a Recipe, or a file name"
        )
    values = recipe_to_dict(recipe) if isinstance(recipe, Recipe) else dict(recipe)
    resolved = _resolve(values, overrides, {}, "the recipe")
    return _anchor(resolved, os.path.abspath(resolved.data.root if data_root is None else data_root))


def load_preset(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Load a preset as a recipe without data."""
    return _resolve({"preset": name}, overrides, {}, f'preset "{name}"')


def _resolve(values: dict[str, Any], overrides: Overrides, locations: dict[str, str], where: str) -> Recipe:
    """Merge presets, values and overrides, each over the previous ones, and validate the recipe."""
    if isinstance(overrides, Mapping):  # nested mappings change single keys of tables
        changes = [Override(key, value, f"set {key} = {value!r}") for key, value in dotted(overrides)]
    else:
        changes = [Override(*parse_override(text), f"--set {text}") for text in overrides]
    for change in changes:
        parts, node = change.key.split("."), values
        for number, part in enumerate(parts[:-1], start=1):
            node = node.get(part) if isinstance(node, Mapping) else None
            if isinstance(node, str | int | float):  # the change replaces this value by a table
                locations[".".join(parts[:number])] = change.name
        values = assign(values, change.key.split("."), change)
        for replaced in [key for key in locations if key.startswith(f"{change.key}.")]:
            del locations[replaced]
        locations[change.key] = change.name
    merged = over_presets(values, locations.get("preset", where))
    task = merged.get("task")
    if isinstance(task, str):
        try:
            check_task_name(task)
        except InputError as error:
            raise InputError(f"{locations.get('task', where)}: {error}") from error
    import_class(architecture_in(merged), locations.get(KEY, where))
    return recipe_from_dict(merged, where, locations)


def _anchor(recipe: Recipe, root: str) -> Recipe:
    """Set `data.root` to `root`, and resolve against it the paths that are not joined to it elsewhere."""
    tokenizer, model = recipe.tokenizer, recipe.model
    paths = (tokenizer.path, model.source_vectors, model.target_vectors)
    path, source_vectors, target_vectors = (None if path is None else os.path.join(root, path) for path in paths)
    return replace(
        recipe,
        data=replace(recipe.data, root=root),
        tokenizer=replace(tokenizer, path=path),
        model=replace(model, source_vectors=source_vectors, target_vectors=target_vectors),
    )


def recipe_file(path: Path) -> Path:
    """Find the TOML file of a recipe, given the file itself or the recipe's folder."""
    if (path / FILE).is_file():
        return path / FILE
    if path.is_dir():
        if any((path / name).exists() for name in ("checkpoints", "log.jsonl", "manifest.json")):
            run = next((str(folder) for folder in (path, path.parent) if (folder / "checkpoints").is_dir()), "RUN")
            raise InputError(
                f"{path}: is a run or a model, not a recipe; give the recipe that it was trained with (`heedful train "
                f"RECIPE --out {run}` resumes a run)"
            )
        inner = [child for child in sorted(path.iterdir()) if is_recipe(child)]
        remedy = f"give a recipe folder or a TOML file (`heedful init {path}` writes a recipe for the data in it)"
        if inner:
            several = "one of its recipes, such as " if len(inner) > MAX_NAMES else ""
            remedy = f"give {several}{either(inner[:MAX_NAMES])}"
        raise InputError(f"{path}: this folder contains no {FILE}; {remedy}")
    if not path.exists():
        from heedful.config.presets import PRESETS
        from heedful.storage.paths import likely

        hint = f'; to use a preset, write preset = "{path}" in a recipe' if str(path) in PRESETS else ""
        remedy = likely(path, f"give a TOML file or a folder with a {FILE}{hint}", is_recipe)
        raise InputError(f"{path}: no such recipe; {remedy}")
    return path


def is_recipe(path: Path) -> bool:
    """Return True if a path is a TOML file or a folder that contains a recipe."""
    return path.is_file() and path.suffix == ".toml" if not path.is_dir() else (path / FILE).is_file()


def read_toml(file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read the values of a TOML file, and the line number of each dotted key."""
    name = without_compression(file.name.lower())
    is_data = name.endswith(_DATA_EXTENSIONS) or re.search(r"\.[a-z]{2}$", name) is not None  # such as train.de
    data = f"{file}: this is a text file or a table, not a recipe; `heedful init {file}` writes a recipe for it"
    instead = data if is_data else ""
    try:
        text = read_small(file).decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = f"{file}, line {line}: not UTF-8 text; save the recipe as UTF-8"
        if b"\0" in error.object:
            problem = f"{file}: is a binary file, not a recipe; give a TOML file or a folder with a {FILE}"
        raise InputError(instead or problem) from error
    try:
        return tomllib.loads(text), key_lines(text)
    except tomllib.TOMLDecodeError as error:
        # The message shows the line itself, where most mistakes are visible.
        lines, reason = text.split("\n"), str(error)
        position = _POSITION.search(reason)
        number = int(position[1]) if position and position[1] else len(lines)
        reason = _POSITION.sub("", reason)
        remedy = "strings need quotes, and booleans are true or false" if reason == "Invalid value" else "see toml.io"
        line = lines[number - 1].strip()
        problem = f"{line!r} is not valid TOML ({reason}); {remedy}"
        if re.fullmatch(r"Cannot declare .* twice", reason):
            problem = f"{line} is defined twice; merge the two tables"
        if reason == "Cannot overwrite a value":
            problem = f"{line!r}: this key already has a value; remove one of the two"
        raise InputError(instead or f"{file}, line {number}: {problem}") from error
    except (RecursionError, ValueError) as error:  # ValueError: an integer with thousands of digits
        raise InputError(f"{file}: brackets are nested too deeply or a number is too long for a recipe") from error


def key_lines(text: str) -> dict[str, int]:
    """Map each dotted key of a TOML text to its line number, counted from 1.

    The tables of an array are numbered from 0, as in `data.train.0.source`. Only headers and `key =` are read: keys
    inside inline tables are missing, and a multi-line string may add spurious ones. Both only make an error message
    less precise.
    """

    def without_quotes(key: str) -> str:
        return ".".join(part.strip().strip("\"'") for part in key.split("."))

    lines: dict[str, int] = {}
    sizes: Counter[str] = Counter()  # of the arrays of tables, up to the current line
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = without_quotes(header[2])
            lines.setdefault(table, number)
            if header[1]:
                sizes[table] += 1
                table = f"{table}.{sizes[table] - 1}"
                lines[table] = number
        elif entry := _ENTRY.match(line):
            lines.setdefault(f"{table}.{without_quotes(entry[1])}".lstrip("."), number)
    return lines


def parse_override(text: str) -> tuple[str, Any]:
    """Parse a `key=value` override into a dotted key and a value, which is text if it is not valid TOML."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not re.fullmatch(r"\w+(\.\w+)*", key):
        raise InputError(f"--set {text}: write key=value, such as --set optimizer.lr=3e-4")
    if value == "null":
        return key, None
    try:
        parsed = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return key, value
    return key, parsed["value"] if len(parsed) == 1 else value


def dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over nested settings as pairs of a dotted key and its value, such as ("train.seed", 1)."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def assign(node: Any, path: list[str], override: Override) -> Any:
    """Return a copy of nested values with a new value at `path`.

    In `path`, the key of a list item is its index; an index equal to the length of the list appends the value.
    """
    if not path:
        return override.value
    name, *rest = path
    if isinstance(node, list) or (node is None and name.isdecimal()):
        items = [*(node or []), None]
        if not name.isdecimal():
            key = override.key.removesuffix(".".join(path)) + f"0.{'.'.join(path)}"
            raise InputError(f"{override.name}: add the position in the list, counted from 0, as in {key}")
        index = int(name)
        if index >= len(items):
            size = len(items) - 1
            raise InputError(
                f"{override.name}: {name} is not an index of a list of length {size}; use {size} to append to it"
            )
        items[index] = assign(items[index], rest, override)
        return items if items[-1] is not None else items[:-1]
    table = node if isinstance(node, Mapping) else {}
    return {**table, name: assign(table.get(name), rest, override)}


def recipe_to_dict(recipe: Recipe) -> dict[str, Any]:
    """Convert a recipe to JSON values, which `recipe_from_dict` converts back."""
    return json.loads(json.dumps(asdict(recipe)))


def current_keys(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the keys of a stored recipe to the current names, and add keys for settings that older versions lacked."""
    data = stored.get("data")
    recipe = _renamed(stored, Recipe)
    # Older regression models learned the labels without standardising them.
    if stored.get("task") == "regression" and isinstance(data, Mapping) and data.get("label_scale") is None:
        recipe["data"] = {**data, "label_mean": 0.0, "label_scale": 1.0}
    return recipe


def _renamed(values: Mapping[str, Any], table: type) -> dict[str, Any]:
    """Rename keys with a former name to the current name, in a table and in the tables inside it."""
    hints = hints_of(table)
    names = {former: name for name, hint in hints.items() for former in setting_in(hint).former}
    renamed = {names.get(key, key): value for key, value in values.items()}
    return {
        key: _renamed(value, inner) if isinstance(value, Mapping) and (inner := table_of(hints.get(key))) else value
        for key, value in renamed.items()
    }


def recipe_schema() -> dict[str, Any]:
    """Create the JSON Schema of a recipe file, for editors; the docstring below a field is its description."""
    whole = adapter_of(Recipe).json_schema()
    tables = whole["$defs"]
    for options in OPTIONS.values():
        tables[options.__name__] = adapter_of(options).json_schema()
    whole["properties"]["model"] = {
        "anyOf": [{"$ref": f"#/$defs/{options.__name__}"} for options in OPTIONS.values()],
        "default": {},
    }
    kinds = [Recipe, *OPTIONS.values(), *filter(None, map(table_of, hints_of_keys().values()))]
    described = {kind.__name__: kind for kind in kinds}
    for name, table in {"Recipe": whole, **tables}.items():
        table["additionalProperties"] = False
        for key, text in descriptions(described[name]).items():
            table["properties"][key]["description"] = text
    from heedful.config.presets import PRESETS

    preset = {"enum": list(PRESETS)}
    whole["properties"]["preset"] = {
        "description": "Presets that this file overrides; later ones override earlier ones.",
        "anyOf": [preset, {"type": "array", "items": preset}],
    }
    return whole


def to_toml(values: Mapping[str, Any]) -> str:
    """Format values as TOML that parses to the same values, with plain keys before tables. None values are omitted."""
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
    for key, value in plain.items():  # a key may be the name of a class, which can contain any characters
        yield f"{key if _BARE_KEY.fullmatch(key) else _value(key)} = {_value(value)}"
    for key, value in tables.items():
        yield from ("", f"[{table}{key}]", *_lines(value, f"{table}{key}."))
    for key, items in arrays.items():
        for item in items:
            yield from ("", f"[[{table}{key}]]", *_lines(item, f"{table}{key}."))


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    # JSON's numbers, booleans and escapes are also TOML's, but TOML requires DEL to be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
