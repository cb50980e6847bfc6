"""Read and write Marian's translation models in the format of Hugging Face: `MarianMTModel`."""

import re
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.architectures import EncoderDecoder
from heedful.convert.model import Format, Model, expected, read_weights, recipe_of, renumbered, write_hugging_face
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.vocabulary import check_rows, reorder, silence
from heedful.convert.weights import Names, Weights, compare, with_zero_biases, without, without_copies
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
    | {f"encoder.blocks.#.{ours}": f"model.encoder.layers.#.{theirs}" for ours, theirs in BLOCK.items()}
    | {f"decoder.blocks.#.{ours}": f"model.decoder.layers.#.{theirs}" for ours, theirs in BLOCK.items()}
)
EMBEDDING, BIAS = "source_embedding.weight", "output.bias"
COPIES = {
    "lm_head.weight": "model.shared.weight",
    "model.encoder.embed_tokens.weight": "model.shared.weight",
    "model.decoder.embed_tokens.weight": "model.shared.weight",
}
POSITIONS = r"model\.(?:en|de)coder\.embed_positions\.weight"
HALF_PRECISION = 1e-3  # tolerance for sines that were stored in 16 bits

SETTINGS = Settings(
    model_type="marian",
    classes="Marian",
    tasks=(Dialogue, Summarisation, TextToText, Translation),
    keys={
        "d_model": "d_model",
        "encoder_ffn_dim": "d_ff",
        "decoder_ffn_dim": "d_ff",
        "encoder_attention_heads": "heads",
        "decoder_attention_heads": "heads",
        "encoder_layers": "encoder_layers",
        "decoder_layers": "decoder_layers",
        "max_position_embeddings": "max_positions",
        "scale_embedding": "scale_embeddings",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "activation_dropout": "activation_dropout",
    },
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
# The axis of a parameter that has the d_model dimensions of the hidden states.
AXES = {
    r".*embedding\.weight|.*\.(?:q|k|v|up)\.weight": 1,
    r".*\.(?:out|down)\.(?:weight|bias)|.*norm\.(?:weight|bias)": 0,
}


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Marian model folder of Hugging Face and convert the model to heedful.

    Marian's decoder starts with <pad> or another piece, whose embedding heedful's <bos> gets too. Marian's sinusoidal
    positions have all sines before all cosines; heedful interleaves sines and cosines, so the d_model dimensions of
    all weights are reordered.
    """
    config, where = read_config(folder), str(folder)
    fields, vocab = SETTINGS.fields(config, str(folder / CONFIG)), config["vocab_size"]
    theirs, computed = without(read_weights(folder), POSITIONS)
    check_positions(computed, where)
    theirs = without_copies(theirs, COPIES, where)

    tokenizers, old_id_of = pair_from_hugging_face(folder)
    check_rows(old_id_of, vocab, where)
    recipe = recipe_of(task or TASK, fields, tokenizers, folder, decode={"penalty": "average", "alpha": 1.0})
    compare(theirs, _theirs(expected(lambda: EncoderDecoder(recipe.model, vocab, vocab))), where)
    ours = _arranged(NAMES.ours(theirs), in_turn(fields["d_model"]))
    ours = reorder(ours | {BIAS: ours[BIAS][0]}, old_id_of, (EMBEDDING, BIAS))
    ours |= silence(ours[BIAS], old_id_of)
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours)


def write(model: Model, folder: Path) -> int:
    """Write an encoder-decoder of heedful as a Hugging Face folder with a `MarianMTModel`.

    Biases that the model lacks become zeros. Returns the number of values in the weights.
    """
    rows = len(model.tokenizers.target)
    config = replace(model.recipe.model, attention_bias=True, bias=True, output_bias=True)
    settings = SETTINGS.config(replace(model.recipe, model=config), model.tokenizers.source.config)
    ours = with_zero_biases(model.weights, expected(lambda: EncoderDecoder(config, rows, rows)))
    extra = {"architectures": ["MarianMTModel"], "decoder_start_token_id": BOS, "forced_eos_token_id": None}
    return write_hugging_face(model, _theirs(ours), settings | extra, folder)


def check_positions(tables: Weights, where: str) -> None:
    """Check that stored tables of positions hold sinusoids in Marian's order: all sines before all cosines."""
    for name, table in tables.items():
        fits = table.ndim == 2 and table.numel() > 0 and table.size(1) % 2 == 0
        if fits:
            order = in_turn(table.size(1)).argsort()
            fits = torch.allclose(table, sinusoids(*table.shape)[:, order], rtol=0, atol=HALF_PRECISION)
        if not fits:
            raise InputError(f"{where}: {name} holds no sinusoids, and heedful reads Marian's with sinusoids only")


def in_turn(d_model: int) -> Int[Tensor, " D"]:
    """Permutation of dimensions that interleaves sines and cosines, given all sines before all cosines."""
    return torch.arange(d_model).view(2, -1).T.flatten()


def _theirs(ours: Weights) -> Weights:
    arranged = _arranged(ours, in_turn(ours[EMBEDDING].size(1)).argsort())
    return NAMES.theirs(arranged | {BIAS: ours[BIAS][None]})


def _arranged(weights: Weights, order: Int[Tensor, " D"]) -> Weights:
    """Reorder the d_model dimensions in all weights of a model; the model computes what it did before."""
    axes = {name: axis for name in weights for pattern, axis in AXES.items() if re.fullmatch(pattern, name)}
    return weights | {name: weights[name].index_select(axis, order) for name, axis in axes.items()}


FORMAT = Format(reader=read, tasks=SETTINGS.tasks, writer=write, changes=renumbered)
