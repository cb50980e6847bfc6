"""Read Whisper models in the format of CTranslate2, as faster-whisper uses them; writing is not supported."""

from pathlib import Path
from typing import Any

import torch

from heedful.convert.ctranslate2 import read_ctranslate2
from heedful.convert.model import Format, Model
from heedful.convert.opennmt import BLOCKS, count_layers, dotted
from heedful.convert.weights import Names, Weights, without, without_copies
from heedful.convert.whisper import MULTILINGUAL, TASKS, Description, converted
from heedful.errors import InputError

__all__ = ["TASKS", "read"]

SPEC = "WhisperSpec"
GELU = 3  # the number of the activation in CTranslate2
NAMES = Names(
    {
        "source_embedding.first": "encoder.conv1",
        "source_embedding.second": "encoder.conv2",
        "encoder.positions.table.weight": "encoder.position_encodings.encodings",
        "encoder.norm": "encoder.layer_norm",
        "target_embedding": "decoder.embeddings",
        "decoder.positions.table.weight": "decoder.position_encodings.encodings",
        "decoder.norm": "decoder.layer_norm",
    }
    | {f"{stack}.blocks.#.{o}": f"{stack}.layer_#.{t}" for stack, block in BLOCKS.items() for o, t in block.items()}
)
COPIES = {"decoder.projection.weight": "decoder.embeddings.weight"}
SETTINGS = {"pre_norm": 1, "activation": GELU, "scale_embeddings": 0, "alibi": 0, "multi_query_attention": 0}
NEEDED = ("encoder.conv1.weight", "encoder.position_encodings.encodings", "decoder.position_encodings.encodings")
NEEDED += ("encoder.layer_0.ffn.linear_0.weight", "decoder.embeddings.weight", "encoder.num_heads")


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Whisper in the format of CTranslate2 and convert the model to heedful; weights become float32."""
    model, where = read_ctranslate2(folder), str(folder / "model.bin")
    if model.binary.spec != SPEC:
        raise InputError(f"{where}: holds a {model.binary.spec}, and no {SPEC}")
    theirs = {dotted(name): torch.from_numpy(value) for name, value in model.binary.variables.items()}
    if missing := [name for name in NEEDED if name not in theirs]:
        raise InputError(f"{where}: has no {' and no '.join(missing)}; is it whole?")
    check_settings(theirs, where)
    embedding = theirs["decoder.embeddings.weight"]
    languages = [model.target_vocabulary[i].strip("<|>") for i in _ids(model.config.get("lang_ids"))]
    description = Description(
        fields={
            "d_model": embedding.shape[1],
            "d_ff": len(theirs["encoder.layer_0.ffn.linear_0.weight"]),
            "heads": int(theirs["encoder.num_heads"]),
            "encoder_layers": count_layers(theirs, "encoder"),
            "decoder_layers": count_layers(theirs, "decoder"),
            "max_positions": len(theirs["encoder.position_encodings.encodings"]),
            "max_target_positions": len(theirs["decoder.position_encodings.encodings"]),
        },
        rows=len(embedding),
        names=model.target_vocabulary,
        languages=(languages or None) if len(embedding) >= MULTILINGUAL else (),
        suppress=_ids(model.config.get("suppress_ids")),
        suppress_first=_ids(model.config.get("suppress_ids_begin")),
        alignment_heads=model.config.get("alignment_heads") or (),
        audio={"mels": theirs["encoder.conv1.weight"].shape[1]},
    )
    theirs = without_copies({name: value for name, value in theirs.items() if value.ndim}, COPIES, where)
    theirs, _ = without(theirs, r"decoder\.alignment_heads")
    try:
        ours = NAMES.ours(theirs)
    except KeyError as error:
        raise InputError(f"{where}: heedful's model has no place for the weight {error}") from error
    return converted(folder, description, ours, task)


def check_settings(theirs: Weights, where: str) -> None:
    """Check that the settings in model.bin are those of a Whisper."""
    fitting = SETTINGS | {"num_heads": int(theirs["encoder.num_heads"])}
    others = []
    for name, value in theirs.items():
        key = name.partition(".")[2]  # after the name of the stack
        if value.ndim == 0 and int(value) != fitting.get(key, int(value)):
            others.append(f"{name} is {int(value)}, and should be {fitting[key]}")
    if others:
        raise InputError(f"{where}: this is no Whisper: {'; '.join(sorted(others))}")


def _ids(listed: Any) -> list[int]:
    """The ids in a list of config.json; those below zero stand for others, and are left out."""
    return [i for i in listed or [] if isinstance(i, int) and i >= 0]


FORMAT = Format(reader=read, tasks=TASKS)
