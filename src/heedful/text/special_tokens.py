"""Adapts a tokenizer.json from elsewhere to heedful's special tokens: they become the first ids, the rest follows.

All of heedful relies on <pad> 0, <unk> 1, <bos> 2, <eos> 3 and <mask> 4, so a vocabulary is permuted when it is taken
over, and the rows of a model's embeddings with it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text.allowed_definition import check_definition
from heedful.text.piece_spelling import writing_of
from heedful.text.pipeline import MASK, SPECIALS, UNK, specials
from heedful.text.tokenizer import Tokenizer

ABSENT = -1

# A piece that is named like a special token must not be found in a text: a cut behind its "<" leaves no such word.
CUT = {
    "type": "Split",
    "pattern": {"Regex": "<(?=(?:pad|unk|bos|eos|mask)>)"},
    "behavior": "MergedWithPrevious",
    "invert": False,
}

Definition = dict[str, Any]  # tokenizer.json
Roles = Mapping[int, str]  # PAD, UNK, BOS, EOS, MASK -> the name in the definition; lacking tokens are left out


def adopt(definition: Definition, roles: Roles, origin: str) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Make a tokenizer of a tokenizer.json whose special tokens have other names and ids.

    No text is searched for special tokens: "[MASK]" typed as text is text. Other added tokens are found as before.

    Args:
        definition: The contents of a tokenizer.json.
        roles: The names of its special tokens.
        origin: The file or folder to name in errors.

    Returns:
        The tokenizer, and for each of its ids the old id, (V,); -1 for a special token that is lacking.

    Raises:
        InputError: The library cannot read the definition, its pieces are of a kind that heedful does not know, or two
            of them would get one name.
        KeyError, TypeError, ValueError, AttributeError: The definition does not have the form of a tokenizer.json.
    """
    model = definition["model"]
    kind = _kind(model)
    if kind not in _WITH_VOCABULARY:
        raise InputError(
            f"{origin}: a tokenizer of type {kind!r} cannot be taken over; {', '.join(_WITH_VOCABULARY)} can"
        )
    old_ids = ids_of(definition)
    config = TokenizerConfig(kind="foreign", byte_fallback=False, mask=MASK in roles)
    order = _order(old_ids, roles, config, origin)
    new_ids = {name: i for i, name in enumerate(order)}
    taken = set(roles.values())
    adopted = {
        **definition,
        "truncation": None,
        "padding": None,
        "post_processor": None,
        "added_tokens": [
            {**token, "id": new_ids[token["content"]]}
            for token in definition["added_tokens"]
            if token["content"] not in taken
        ],
        "pre_tokenizer": _with_cut(definition["pre_tokenizer"]),
        "model": _WITH_VOCABULARY[kind](model, new_ids, roles),
    }
    return _tokenizer(adopted, replace(config, vocab_size=len(order)), origin), _old_id_of(order, old_ids, roles)


def ids_of(definition: Definition) -> dict[str, int]:
    """The id of each token of a tokenizer.json by its text, added tokens included."""
    vocabulary = definition["model"]["vocab"]
    known = {name: i for i, (name, _) in enumerate(vocabulary)} if isinstance(vocabulary, list) else dict(vocabulary)
    return known | {token["content"]: token["id"] for token in definition["added_tokens"]}


def _kind(model: Definition) -> str:
    """The type of a model, by its keys where it is not named, as in files from before 2021."""
    return model.get("type") or ("BPE" if "merges" in model else "Unigram" if "unk_id" in model else "WordPiece")


def _order(old_ids: Mapping[str, int], roles: Roles, config: TokenizerConfig, origin: str) -> list[str]:
    """Names in the order of their new ids."""
    taken = set(roles.values())
    rest = sorted((name for name in old_ids if name not in taken), key=old_ids.__getitem__)
    if twice := set(rest) & set(specials(config)):
        raise InputError(
            f"{origin}: has a piece {min(twice)!r} beside its special tokens {', '.join(sorted(taken))}; rename it, or "
            "name it as a special token in tokenizer_config.json"
        )
    return [*specials(config), *rest]


def _old_id_of(order: list[str], old_ids: Mapping[str, int], roles: Roles) -> NDArray[np.int64]:
    head = [old_ids[roles[i]] if i in roles else ABSENT for i in range(len(SPECIALS) + (MASK in roles))]
    return np.array(head + [old_ids[name] for name in order[len(head) :]], dtype=np.int64)


def _with_cut(splitter: Definition | None) -> Definition:
    steps = splitter["pretokenizers"] if splitter and splitter["type"] == "Sequence" else [splitter] if splitter else []
    return {"type": "Sequence", "pretokenizers": [*(step for step in steps if step != CUT), CUT]}


def _mapped(model: Definition, new_ids: Mapping[str, int], _: Roles) -> Definition:
    unknown = None if model.get("unk_token") is None else SPECIALS[UNK]
    return {**model, "vocab": dict(new_ids), "unk_token": unknown}


def _listed(model: Definition, new_ids: Mapping[str, int], roles: Roles) -> Definition:
    """A model of pieces with scores; pieces without one get the least, on which the cost of unknown ones is based."""
    scores = dict(model["vocab"])
    least = min(scores.values())
    names = specials(TokenizerConfig(mask=True))
    scores |= {names[i]: scores[name] for i, name in roles.items() if name in scores}
    vocabulary = [[name, scores.get(name, least)] for name in new_ids]
    return {**model, "vocab": vocabulary, "unk_id": UNK}


_WITH_VOCABULARY: dict[str, Callable[[Definition, Mapping[str, int], Roles], Definition]] = {
    "WordPiece": _mapped,
    "WordLevel": _mapped,
    "BPE": _mapped,
    "Unigram": _listed,
}


def _tokenizer(definition: Definition, config: TokenizerConfig, origin: str) -> Tokenizer:
    text = json.dumps(definition, ensure_ascii=False)
    check_definition(text, config, origin)
    try:
        library = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library has no narrower one
        raise InputError(
            f"{origin}: the installed tokenizers {tokenizers.__version__} cannot read it ({error}); "
            "download it again, or update tokenizers"
        ) from error
    writing_of(library, config)
    return Tokenizer(library.to_str(), config)
