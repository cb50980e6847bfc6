"""Read and write Marian's translation models in the Hugging Face format: `MarianMTModel`."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.architectures import EncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.convert.exporter import Exporter
from heedful.convert.model import (
    DTYPE,
    PRECISIONS,
    Format,
    Model,
    converted_recipe,
    read_weights,
    renumbering_note,
    shapes_of,
    write_hugging_face,
)
from heedful.convert.settings import CONFIG, ENCODER_DECODER_KEYS, Settings, read_config
from heedful.convert.transformers_check import compare_with_transformers
from heedful.convert.weights import (
    Names,
    Weights,
    check_rows,
    check_weights,
    reorder_rows,
    split_by_name,
    suppress_absent,
    with_zero_biases,
    without_copies,
)
from heedful.errors import InputError
from heedful.nn.positions import sinusoids
from heedful.tasks.text_to_text import Dialogue, Summarisation, TextToText, Translation
from heedful.text.hugging_face import pair_from_hugging_face
from heedful.text.tokenizer import BOS

TASK = "translation"

BLOCK = {
    "self_attention.q": "self_attn.q_proj",
    "self_attention.k": "self_attn.k_proj",
    "self_attention.v": "self_attn.v_proj",
    "self_attention.out": "self_attn.out_proj",
    "self_residual.norm": "self_attn_layer_norm",
    "cross_attention.q": "encoder_attn.q_proj",
    "cross_attention.k": "encoder_attn.k_proj",
    "cross_attention.v": "encoder_attn.v_proj",
    "cross_attention.out": "encoder_attn.out_proj",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_forward.up": "fc1",
    "feed_forward.down": "fc2",
    "feed_residual.norm": "final_layer_norm",
}
NAMES = Names(
    {"source_embedding": "model.shared", "output.bias": "final_logits_bias"}
    | {
        f"{side}.blocks.#.{ours}": f"model.{side}.layers.#.{theirs}"
        for side in ("encoder", "decoder")
        for ours, theirs in BLOCK.items()
    }
)
EMBEDDING, BIAS = "source_embedding.weight", "output.bias"
COPIES = {
    "lm_head.weight": "model.shared.weight",
    "model.encoder.embed_tokens.weight": "model.shared.weight",
    "model.decoder.embed_tokens.weight": "model.shared.weight",
}
POSITIONS = r"model\.(?:en|de)coder\.embed_positions\.weight"
HALF_PRECISION = 1e-3  # tolerance for sines stored in 16 bits

SETTINGS = Settings(
    model_type="marian",
    classes="Marian",
    tasks=(Dialogue, Summarisation, TextToText, Translation),
    keys=ENCODER_DECODER_KEYS | {"max_position_embeddings": "max_positions"},
    activation="activation_function",
    fixed={"output_bias": True},
    needed={
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
    },
)
# Pattern of parameter names -> the axis of these parameters along which the d_model dimensions lie.
AXES = {
    r".*embedding\.weight|.*\.(?:q|k|v|up)\.weight": 1,
    r".*\.(?:out|down)\.(?:weight|bias)|.*norm\.(?:weight|bias)": 0,
}


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Hugging Face Marian model.

    Marian's decoder starts with <pad> or another piece, so heedful's <bos> gets the embedding of this piece. Marian's
    sinusoidal positions have all sines before all cosines, but heedful interleaves them, so the d_model dimensions of
    all weights are reordered.
    """
    config, where = read_config(folder), str(folder)
    fields, vocab = SETTINGS.fields(config, str(folder / CONFIG)), config["vocab_size"]
    theirs, computed = split_by_name(read_weights(folder), POSITIONS)
    for name, table in computed.items():
        # Sinusoids in Marian's order: all sines before all cosines.
        fits = table.ndim == 2 and table.numel() > 0 and table.size(1) % 2 == 0
        if fits:
            order = interleaving(table.size(1)).argsort()
            fits = torch.allclose(table, sinusoids(*table.shape)[:, order], rtol=0, atol=HALF_PRECISION)
        if not fits:
            raise InputError(
                f"{where}: {name} does not contain sinusoids, the only positions that heedful reads from a Marian model"
            )
    theirs = without_copies(theirs, COPIES, where)

    tokenizers, old_id_of = pair_from_hugging_face(folder)
    check_rows(old_id_of, vocab, where)
    recipe = converted_recipe(task or TASK, fields, tokenizers, folder, decode={"penalty": "average", "alpha": 1.0})
    check_weights(theirs, _theirs(shapes_of(lambda: EncoderDecoder(recipe.model, vocab, vocab))), where)
    ours = _reorder_dimensions(NAMES.ours(theirs), interleaving(fields["d_model"]))
    # (1, V) -> (V,)
    ours = reorder_rows(ours | {BIAS: ours[BIAS][0]}, old_id_of, (EMBEDDING, BIAS))
    ours |= suppress_absent(ours[BIAS], old_id_of)
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours)


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write an encoder-decoder as a Hugging Face folder with a `MarianMTModel`; missing biases become zeros."""
    rows, config, settings = len(model.tokenizers.target), with_biases(model.recipe.model), settings_of(model)
    ours = with_zero_biases(model.weights, shapes_of(lambda: EncoderDecoder(config, rows, rows)))
    extra = {
        "architectures": ["MarianMTModel"],
        DTYPE: precision,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
    }
    return write_hugging_face(model, _theirs(ours), settings | extra, folder)


def with_biases(config: ModelConfig) -> ModelConfig:
    return replace(config, attention_bias=True, bias=True, output_bias=True)


def settings_of(model: Model) -> dict[str, Any]:
    """Return a model's settings for config.json, or raise an InputError if it differs from a Marian model."""
    whole = replace(model.recipe, model=with_biases(model.recipe.model))
    return SETTINGS.config(whole, model.tokenizers.source.config)


def interleaving(d_model: int) -> Int[Tensor, " D"]:
    """Return the permutation of dimensions that interleaves sines and cosines, given all sines before all cosines."""
    # (2, D/2) -> (D/2, 2): sine and cosine of one frequency become neighbours.
    return torch.arange(d_model).view(2, -1).T.flatten()


def _theirs(ours: Weights) -> Weights:
    reordered = _reorder_dimensions(ours, interleaving(ours[EMBEDDING].size(1)).argsort())
    return NAMES.theirs(reordered | {BIAS: ours[BIAS][None]})


def _reorder_dimensions(weights: Weights, order: Int[Tensor, " D"]) -> Weights:
    """Reorder the d_model dimensions in all weights of a model without changing its outputs."""
    axes = {name: axis for name in weights for pattern, axis in AXES.items() if re.fullmatch(pattern, name)}
    return weights | {name: weights[name].index_select(axis, order) for name, axis in axes.items()}


FORMAT = Format(tasks=SETTINGS.tasks, kinds=("marian",), reader=read, keys=SETTINGS.keys)
EXPORTER = Exporter(
    title="Hugging Face",
    writer=write,
    check=settings_of,
    tasks=SETTINGS.tasks,
    precisions=PRECISIONS,
    compare=compare_with_transformers,
    engine="transformers",
    changes=renumbering_note,
)
