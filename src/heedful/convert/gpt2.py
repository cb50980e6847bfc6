"""GPT-2 in the format of Hugging Face: `GPT2LMHeadModel`, and `GPT2Model`, whose embeddings are its output too."""

from dataclasses import replace
from pathlib import Path

from heedful.convert.model import Model, expected, read_weights, recipe_of, write_hugging_face
from heedful.convert.names import Names, Weights, compare, without, without_copies
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.vocabulary import check_rows, reorder, silence
from heedful.models import LanguageModel
from heedful.text.foreign import from_hugging_face
from heedful.text.pair import TokenizerPair

TASK = "language_model"

NAMES = Names(
    {
        "trunk.embedding": "transformer.wte",
        "trunk.stack.positions.table": "transformer.wpe",
        "trunk.stack.blocks.#.self_residual.norm": "transformer.h.#.ln_1",
        "trunk.stack.blocks.#.self_attention.{q,k,v}": "transformer.h.#.attn.c_attn",
        "trunk.stack.blocks.#.self_attention.out": "transformer.h.#.attn.c_proj",
        "trunk.stack.blocks.#.feed_residual.norm": "transformer.h.#.ln_2",
        "trunk.stack.blocks.#.feed_forward.up": "transformer.h.#.mlp.c_fc",
        "trunk.stack.blocks.#.feed_forward.down": "transformer.h.#.mlp.c_proj",
        "trunk.stack.norm": "transformer.ln_f",
    },
    transposed=r"\.c_\w+\.weight$",
)
EMBEDDING = "trunk.embedding.weight"
COPIES = {"lm_head.weight": "transformer.wte.weight"}
COMPUTED = r"transformer\.h\.\d+\.attn\.(?:masked_)?bias"  # masks

SETTINGS = Settings(
    model_type="gpt2",
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
        "tie_word_embeddings": True,
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
    theirs = without_copies(without(_full_names(read_weights(folder)), COMPUTED)[0], COPIES, where)

    tokenizer, old_id_of = from_hugging_face(folder)
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    check_rows(old_id_of, config["vocab_size"], where)
    bias = silence(None, old_id_of)
    recipe = recipe_of(task or TASK, fields | {"output_bias": bool(bias)}, tokenizers, folder)
    original = replace(recipe.model, output_bias=False)
    compare(theirs, NAMES.theirs(expected(lambda: LanguageModel(original, config["vocab_size"]))), where)
    ours = reorder(NAMES.ours(theirs), old_id_of, (EMBEDDING,)) | bias
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours)


def write(model: Model, folder: Path) -> None:
    """A language model of heedful as `GPT2LMHeadModel`.

    Raises:
        InputError: It is no GPT-2, or the folder is not free.
        RunError: The folder cannot be written.
    """
    config = model.recipe.model
    settings = SETTINGS.config(config, model.recipe.name) | {"embd_pdrop": config.dropout}
    tensors = NAMES.theirs(model.weights)
    write_hugging_face(model, tensors, {"architectures": ["GPT2LMHeadModel"], **settings}, folder)


def _full_names(weights: Weights) -> Weights:
    """Names as in a model with its output; the first models were saved without."""
    trunk = "transformer."
    return {name if name in COPIES or name.startswith(trunk) else trunk + name: weights[name] for name in weights}
