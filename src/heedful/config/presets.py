"""Presets: named recipes to start from, such as BERT, GPT-2 and the models in Table 3 of "Attention Is All You Need".

A recipe uses a preset with `preset = "NAME"`; its own values override the values of the preset. A preset is
written like a recipe, as a table in a TOML file in the folder `preset_files`, and may itself use another preset from
the same file.
"""

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from heedful.config.defaults import Values, merge

FILES = ("tiny", "bert", "gpt2", "shakespeare", "vit", "clip", "whisper", "vaswani")
PAPER = "vaswani"  # the file whose presets have published results in "Attention Is All You Need"


def read_tables(name: str) -> dict[str, Any]:
    """Read the tables of a preset file."""
    return tomllib.loads((files("heedful.config") / "preset_files" / f"{name}.toml").read_text(encoding="utf-8"))


def resolved(name: str, tables: Values) -> dict[str, Any]:
    """Return the values of a preset, merged over the values of the preset that it uses, if any."""
    own = changes(tables[name])
    return merge(resolved(tables[name]["preset"], tables), own) if "preset" in tables[name] else own


def changes(table: Values) -> dict[str, Any]:
    """Return the recipe values that the table of a preset sets itself."""
    return {key: value for key, value in table.items() if key not in ("preset", "printed")}


@dataclass(frozen=True)
class Table3Row:
    """Row of Table 3 in Vaswani et al. (2017): the changes from the base model, and the published results."""

    name: str
    changes: Values = field(default_factory=dict)
    millions: int | None = None  # parameters, in millions; None where the paper does not report them
    perplexity: float = 0.0  # per subword, newstest2013
    bleu: float = 0.0  # newstest2013


_TABLES = {file: read_tables(file) for file in FILES}
PRESETS: dict[str, Values] = {name: resolved(name, tables) for tables in _TABLES.values() for name in tables}
TABLE_3 = tuple(
    Table3Row(name.removeprefix(f"{PAPER}-"), changes(table) if "preset" in table else {}, **table["printed"])
    for name, table in _TABLES[PAPER].items()
)
