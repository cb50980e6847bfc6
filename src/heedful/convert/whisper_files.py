"""Writes the folder of a Whisper with the vocabulary that it came with: tokens in the order of OpenAI."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.config.schema import Recipe
from heedful.convert.model import GENERATION, Model, check_empty, count
from heedful.convert.settings import CONFIG
from heedful.convert.weights import SINGLE, write_safetensors
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.text.pipeline import BOS, EOS, PAD, SPECIALS, UNK
from heedful.text.speech_tokens import BEGIN, END, TRANSCRIBE, SpeechTokens
from heedful.text.tokenizer import Tokenizer


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
    """Write a model folder that transformers loads as a Whisper, with its tokenizer and settings for generating.

    Args:
        model: A model of heedful whose vocabulary is that of a Whisper.
        tensors: Weights by the names of transformers, rows of tokens in the order of `whisper_order`.
        config: Contents of config.json, without vocabulary size and ids of special tokens.
        files: Further JSON files: their names and contents.
        folder: The folder to write, new or empty.

    Returns:
        The number of values in the weights.

    Raises:
        InputError: The folder is not empty.
        RunError: The folder cannot be written.
    """
    check_empty(folder)
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
        "tokenizer.json": definition(tokenizer, new_ids),
        "tokenizer_config.json": {
            "tokenizer_class": "WhisperTokenizer",
            "model_max_length": length,
            **dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), END),
        },
        **files,
    }
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        write_safetensors(writer.path / SINGLE, tensors)
        for name, content in contents.items():
            writer.write(name, [(json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode("utf-8")])
    return count(tensors)


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


def definition(tokenizer: Tokenizer, new_ids: Mapping[int, int]) -> dict[str, Any]:
    """Make a tokenizer.json with Whisper's names and ids, without the tokens that it lacks."""
    found = json.loads(tokenizer.definition)
    names = {SPECIALS[BOS]: BEGIN, SPECIALS[EOS]: END}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    own = [{"id": new_ids[i], "content": name, **flags} for i, name in ((EOS, END), (BOS, BEGIN))]
    added = [{**token, "id": new_ids[token["id"]]} for token in found["added_tokens"]]
    vocabulary = {names.get(name, name): new_ids[i] for name, i in found["model"]["vocab"].items() if i in new_ids}
    others = {token["content"] for token in (*own, *added)}
    text = {name: i for name, i in vocabulary.items() if name not in others or name == END}
    return {
        **found,
        "added_tokens": sorted([*own, *added], key=lambda token: token["id"]),
        "model": {**found["model"], "vocab": text, "unk_token": None},
    }
