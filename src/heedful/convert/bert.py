"""Read and write BERT in the format of Hugging Face: `BertModel`, `BertForMaskedLM` and `BertForPreTraining`."""

from dataclasses import replace
from pathlib import Path

import torch

from heedful.architectures import MaskedLanguageModel, SentenceEncoder
from heedful.config.schema import Recipe
from heedful.convert.model import (
    Format,
    Model,
    expected,
    heads_note,
    read_tokenizer,
    read_weights,
    recipe_of,
    renumbered,
    write_hugging_face,
)
from heedful.convert.sentence_transformers import read_sentence_settings, sentence_files
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.vocabulary import reorder, silence
from heedful.convert.weights import (
    NOTHING,
    Names,
    Weights,
    compare,
    with_prefix,
    with_zero_biases,
    without,
    without_copies,
)
from heedful.errors import InputError
from heedful.tasks.masked_lm import MaskedLanguageModelling
from heedful.tasks.ranking import Ranking

MASKED_LM = "masked_lm"
RANKING = "ranking"  # the task of a model without heads: the mean of its hidden states is the vector of a text

NAMES = Names(
    {
        "backbone.embedding": "bert.embeddings.word_embeddings",
        "backbone.segments.table": "bert.embeddings.token_type_embeddings",
        "backbone.stack.positions.table": "bert.embeddings.position_embeddings",
        "backbone.stack.embedding_norm": "bert.embeddings.LayerNorm",
        "backbone.stack.blocks.#.self_attention.q": "bert.encoder.layer.#.attention.self.query",
        "backbone.stack.blocks.#.self_attention.k": "bert.encoder.layer.#.attention.self.key",
        "backbone.stack.blocks.#.self_attention.v": "bert.encoder.layer.#.attention.self.value",
        "backbone.stack.blocks.#.self_attention.out": "bert.encoder.layer.#.attention.output.dense",
        "backbone.stack.blocks.#.self_residual.norm": "bert.encoder.layer.#.attention.output.LayerNorm",
        "backbone.stack.blocks.#.feed_forward.up": "bert.encoder.layer.#.intermediate.dense",
        "backbone.stack.blocks.#.feed_forward.down": "bert.encoder.layer.#.output.dense",
        "backbone.stack.blocks.#.feed_residual.norm": "bert.encoder.layer.#.output.LayerNorm",
        "transform.dense": "cls.predictions.transform.dense",
        "transform.norm": "cls.predictions.transform.LayerNorm",
        "output.bias": "cls.predictions.bias",
        "next_sentence.pooler.dense": "bert.pooler.dense",
        "next_sentence.output": "cls.seq_relationship",
    }
)
EMBEDDING, BIAS = "backbone.embedding.weight", "output.bias"
COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
SEGMENTS = "backbone.segments.table.weight"
COMPUTED = r"bert\.embeddings\.position_ids"
HEADS = r"(?:classifier|qa_outputs)\..*"  # of classifiers, taggers and extractive question answering
POOLER, PRETRAINING = r"bert\.pooler\..*", r"(?:cls|bert\.pooler)\..*"

SETTINGS = Settings(
    model_type="bert",
    classes="Bert",
    tasks=(MaskedLanguageModelling, Ranking),
    keys={
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_attention_heads": "heads",
        "num_hidden_layers": "encoder_layers",
        "max_position_embeddings": "max_positions",
        "type_vocab_size": "segments",
        "layer_norm_eps": "norm_eps",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
    activation="hidden_act",
    fixed={
        "family": "encoder",
        "positions": "learned",
        "norm": "post",
        "output_bias": True,
        "scale_embeddings": False,
        "embedding_norm": True,
        "init": "normal",
    },
    needed={"position_embedding_type": "absolute", "is_decoder": False, "tie_word_embeddings": True},
)
PREDICTING = replace(SETTINGS, fixed={**SETTINGS.fixed, "activation": "gelu"})  # the only one of heedful's MLM head


def read(folder: Path, task: str | None = None) -> Model:
    """Read a BERT model folder of Hugging Face: with its head for masked tokens, or without as a sentence encoder."""
    config, where = read_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    weights = with_prefix(read_weights(folder), "bert.", rf"(?:bert|cls)\..*|{HEADS}")
    # Files from before 2019 name the weights of norms gamma and beta.
    names = {name: name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias") for name in weights}
    theirs = without_copies({names[name]: value for name, value in weights.items()}, COPIES, where)
    pairs = "cls.seq_relationship.weight" in theirs
    task = task or (MASKED_LM if "cls.predictions.bias" in theirs else RANKING)
    unused = PRETRAINING if task != MASKED_LM else NOTHING if pairs else POOLER
    theirs, left_out = without(theirs, f"{COMPUTED}|{HEADS}|{unused}")
    notes, data = heads_note(left_out, HEADS), {}
    if task == RANKING:
        sentences = read_sentence_settings(folder)
        fields["pooling"], notes = sentences.pooling, notes + sentences.notes
        data = {"max_length": min(fields["max_positions"], sentences.max_length or fields["max_positions"])}
    if task == MASKED_LM and fields["activation"] != "gelu":
        raise InputError(
            f'{where}: a head that predicts hidden tokens has the activation "gelu" in heedful, not '
            f'"{fields["activation"]}"'
        )

    tokenizers, old_id_of = read_tokenizer(folder, config["vocab_size"])
    recipe = recipe_of(task, fields, tokenizers, folder, masking={"next_sentence": pairs}, data=data)
    compare(theirs, NAMES.theirs(_expected(recipe, config["vocab_size"])), where)
    ours = reorder(NAMES.ours(theirs), old_id_of, (EMBEDDING, BIAS))
    if task == MASKED_LM:
        ours |= silence(ours[BIAS], old_id_of)
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=notes)


def write(model: Model, folder: Path) -> int:
    """Write a heedful model as a Hugging Face folder: `BertForPreTraining`, `BertForMaskedLM` or `BertModel`.

    Biases that the model lacks become zeros. BERT has embeddings of two segments: a model with one segment gets its
    embedding twice, a model without segments gets zeros. A sentence encoder also gets the files of Sentence
    Transformers. Returns the number of values in the weights.
    """
    recipe, rows = model.recipe, len(model.tokenizers.source)
    own = recipe.model
    config = replace(own, attention_bias=True, bias=True, output_bias=True, segments=max(own.segments, MIN_SEGMENTS))
    described = PREDICTING if "transform.dense.weight" in model.weights else SETTINGS
    settings = described.config(replace(recipe, model=config), model.tokenizers.source.config)
    ours = with_zero_biases(model.weights, _expected(replace(recipe, model=config), rows))
    # heedful takes the last embedding for unknown segments, so it is repeated where BERT needs more of them.
    segments = ours.get(SEGMENTS, torch.zeros(1, config.d_model))
    ours[SEGMENTS] = torch.cat([segments, segments[-1:].expand(max(0, MIN_SEGMENTS - len(segments)), -1)])
    settings["architectures"] = [next(name for part, name in ARCHITECTURES.items() if part in ours)]
    files = sentence_files(recipe) if recipe.task == RANKING else None
    return write_hugging_face(model, NAMES.theirs(ours), settings, folder, files=files)


def _expected(recipe: Recipe, rows: int) -> Weights:
    if recipe.task == MASKED_LM:
        return expected(lambda: MaskedLanguageModel(recipe.model, rows, pairs=recipe.masking.next_sentence))
    return expected(lambda: SentenceEncoder(recipe.model, rows))


MIN_SEGMENTS = 2  # a tokenizer of BERT gives the segment ids 0 and 1
ARCHITECTURES = {
    "next_sentence.output.weight": "BertForPreTraining",
    "transform.dense.weight": "BertForMaskedLM",
    EMBEDDING: "BertModel",
}


FORMAT = Format(reader=read, tasks=SETTINGS.tasks, writer=write, changes=renumbered)
