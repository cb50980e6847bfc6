"""Read and write BERT in the Hugging Face format: `BertModel`, `BertForMaskedLM` and `BertForPreTraining`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.architectures import MaskedLanguageModel, SentenceEncoder
from heedful.config.schema import Recipe
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
from heedful.convert.sentence_transformers import read_sentence_settings, sentence_files
from heedful.convert.settings import CONFIG, ENCODER_KEYS, Settings, read_config
from heedful.convert.transformers_check import compare_with_transformers
from heedful.convert.weights import (
    NOTHING,
    Names,
    Weights,
    check_weights,
    reorder_rows,
    split_by_name,
    suppress_absent,
    with_prefix,
    with_zero_biases,
    without_copies,
)
from heedful.errors import InputError
from heedful.tasks.masked_lm import MaskedLanguageModelling
from heedful.tasks.ranking import Ranking

MASKED_LM = "masked_lm"
RANKING = "ranking"  # the task of a model without heads: its pooled hidden states are the vector of a text

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
EMBEDDING, SEGMENTS, BIAS = "backbone.embedding.weight", "backbone.segments.table.weight", "output.bias"
MIN_SEGMENTS = 2  # a BERT tokenizer produces the segment ids 0 and 1
COPIES = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
COMPUTED = r"bert\.embeddings\.position_ids"
HEADS = r"(?:classifier|qa_outputs)\..*"  # of classifiers, taggers and extractive question answering
POOLER, PRETRAINING = r"bert\.pooler\..*", r"(?:cls|bert\.pooler)\..*"
ARCHITECTURES = {  # by a weight that the classes further down lack
    "next_sentence.output.weight": "BertForPreTraining",
    "transform.dense.weight": "BertForMaskedLM",
    EMBEDDING: "BertModel",
}

SETTINGS = Settings(
    model_type="bert",
    classes="Bert",
    tasks=(MaskedLanguageModelling, Ranking),
    keys=ENCODER_KEYS | {"max_position_embeddings": "max_positions", "type_vocab_size": "segments"},
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
# transformers has one activation for the blocks and the head; heedful's masked-token head always uses GELU.
MASKED_LM_SETTINGS = replace(SETTINGS, fixed={**SETTINGS.fixed, "activation": "gelu"})


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Hugging Face BERT: by default with its masked-token head or, without one, as a sentence encoder."""
    config, where = read_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    weights = with_prefix(read_weights(folder), "bert.", rf"(?:bert|cls)\..*|{HEADS}")
    # Files from before 2019 name the weight and bias of a norm gamma and beta.
    renamed = {
        name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): value
        for name, value in weights.items()
    }
    theirs = without_copies(renamed, COPIES, where)
    pairs = "cls.seq_relationship.weight" in theirs
    task = task or (MASKED_LM if "cls.predictions.bias" in theirs else RANKING)
    # Sentence vectors need no head. Masked tokens need the pooler only together with the next-sentence head.
    unused = PRETRAINING if task != MASKED_LM else NOTHING if pairs else POOLER
    theirs, left_out = split_by_name(theirs, f"{COMPUTED}|{HEADS}|{unused}")
    notes, data = heads_note(left_out, HEADS), {}
    if task == RANKING:
        sentences = read_sentence_settings(folder)
        fields["pooling"], notes = sentences.pooling, notes + sentences.notes
        data = {"max_length": min(fields["max_positions"], sentences.max_length or fields["max_positions"])}
    if task == MASKED_LM and fields["activation"] != "gelu":
        raise InputError(
            f'{where}: in heedful, a head that predicts masked tokens has the activation "gelu", not '
            f'"{fields["activation"]}"'
        )

    tokenizers, old_id_of = read_tokenizer(folder, config["vocab_size"])
    recipe = converted_recipe(task, fields, tokenizers, folder, masking={"next_sentence": pairs}, data=data)
    check_weights(theirs, NAMES.theirs(expected_weights(recipe, config["vocab_size"])), where)
    ours = reorder_rows(NAMES.ours(theirs), old_id_of, (EMBEDDING, BIAS))
    if task == MASKED_LM:
        ours |= suppress_absent(ours[BIAS], old_id_of)
    return Model(recipe=recipe, tokenizers=tokenizers, weights=ours, left_out=left_out, notes=notes)


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a heedful model as a Hugging Face folder: `BertForPreTraining`, `BertForMaskedLM` or `BertModel`.

    Biases that the model lacks become zeros. BERT has embeddings for two segments: if the model has one, it is
    duplicated; if it has none, both are zeros. A sentence encoder also gets the files of Sentence Transformers.
    Returns the number of values in the weights.
    """
    recipe, settings, whole = model.recipe, settings_of(model), completed(model.recipe)
    config = whole.model
    ours = with_zero_biases(model.weights, expected_weights(whole, len(model.tokenizers.source)))
    # heedful uses the last embedding for unknown segments, so this embedding is repeated if BERT needs more.
    segments = ours.get(SEGMENTS, torch.zeros(1, config.d_model))
    ours[SEGMENTS] = torch.cat([segments, segments[-1:].expand(max(0, MIN_SEGMENTS - len(segments)), -1)])
    settings["architectures"] = [next(name for part, name in ARCHITECTURES.items() if part in ours)]
    settings[DTYPE] = precision
    files = sentence_files(recipe) if recipe.task == RANKING else None
    return write_hugging_face(model, NAMES.theirs(ours), settings, folder, files=files)


def completed(recipe: Recipe) -> Recipe:
    """Return the recipe of a model with all the biases and segments of a BERT."""
    own = recipe.model
    config = replace(own, attention_bias=True, bias=True, output_bias=True, segments=max(own.segments, MIN_SEGMENTS))
    return replace(recipe, model=config)


def settings_of(model: Model) -> dict[str, Any]:
    """Return a model's settings for config.json, or raise an InputError if it differs from a BERT."""
    rules = MASKED_LM_SETTINGS if "transform.dense.weight" in model.weights else SETTINGS
    return rules.config(completed(model.recipe), model.tokenizers.source.config)


def expected_weights(recipe: Recipe, rows: int) -> Weights:
    if recipe.task == MASKED_LM:
        return shapes_of(lambda: MaskedLanguageModel(recipe.model, rows, pairs=recipe.masking.next_sentence))
    return shapes_of(lambda: SentenceEncoder(recipe.model, rows))


FORMAT = Format(tasks=SETTINGS.tasks, kinds=("bert",), reader=read, names=NAMES, keys=SETTINGS.keys)
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
