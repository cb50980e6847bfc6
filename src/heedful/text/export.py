"""A tokenizer for `transformers`: tokenizer.json with heedful's ids, and tokenizer_config.json."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.text.pipeline import BOS, EOS, SPECIALS, UNK, specials
from heedful.text.tokenizer import Tokenizer

Family = Literal["encoder_decoder", "encoder", "decoder"]


def to_hugging_face(tokenizer: Tokenizer, folder: Path, family: Family) -> None:
    """Write a folder that `transformers.AutoTokenizer.from_pretrained` loads; it gives the same ids for any text.

    Only the names of special tokens are read in another way there: typed as text they are special tokens.

    Args:
        tokenizer: Of any kind.
        folder: May hold other files, such as a model's.
        family: Of the model, which decides what is put around a text: an encoder (BERT) begins with <bos>, puts <eos>
            behind each of one or two texts and tells them apart as segments 0 and 1; an encoder-decoder ends with
            <eos>; a decoder (GPT) adds nothing.

    Raises:
        InputError: It is of kind "wordpiece" with byte fallback, which has no counterpart there.
        RunError: The folder cannot be written.
    """
    definition = json.loads(tokenizer.definition)
    names = specials(tokenizer.config)
    definition |= {
        "added_tokens": [_special(name, i) for i, name in enumerate(names)] + definition["added_tokens"],
        "post_processor": _FRAMES[family],
        "model": _model(definition["model"], tokenizer.config),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "tokenizer.json", definition)
        _write(folder / "tokenizer_config.json", _settings(names, family))
    except OSError as error:
        raise RunError(f"{folder}: the tokenizer cannot be written ({error.strerror or error})") from error


def _special(name: str, i: int) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": i, "content": name, "special": True, **flags}


def _model(model: dict[str, Any], config: TokenizerConfig) -> dict[str, Any]:
    """A model that does by itself what heedful does around it: to spell unknown words in bytes."""
    if config.kind not in ("word", "wordpiece") or not config.byte_fallback:
        return model
    if config.kind == "wordpiece":
        raise InputError(
            'a tokenizer of kind "wordpiece" with byte fallback has no counterpart in a tokenizer.json; train one with '
            'tokenizer.byte_fallback = false, or of kind "bpe"'
        )
    return {
        "type": "BPE",
        "vocab": model["vocab"],
        "merges": [],
        "ignore_merges": True,  # a whole word that is known is a piece
        "byte_fallback": True,
        "unk_token": SPECIALS[UNK],
    }


def _settings(names: tuple[str, ...], family: Family) -> dict[str, Any]:
    roles = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token", "mask_token"), names, strict=False))
    common = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    return common | roles | (_BERT if family == "encoder" else {})


def _write(path: Path, contents: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(contents, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _frame(single: list[Any], pair: list[Any]) -> dict[str, Any]:
    tokens = {name: {"id": name, "ids": [i], "tokens": [name]} for i, name in enumerate(SPECIALS) if i in (BOS, EOS)}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def _text(name: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": segment}}


def _end(i: int, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": SPECIALS[i], "type_id": segment}}


_BERT = {
    "cls_token": SPECIALS[BOS],
    "sep_token": SPECIALS[EOS],
    "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
}
_FIRST = [_end(BOS, 0), _text("A", 0), _end(EOS, 0)]
_FRAMES: dict[Family, dict[str, Any] | None] = {
    "encoder": _frame(_FIRST, [*_FIRST, _text("B", 1), _end(EOS, 1)]),
    "encoder_decoder": _frame([_text("A", 0), _end(EOS, 0)], [_text("A", 0), _text("B", 0), _end(EOS, 0)]),
    "decoder": None,
}
