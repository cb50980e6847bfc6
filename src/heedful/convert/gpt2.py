"""Read and write GPT-2 in the Hugging Face format: `GPT2LMHeadModel`, and read `GPT2Model`.

V tokens, D model.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.architectures import LanguageModel
from heedful.config.schema import ModelConfig
from heedful.convert.exporter import Exporter
from heedful.convert.model import (
    DTYPE,
    PRECISIONS,
    Format,
    Model,
    converted_recipe,
    heads_note,
    read_tokenizer,
    read_weights,
    renumbering_note,
    shapes_of,
    write_hugging_face,
)
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.transformers_check import compare_with_transformers
from heedful.convert.weights import (
    Names,
    Weights,
    absent_tokens,
    check_weights,
    reorder_rows,
    split_by_name,
    suppress_absent,
    with_prefix,
    with_zero_biases,
    without_copies,
)
from heedful.nn.embedding import only_excludes_tokens
from heedful.tasks.language_model import CausalLanguageModelling

TASK = "language_model"

NAMES = Names(
    {
        "backbone.embedding": "transformer.wte",
        "backbone.stack.positions.table": "transformer.wpe",
        "backbone.stack.blocks.#.self_residual.norm": "transformer.h.#.ln_1",
        "backbone.stack.blocks.#.self_attention.{q,k,v}": "transformer.h.#.attn.c_attn",
        "backbone.stack.blocks.#.self_attention.out": "transformer.h.#.attn.c_proj",
        "backbone.stack.blocks.#.feed_residual.norm": "transformer.h.#.ln_2",
        "backbone.stack.blocks.#.feed_forward.up": "transformer.h.#.mlp.c_fc",
        "backbone.stack.blocks.#.feed_forward.down": "transformer.h.#.mlp.c_proj",
        "backbone.stack.norm": "transformer.ln_f",
        "output": "lm_head",
    },
    transposed=r"\.c_\w+\.weight$",
)
EMBEDDING, OUTPUT, BIAS = "backbone.embedding.weight", "output.weight", "output.bias"
SCALE, SHIFT = "backbone.stack.norm.weight", "backbone.stack.norm.bias"  # of the final layer norm
COPIES = {"lm_head.weight": "transformer.wte.weight"}
MASKS = r"transformer\.h\.\d+\.attn\.(?:masked_)?bias"
HEADS = r"(?:score|classifier|multiple_choice_head)\..*"

SETTINGS = Settings(
    model_type="gpt2",
    classes="GPT2",
    tasks=(CausalLanguageModelling,),
    keys={
        "n_embd": "d_model",
        "n_inner": "d_ff",
        "n_head": "heads",
        "n_layer": "decoder_layers",
        "n_positions": "max_positions",
        "layer_norm_epsilon": "norm_eps",
        "resid_pdrop": "dropout",
        "attn_pdrop": "attention_dropout",
    },
    activation="activation_function",
    fixed={
        "family": "decoder",
        "positions": "learned",
        "norm": "pre",
        "scale_embeddings": False,
        "init": "scaled",
    },
    needed={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
)


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Hugging Face GPT-2.

    GPT-2 has no <pad>, no <unk>, and a single token for both ends of a text. A token that GPT-2 lacks gets a zero
    embedding and an output bias that gives it probability 0, so that all other tokens keep their probabilities.
    """
    config, where = read_config(folder), str(folder)
    # As in transformers, where null means four times the model size.
    if config.get("n_inner") is None:
        config["n_inner"] = 4 * config.get("n_embd", 0)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    weights = with_prefix(read_weights(folder), "transformer.", rf"transformer\..*|lm_head\..*|{HEADS}")
    theirs, left_out = split_by_name(weights, rf"{MASKS}|{HEADS}")
    if config.get("tie_word_embeddings", True):
        theirs = without_copies(theirs, COPIES, where)
    else:
        fields["tie"] = "none"

    tokenizers, old_id_of = read_tokenizer(folder, config["vocab_size"])
    # GPT-2 has no output bias. One is added only if tokens are added, to give these probability 0.
    bias = suppress_absent(None, old_id_of)
    recipe = converted_recipe(task or TASK, fields | {"output_bias": bool(bias)}, tokenizers, folder)
    # Check the weights in their original form, without that bias and with the file's rows.
    original = replace(recipe.model, output_bias=False)
    check_weights(theirs, NAMES.theirs(shapes_of(lambda: LanguageModel(original, config["vocab_size"]))), where)
    ours = reorder_rows(NAMES.ours(theirs), old_id_of, (EMBEDDING, OUTPUT)) | bias
    return Model(
        recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=heads_note(left_out, HEADS)
    )


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a language model as a Hugging Face folder with a `GPT2LMHeadModel`.

    Biases that the model lacks become zeros. Special tokens that `read` added to a GPT-2 are left out again, together
    with their output bias; any other output bias is folded into a separate output matrix.
    """
    rows, config = len(model.tokenizers.source), completed(model.recipe.model)
    settings = settings_of(model) | {"embd_pdrop": config.dropout}
    ours = with_zero_biases(model.weights, shapes_of(lambda: LanguageModel(config, rows)))
    bias = ours.pop(BIAS, torch.zeros(rows))
    absent = absent_tokens(bias)
    present = [i for i in range(rows) if i not in absent]
    ours |= {name: ours[name][present] for name in (EMBEDDING, OUTPUT) if name in ours}
    # A bias that only silences added tokens disappears with their rows; any other has to be stored elsewhere.
    if bias[present].any():
        ours |= with_bias(ours, bias[present])
    settings |= {"architectures": ["GPT2LMHeadModel"], DTYPE: precision, "tie_word_embeddings": OUTPUT not in ours}
    return write_hugging_face(model, NAMES.theirs(ours), settings, folder, absent)


def completed(config: ModelConfig) -> ModelConfig:
    """Return the [model] settings of a model with all the biases of a GPT-2, and with its output layer."""
    return replace(config, attention_bias=True, bias=True, output_bias=False, tie="all")


def settings_of(model: Model) -> dict[str, Any]:
    """Return a model's settings for config.json, or raise an InputError if it differs from a GPT-2."""
    whole = replace(model.recipe, model=completed(model.recipe.model))
    return SETTINGS.config(whole, model.tokenizers.source.config)


def changes(model: Model) -> tuple[str, ...]:
    """Return notes for the user about how `write` changes the structure of a model; its outputs stay the same."""
    bias = model.weights.get(BIAS)
    if bias is None or only_excludes_tokens(bias) or not bias.any():
        return renumbering_note(model)
    return (
        *renumbering_note(model),
        "a GPT-2 has no output bias: this model's bias is folded into an output matrix, which is no longer tied to the "
        "embeddings (lm_head.weight)",
    )


def with_bias(ours: Weights, bias: Float[Tensor, " V"]) -> Weights:
    """Fold an output bias into the output matrix and final layer norm of a GPT-2, whose output layer has no bias.

    Layer norm subtracts the mean, so the last dimension is minus the sum of the other dimensions, and its column of
    the output matrix can be subtracted from the other columns. The scale and shift of the norm are folded into the
    matrix too. The last dimension is then free: the norm sets it to 1, and its column contains the bias.
    """
    scale, shift, output = (ours[name].double() for name in (SCALE, SHIFT, OUTPUT if OUTPUT in ours else EMBEDDING))
    # (scale * x + shift) W^T + b, with x_D = -(x_1 + ... + x_(D-1)) for the normalised x.
    columns = output * scale
    columns = torch.cat([columns[:, :-1] - columns[:, -1:], (output @ shift + bias)[:, None]], dim=1)
    last = torch.zeros_like(ours[SHIFT])
    last[-1] = 1.0
    return {OUTPUT: columns.float(), SCALE: 1.0 - last, SHIFT: last}


FORMAT = Format(tasks=SETTINGS.tasks, kinds=("gpt2",), reader=read, names=NAMES, keys=SETTINGS.keys)
EXPORTER = Exporter(
    title="Hugging Face",
    writer=write,
    check=settings_of,
    tasks=SETTINGS.tasks,
    precisions=PRECISIONS,
    compare=compare_with_transformers,
    engine="transformers",
    changes=changes,
)
