"""Read and write Whisper in the format of Hugging Face, with the recipe and the tokens that all its formats share."""

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
from heedful.convert.marian import BLOCK
from heedful.convert.model import (
    GENERATION,
    Format,
    Model,
    expected,
    read_weights,
    recipe_of,
    write_files,
    write_hugging_face,
)
from heedful.convert.settings import CONFIG, Settings, read_config
from heedful.convert.vocabulary import check_rows, lacking, reorder, silence
from heedful.convert.weights import (
    Names,
    Weights,
    compare,
    with_zero_biases,
    without,
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
MULTILINGUAL = 51_865  # rows from which OpenAI's vocabularies are those of models of several languages
WHOLE_WINDOW = 30.0  # seconds that all Whispers of OpenAI read at once; others need not be of natural speech
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
    """Description of a Whisper in its files, beside the weights; ids are those of its own vocabulary.

    Attributes:
        fields: fields of `ModelConfig` beside those that all Whispers share.
        rows: the number of rows of the embeddings.
        names: the names of all tokens; None: those of tokenizer.json.
        languages: the codes of the languages that it tells apart; empty: it writes English only; None: it tells
            languages apart, and they are those of its vocabulary.
        suppress: tokens that are never written.
        suppress_first: tokens that are not written first.
        alignment_heads: pairs of a layer and a head whose cross-attention follows the speech.
        audio: values of [audio] that differ from the defaults, without lengths.
    """

    fields: Mapping[str, Any]
    rows: int
    names: Sequence[str] | None = None
    languages: Sequence[str] | None = ()
    suppress: Iterable[int] = ()
    suppress_first: Iterable[int] = ()
    alignment_heads: Iterable[Sequence[int]] = ()
    audio: Mapping[str, Any] = field(default_factory=dict)


def converted(folder: Path, description: Description, ours: Weights, task: str | None) -> Model:
    """Build the model of a Whisper from its weights under heedful's names, with the rows of its vocabulary."""
    tokenizer, old_id_of = speech_tokenizer(folder, description.rows, description.names)
    check_rows(old_id_of, description.rows, str(folder))
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    bias = silence(None, old_id_of)
    fields = FIXED | {"output_bias": bool(bias)} | dict(description.fields)
    tables = tables_of(description, SpeechTokens.of(tokenizer), old_id_of)
    recipe = recipe_of(task or TASK, fields, tokenizers, folder, **tables)
    # heedful's projections to keys have biases, which change no attention weight.
    keys = [name for name in ours if name.endswith("attention.k.weight")]
    ours = {name.removesuffix("weight") + "bias": torch.zeros(len(ours[name])) for name in keys} | ours
    shapes = expected(lambda: media_to_text(recipe, description.rows))
    shapes.pop(OUTPUT_BIAS, None)
    compare(ours, shapes, str(folder))
    guess = "no file of the model names its languages: they are taken from the vocabulary"
    return Model(
        recipe=recipe,
        tokenizers=tokenizers,
        weights=reorder(ours, old_id_of, (EMBEDDING,)) | bias,
        notes=(guess,) if description.languages is None else (),
    )


def tables_of(
    description: Description, tokens: SpeechTokens, old_id_of: NDArray[np.int64]
) -> dict[str, dict[str, Any]]:
    """Build the tables of the recipe, beside [model], of a converted Whisper."""
    new_id_of = {old: new for new, old in enumerate(old_id_of.tolist())}
    named = tokens.languages if description.languages is None else description.languages
    languages = [code for code in named if code in tokens.languages]
    audio = AudioConfig(**description.audio)
    seconds = description.fields["max_positions"] * audio.stride * audio.hop / audio.rate  # the encoder reads no less
    room = description.fields["max_target_positions"]
    extra = min(EXTRA, room // 2)
    english = {} if languages else {"source_language": "en", "target_language": "en"}
    filters = {"max_tokens": min(FilterConfig.max_tokens, room - extra)}
    # heedful numbers the heads through the layers; some files name heads that the model does not have.
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
    """List heedful's ids in the order of OpenAI: text, <eos>, <bos>, then what else is no text."""
    text = [i for i in range(rows) if i not in (PAD, UNK, BOS, EOS) and i not in tokens.controls]
    return [*text, EOS, BOS, *sorted(tokens.controls)]


def write_whisper_folder(
    model: Model,
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any]],
    folder: Path,
) -> int:
    """Write a model folder that transformers loads as a Whisper, with its tokenizer and settings for generating."""
    tokenizer = model.tokenizers.target
    tokens = SpeechTokens.of(tokenizer)
    order = whisper_order(len(tokenizer), tokens)
    new_ids = {old: new for new, old in enumerate(order)}
    end, begin = new_ids[EOS], new_ids[BOS]
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": begin}
    length = model.recipe.model.learned_target_positions
    contents = {
        CONFIG: {**config, **special, "vocab_size": len(order)},
        GENERATION: {**special, "max_length": length, **generation(model.recipe, tokens, new_ids)},
        "tokenizer.json": tokenizer_json(tokenizer, new_ids),
        "tokenizer_config.json": {
            "tokenizer_class": "WhisperTokenizer",
            "model_max_length": length,
            **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), END),
        },
        **files,
    }
    return write_files(tensors, contents, folder, ensure_ascii=False)


def generation(recipe: Recipe, tokens: SpeechTokens, new_ids: Mapping[int, int]) -> dict[str, Any]:
    """Make the settings for generating that are Whisper's own."""
    transcribe = recipe.transcribe
    settings: dict[str, Any] = {
        "suppress_tokens": sorted(new_ids[i] for i in transcribe.suppress),
        "begin_suppress_tokens": sorted(new_ids[i] for i in transcribe.suppress_first),
        "is_multilingual": bool(transcribe.languages),
        "return_timestamps": False,
    }
    if transcribe.alignment_heads:
        settings["alignment_heads"] = [list(divmod(head, recipe.model.heads)) for head in transcribe.alignment_heads]
    if tokens.without_times is not None:
        settings["no_timestamps_token_id"] = new_ids[tokens.without_times]
    if transcribe.languages:
        settings["lang_to_id"] = {f"<|{code}|>": new_ids[tokens.languages[code]] for code in transcribe.languages}
    if transcribe.languages and tokens.transcribe is not None:
        settings["task_to_id"] = {TRANSCRIBE.strip("<|>"): new_ids[tokens.transcribe]}
    return settings


def tokenizer_json(tokenizer: Tokenizer, new_ids: Mapping[int, int]) -> dict[str, Any]:
    """Make a tokenizer.json with Whisper's names and ids, without the tokens that it lacks."""
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
    """Read a Whisper of Hugging Face and convert the model to heedful."""
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
    """Check that a model reads audio as a Whisper does."""
    audio, positions = recipe.audio, recipe.model.learned_positions or 0
    fitting = {
        "features": "log_mel",
        "stem": "convolutional",
        "pad_seconds": positions * AudioConfig().stride * audio.hop / audio.rate,
    }
    misfits = [f"audio.{key} = {value}" for key, value in fitting.items() if getattr(audio, key) != value]
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
