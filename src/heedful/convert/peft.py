"""Write and read adapters in PEFT's format: LoRA updates, without the model that they belong to.

R rank, K inputs, M outputs.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from heedful.convert import huggingface_export
from heedful.convert.exporter import Exporter
from heedful.convert.model import Model, check_empty, count_values
from heedful.convert.settings import read_config, reject_lfs_pointers
from heedful.convert.weights import Names, Weights, write_safetensors
from heedful.errors import InputError
from heedful.nn.lora import Adapter
from heedful.nn.meta_device import meta_device
from heedful.registry import FORMATS
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.tasks import find_task

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."  # of all names
TASK_TYPES = {
    "classification": "SEQ_CLS",
    "regression": "SEQ_CLS",
    "tagging": "TOKEN_CLS",
    "span_qa": "QUESTION_ANS",
    "language_model": "CAUSAL_LM",
    "ranking": "FEATURE_EXTRACTION",
} | dict.fromkeys(("translation", "summarisation", "dialogue", "text_to_text"), "SEQ_2_SEQ_LM")
SEQUENCE_HEAD = {"pooler.dense": "bert.pooler.dense", "output": "classifier"}
BERT_HEADS = {  # of classes in transformers that `--to bert` does not write, by task
    "classification": SEQUENCE_HEAD,
    "regression": SEQUENCE_HEAD,
    "tagging": {"output": "classifier"},
    "span_qa": {"output": "qa_outputs"},
}
UNREADABLE = ("use_dora", "lora_bias", "layers_to_transform", "trainable_token_indices", "target_parameters")


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write the adapter of a model trained with LoRA; return the number of values in its weights."""
    del precision  # there is only one
    assert model.adapter is not None  # `layout_of` rejects other models
    check_empty(folder)
    names, heads = layout_of(model)
    updates = stacked(model.adapter, names, heads, model.weights)
    also = saved_weights(model, model.adapter, names, heads)
    if model.recipe.task == "ranking":  # its class in transformers has no head, so the backbone has no prefix
        updates = {name.removeprefix("bert."): value for name, value in updates.items()}
    tensors = also | {
        f"{PREFIX}{name}.lora_{part}.weight": matrix
        for name, pair in updates.items()
        for part, matrix in zip("AB", pair, strict=True)
    }
    settings = settings_of(model, updates, {name.removeprefix(PREFIX).rpartition(".")[0] for name in also}, names)
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        write_safetensors(writer.path / WEIGHTS, tensors)
        writer.write(SETTINGS, [(json.dumps(settings, indent=2) + "\n").encode("utf-8")])
    return count_values(tensors)


def layout_of(model: Model) -> tuple[Names, Mapping[str, str]]:
    """Return the module names of a model in transformers, and separately the names in a head that its layout lacks.

    Raises:
        InputError: The model has no adapter, or no layout can represent it.
    """
    if model.adapter is None:
        raise InputError("cannot be exported: it has no adapter, because it was not trained with train.lora")
    heads = BERT_HEADS.get(model.recipe.task, {})
    if heads:
        # BertForSequenceClassification always reads the first state through a dense pooler.
        form = (getattr(model.recipe.model, "pooling", None) or "first", getattr(model.recipe.model, "pooler", None))
        if heads is SEQUENCE_HEAD and form != ("first", "dense"):
            raise InputError(
                'cannot be exported: a BERT classifier needs model.pooling = "first" and model.pooler = "dense", not '
                f"{json.dumps(form[0])} and {json.dumps(form[1])}"
            )
        # The BERT layout does not have these heads: only the backbone is written, as a sentence encoder.
        stack = {name: value for name, value in model.weights.items() if name.startswith("backbone.")}
        model = replace(model, recipe=replace(model.recipe, task="ranking"), weights=stack)
    kind = huggingface_export.layout_of(model)
    names = FORMATS[kind].names
    if names is None:
        raise InputError(
            f"cannot be exported: the modules of the layout {kind} in transformers differ from heedful's; export the "
            "whole model with --to huggingface"
        )
    return names, heads


def stacked(
    adapter: Adapter, names: Names, heads: Mapping[str, str], weights: Weights
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return A and B of each module in transformers, which may combine several of heedful's layers, such as q, k and v.

    The updates of these layers become one update of a higher rank: A is stacked, and B is block diagonal.
    """
    modules: dict[str, list[str]] = {}
    for layer in adapter.updates:
        try:
            theirs, members = (heads[layer], [layer]) if layer in heads else names.module(layer)
        except KeyError as error:
            raise InputError(
                f"transformers has no module for the update of {layer}, so it cannot be exported"
            ) from error
        modules[theirs] = members
    updates = {}
    for theirs, members in modules.items():
        parts = []
        for member in members:
            outputs, inputs = weights[f"{member}.weight"].shape
            # A member without an update gets one of rank 0, (0, K) and (M, 0): its rows of the product B A are zero.
            parts.append(adapter.updates.get(member, (torch.zeros(0, inputs), torch.zeros(outputs, 0))))
        # (R, K) of each member -> (sum of R, K), and (M, R) of each -> (sum of M, sum of R).
        updates[theirs] = torch.cat([a for a, _ in parts]).contiguous(), torch.block_diag(*(b for _, b in parts))
    return updates


def saved_weights(model: Model, adapter: Adapter, names: Names, heads: Mapping[str, str]) -> Weights:
    """Return the weights that were trained in addition to the updates, such as a new head, by PEFT's names."""
    task, config = find_task(model.recipe.task), adapter.config
    with meta_device():
        rows = task.build(model.recipe, model.tokenizers).token_rows()
    also = {
        name: value
        for name, value in model.weights.items()
        if any(f"{name}.".startswith(f"{beginning}.") for beginning in config.also)
    }
    if tables := sorted(also.keys() & rows.keys()):
        raise InputError(
            f"{tables[0]} was trained as well (train.lora.also), but its rows are in heedful's token order, which an "
            "adapter cannot represent; export the whole model with --to huggingface"
        )
    # A head has a different name in the class of its task than in the table of the layout.
    own = Names(heads)
    modules = {name for name in also if name.rpartition(".")[0] in heads}
    theirs = own.theirs({name: also[name] for name in modules})
    theirs |= names.theirs({name: value for name, value in also.items() if name not in modules})
    return {PREFIX + name: value for name, value in theirs.items()}


def settings_of(
    model: Model, updates: Mapping[str, tuple[Tensor, Tensor]], saved: set[str], names: Names
) -> dict[str, Any]:
    assert model.adapter is not None
    config = model.adapter.config
    ranks = {name: len(a) for name, (a, _) in updates.items() if len(a) != config.rank}
    return {
        "peft_type": "LORA",
        "task_type": TASK_TYPES.get(model.recipe.task),
        "base_model_name_or_path": None,
        "inference_mode": True,
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": config.dropout,
        "bias": "none",
        "fan_in_fan_out": any(map(names.is_transposed, updates)),
        "target_modules": sorted(updates),
        "modules_to_save": sorted(saved) or None,
        # PEFT scales an update by alpha / rank: alpha grows with the rank of a stacked update, so that the scale stays
        # the same as in heedful.
        "rank_pattern": ranks,
        "alpha_pattern": {name: config.alpha * rank / config.rank for name, rank in ranks.items()},
    }


def with_adapter(model: Model, names: Names, folder: Path) -> Model:
    """Add the updates of a PEFT adapter to the weights of a converted model."""
    if not (folder / SETTINGS).is_file():
        problem = f"contains no {SETTINGS}" if folder.is_dir() else "no such folder"
        raise InputError(f"{folder}: {problem}; give the folder of a PEFT LoRA adapter")
    reject_lfs_pointers(folder)
    settings, weights = read_config(folder, SETTINGS), dict(model.weights)
    check_settings(settings, folder)
    for module, (a, b) in updates_in(folder):
        # W + s B A (Hu et al. 2022, section 4.1), in float32 because adapters are often stored in 16 bits.
        update = scale_of(settings, module, len(a)) * b.float() @ a.float()
        for name, part in in_heedful(module, update, names).items():
            if name not in weights or weights[name].shape != part.shape:
                raise InputError(
                    f"{folder / WEIGHTS}: the model has no {module} of this size; give the model that the adapter was "
                    "trained on"
                )
            weights[name] = weights[name] + part
    return replace(model, weights=weights)


def check_settings(settings: Mapping[str, Any], folder: Path) -> None:
    """Check that an adapter is LoRA in the form that heedful supports."""
    problems = [f"peft_type is {json.dumps(settings.get('peft_type'))}"] if settings.get("peft_type") != "LORA" else []
    problems += [f"{key} is set" for key in UNREADABLE if settings.get(key)]
    problems += [f"{key} is missing" for key in ("r", "lora_alpha") if not isinstance(settings.get(key), int | float)]
    if problems:
        raise InputError(
            f"{folder / SETTINGS}: {' and '.join(problems)}, but heedful reads only LoRA of linear layers; merge "
            "the adapter with `merge_and_unload` of peft, and convert the whole model"
        )


def updates_in(folder: Path) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Yield the module, A and B of each update of an adapter."""
    path = folder / WEIGHTS
    try:
        tensors = load_file(path)
    except Exception as error:
        raise InputError(
            f"{path}: is missing, or is not a readable safetensors file ({error}); download it again"
        ) from error
    matches = {name: re.fullmatch(rf"{re.escape(PREFIX)}(.+)\.lora_([AB])\.weight", name) for name in sorted(tensors)}
    if others := [name for name, match in matches.items() if match is None]:
        raise InputError(
            f"{path}: {others[0]} is not an update of a linear layer; merge the adapter with `merge_and_unload` of "
            "peft, and convert the whole model"
        )
    for module in dict.fromkeys(match[1] for match in matches.values() if match):
        parts = [tensors.get(f"{PREFIX}{module}.lora_{part}.weight") for part in "AB"]
        a, b = parts
        if a is None or b is None or a.dim() != 2 or b.dim() != 2 or len(a) != b.size(1):
            raise InputError(f"{path}: A and B of {module} do not match; copy the file again")
        yield module, (a, b)


def scale_of(settings: Mapping[str, Any], module: str, rank: int) -> float:
    """Return the factor of an update. PEFT's settings may override alpha for modules whose names match a pattern."""
    # As in PEFT, a key matches the end of a module's name. rsLoRA divides by sqrt(rank) (Kalajdzievski 2023).
    table = settings.get("alpha_pattern") or {}
    alphas = (alpha for name, alpha in table.items() if re.match(rf"(?:.*\.)?(?:{name})$", module))
    return next(alphas, settings["lora_alpha"]) / (math.sqrt(rank) if settings.get("use_rslora") else rank)


def in_heedful(module: str, update: Tensor, names: Names) -> Weights:
    """Return an update of a module, (M, K), as updates of heedful's weights by name; {} if heedful lacks the module."""
    # In the adapter of a model without a head, names lack their first part, such as "transformer" in GPT-2.
    for root in ("", *(f"{root}." for root in names.roots)):
        name = f"{root}{module}"
        try:
            return names.ours({f"{name}.weight": update.T if names.is_transposed(name) else update})
        except KeyError:
            continue
    return {}


EXPORTER = Exporter(title="PEFT", writer=write, check=layout_of, architecture=None)
