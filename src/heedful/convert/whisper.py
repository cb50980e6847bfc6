"""Read and write Whisper in the format of Hugging Face: `WhisperForConditionalGeneration`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.config.modalities import AudioConfig
from heedful.config.schema import Recipe
from heedful.convert.marian import BLOCK
from heedful.convert.model import GENERATION, Format, Model, expected, read_weights, write_hugging_face
from heedful.convert.names import Names, with_zero_biases, without, without_copies
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.vocabulary import lacking
from heedful.convert.whisper_files import whisper_order, write_whisper_folder
from heedful.convert.whisper_recipe import (
    EMBEDDING,
    FIXED,
    MULTILINGUAL,
    OUTPUT_BIAS,
    TASKS,
    Description,
    converted,
)
from heedful.errors import InputError
from heedful.models.input_layers import media_to_text
from heedful.text.speech_tokens import SpeechTokens

PREPROCESSOR = "preprocessor_config.json"
NAMES = Names(
    {
        "source_embedding.first": "model.encoder.conv1",
        "source_embedding.second": "model.encoder.conv2",
        "target_embedding": "model.decoder.embed_tokens",
    }
    | {f"{side}.positions.table": f"model.{side}.embed_positions" for side in ("encoder", "decoder")}
    | {f"{side}.norm": f"model.{side}.layer_norm" for side in ("encoder", "decoder")}
    | {
        f"{side}.blocks.#.{ours}": f"model.{side}.layers.#.{theirs}"
        for side in ("encoder", "decoder")
        for ours, theirs in BLOCK.items()
    }
)
COPIES = {"proj_out.weight": "model.decoder.embed_tokens.weight"}
KEY_BIASES = r".*_attention\.k\.bias"
IN_SETTINGS = ("activation", "dropout", "scale_embeddings")
SETTINGS = Settings(
    model_type="whisper",
    classes="Whisper",
    tasks=TASKS,
    keys={
        "d_model": "d_model",
        "encoder_ffn_dim": "d_ff",
        "decoder_ffn_dim": "d_ff",
        "encoder_attention_heads": "heads",
        "decoder_attention_heads": "heads",
        "encoder_layers": "encoder_layers",
        "decoder_layers": "decoder_layers",
        "max_source_positions": "max_positions",
        "max_target_positions": "max_target_positions",
        "scale_embedding": "scale_embeddings",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "activation_dropout": "activation_dropout",
    },
    activation="activation_function",
    fixed={key: value for key, value in FIXED.items() if key not in IN_SETTINGS},
    needed={"tie_word_embeddings": True},
)
AUDIO = {"sampling_rate": "rate", "hop_length": "hop", "n_fft": "window", "feature_size": "mels"}


def read(folder: Path, task: str | None = None) -> Model:
    """Read a Whisper of Hugging Face and convert the model to heedful.

    Args:
        folder: The model folder, with config.json, safetensors weights and tokenizer.json; generation_config.json and
            preprocessor_config.json where they are there.
        task: Task of the converted model; None: "speech_recognition".

    Raises:
        InputError: The folder cannot be read, or the model does not fit heedful's encoder-decoder; all differences are
            listed.
    """
    config, where = read_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    generation = config | (read_config(folder, GENERATION) if (folder / GENERATION).is_file() else {})
    sound = read_config(folder, PREPROCESSOR) if (folder / PREPROCESSOR).is_file() else {}
    mels = config.get("num_mel_bins", AudioConfig.mels)
    audio = {"mels": mels} | {ours: sound[theirs] for theirs, ours in AUDIO.items() if theirs in sound}
    if audio["mels"] != mels:
        raise InputError(f"{folder / PREPROCESSOR}: feature_size is {audio['mels']}, and {CONFIG} says {mels}")
    description = Description(
        fields=fields,
        rows=config["vocab_size"],
        languages=languages(generation, config["vocab_size"]),
        suppress=generation.get("suppress_tokens") or (),
        suppress_first=generation.get("begin_suppress_tokens") or (),
        alignment_heads=generation.get("alignment_heads") or (),
        audio=audio,
    )
    theirs, _ = without(without_copies(read_weights(folder), COPIES, where), r".*\.k_proj\.bias")
    try:
        return converted(folder, description, NAMES.ours(theirs), task)
    except KeyError as error:
        raise InputError(f"{where}: heedful's model has no place for the weight {error}") from error


def languages(generation: Mapping[str, Any], rows: int) -> list[str] | None:
    """The codes of the languages that a Whisper tells apart; None if it does and its files do not name them."""
    if named := generation.get("lang_to_id"):
        return [name.strip("<|>") for name in named]
    return None if generation.get("is_multilingual", rows >= MULTILINGUAL) else []


def write(model: Model, folder: Path) -> int:
    """Write a model of speech as a Hugging Face folder with a `WhisperForConditionalGeneration`.

    The biases of keys, which change no attention weight, are left out; other biases that the model lacks become zeros.
    A Whisper that was read gets its own vocabulary back. Returns the number of values in the weights.

    Raises:
        InputError: The model does not fit Whisper, or the folder is not empty.
        RunError: The folder cannot be written.
    """
    recipe, rows = model.recipe, len(model.tokenizers.target)
    check_sound(recipe)
    room = recipe.model.learned_target_positions
    own = replace(recipe.model, attention_bias=True, bias=True, output_bias=False, max_target_positions=room)
    whole = replace(recipe, model=own)
    settings = SETTINGS.config(whole, model.tokenizers.target.config)
    settings |= {"architectures": ["WhisperForConditionalGeneration"], "num_mel_bins": recipe.audio.mels}
    ours = with_zero_biases(model.weights, expected(lambda: media_to_text(whole, rows)))
    ours, _ = without(ours, KEY_BIASES)
    bias = ours.pop(OUTPUT_BIAS, torch.zeros(rows))
    tokens = SpeechTokens.of(model.tokenizers.target)
    absent = lacking(bias) if tokens.controls else ()  # without them a text begins with <bos>
    if bias[[i for i in range(rows) if i not in absent]].any():
        raise InputError(f'the model "{recipe.name}" has a trained output bias, and a Whisper has none')
    if not absent or not tokens.controls:
        files = {PREPROCESSOR: preprocessor(recipe.audio)}
        return write_hugging_face(model, NAMES.theirs(ours), settings, folder, absent, files)
    ours[EMBEDDING] = ours[EMBEDDING][whisper_order(rows, tokens)]
    return write_whisper_folder(model, NAMES.theirs(ours), settings, {PREPROCESSOR: preprocessor(recipe.audio)}, folder)


def check_sound(recipe: Recipe) -> None:
    """Check that a model reads sound as a Whisper does.

    Raises:
        InputError: It does not; every key of the recipe that does not fit is listed.
    """
    audio, positions = recipe.audio, recipe.model.learned_positions or 0
    wanted = {
        "features": "log_mel",
        "stem": "convolutional",
        "pad_seconds": positions * AudioConfig().stride * audio.hop / audio.rate,
    }
    misfits = [f"audio.{key} = {value}" for key, value in wanted.items() if getattr(audio, key) != value]
    if misfits:
        raise InputError(
            f'the model "{recipe.name}" cannot become a whisper model of Hugging Face, which reads sound with '
            f"{', '.join(misfits)}"
        )


def preprocessor(audio: AudioConfig) -> Mapping[str, Any]:
    """Make the contents of preprocessor_config.json."""
    samples = round(audio.pad_seconds * audio.rate)
    settings = {theirs: getattr(audio, ours) for theirs, ours in AUDIO.items()}
    seconds = samples / audio.rate  # transformers reads whole numbers only
    chunk = int(seconds) if seconds.is_integer() else seconds
    lengths = {"chunk_length": chunk, "n_samples": samples, "nb_max_frames": samples // audio.hop}
    kind = {"feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor"}
    padding = {"padding_side": "right", "padding_value": 0.0, "return_attention_mask": False}
    return {**kind, **settings, **lengths, **padding}


FORMAT = Format(reader=read, tasks=TASKS, writer=write)
