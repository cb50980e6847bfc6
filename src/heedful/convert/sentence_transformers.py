"""Settings files of Sentence Transformers: pooling and maximum length are read and written; prompts are reported."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config.schema import Recipe
from heedful.convert.settings import read_config, read_json
from heedful.errors import InputError

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
LENGTHS = {"sentence_bert_config.json": "max_seq_length", "tokenizer_config.json": "model_max_length"}
SETTINGS = "sentence_bert_config.json"
DEFAULT_MODULES = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": ""}  # assumed without a modules.json
WITHOUT_EFFECT = {"Dropout"}  # modules that have an effect only in training
POOLINGS = {  # "pooling_mode_..." is the spelling in files from before 2026
    "cls": "first",
    "mean": "mean",
    "lasttoken": "last",
    "max": "max",
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}


@dataclass(frozen=True, kw_only=True)
class SentenceSettings:
    """Sentence encoder settings, as read from the files of Sentence Transformers.

    Attributes:
        pooling: Pooling of the hidden states, a value of `model.pooling`.
        max_length: Maximum number of tokens in a text, special tokens included; None if no file gives a number, or if
            modules.json is missing.
        notes: Sentences for the user about missing settings, and about what Sentence Transformers does differently.
    """

    pooling: str
    max_length: int | None
    notes: tuple[str, ...]


def read_sentence_settings(folder: Path) -> SentenceSettings:
    """Read sentence encoder settings from the files of Sentence Transformers in a model folder.

    A folder without these files gets mean pooling.
    """
    has_modules = (folder / MODULES).is_file()
    modules = _modules(folder) if has_modules else DEFAULT_MODULES
    files = {name: read_config(folder, name) for name in LENGTHS if (folder / name).is_file()}
    lengths = (files[name].get(LENGTHS[name]) for name in files)
    notes = []
    settings = read_config(folder, PROMPTS) if (folder / PROMPTS).is_file() else {}
    if prompts := {name: prompt for name, prompt in (settings.get("prompts") or {}).items() if prompt}:
        choices = ", ".join(f"{prompt!r} for {name!r}" for name, prompt in prompts.items())
        default = settings.get("default_prompt_name")
        automatic = f"; Sentence Transformers adds {default!r} by default" if default in prompts else ""
        notes.append(
            f"made for texts that begin with a prompt, {choices}{automatic}: put the prompt in front of your texts"
        )
    # Sentence Transformers lowercases texts before the tokenizer, but heedful does not. No note is needed if the
    # tokenizer lowercases them itself.
    lower = files.get(SETTINGS, {}).get("do_lower_case")
    if lower and not any(file.get("do_lower_case") for name, file in files.items() if name != SETTINGS):
        notes.append("made for texts in lower case, but its tokenizer keeps capitals: write your texts in lower case")
    pooling, path = "mean", folder / modules["Pooling"] / "config.json"
    if path.is_file():
        pooling = _pooling(path)
    else:
        notes.append("no file specifies the pooling: a text's vector is the mean of its states, scaled to length 1")
    if "Normalize" not in modules:
        notes.append(
            f"{MODULES} has no Normalize: in Sentence Transformers, vectors have any length, but in heedful all "
            "have length 1; cosines are the same, but dot products and distances are not"
        )
    return SentenceSettings(
        pooling=pooling,
        max_length=next((length for length in lengths if isinstance(length, int)), None) if has_modules else None,
        notes=tuple(notes),
    )


def sentence_files(recipe: Recipe) -> dict[str, Any]:
    """Build the files of Sentence Transformers for a sentence encoder: JSON contents, by file name."""
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    ours = recipe.model.pooling or "mean"
    ours = "mean" if ours == "sum" else ours  # sum and mean have the same direction, and all vectors have length 1
    modes = {mode: ours == pooling for mode, pooling in POOLINGS.items() if mode.startswith("pooling_mode_")}
    return {
        MODULES: modules,
        "1_Pooling/config.json": {"word_embedding_dimension": recipe.model.d_model, **modes},
        "2_Normalize/config.json": {},
        SETTINGS: {"max_seq_length": recipe.data.max_length, "do_lower_case": False},
    }


def _modules(folder: Path) -> Mapping[str, str]:
    """Read the kinds of the modules in modules.json, in their order, and map each to its folder."""
    try:
        kinds = [(entry["type"].rpartition(".")[2], entry["path"]) for entry in read_json(folder / MODULES)]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / MODULES}: is not a list of modules ({error!r}); download it again") from error
    modules = {kind: path for kind, path in kinds if kind not in WITHOUT_EFFECT}
    if list(modules) not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise InputError(
            f"{folder / MODULES}: the vector of a text passes through {', '.join(kind for kind, _ in kinds)}; "
            "heedful's sentence encoders have only Transformer, Pooling and Normalize; without the others the vectors "
            f"differ. To convert the model without them, remove them from {MODULES}"
        )
    return modules


def _pooling(path: Path) -> str:
    settings = read_config(path.parent, path.name)
    # Files from before 2026 have a flag for each pooling; the vectors of several are concatenated, which heedful cannot
    # do.
    mode = settings.get("pooling_mode", [])
    modes = [mode] if isinstance(mode, str) else list(mode)
    modes += [key for key, on in settings.items() if key.startswith("pooling_mode_") and on is True]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise InputError(
            f"{path}: asks for {' and '.join(modes) or 'no pooling_mode'}, but heedful needs exactly one of "
            f"{', '.join(POOLINGS)}"
        )
    return POOLINGS[modes[0]]
