"""Read and write Whisper in the Hugging Face format, and build the recipe and vocabulary that all its formats share."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.architectures.input_layers import media_to_text
from heedful.config.modalities import AudioConfig
from heedful.config.schema import EXTRA, FilterConfig, Recipe
from heedful.convert.exporter import Exporter
from heedful.convert.marian import BLOCK
from heedful.convert.model import (
    DTYPE,
    GENERATION,
    PRECISIONS,
    Format,
    Model,
    converted_recipe,
    read_weights,
    shapes_of,
    write_files,
    write_hugging_face,
)
from heedful.convert.settings import CONFIG, ENCODER_DECODER_KEYS, Settings, read_config
from heedful.convert.weights import (
    Names,
    Weights,
    absent_tokens,
    check_rows,
    check_weights,
    reorder_rows,
    split_by_name,
    suppress_absent,
    with_zero_biases,
    without_copies,
)
from heedful.errors import InputError
from heedful.tasks.media_to_text import SpeechRecognition
from heedful.text.pipeline import BOS, EOS, PAD, SPECIALS, UNK
from heedful.text.speech_tokens import BEGIN, END, TRANSCRIBE, SpeechTokens, speech_tokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

TASK, TASKS = "speech_recognition", (SpeechRecognition,)
EMBEDDING, OUTPUT_BIAS = "target_embedding.weight", "output.bias"
MULTILINGUAL = 51_865  # minimum number of tokens of a multilingual OpenAI vocabulary
WHOLE_WINDOW = 30.0  # seconds of audio in one input of OpenAI's models; models with shorter inputs do not use `vad`
FIXED = {
    "positions": "learned",
    "norm": "pre",
    "activation": "gelu",
    "tie": "output",
    "scale_embeddings": False,
    "dropout": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class Description:
    """Description of a Whisper model in its files, apart from the weights. Ids refer to the original vocabulary.

    Attributes:
        fields: Fields of `ModelConfig` in addition to those that all Whispers share.
        rows: Number of rows of the embeddings.
        names: Names of all tokens; None to use those in tokenizer.json.
        languages: Codes of the model's languages; empty if it is for English only; None if it has several, which only
            the vocabulary names.
        suppress: Tokens that are never generated.
        suppress_first: Tokens that are never generated first.
        alignment_heads: Pairs of a layer and a head whose cross-attention follows the speech.
        audio: Values of [audio] that differ from the defaults, without lengths.
    """

    fields: Mapping[str, Any]
    rows: int
    names: Sequence[str] | None = None
    languages: Sequence[str] | None = ()
    suppress: Iterable[int] = ()
    suppress_first: Iterable[int] = ()
    alignment_heads: Iterable[Sequence[int]] = ()
    audio: Mapping[str, Any] = field(default_factory=dict)


def convert_whisper(folder: Path, description: Description, ours: Weights, task: str | None) -> Model:
    """Build a model from Whisper weights with heedful's names and the rows of the original vocabulary."""
    tokenizer, old_id_of = speech_tokenizer(folder, description.rows, description.names)
    check_rows(old_id_of, description.rows, str(folder))
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    bias = suppress_absent(None, old_id_of)
    fields = FIXED | {"output_bias": bool(bias)} | dict(description.fields)
    tables = recipe_tables(description, SpeechTokens.of(tokenizer), old_id_of)
    recipe = converted_recipe(task or TASK, fields, tokenizers, folder, **tables)
    # Whisper has no key biases. Zeros are equivalent: a key bias adds the same number to all scores of a query, which
    # the softmax cancels.
    keys = [name for name in ours if name.endswith("attention.k.weight")]
    ours = {name.removesuffix("weight") + "bias": torch.zeros(len(ours[name])) for name in keys} | ours
    shapes = shapes_of(lambda: media_to_text(recipe, description.rows))
    # The bias that silences added tokens is not in the files; it is added below.
    shapes.pop(OUTPUT_BIAS, None)
    check_weights(ours, shapes, str(folder))
    return Model(
        recipe=recipe,
        tokenizers=tokenizers,
        weights=reorder_rows(ours, old_id_of, (EMBEDDING,)) | bias,
        notes=("no file of the model lists its languages: they are taken from the vocabulary",)
        if description.languages is None
        else (),
    )


def recipe_tables(
    description: Description, tokens: SpeechTokens, old_id_of: NDArray[np.int64]
) -> dict[str, dict[str, Any]]:
    """Build the tables of a converted Whisper's recipe, except [model]."""
    new_id_of = {old: new for new, old in enumerate(old_id_of.tolist())}
    codes = tokens.languages if description.languages is None else description.languages
    languages = [code for code in codes if code in tokens.languages]
    audio = AudioConfig(**description.audio)
    # The encoder has a fixed input length.
    seconds = description.fields["max_positions"] * audio.stride * audio.hop / audio.rate
    room = description.fields["max_target_positions"]
    extra = min(EXTRA, room // 2)
    english = {} if languages else {"source_language": "en", "target_language": "en"}
    filters = {"max_tokens": min(FilterConfig.max_tokens, room - extra)}
    # heedful numbers the heads of all layers consecutively. Some files list heads that the model does not have.
    heads, layers = description.fields["heads"], description.fields["decoder_layers"]
    alignment = [(layer, head) for layer, head in description.alignment_heads if 0 <= layer < layers]
    return {
        "data": {"modality": "audio", "filters": filters, **english},
        "audio": {"pad_seconds": seconds, "max_seconds": seconds, **description.audio},
        "decode": {"beam": 5, "penalty": "average_text", "alpha": 1.0, "max_extra": extra},
        "transcribe": {
            "languages": languages,
            "vad": seconds >= WHOLE_WINDOW,
            "alignment_heads": [layer * heads + head for layer, head in alignment if 0 <= head < heads],
            "suppress": sorted(new_id_of[i] for i in description.suppress if i in new_id_of),
            "suppress_first": sorted(new_id_of[i] for i in description.suppress_first if i in new_id_of),
        },
    }


def whisper_order(rows: int, tokens: SpeechTokens) -> list[int]:
    """List heedful's ids in OpenAI's order: text, <eos>, <bos>, then control tokens; <pad> and <unk> are left out."""
    text = [i for i in range(rows) if i not in (PAD, UNK, BOS, EOS) and i not in tokens.controls]
    return [*text, EOS, BOS, *sorted(tokens.controls)]


def write_whisper_folder(
    model: Model,
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any]],
    folder: Path,
) -> int:
    """Write a model folder that transformers loads as a Whisper model, with its tokenizer and generation settings."""
    recipe, transcribe, tokenizer = model.recipe, model.recipe.transcribe, model.tokenizers.target
    tokens = SpeechTokens.of(tokenizer)
    order = whisper_order(len(tokenizer), tokens)
    new_ids = {old: new for new, old in enumerate(order)}
    end, begin = new_ids[EOS], new_ids[BOS]
    # In OpenAI's models, <|endoftext|> has all roles except one: the decoder starts with another token.
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": begin}
    length = recipe.model.learned_target_positions
    generation: dict[str, Any] = {
        **special,
        "max_length": length,
        "suppress_tokens": sorted(new_ids[i] for i in transcribe.suppress),
        "begin_suppress_tokens": sorted(new_ids[i] for i in transcribe.suppress_first),
        "is_multilingual": bool(transcribe.languages),
        "return_timestamps": False,
    }
    if transcribe.alignment_heads:
        generation["alignment_heads"] = [list(divmod(head, recipe.model.heads)) for head in transcribe.alignment_heads]
    if tokens.without_times is not None:
        generation["no_timestamps_token_id"] = new_ids[tokens.without_times]
    if transcribe.languages:
        generation["lang_to_id"] = {f"<|{code}|>": new_ids[tokens.languages[code]] for code in transcribe.languages}
    if transcribe.languages and tokens.transcribe is not None:
        generation["task_to_id"] = {TRANSCRIBE.strip("<|>"): new_ids[tokens.transcribe]}
    contents = {
        CONFIG: {**config, **special, "vocab_size": len(order)},
        GENERATION: generation,
        "tokenizer.json": tokenizer_json(tokenizer, new_ids),
        "tokenizer_config.json": {
            "tokenizer_class": "WhisperTokenizer",
            "model_max_length": length,
            **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), END),
        },
        **files,
    }
    return write_files(tensors, contents, folder, ensure_ascii=False)


def tokenizer_json(tokenizer: Tokenizer, new_ids: Mapping[int, int]) -> dict[str, Any]:
    """Build a tokenizer.json with Whisper's names and ids, without the tokens that Whisper lacks."""
    definition = json.loads(tokenizer.definition)
    names = {SPECIALS[BOS]: BEGIN, SPECIALS[EOS]: END}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    own = [{"id": new_ids[i], "content": name, **flags} for i, name in ((EOS, END), (BOS, BEGIN))]
    added = [{**token, "id": new_ids[token["id"]]} for token in definition["added_tokens"]]
    vocabulary = {names.get(name, name): new_ids[i] for name, i in definition["model"]["vocab"].items() if i in new_ids}
    others = {token["content"] for token in (*own, *added)}
    text = {name: i for name, i in vocabulary.items() if name not in others or name == END}
    return {
        **definition,
        "added_tokens": sorted([*own, *added], key=lambda token: token["id"]),
        "model": {**definition["model"], "vocab": text, "unk_token": None},
    }


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
    keys=ENCODER_DECODER_KEYS
    | {"max_source_positions": "max_positions", "max_target_positions": "max_target_positions"},
    activation="activation_function",
    fixed={key: value for key, value in FIXED.items() if key not in IN_SETTINGS},
    needed={"tie_word_embeddings": True},
)
AUDIO = {"sampling_rate": "rate", "hop_length": "hop", "n_fft": "window", "feature_size": "mels"}


def read(folder: Path, task: str | None = None) -> Model:
    config, where = read_config(folder), str(folder)
    fields = SETTINGS.fields(config, str(folder / CONFIG))
    # Older files have the generation settings in config.json.
    generation = config | (read_config(folder, GENERATION) if (folder / GENERATION).is_file() else {})
    description = Description(
        fields=fields,
        rows=config["vocab_size"],
        languages=languages(generation, config["vocab_size"]),
        suppress=generation.get("suppress_tokens") or (),
        suppress_first=generation.get("begin_suppress_tokens") or (),
        alignment_heads=generation.get("alignment_heads") or (),
        audio=audio_settings(folder, config.get("num_mel_bins", AudioConfig.mels)),
    )
    # A key bias does not change attention weights, so it can be dropped.
    theirs, _ = split_by_name(without_copies(read_weights(folder), COPIES, where), r".*\.k_proj\.bias")
    try:
        return convert_whisper(folder, description, NAMES.ours(theirs), task)
    except KeyError as error:
        raise InputError(f"{where}: heedful cannot represent the weight {error}") from error


def languages(generation: Mapping[str, Any], rows: int) -> list[str] | None:
    """Return the language codes of a Whisper model; None if it has several but its files do not list them."""
    codes = [name.strip("<|>") for name in generation.get("lang_to_id") or {}]
    return None if not codes and generation.get("is_multilingual", rows >= MULTILINGUAL) else codes


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a speech model as a Hugging Face folder with a `WhisperForConditionalGeneration`.

    Key biases, which do not change attention weights, are left out; other biases that the model lacks become zeros. A
    model that was converted from Whisper gets its original vocabulary back.
    """
    settings, ours, absent = whisper_layout(model)
    settings |= {"architectures": ["WhisperForConditionalGeneration"], "num_mel_bins": model.recipe.audio.mels}
    settings[DTYPE] = precision
    ours, _ = split_by_name(ours, KEY_BIASES)
    files = {PREPROCESSOR: preprocessor(model.recipe.audio)}
    # Only a model that was converted from Whisper has absent tokens: its ids return to OpenAI's order.
    if not absent:
        return write_hugging_face(model, NAMES.theirs(ours), settings, folder, files=files)
    tokens = SpeechTokens.of(model.tokenizers.target)
    ours[EMBEDDING] = ours[EMBEDDING][whisper_order(len(ours[EMBEDDING]), tokens)]
    return write_whisper_folder(model, NAMES.theirs(ours), settings, files, folder)


def whisper_layout(model: Model) -> tuple[dict[str, Any], Weights, tuple[int, ...]]:
    """Return a model's settings as a Whisper model, its weights with all biases, and the tokens that Whisper lacks.

    Raises:
        InputError: The model differs from a Whisper model; all differences are listed.
    """
    recipe, rows = model.recipe, len(model.tokenizers.target)
    positions = recipe.model.learned_target_positions
    own = replace(recipe.model, attention_bias=True, bias=True, output_bias=False, max_target_positions=positions)
    whole = replace(recipe, model=own)
    settings = SETTINGS.config(whole, model.tokenizers.target.config)
    check_audio_settings(recipe)
    ours = with_zero_biases(model.weights, shapes_of(lambda: media_to_text(whole, rows)))
    bias = ours.pop(OUTPUT_BIAS, torch.zeros(rows))
    # Only a vocabulary with Whisper's control tokens can do without the special tokens that conversion added.
    absent = absent_tokens(bias) if SpeechTokens.of(model.tokenizers.target).controls else ()
    if bias[[i for i in range(rows) if i not in absent]].any():
        raise InputError("has a trained output bias, which Whisper models do not have")
    return settings, ours, absent


def check_audio_settings(recipe: Recipe) -> None:
    """Check that a model reads audio as Whisper does."""
    audio, positions = recipe.audio, recipe.model.learned_positions or 0
    # Whisper reads windows of one length, which fill its position table.
    fitting = {
        "features": "log_mel",
        "stem": "convolutional",
        "pad_seconds": positions * AudioConfig().stride * audio.hop / audio.rate,
    }
    misfits = [f"audio.{key} = {value}" for key, value in fitting.items() if getattr(audio, key) != value]
    if misfits:
        raise InputError(
            f"cannot be converted to a Hugging Face Whisper model, which reads audio with {', '.join(misfits)}"
        )


def audio_settings(folder: Path, mels: int) -> dict[str, Any]:
    """Read the audio settings of a model with this number of mel bands.

    Settings that no preprocessor_config.json gives are left out: heedful has the same defaults as OpenAI's models.
    """
    features = read_config(folder, PREPROCESSOR) if (folder / PREPROCESSOR).is_file() else {}
    audio = {"mels": mels} | {ours: features[theirs] for theirs, ours in AUDIO.items() if theirs in features}
    if audio["mels"] != mels:
        raise InputError(
            f"{folder / PREPROCESSOR}: feature_size is {audio['mels']}, but the model reads {mels} mel bands"
        )
    return audio


def preprocessor(audio: AudioConfig) -> Mapping[str, Any]:
    samples = round(audio.pad_seconds * audio.rate)
    settings = {theirs: getattr(audio, ours) for theirs, ours in AUDIO.items()}
    seconds = samples / audio.rate  # transformers expects an integer
    chunk = int(seconds) if seconds.is_integer() else seconds
    lengths = {"chunk_length": chunk, "n_samples": samples, "nb_max_frames": samples // audio.hop}
    kind = {"feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor"}
    padding = {"padding_side": "right", "padding_value": 0.0, "return_attention_mask": False}
    return {**kind, **settings, **lengths, **padding}


FORMAT = Format(tasks=TASKS, kinds=("whisper",), reader=read, names=NAMES, keys=SETTINGS.keys)
EXPORTER = Exporter(
    title="Hugging Face", writer=write, check=whisper_layout, tasks=SETTINGS.tasks, precisions=PRECISIONS
)
