"""GPT-2 in the format of Hugging Face: `GPT2LMHeadModel`, and `GPT2Model`, whose embeddings are its output too.

V tokens, D model.
"""

import re
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.convert.model import Model, expected, heads_note, read_weights, recipe_of, write_hugging_face
from heedful.convert.names import Names, Weights, compare, with_zero_biases, without, without_copies
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.vocabulary import check_rows, lacking, reorder, silence
from heedful.models import LanguageModel
from heedful.tasks.language_model import CausalLanguageModelling
from heedful.text.hugging_face import from_hugging_face
from heedful.text.tokenizer_pair import TokenizerPair

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
SCALE, SHIFT = "backbone.stack.norm.weight", "backbone.stack.norm.bias"  # of the last norm
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
    """A model of Hugging Face as one of heedful.

    GPT-2 has no <pad>, no <unk>, and one token for both ends of a text. What is lacking gets zeros for its embedding,
    and an output bias makes sure that it is never said, so that all else has the probability that it had.

    Args:
        folder: Where it is.
        task: What for; None: "language_model".

    Raises:
        InputError: The folder cannot be read, or its model is none of heedful's; differences are listed.
    """
    config, where = read_config(folder), str(folder)
    if config.get("n_inner") is None:
        config["n_inner"] = 4 * config.get("n_embd", 0)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    theirs, left_out = without(_full_names(read_weights(folder)), rf"{MASKS}|{HEADS}")
    if config.get("tie_word_embeddings", True):
        theirs = without_copies(theirs, COPIES, where)
    else:
        fields["tie"] = "none"

    tokenizer, old_id_of = from_hugging_face(folder)
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    check_rows(old_id_of, config["vocab_size"], where)
    bias = silence(None, old_id_of)
    recipe = recipe_of(task or TASK, fields | {"output_bias": bool(bias)}, tokenizers, folder)
    original = replace(recipe.model, output_bias=False)
    compare(theirs, NAMES.theirs(expected(lambda: LanguageModel(original, config["vocab_size"]))), where)
    ours = reorder(NAMES.ours(theirs), old_id_of, (EMBEDDING, OUTPUT)) | bias
    notes = heads_note(left_out, HEADS)
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=notes)


def write(model: Model, folder: Path) -> int:
    """A language model of heedful as `GPT2LMHeadModel`.

    Biases that the model does without become zeros. Tokens that a GPT-2 lacked when it was read are left out again;
    any other output bias goes into an output matrix of its own.

    Raises:
        InputError: It is no GPT-2, or the folder is not free.
        RunError: The folder cannot be written.
    """
    own, rows = model.recipe.model, len(model.tokenizers.source)
    config = replace(own, attention_bias=True, bias=True, output_bias=False, tie="all")
    settings = SETTINGS.config(replace(model.recipe, model=config), model.tokenizers.source.config)
    settings |= {"embd_pdrop": own.dropout}
    ours = with_zero_biases(model.weights, expected(lambda: LanguageModel(config, rows)))
    bias = ours.pop(BIAS, torch.zeros(rows))
    absent = () if OUTPUT in ours else lacking(ours[EMBEDDING], bias)
    if absent:
        ours[EMBEDDING] = ours[EMBEDDING][[i for i in range(rows) if i not in absent]]
    elif bias.any():
        ours |= with_bias(ours, bias)
    settings |= {"architectures": ["GPT2LMHeadModel"], "tie_word_embeddings": OUTPUT not in ours}
    return write_hugging_face(model, NAMES.theirs(ours), settings, folder, absent)


def with_bias(ours: Weights, bias: Float[Tensor, " V"]) -> Weights:
    """The last norm and the output of a model with an output bias, as they are in one that has none.

    A norm takes the mean off, so that the last dimension is minus the sum of the others and its column of the output
    can be taken off theirs. The norm's scale and shift go into the matrix too. Then the last dimension is free: it is
    always 1, and its column is the bias.
    """
    scale, shift, output = (ours[name].double() for name in (SCALE, SHIFT, OUTPUT if OUTPUT in ours else EMBEDDING))
    columns = output * scale
    columns = torch.cat([columns[:, :-1] - columns[:, -1:], (output @ shift + bias)[:, None]], dim=1)
    last = torch.zeros_like(ours[SHIFT])
    last[-1] = 1.0
    return {OUTPUT: columns.float(), SCALE: 1.0 - last, SHIFT: last}


def _full_names(weights: Weights) -> Weights:
    """Names as in a model with its output; the first models were saved without."""
    full = re.compile(rf"transformer\..*|lm_head\..*|{HEADS}")
    return {name if full.fullmatch(name) else f"transformer.{name}": value for name, value in weights.items()}
