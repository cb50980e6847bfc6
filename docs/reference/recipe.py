"""Writes recipe.md beside this file from the configuration schema: python docs/reference/recipe.py."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from html import escape
from inspect import cleandoc
from pathlib import Path
from textwrap import fill
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from heedful.config.keys import hints_of, hints_of_keys, resume_rule, table_of
from heedful.config.presets import PRESETS
from heedful.config.schema import ModelConfig, Recipe
from heedful.config.setting import Fixed, ResumeRule, bare, bounds, descriptions, range_text, setting_in
from heedful.config.validate import OPTIONS

RESUMING: dict[ResumeRule, str] = {
    "free": "A resumed run may change these settings, on which its updates do not depend",
    "length": "It may also change where it ends, unless the learning rate decays to the end (`cosine` and `linear`)",
    "ask": "With `--allow-change KEY` it may change these settings, which changes the results",
}
NUMBERS = {int: "whole number", float: "number"}
PAGE = Path(__file__).with_suffix(".md")
INTRODUCTION = """# Recipe keys

<!-- written by recipe.py beside this file -->

A recipe is one TOML file. Keys that it omits take their defaults, and any key can be set on the command line, as in
`--set optimizer.lr=3e-4`. The tables show the defaults for translation; other tasks replace some of them, for example
the optimizer of language models. `heedful config show` prints a recipe with all defaults filled in, `heedful config
check` finds mistakes, and `heedful config schema` prints this reference as a JSON Schema, for editors.

The top-level key `preset` names one or more starting points; later ones override earlier ones. `tiny` is for small
data, and those that begin with `vaswani` are the rows of Table 3 of "Attention Is All You Need". The others have the
published sizes of BERT, GPT-2, nanoGPT on Shakespeare, Vision Transformers, CLIP and Whisper; only `clip-small` is
heedful's own, sized for a laptop:
"""


def page() -> str:
    """The whole page."""
    presets = fill(", ".join(f"`{name}`" for name in PRESETS), 120, break_on_hyphens=False) + ".\n"
    return "\n".join([INTRODUCTION, presets, *section(Recipe, "", {}), *resuming()]) + "\n"


def section(table: type, title: str, seen: dict[type, str]) -> Iterator[str]:
    """One table of a recipe, then those inside it. `seen` has the titles of those that were explained before."""
    if table in seen:
        yield f"## {title}\n\nThe same keys as in {seen[table]}.\n"
        return
    seen[table] = title
    hints = hints_of(table)
    inner = {name: kind for name, hint in hints.items() if (kind := table_of(hint))}
    yield f"## {title}\n\n{plain(cleandoc(table.__doc__ or ''))}\n" if title else "## Top-level keys\n"
    yield from rows(table, [field for field in fields(table) if field.name not in inner])
    for architecture, options in list(OPTIONS.items())[1:] if table is ModelConfig else ():
        yield from own_keys(architecture, options)
    for name, kind in inner.items():
        path = f"{title.strip('`[]')}.{name}".lstrip(".")
        yield from section(kind, f"`[[{path}]]`" if get_origin(bare(hints[name])) is tuple else f"`[{path}]`", seen)


def own_keys(architecture: str, options: type) -> Iterator[str]:
    """The keys of [model] for an architecture that a Transformer does not have, or has another default of."""
    transformer = {field.name: field.default for field in fields(ModelConfig)}
    own = [field for field in fields(options) if (field.name, field.default) not in transformer.items()]
    others = ", ".join(f"`{field.name}`" for field in fields(options) if field not in own)
    yield f'### `[model]` with `architecture = "{architecture}"`\n\n{plain(cleandoc(options.__doc__ or ""))}'
    yield fill(f"The keys {others} are the same as above. The others are:", 120, break_on_hyphens=False) + "\n"
    yield from rows(options, own)


def rows(table: type, some: list[Field[Any]]) -> Iterator[str]:
    """The rows of some fields of a table."""
    hints, meanings = hints_of(table), descriptions(table)
    yield "| key | values | default | meaning |\n| --- | --- | --- | --- |"
    for field in some:
        meaning = plain(meanings.get(field.name, ""))
        yield f"| `{field.name}` | {values(hints[field.name])} | {default(field)} | {meaning} |"
    yield ""


def resuming() -> Iterator[str]:
    """What may change when a run resumes: one paragraph for each kind of settings."""
    groups: dict[ResumeRule, list[str]] = {}
    for key, hint in hints_of_keys().items():
        if table_of(hint) is None:
            groups.setdefault(resume_rule(key), []).append(key)
    yield "## When a run resumes\n"
    for kind, sentence in RESUMING.items():
        yield fill(f"{sentence}: {listed(groups.pop(kind), kind)}.", 120, break_on_hyphens=False) + "\n"
    yield "The other settings cannot change, unless nothing in the run depends on them:\n"
    for kind, keys in groups.items():
        assert isinstance(kind, Fixed)
        yield fill(f"* {listed(keys, kind)}: {kind.reason}.", 120, break_on_hyphens=False, subsequent_indent="  ")


def listed(keys: list[str], kind: ResumeRule) -> str:
    """Keys of one kind in words."""
    return ", ".join(dict.fromkeys(place(key, set(keys), kind) for key in keys))


def place(key: str, keys: set[str], kind: ResumeRule) -> str:
    """A key or, if all keys of its table are of the same kind or the table is, the table."""
    hints, parts = hints_of_keys(), key.split(".")
    for table in (".".join(parts[:depth]) for depth in range(1, len(parts))):
        inside = {other for other in hints if other.startswith(f"{table}.") and not table_of(hints[other])}
        if table in hints and inside <= keys:
            return f"`[{table}]`"
        if table in hints and setting_in(hints[table]).resume == kind:
            return f"the other keys of `[{table}]`"
    return f"`{key}`"


def values(hint: Any) -> str:
    """What may be written for a field."""
    if bare(hint) in NUMBERS and bounds(hint):
        return f"{values(bare(hint))} {range_text(bounds(hint))}"
    hint = bare(hint)
    if get_origin(hint) is Literal:
        return ", ".join(f'`"{value}"`' if isinstance(value, str) else f"`{value}`" for value in get_args(hint))
    if get_origin(hint) is tuple:
        kind = values(get_args(hint)[0])
        return (
            f"list of {next((kind.replace(word, f'{word}s') for word in NUMBERS.values() if word in kind), f'{kind}s')}"
        )
    if get_origin(hint) is dict:
        return f"table of {values(get_args(hint)[1])}s"
    options = [kind for kind in get_args(hint) if kind is not NoneType]
    if options:
        return ", ".join(map(values, options))
    return NUMBERS.get(hint) or {bool: "`true`, `false`", str: "text"}[hint]


def default(field: Field[Any]) -> str:
    """The default as TOML."""
    if field.default is MISSING:
        return "required"
    if field.default is None:
        return "not set"
    text = list(field.default) if isinstance(field.default, tuple) else field.default
    quoted = f'"{text}"' if isinstance(text, str) else str(text).lower()
    return f"`{quoted}`"


def plain(text: str) -> str:
    """Text as it may be in a cell of a table: between backquotes it is code."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if number % 2 else escape(part, quote=False) for number, part in enumerate(parts))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
