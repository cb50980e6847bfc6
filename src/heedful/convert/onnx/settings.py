"""config.json of an exported model: what a program needs to know to run its graphs."""

from typing import Any

from heedful.config.families import FAMILIES
from heedful.config.schema import Recipe
from heedful.convert.model import Model
from heedful.predictors.translator import MAX_SOURCE_TOKENS
from heedful.text.hugging_face import DEFINITION
from heedful.text.pipeline import BOS, EOS, MASK, PAD, UNK
from heedful.text.tokenizer_pair import TokenizerPair

EXAMPLES = {  # programs in `heedful.convert.onnx.examples`, by task
    "translation": "write",
    "text_to_text": "write",
    "summarisation": "write",
    "dialogue": "write",
    "language_model": "generate",
    "masked_lm": "fill",
    "classification": "classify",
    "regression": "score",
    "tagging": "tag",
    "span_qa": "answer",
    "ranking": "encode",
    "image_classification": "classify_images",
    "image_text_retrieval": "compare_images",
    "audio_classification": "classify_audio",
}


def config_of(model: Model) -> dict[str, Any]:
    """Return what a program needs to know to run the graphs, for config.json."""
    recipe, tokenizers = model.recipe, model.tokenizers
    config: dict[str, Any] = {"name": recipe.name, "task": recipe.task}
    if recipe.data.labels:
        config["labels"] = list(recipe.data.labels)
    return config | SETTINGS.get(EXAMPLES[recipe.task], text_settings)(recipe, tokenizers)


def special_ids(tokenizers: TokenizerPair) -> dict[str, int]:
    ids = {"pad_token_id": PAD, "unk_token_id": UNK, "bos_token_id": BOS, "eos_token_id": EOS}
    return ids | ({"mask_token_id": MASK} if tokenizers.source.config.mask else {})


def text_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    return {**special_ids(tokenizers), "max_tokens": recipe.data.max_length}


def span_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    return {**text_settings(recipe, tokenizers), "causal": FAMILIES[recipe.model.family].causal}


def filler_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    return {**text_settings(recipe, tokenizers), "suppressed_token_ids": list(range(tokenizers.source.first_piece))}


def writer_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    config: Any = recipe.model
    limits = [config.max_positions, config.max_target_positions or config.max_positions]
    if config.positions not in ("learned", "sinusoidal"):  # without a position table, which would limit the lengths
        limits = [MAX_SOURCE_TOKENS, MAX_SOURCE_TOKENS + recipe.decode.extra]
    return {
        **special_ids(tokenizers),
        "source_tokenizer": DEFINITION,
        "target_tokenizer": DEFINITION if tokenizers.joint else f"target/{DEFINITION}",
        "suppressed_token_ids": [PAD, BOS],  # tokens that the program must not generate
        "max_source_tokens": min(limits[0], MAX_SOURCE_TOKENS),
        "max_target_tokens": limits[1],
        "max_extra_tokens": recipe.decode.extra,  # how many more tokens an output may have than its source
    }


def generator_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    config: Any = recipe.model
    key = config.d_k or config.d_model // config.heads
    return {
        **text_settings(recipe, tokenizers),
        "suppressed_token_ids": [i for i in range(tokenizers.source.first_piece) if i not in (UNK, EOS)],
        "layers": config.decoder_layers,
        "kv_heads": config.kv_heads or config.heads,
        "key_size": key,
        "value_size": config.d_v or key,
    }


def image_settings(recipe: Recipe, tokenizers: TokenizerPair | None = None) -> dict[str, Any]:
    del tokenizers
    keys = ("size", "channels", "resize", "resample")
    return {"image": {key: getattr(recipe.image, key) for key in keys}}


def audio_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    del tokenizers
    audio = recipe.audio
    # The reflection at both ends of a clip needs more than half a window of samples.
    min_samples = audio.hop if audio.features == "samples" else max(audio.hop, audio.window // 2 + 1)
    return {
        "rate": audio.rate,
        # Shorter clips are padded with silence.
        "min_samples": max(round(audio.pad_seconds * audio.rate), min_samples),
        "max_samples": round(audio.max_seconds * audio.rate),
    }


def image_and_text_settings(recipe: Recipe, tokenizers: TokenizerPair) -> dict[str, Any]:
    return text_settings(recipe, tokenizers) | image_settings(recipe)


SETTINGS = {
    "write": writer_settings,
    "fill": filler_settings,
    "tag": span_settings,
    "answer": span_settings,
    "generate": generator_settings,
    "classify_images": image_settings,
    "compare_images": image_and_text_settings,
    "classify_audio": audio_settings,
}
