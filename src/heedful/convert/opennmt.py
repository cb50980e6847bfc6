"""Reading of OpenNMT's translation Transformers in CTranslate2's format.

N positions, D model.
"""

import json
import math
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.convert.ctranslate2 import MODEL_BIN, read_ctranslate2
from heedful.convert.model import Format, Model, converted_recipe, shapes_of
from heedful.convert.settings import CONFIG
from heedful.convert.weights import Names, Weights, check_rows, check_weights, reorder_rows, suppress_absent
from heedful.errors import InputError
from heedful.tasks.text_to_text import Dialogue, Summarisation, TextToText, Translation
from heedful.text.hugging_face import from_words
from heedful.text.pipeline import ABSENT
from heedful.text.tokenizer import BOS, EOS
from heedful.text.tokenizer_pair import TokenizerPair

TASK, TASKS = "translation", (Dialogue, Summarisation, TextToText, Translation)
HEADS = {"TransformerBase": 8, "TransformerBig": 16}  # number of attention heads, which is not in model.bin

FEED_FORWARD = {
    "feed_residual.norm": "ffn.layer_norm",
    "feed_forward.up": "ffn.linear_0",
    "feed_forward.down": "ffn.linear_1",
}
SELF_ATTENTION = {
    "self_residual.norm": "self_attention.layer_norm",
    "self_attention.{q,k,v}": "self_attention.linear_0",
    "self_attention.out": "self_attention.linear_1",
}
CROSS_ATTENTION = {
    "cross_residual.norm": "attention.layer_norm",
    "cross_attention.q": "attention.linear_0",
    "cross_attention.{k,v}": "attention.linear_1",
    "cross_attention.out": "attention.linear_2",
}
BLOCKS = {"encoder": SELF_ATTENTION | FEED_FORWARD, "decoder": SELF_ATTENTION | CROSS_ATTENTION | FEED_FORWARD}
NAMES = Names(
    {
        "source_embedding": "encoder.embeddings",
        "encoder.norm": "encoder.layer_norm",
        "target_embedding": "decoder.embeddings",
        "decoder.norm": "decoder.layer_norm",
        "output": "decoder.projection",
    }
    | {f"{stack}.blocks.#.{o}": f"{stack}.layer_#.{t}" for stack, block in BLOCKS.items() for o, t in block.items()}
)
POSITIONS = ("encoder.positions.table.weight", "decoder.positions.table.weight")
SOURCE, TARGET = ("source_embedding.weight",), ("target_embedding.weight", "output.weight", "output.bias")


def read(folder: Path, task: str | None = None) -> Model:
    """Read an OpenNMT model in CTranslate2's format.

    OpenNMT's sinusoidal positions differ from heedful's, so they become a table of learned positions, which further
    training can change.
    """
    files, where = read_ctranslate2(folder), str(folder / MODEL_BIN)
    if files.binary.spec not in HEADS:
        raise InputError(f"{where}: contains a {files.binary.spec}, but heedful reads only {' and '.join(HEADS)}")
    theirs = {torch_name(name): torch.from_numpy(value) for name, value in files.binary.variables.items()}
    fields = _fields(theirs, HEADS[files.binary.spec], where)
    rows = [len(theirs[f"{stack}.embeddings.weight"]) for stack in BLOCKS]
    source, source_id_of = from_words(files.source_vocabulary, rows[0])
    target, target_id_of = from_words(files.target_vocabulary, rows[1])
    check_rows(source_id_of, rows[0], where)
    check_rows(target_id_of, rows[1], where)
    if missing := [name for name, i in {"<s>": BOS, "</s>": EOS}.items() if target_id_of[i] == ABSENT]:
        raise InputError(
            f"{folder}: the target vocabulary has no {' and no '.join(missing)}, which begin and end each "
            "translation; does each of its lines end in a single line feed?"
        )
    # <s> and </s> have to be used as in heedful; only the </s> of sources may be missing.
    frame = {"add_source_bos": False, "decoder_start_token": files.target_vocabulary[target_id_of[BOS]]}
    their_frame = {key: files.config.get(key, value) for key, value in frame.items()}
    if their_frame != frame:
        raise InputError(f"{folder / CONFIG}: {json.dumps(their_frame)}, but heedful supports only {json.dumps(frame)}")
    # A model trained on sources without </s> does not attend to it: heedful masks the <eos> of its sources.
    fields["source_eos"] = bool(files.config.get("add_source_eos", False))
    tokenizers = TokenizerPair(source, target)
    recipe = converted_recipe(task or TASK, fields, tokenizers, folder, decode={"penalty": "average", "alpha": 1.0})
    # model.bin has no position tables, which OpenNMT computes; they are added below.
    model = shapes_of(lambda: EncoderDecoder(recipe.model, *rows))
    check_weights(theirs, NAMES.theirs({name: value for name, value in model.items() if name not in POSITIONS}), where)
    ours = reorder_rows(reorder_rows(NAMES.ours(theirs), source_id_of, SOURCE), target_id_of, TARGET)
    ours |= suppress_absent(ours["output.bias"], target_id_of)
    ours |= dict.fromkeys(POSITIONS, positions(ModelConfig.max_positions, fields["d_model"]))
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours)


def _fields(theirs: Weights, heads: int, where: str) -> dict[str, Any]:
    """Derive the fields of `ModelConfig` from the names and shapes of an OpenNMT model's weights."""
    up, embedding = "encoder.layer_0.ffn.linear_0.weight", "encoder.embeddings.weight"
    if missing := [name for name in (up, embedding, "decoder.embeddings.weight") if name not in theirs]:
        raise InputError(f"{where}: has no {' and no '.join(missing)}; is it an encoder-decoder?")
    return {
        "d_model": theirs[embedding].shape[1],
        "d_ff": theirs[up].shape[0],
        "heads": heads,
        "encoder_layers": count_layers(theirs, "encoder"),
        "decoder_layers": count_layers(theirs, "decoder"),
        "positions": "learned",
        "norm": "pre",
        "norm_eps": 1e-6,
        "output_bias": True,
        "tie": "none",
    }


def count_layers(theirs: Weights, stack: str) -> int:
    """Count the layers of a stack from weight names such as "encoder.layer_0.ffn.linear_0.weight"."""
    parts = {name.split(".")[1] for name in theirs if name.startswith(f"{stack}.layer_")}
    # The final norm, "encoder.layer_norm", has the same prefix as the layers.
    return len(parts - {"layer_norm"})


def positions(length: int, d_model: int) -> Float[Tensor, "N D"]:
    """Compute OpenNMT's sinusoidal position table.

    Row p, counted from 1, is sin(p r_i) for all i < D/2, then cos(p r_i), with r_i = 10000^(-i / (D/2 - 1)).
    """
    half = d_model // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
    angle = torch.arange(1, length + 1, dtype=torch.float64)[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def torch_name(name: str) -> str:
    """Convert a CTranslate2 parameter name to PyTorch style: dots, and weight and bias for norms."""
    return name.replace("/", ".").replace("_norm.gamma", "_norm.weight").replace("_norm.beta", "_norm.bias")


FORMAT = Format(tasks=TASKS, file=MODEL_BIN, kinds=tuple(HEADS), reader=read)
