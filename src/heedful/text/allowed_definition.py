"""Checks of tokenizer definitions, so that encoding takes time and memory in proportion to the text.

A tokenizer.json is a small program: it may contain regular expressions that run for years, replacements that double a
text forty times, and padding to 10^9 tokens. A tokenizer of heedful's kinds must have exactly the steps that heedful
writes; one of kind "foreign" must have known steps and expressions, and lengthen a text by a bounded factor.
"""

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

from tokenizers import models

from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.text import pipeline
from heedful.text.pipeline import assemble, reserved

Definition = dict[str, Any]

MODELS = {
    "word": "WordLevel",
    "character": "BPE",
    "byte": "BPE",
    "bpe": "BPE",
    "unigram": "Unigram",
    "wordpiece": "WordPiece",
}
OWN_STEPS = ("normalizer", "pre_tokenizer", "decoder")  # for heedful's kinds, determined by the settings
FORBIDDEN = ("truncation", "padding", "post_processor")
_NORMALIZERS = """BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Sequence Strip
StripAccents"""
_SPLITTERS = """BertPreTokenizer ByteLevel CharDelimiterSplit Digits Metaspace Punctuation Sequence Split UnicodeScripts
Whitespace WhitespaceSplit"""
NORMALIZERS, SPLITTERS = frozenset(_NORMALIZERS.split()), frozenset(_SPLITTERS.split())
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LATER = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CLIP_EXPRESSION = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
EXPRESSIONS = {  # those of heedful, SentencePiece, GPT-2, GPT-4 and its successors, and CLIP
    *pipeline.EXPRESSIONS,
    "<(?=(?:pad|unk|bos|eos|mask)>)",
    " {2,}",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}{_LATER}",
    rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{_LATER}",
    CLIP_EXPRESSION,
    rf"<\|startoftext\|>|<\|endoftext\|>|{CLIP_EXPRESSION}",
    r"\s+",
}
MAX_GROWTH = 64  # factor by which all steps of a normaliser may lengthen a text; NFKC expands U+FDFA to 18 characters
MAX_DEPTH = 5  # sequences within sequences


def check_definition(definition: str, config: TokenizerConfig, origin: str) -> None:
    """Check the steps of a tokenizer.json before the library loads it."""
    try:
        contents = json.loads(definition)
        problem = next(_problems(contents, config), None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{origin}: damaged, or not a tokenizer ({error!r}); copy the tokenizer again") from error
    if problem:
        raise InputError(
            f"{origin}: {problem}; heedful does not load such a tokenizer: copy it again, or choose another"
        )


def _problems(definition: Definition, config: TokenizerConfig) -> Iterator[str]:
    yield from (f"has {key}" for key in FORBIDDEN if definition.get(key) is not None)

    # Ids are the rows of a model's embeddings: 0, 1, 2 ..., each once.
    vocabulary = definition["model"]["vocab"]
    listed = isinstance(vocabulary, list)
    ids = {name: i for i, (name, _) in enumerate(vocabulary)} if listed else dict(vocabulary)
    all_ids = ids | {token["content"]: token["id"] for token in definition.get("added_tokens") or []}
    if set(all_ids.values()) != set(range(len(all_ids))) or (listed and len(ids) != len(vocabulary)):
        yield "does not number its tokens consecutively from 0"

    if config.kind == "foreign":
        yield from _problems_of_steps(definition)
    else:
        yield from _problems_of_own(definition, config)


def _problems_of_own(definition: Definition, config: TokenizerConfig) -> Iterator[str]:
    """Yield the differences from the definition that heedful writes for these settings."""
    expected = json.loads(assemble(models.BPE(), config).to_str())
    others = (key for key in OWN_STEPS if not _fits(definition[key], expected[key]))
    yield from (f"has a {key} that does not match its settings" for key in others)
    model = definition["model"]
    types = (
        [MODELS[config.kind]] if config.kind in MODELS else list(MODELS.values())
    )  # a kind added by a package may use any
    if model["type"] not in types or model.get("continuing_subword_prefix") or model.get("dropout"):
        yield f'has a model that does not belong to the kind "{config.kind}"'
    vocabulary, head = model["vocab"], list(reserved(config))
    names = [name for name, _ in vocabulary] if isinstance(vocabulary, list) else sorted(vocabulary, key=vocabulary.get)
    if names[: len(head)] != head:
        yield "does not begin with the special tokens"


def _fits(step: Any, expected: Any) -> bool:
    """Return True if a step is the expected one; it may lack settings, as in files from older library versions."""
    if isinstance(step, dict) and isinstance(expected, dict):
        return step.get("type") == expected.get("type") and all(
            key in expected and _fits(value, expected[key]) for key, value in step.items()
        )
    if isinstance(step, list) and isinstance(expected, list):
        return len(step) == len(expected) and all(map(_fits, step, expected))
    return step == expected


def _problems_of_steps(definition: Definition) -> Iterator[str]:
    """Yield the problems of a foreign tokenizer's steps: unknown types, unknown expressions, and too much growth."""
    normalizers = list(_steps(definition.get("normalizer"), "normalizers"))
    splitters = list(_steps(definition.get("pre_tokenizer"), "pretokenizers"))
    for steps, types in ((normalizers, NORMALIZERS), (splitters, SPLITTERS)):
        yield from (
            f"has a step of the unknown type {str(step['type'])[:60]!r}" for step in steps if step["type"] not in types
        )
    # The run time of an unknown expression may grow exponentially with the text.
    for step in (*normalizers, *splitters):
        expression = step["pattern"].get("Regex") if isinstance(step.get("pattern"), dict) else None
        if expression is not None and expression not in EXPRESSIONS:
            yield f"has the unknown regular expression {str(expression)[:60]!r}"
    # Each step lengthens the result of the previous step: the factors multiply.
    if math.prod(map(_growth, normalizers)) > MAX_GROWTH:
        yield "has a normaliser that lengthens texts too much"
    if len(definition["model"].get("continuing_subword_prefix") or "") > MAX_GROWTH:
        yield "has a continuing_subword_prefix that is too long"


def _steps(step: Definition | None, inner: str, depth: int = 0) -> Iterator[Definition]:
    """Yield the steps of a normaliser or a splitter, including those in sequences."""
    if depth > MAX_DEPTH:
        raise ValueError("sequences within sequences")
    if step is not None and step["type"] == "Sequence":
        for each in step[inner]:
            yield from _steps(each, inner, depth + 1)
    elif step is not None:
        yield step


def _growth(step: Definition) -> float:
    """Return how many characters a step of a normaliser writes for one at most; NFC, NFKC ... count as 1."""
    if step["type"] == "Replace":
        # A regular expression counts as if it matched one character. An empty string matches between all characters.
        shortest = len(step["pattern"].get("String", "a"))
        return max(1.0, len(step["content"]) / shortest if shortest else 1 + len(step["content"]))
    if step["type"] == "Prepend":
        return max(1.0, len(step["prepend"]))
    if step["type"] == "Precompiled":
        # SentencePiece's replacement table: the size of a trie, the trie, and texts that end in NUL.
        charsmap = base64.b64decode(step["precompiled_charsmap"], validate=True)
        size = int.from_bytes(charsmap[:4], "little")
        if not 0 < size <= len(charsmap) - 4 or size % 4:
            raise ValueError("not a replacement table")
        return max(1.0, *map(len, charsmap[4 + size :].decode("utf-8").split("\0")))
    return 1.0
