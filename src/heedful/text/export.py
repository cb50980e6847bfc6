"""Export of a tokenizer for `transformers`: tokenizer.json with heedful's ids, and tokenizer_config.json."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from heedful.config.families import FAMILIES, FamilyName
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.storage.atomic import atomic_file, named_write_errors
from heedful.text.pipeline import BOS, EOS, MASK, SPECIALS, UNK, first_space, specials
from heedful.text.tokenizer import Tokenizer

BERT_NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
GPT2_END = "<|endoftext|>"
CLIP_ENDS = ("<|startoftext|>", "<|endoftext|>")
ROLES = ("pad_token", "unk_token", "bos_token", "eos_token", "mask_token")


def to_hugging_face(
    tokenizer: Tokenizer,
    folder: Path,
    family: FamilyName,
    max_length: int | None = None,
    absent: Collection[int] = (),
    *,
    segments: bool = True,
) -> None:
    """Write a tokenizer as a folder that `transformers.AutoTokenizer.from_pretrained` loads, with the same ids.

    Only the names of special tokens are read in another way there: typed as text they are special tokens. The special
    tokens of an encoder are named as in BERT, such as [CLS] and [MASK], or as in CLIP, and a token that is both <bos>
    and <eos> as in GPT-2, unless the vocabulary has a piece with such a name.

    Args:
        tokenizer: A tokenizer of any kind.
        folder: Where to write; it may hold other files, such as a model's.
        family: Family of the model, which decides what is put around a text: an encoder (BERT) begins with <bos>, puts
            <eos> behind each of one or two texts and tells them apart as segments 0 and 1; an encoder-decoder ends with
            <eos>; a decoder (GPT) adds nothing.
        max_length: Tokens that the model reads at most, to which `transformers` can cut texts.
        absent: Special tokens to leave out: the ids behind them move up, and <eos> serves as <bos> if that is absent.
        segments: False for an encoder that does not read which segment a token belongs to, as CLIP's.

    Raises:
        InputError: The tokenizer is of kind "wordpiece" with byte fallback, which has no counterpart in `transformers`.
        RunError: The folder cannot be written.
    """
    definition = json.loads(tokenizer.definition)
    model = _model(definition["model"], tokenizer.config)
    names = _names(definition, tokenizer.config, family, absent, segments=segments)
    kept = [i for i in range(len(tokenizer)) if i not in absent]
    ids = {old: new for new, old in enumerate(kept)}
    special = [_special(i, name, ids[i], tokenizer.config) for i, name in enumerate(names) if i not in absent]
    added = [{**token, "id": ids[token["id"]]} for token in definition["added_tokens"]]
    definition |= {
        "added_tokens": special + added,
        "post_processor": _frame(family, names),
        "model": _relabelled(model, dict(zip(specials(tokenizer.config), names, strict=True)), ids),
    }
    roles = {"bos_token": names[EOS]} | {ROLES[i]: name for i, name in enumerate(names) if i not in absent}
    settings = _settings(roles, family, segments=segments) | (
        {} if max_length is None else {"model_max_length": max_length}
    )
    with named_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "tokenizer.json", definition)
        _write(folder / "tokenizer_config.json", settings)


def has_counterpart(config: TokenizerConfig) -> bool:
    """True if a tokenizer can be exported to `transformers`: all but those of kind "wordpiece" with byte fallback."""
    return not (config.kind == "wordpiece" and config.byte_fallback)


def _names(
    definition: Mapping[str, Any],
    config: TokenizerConfig,
    family: FamilyName,
    absent: Collection[int],
    *,
    segments: bool,
) -> tuple[str, ...]:
    """The names of the special tokens in `transformers`."""
    own, vocabulary = specials(config), definition["model"]["vocab"]
    pieces = {piece[0] for piece in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)
    pieces |= {token["content"] for token in definition["added_tokens"]}
    gpt2 = (*own[:EOS], GPT2_END, *own[EOS + 1 :]) if BOS in absent else own
    encoder = BERT_NAMES[: len(own)] if segments else (*own[:BOS], *CLIP_ENDS, *own[EOS + 1 :])
    customary = {"encoder": encoder}.get(family, gpt2)
    return own if pieces & (set(customary) - set(own)) else customary


def _special(i: int, name: str, place: int, config: TokenizerConfig) -> dict[str, Any]:
    """A special token, which is found in texts; a mask takes the space before it.

    The mask is looked for in the normalised text where normalisation puts a space before it, as before any text.
    """
    spaced = i == MASK and config.kind != "foreign" and first_space(config) != ""
    flags = {"single_word": False, "lstrip": i == MASK and not spaced, "rstrip": False, "normalized": spaced}
    return {"id": place, "content": name, "special": True, **flags}


def _model(model: dict[str, Any], config: TokenizerConfig) -> dict[str, Any]:
    """The model of a tokenizer.json; it spells unknown words in bytes by itself, which heedful does around it."""
    if not has_counterpart(config):
        raise InputError(
            'a tokenizer of kind "wordpiece" with byte fallback has no counterpart in a tokenizer.json; train one with '
            'tokenizer.byte_fallback = false, or of kind "bpe"'
        )
    if config.kind != "word" or not config.byte_fallback:
        return model
    return {
        "type": "BPE",
        "vocab": model["vocab"],
        "merges": [],
        "ignore_merges": True,  # a whole word that is known is a piece
        "byte_fallback": True,
        "unk_token": SPECIALS[UNK],
    }


def _relabelled(model: dict[str, Any], names: Mapping[str, str], ids: Mapping[int, int]) -> dict[str, Any]:
    """A model whose special tokens have other names, and whose tokens have other ids or are left out."""
    vocabulary, unknown = model["vocab"], model.get("unk_token")
    if isinstance(vocabulary, list):
        return {**model, "vocab": [[names.get(name, name), score] for name, score in vocabulary]}
    renumbered = {names.get(name, name): ids[i] for name, i in vocabulary.items() if i in ids}
    return {**model, "vocab": renumbered, "unk_token": None if unknown is None else names[unknown]}


def _settings(roles: Mapping[str, str], family: FamilyName, *, segments: bool) -> dict[str, Any]:
    common = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **roles}
    if not segments:
        return common | {"model_input_names": ["input_ids", "attention_mask"]}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    bert = {"cls_token": roles["bos_token"], "sep_token": roles["eos_token"], "model_input_names": inputs}
    return common if FAMILIES[family].writes else common | bert


def _write(path: Path, contents: Mapping[str, Any]) -> None:
    with atomic_file(path) as stream:
        stream.write((json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


def _frame(family: FamilyName, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The post-processor of a tokenizer.json: the special tokens around a text, and around two."""
    tokens = {names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in (BOS, EOS)}
    begin, end = _token(names[BOS], 0), _token(names[EOS], 0)
    first = [begin, _text("A", 0), end]
    if FAMILIES[family].pairs:
        single, pair = [_text("A", 0), end], [_text("A", 0), _text("B", 0), end]
    elif FAMILIES[family].writes:
        return None
    else:
        single, pair = first, [*first, _text("B", 1), _token(names[EOS], 1)]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def _text(name: str, segment: int) -> dict[str, Any]:
    return {"Sequence": {"id": name, "type_id": segment}}


def _token(name: str, segment: int) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": segment}}
