"""Read and write Llama in the Hugging Face format, `LlamaForCausalLM`: also SmolLM, TinyLlama and similar models.

V tokens, D model.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.architectures import LanguageModel
from heedful.config.keys import KEYS
from heedful.config.schema import ModelConfig, Recipe
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
from heedful.convert.settings import CONFIG, Misfit, Settings, read_config
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
    without_copies,
)
from heedful.nn.embedding import only_excludes_tokens
from heedful.tasks.language_model import CausalLanguageModelling

TASK = "language_model"

NAMES = Names(
    {
        "backbone.embedding": "model.embed_tokens",
        "backbone.stack.blocks.#.self_residual.norm": "model.layers.#.input_layernorm",
        "backbone.stack.blocks.#.self_attention.q": "model.layers.#.self_attn.q_proj",
        "backbone.stack.blocks.#.self_attention.k": "model.layers.#.self_attn.k_proj",
        "backbone.stack.blocks.#.self_attention.v": "model.layers.#.self_attn.v_proj",
        "backbone.stack.blocks.#.self_attention.out": "model.layers.#.self_attn.o_proj",
        "backbone.stack.blocks.#.feed_residual.norm": "model.layers.#.post_attention_layernorm",
        "backbone.stack.blocks.#.feed_forward.gate": "model.layers.#.mlp.gate_proj",
        "backbone.stack.blocks.#.feed_forward.up": "model.layers.#.mlp.up_proj",
        "backbone.stack.blocks.#.feed_forward.down": "model.layers.#.mlp.down_proj",
        "backbone.stack.norm": "model.norm",
        "output": "lm_head",
    }
)
EMBEDDING, OUTPUT, BIAS = "backbone.embedding.weight", "output.weight", "output.bias"
COPIES = {"lm_head.weight": "model.embed_tokens.weight"}
COMPUTED = r"model\.(?:layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq"  # rotary frequencies, which older files store
HEADS = r"(?:score|classifier|qa_outputs)\..*"

SETTINGS = Settings(
    model_type="llama",
    classes="Llama",
    tasks=(CausalLanguageModelling,),
    keys={
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_attention_heads": "heads",
        "num_key_value_heads": "kv_heads",
        "head_dim": "d_k",
        "num_hidden_layers": "decoder_layers",
        "max_position_embeddings": "max_positions",
        "rope_theta": "rope_theta",
        "rms_norm_eps": "norm_eps",
        "attention_bias": "attention_bias",
        "attention_dropout": "attention_dropout",
    },
    activation="hidden_act",
    activations={"silu": "swiglu"},
    fixed={
        "family": "decoder",
        "positions": "rotary",
        "norm": "pre",
        "normalization": "rms",
        "bias": False,
        "scale_embeddings": False,
        "init": "scaled",
    },
    needed={"rope_scaling": None, "partial_rotary_factor": 1.0, "mlp_bias": False},
)


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Hugging Face Llama.

    A special token that Llama lacks gets a zero embedding and an output bias that gives it probability 0, as in GPT-2.
    The token before a text, such as <s>, remains a token that texts can contain, because heedful's GPTs have no <bos>.
    """
    config, where = with_defaults(read_config(folder)), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    weights = with_prefix(read_weights(folder), "model.", rf"model\..*|lm_head\..*|{HEADS}")
    theirs, left_out = split_by_name(split_by_name(weights, COMPUTED)[0], HEADS)
    if config["tie_word_embeddings"]:
        theirs = without_copies(theirs, COPIES, where)
    else:
        fields["tie"] = "none"

    tokenizers, old_id_of = read_tokenizer(folder, config["vocab_size"], begins=False)
    # Llama has no output bias. One is added only if tokens are added, to give these probability 0.
    bias = suppress_absent(None, old_id_of)
    recipe = converted_recipe(task or TASK, fields | {"output_bias": bool(bias)}, tokenizers, folder)
    # Check the weights in their original form, without that bias and with the file's rows.
    original = replace(recipe.model, output_bias=False)
    check_weights(theirs, NAMES.theirs(shapes_of(lambda: LanguageModel(original, config["vocab_size"]))), where)
    ours = reorder_rows(NAMES.ours(theirs), old_id_of, (EMBEDDING, OUTPUT)) | bias
    return Model(
        recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=heads_note(left_out, HEADS)
    )


def with_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the contents of a config.json by keys that some versions of transformers omit or store elsewhere."""
    defaults = {
        "num_key_value_heads": config.get("num_attention_heads"),
        "head_dim": None,
        "rope_theta": ModelConfig.rope_theta,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
    }
    rope = config.get("rope_parameters") or config.get("rope_scaling")  # transformers 5 introduced rope_parameters
    values = defaults | dict(config) | {"rope_scaling": rope}
    if isinstance(rope, dict):
        values |= {key: rope[key] for key in ("rope_theta", "partial_rotary_factor") if key in rope}
        # The type "default" means unscaled rotary positions. A table of any other type stays, and `needed` rejects it.
        if rope.get("rope_type", rope.get("type")) == "default":
            values["rope_scaling"] = None
    return values


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a language model as a Hugging Face folder with a `LlamaForCausalLM`."""
    settings, ours, absent = llama_form(model)
    settings |= {"architectures": ["LlamaForCausalLM"], DTYPE: precision, "tie_word_embeddings": OUTPUT not in ours}
    return write_hugging_face(model, NAMES.theirs(ours), settings, folder, absent)


def llama_form(model: Model) -> tuple[dict[str, Any], Weights, tuple[int, ...]]:
    """Return the settings and weights of a language model as a Llama model, and the special tokens without a row.

    The special tokens that `read` added are left out again. If heedful scales the embeddings, they are stored scaled,
    and the output matrix, which is not scaled, is stored separately.

    Raises:
        InputError: The model is not a Llama; the settings that would have to differ are listed.
    """
    bias = model.weights.get(BIAS, torch.zeros(len(model.tokenizers.source)))
    further = [Misfit(key=str(KEYS.model.output_bias), value=True, fitting=(False,))] if has_bias(bias) else []
    settings = SETTINGS.config(_with_explicit_sizes(model.recipe), model.tokenizers.source.config, further)
    absent = absent_tokens(bias)
    present = [i for i in range(len(bias)) if i not in absent]
    ours = {name: value for name, value in model.weights.items() if name != BIAS}
    if model.recipe.model.scale_embeddings:
        # Copied before scaling, because the output matrix, which is tied to the embeddings in heedful, is not scaled.
        ours.setdefault(OUTPUT, ours[EMBEDDING])
        ours[EMBEDDING] = ours[EMBEDDING] * model.recipe.model.d_model**0.5
    return settings, ours | {name: ours[name][present] for name in (EMBEDDING, OUTPUT) if name in ours}, absent


def has_bias(bias: Tensor) -> bool:
    """Return True if an output bias (V,) does more than exclude the special tokens that `read` added."""
    return bool(bias.any()) and not (only_excludes_tokens(bias) and absent_tokens(bias))


def _with_explicit_sizes(recipe: Recipe) -> Recipe:
    """Return a recipe with explicit values for all sizes in Llama's config.json, and with the settings of a Llama.

    The settings are changed only where `llama_form` converts the weights, or where no weight depends on them.
    """
    own = recipe.model
    sizes = {"kv_heads": own.kv_heads or own.heads, "d_k": own.head_size, "max_positions": recipe.data.max_length}
    settings = {"bias": False, "scale_embeddings": False, "output_bias": False, "tie": "all"}
    return replace(recipe, model=replace(own, **sizes, **settings))


def changes(model: Model) -> tuple[str, ...]:
    """Return notes for the user about how `write` changes the structure of a model; its outputs stay the same."""
    config = model.recipe.model
    if not config.scale_embeddings or config.tie == "none":
        return renumbering_note(model)
    return (
        *renumbering_note(model),
        "a Llama does not scale its embeddings: they are stored multiplied by sqrt(model.d_model); the output matrix, "
        "which is tied to them in heedful, is stored separately (lm_head.weight)",
    )


FORMAT = Format(tasks=SETTINGS.tasks, kinds=("llama",), reader=read, names=NAMES, keys=SETTINGS.keys)
EXPORTER = Exporter(
    title="Hugging Face",
    writer=write,
    check=llama_form,
    tasks=SETTINGS.tasks,
    precisions=PRECISIONS,
    compare=compare_with_transformers,
    engine="transformers",
    changes=changes,
)
