"""Options of a call, such as `translate(text, beam=1)`: keys of a recipe table, validated like a recipe."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, Literal, TypedDict, TypeVar

from heedful.config.schema import DecodeConfig, GenerateConfig, TranscribeConfig
from heedful.config.unknown_keys import nearest
from heedful.config.validate import recipe_from_dict
from heedful.errors import InputError, OptionError
from heedful.wording import did_you_mean

C = TypeVar("C", DecodeConfig, GenerateConfig, TranscribeConfig)

TABLES = {DecodeConfig: "decode", GenerateConfig: "generate", TranscribeConfig: "transcribe"}


class DecodeOptions(TypedDict, total=False):
    """Options of a decoding call: keys of [decode]. A missing key takes its value from the model's recipe."""

    beam: int
    penalty: Literal["gnmt", "average", "average_text"]
    alpha: float
    n_best: int
    patience: float
    max_extra: int
    batch_tokens: int
    shortlist: int
    min_tokens: int
    no_repeat_ngram: int | None


class TranscribeOptions(DecodeOptions, total=False):
    """Options of a transcription call: keys of [transcribe] and [decode]; see `DecodeOptions`."""

    language: str | None
    timestamps: Literal["always", "long", "never"]
    vad: bool
    word_timestamps: bool
    task: Literal["transcribe", "translate"]
    initial_prompt: str


class GenerateOptions(TypedDict, total=False):
    """Options of a generation call: keys of [generate]. A missing key takes its value from the model's recipe."""

    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    no_repeat_ngram: int | None
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical: float | None
    stop: Sequence[str]
    seed: int
    batch_tokens: int


def with_options(config: C, options: Mapping[str, Any]) -> C:
    """Return a validated copy of a recipe table with new values for some of its keys."""
    if not options:
        return config
    table = TABLES[type(config)]
    names = [field.name for field in fields(config)]
    for name in options:
        if name not in names:  # `nearest` also knows the names of other toolkits
            own = [key.partition(".")[2] for key in nearest(f"{table}.{name}") if key.startswith(f"{table}.")]
            near = own or get_close_matches(name, names, n=1)
            hint = did_you_mean(near) if near else f"choose one of {', '.join(names)}"
            raise InputError(f"unknown option {name}; {hint}")
    values = asdict(config) | {name: _plain(name, value) for name, value in options.items()}
    try:
        recipe = recipe_from_dict({table: values}, "invalid option")
    except InputError as error:
        as_called = re.sub(rf"\b{table}\.({'|'.join(options)})\b", r"\1", str(error))
        raise OptionError(as_called, str(error)) from error
    return getattr(recipe, table)


def _plain(name: str, value: Any) -> Any:
    """Convert a value to its JSON form."""
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise InputError(f"option {name}: {value!r} contains a lone surrogate; give valid Unicode")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(name, item) for item in value]
    kind = type(value).__name__
    raise InputError(f"option {name}: a recipe cannot contain a {kind}; give a number, a string or a list")
