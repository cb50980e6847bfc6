"""Tokenizers in Hugging Face formats: imported from model folders, and exported for `transformers`.

All of heedful relies on <pad> 0, <unk> 1, <bos> 2, <eos> 3 and <mask> 4, so a vocabulary is permuted when it is
imported (`adopt`): its special tokens become the first ids, and the rest follow. The rows of a model's embeddings are
permuted with it.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tokenizers
from numpy.typing import NDArray

from heedful.config.families import FAMILIES, FamilyName
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.storage.atomic import atomic_file, named_write_errors
from heedful.storage.disk import read_small
from heedful.text.allowed_definition import CLIP_EXPRESSION, check_definition
from heedful.text.pipeline import ABSENT, BOS, EOS, MASK, PAD, SPACE, SPECIALS, UNK, first_space, specials, writing_of
from heedful.text.sentencepiece import read_sentencepiece
from heedful.text.tokenizer import MAX_FILE, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import word_tokenizer

# Text that looks like a special token must not be encoded as one, so it is split after its "<".
CUT = {
    "type": "Split",
    "pattern": {"Regex": "<(?=(?:pad|unk|bos|eos|mask)>)"},
    "behavior": "MergedWithPrevious",
    "invert": False,
}

Definition = dict[str, Any]  # tokenizer.json
Roles = Mapping[int, str]  # PAD, UNK, BOS, EOS, MASK -> name in the definition, without tokens that it lacks
Side = Literal["source", "target"]

DEFINITION = "tokenizer.json"
MARIAN = ("vocab.json", "source.spm", "target.spm")
ROLES = ("pad_token", "unk_token", "bos_token", "eos_token", "mask_token")
BERT_NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
GPT2_END = "<|endoftext|>"
CLIP_ENDS = ("<|startoftext|>", "<|endoftext|>")
CLIP_SUFFIX = "</w>"  # ends the last piece of a word
CLIP_NORMALIZERS = [
    {"type": "NFC"},
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Lowercase"},
]
CLIP_WORDS = {"type": "Split", "pattern": {"Regex": CLIP_EXPRESSION}, "behavior": "Removed", "invert": True}
PLAIN_TOKEN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}

# Keys of tokenizer_config.json and special_tokens_map.json that name each special token, and its usual names. The first
# name that is in the vocabulary counts.
KEYS = {
    PAD: ["pad_token"],
    UNK: ["unk_token"],
    BOS: ["bos_token", "cls_token"],
    EOS: ["eos_token", "sep_token"],
    MASK: ["mask_token"],
}
USUAL_NAMES = {
    PAD: ["[PAD]", "<pad>", "<blank>"],
    UNK: ["[UNK]", "<unk>"],
    BOS: ["[CLS]", "<s>", "<bos>", "<|endoftext|>"],
    EOS: ["[SEP]", "</s>", "<eos>", "<|endoftext|>"],
    MASK: ["[MASK]", "<mask>"],
}
START = "decoder_start_token_id"
MAX_TOKENS = 2**31  # larger numbers are not ids
FOREIGN_COST = 100.0  # minimum additional cost, in nats, of a piece of the other language
MAX_WORD = 100  # characters; BERT reads a longer word as unknown


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

    There is one difference: `transformers` reads the names of special tokens in a text as special tokens. An encoder's
    special tokens are renamed as in BERT, such as [CLS] and [MASK], or as in CLIP, and a token that is both <bos> and
    <eos> as in GPT-2. If the vocabulary has a piece with one of the new names, the special tokens keep their names.

    Args:
        tokenizer: A tokenizer of any kind.
        folder: The folder to write to; it may contain other files, such as those of a model.
        family: Family of the model, which determines what is added to a text: an encoder (BERT) begins with <bos>,
            puts <eos> after each of one or two texts, and numbers them as segments 0 and 1; an encoder-decoder ends
            with <eos>; a decoder (GPT) adds nothing.
        max_length: Maximum number of tokens that the model reads, to which `transformers` can truncate texts.
        absent: Special tokens to leave out. Higher ids decrease accordingly, and <eos> also serves as an absent <bos>.
        segments: False for an encoder without segments, such as CLIP's.

    Raises:
        InputError: The tokenizer is of kind "wordpiece" with byte fallback, which has no counterpart in `transformers`.
        RunError: The folder cannot be written.
    """
    config, definition = tokenizer.config, json.loads(tokenizer.definition)
    if not has_counterpart(config):
        raise InputError(
            'the format needs a tokenizer.json, which cannot represent a tokenizer of kind "wordpiece" with byte '
            'fallback; train the model with tokenizer.byte_fallback = false, or with tokenizer.kind = "bpe"'
        )
    names = _exported_names(definition, config, family, absent, segments=segments)
    remaining = [i for i in range(len(tokenizer)) if i not in absent]
    new_ids = {old: new for new, old in enumerate(remaining)}

    # `transformers` finds special tokens in texts, and <mask> includes the space before it. If normalisation adds a
    # space to the front of a text, <mask> is found in the normalised text, after a step that removes this space.
    special = []
    for i, name in enumerate(names):
        if i not in absent:
            spaced = i == MASK and config.kind != "foreign" and first_space(config) != ""
            if spaced:
                mask = name.lower() if config.lowercase else name
                space = {"type": "Replace", "pattern": {"String": f" {mask}"}, "content": mask}
                definition["normalizer"]["normalizers"].append(space)
            flags = {"single_word": False, "lstrip": i == MASK and not spaced, "rstrip": False, "normalized": spaced}
            special.append({"id": new_ids[i], "content": name, "special": True, **flags})
    definition |= {
        "added_tokens": special + [{**token, "id": new_ids[token["id"]]} for token in definition["added_tokens"]],
        "post_processor": _post_processor(family, names),
        "model": _exported_model(definition["model"], config, names, new_ids),
    }

    roles = {"bos_token": names[EOS]} | {ROLES[i]: name for i, name in enumerate(names) if i not in absent}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **roles}
    if not segments:
        settings["model_input_names"] = ["input_ids", "attention_mask"]
    elif not FAMILIES[family].writes:
        settings |= {"cls_token": roles["bos_token"], "sep_token": roles["eos_token"]}
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    if max_length is not None:
        settings["model_max_length"] = max_length
    with named_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in ((DEFINITION, definition), ("tokenizer_config.json", settings)):
            with atomic_file(folder / name) as stream:
                stream.write((json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


def has_counterpart(config: TokenizerConfig) -> bool:
    """Return True if `transformers` has an equivalent tokenizer: it lacks only "wordpiece" with byte fallback."""
    return not (config.kind == "wordpiece" and config.byte_fallback)


def _exported_names(
    definition: Definition, config: TokenizerConfig, family: FamilyName, absent: Collection[int], *, segments: bool
) -> tuple[str, ...]:
    """Return the names of special tokens in `transformers`.

    They are the usual ones or, if a piece of the vocabulary already has one of these names, heedful's own.
    """
    own, vocabulary = specials(config), definition["model"]["vocab"]
    pieces = {piece[0] for piece in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)
    pieces |= {token["content"] for token in definition["added_tokens"]}
    if family == "encoder":
        usual = BERT_NAMES[: len(own)] if segments else (*own[:BOS], *CLIP_ENDS, *own[EOS + 1 :])
    else:
        usual = (*own[:EOS], GPT2_END, *own[EOS + 1 :]) if BOS in absent else own
    return own if pieces & (set(usual) - set(own)) else usual


def _exported_model(
    model: Definition, config: TokenizerConfig, names: Sequence[str], new_ids: Mapping[int, int]
) -> Definition:
    """Rename the special tokens of a model, and renumber its tokens."""
    if config.kind == "word" and config.byte_fallback:
        # `Tokenizer` splits unknown words into bytes outside of the model, so export a model that does so itself.
        model = {
            "type": "BPE",
            "vocab": model["vocab"],
            "merges": [],
            "ignore_merges": True,  # a whole word in the vocabulary is a piece
            "byte_fallback": True,
            "unk_token": SPECIALS[UNK],
        }
    new_names = dict(zip(specials(config), names, strict=True))
    vocabulary, unknown = model["vocab"], model.get("unk_token")
    # In a unigram vocabulary, the index of a piece is its id.
    if isinstance(vocabulary, list):
        pieces = {new_ids[i]: piece for i, piece in enumerate(vocabulary) if i in new_ids}
        renamed = [[new_names.get(name, name), score] for _, (name, score) in sorted(pieces.items())]
        return {**model, "vocab": renamed, "unk_id": new_ids.get(model["unk_id"])}
    renumbered = {new_names.get(name, name): new_ids[i] for name, i in vocabulary.items() if i in new_ids}
    return {**model, "vocab": renumbered, "unk_token": None if unknown is None else new_names[unknown]}


def _post_processor(family: FamilyName, names: Sequence[str]) -> Definition | None:
    """Return the post-processor of a tokenizer.json, which adds special tokens to one text or to a pair of texts."""
    if FAMILIES[family].writes and not FAMILIES[family].pairs:
        return None

    def token(i: int, segment: int) -> Definition:
        return {"SpecialToken": {"id": names[i], "type_id": segment}}

    def text(name: str, segment: int) -> Definition:
        return {"Sequence": {"id": name, "type_id": segment}}

    if FAMILIES[family].pairs:
        single = [text("A", 0), token(EOS, 0)]
        pair = [text("A", 0), text("B", 0), token(EOS, 0)]
    else:
        single = [token(BOS, 0), text("A", 0), token(EOS, 0)]
        pair = [*single, text("B", 1), token(EOS, 1)]
    tokens = {names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in (BOS, EOS)}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def from_hugging_face(
    folder: Path, side: Side = "source", *, begins: bool = True
) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Import the tokenizer of a Hugging Face model folder.

    Args:
        folder: The model folder.
        side: The side whose SentencePiece model to use. It matters only if the folder has one for each side.
        begins: False to keep a token that begins texts, such as <s>, as an ordinary token instead of <bos>.

    Returns:
        The tokenizer, with heedful's special tokens as the first ids, and `old_id_of` (V,): for each of its ids
        the id in the folder, or -1 for a special token that is missing. An old id may occur twice: GPT-2's
        "<|endoftext|>" is both <bos> and <eos>, and <bos> is the token that a decoder begins with, which may be
        Marian's "<pad>" or a piece.

    Raises:
        InputError: A file is missing, damaged, or of a kind that heedful does not read.
    """
    files = next((files for files in _READERS if all((folder / name).is_file() for name in files)), None)
    if files is None:
        readable = "; ".join(files[0] + " with " * bool(files[1:]) + " and ".join(files[1:]) for files in _READERS)
        raise InputError(f"{folder}: contains no tokenizer that heedful reads; copy one of these there: {readable}")
    definition = _READERS[files](folder, side)
    try:
        roles = _roles(definition, folder)
        if not begins:
            roles = {i: name for i, name in roles.items() if i != BOS or name == SPECIALS[BOS]}
        tokenizer, old_id_of = adopt(definition, roles, str(folder))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{folder}: damaged, or not a tokenizer ({error!r}); download it again") from error
    if BOS not in roles and (start := _decoder_start(folder)) is not None:
        old_id_of[BOS] = start  # the decoder begins with an ordinary piece, which keeps its own id for texts
    return tokenizer, old_id_of


def pair_from_hugging_face(folder: Path) -> tuple[TokenizerPair, NDArray[np.int64]]:
    """Import the source and target tokenizers of a Hugging Face model folder, which have the same vocabulary.

    Returns the tokenizers, and `old_id_of` as in `from_hugging_face`.
    """
    source, old_id_of = from_hugging_face(folder)
    if not all((folder / name).is_file() for name in MARIAN) or (folder / DEFINITION).is_file():
        return TokenizerPair(source, source), old_id_of
    return TokenizerPair(source, from_hugging_face(folder, "target")[0]), old_id_of


def from_words(words: Sequence[str], rows: int) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Create a tokenizer of kind "word" from a list of tokens, which are separated by spaces in a text.

    Args:
        words: Tokens in the order of their ids; among equal ones, the first counts.
        rows: The number of rows of the model's embeddings. One row more than words is the nameless row of unknown
            words, as in OpenNMT-tf.

    Returns:
        The tokenizer, and `old_id_of` (V,), -1 for a special token that is missing.

    Raises:
        InputError: There are more words than rows.
    """
    if len(words) > rows:
        raise InputError(
            f"{len(words)} words do not match the {rows} rows of the embeddings; give the vocabulary of this model"
        )
    old_ids: dict[str, int] = {}
    for i, word in enumerate(words):
        old_ids.setdefault(word, i)
    head = [next((old_ids[name] for name in USUAL_NAMES[i] if name in old_ids), ABSENT) for i in range(len(SPECIALS))]
    if head[UNK] == ABSENT and rows == len(words) + 1:
        head[UNK] = len(words)
    rest = [word for word, i in old_ids.items() if i not in head]
    config = TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True)
    tokenizer = word_tokenizer({word: i for i, word in enumerate(rest, len(SPECIALS))}, config)
    return tokenizer, np.array(head + [old_ids[word] for word in rest], dtype=np.int64)


def _decoder_start(folder: Path) -> int | None:
    """Return the id of the token that a decoder begins with, from the generation or else the model settings."""
    for name in ("generation_config.json", "config.json"):
        if (start := _read_json(folder / name).get(START)) is not None:
            if not isinstance(start, int) or not 0 <= start < MAX_TOKENS:
                raise InputError(f"{folder / name}: {START} is {json.dumps(start)}, but should be a token id")
            return start
    return None


def _roles(definition: Definition, folder: Path) -> Roles:
    """Find the special tokens among the tokens of a definition."""
    ids, roles = ids_of(definition), {}
    settings = [_read_json(folder / name) for name in ("tokenizer_config.json", "special_tokens_map.json")]
    for role, keys in KEYS.items():
        # Names in the folder's settings come before the usual ones.
        entries = [file.get(key) for file in settings for key in keys]
        names = [entry["content"] if isinstance(entry, dict) else entry for entry in entries if entry]
        if name := next((name for name in (*names, *USUAL_NAMES[role]) if name in ids), None):
            roles[role] = name
    # The token that the model itself uses for unknown text takes precedence over the one in the settings.
    model = definition["model"]
    unknown = model.get("unk_token")
    if model.get("type") == "Unigram" and model.get("unk_id") is not None:
        unknown = model["vocab"][model["unk_id"]][0]
    if unknown in ids:
        roles[UNK] = unknown
    start = _decoder_start(folder)
    if start is None:
        start = ids.get(roles.get(BOS, roles.get(PAD, "")))

    # <bos> is what the decoder begins with, whatever its name: in Marian it is <pad>.
    first = next((roles[i] for i in (BOS, EOS, PAD, UNK) if i in roles and ids[roles[i]] == start), None)
    roles.pop(BOS, None)
    if first is not None:
        roles[BOS] = first
    # GPT-2 uses <|endoftext|> in every role; here it is <bos> and <eos>, but not <pad> or <unk>.
    return {i: name for i, name in roles.items() if i not in (PAD, UNK) or name != roles.get(EOS)}


def read_definition(folder: Path, _side: Side = "source") -> Definition:
    """Read the tokenizer.json of a folder."""
    definition = _read_json(folder / DEFINITION)
    if not isinstance(definition.get("model"), dict):
        raise InputError(f"{folder / DEFINITION}: damaged, or not a tokenizer; download it again")
    return {"added_tokens": [], "pre_tokenizer": None, "normalizer": None, "decoder": None} | definition


def _bert(folder: Path, _: Side) -> Definition:
    settings = _read_json(folder / "tokenizer_config.json")
    # `splitlines` would also split at characters such as U+2028, and shift all ids after a piece with one.
    names = _read(folder / "vocab.txt").removesuffix("\n").split("\n")
    model = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": MAX_WORD,
        "vocab": {name.removesuffix("\r"): i for i, name in enumerate(names)},
    }
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
        "strip_accents": settings.get("strip_accents", None),
        "lowercase": settings.get("do_lower_case", True),
    }
    decoder = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    return _assembled(model, normalizer, {"type": "BertPreTokenizer"}, decoder)


def _gpt2(folder: Path, _: Side) -> Definition:
    lines = _read(folder / "merges.txt").split("\n")
    # Only the first line can be a comment: a merge may begin with # as well.
    first = 1 if lines[0].startswith("#version") else 0
    vocabulary = _read_json(folder / "vocab.json")
    is_clip = any(name.endswith(CLIP_SUFFIX) for name in vocabulary)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": CLIP_SUFFIX if is_clip else "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocabulary,
        "merges": [line.rstrip("\r") for line in lines[first:] if line.strip()],
    }
    prefix = _read_json(folder / "tokenizer_config.json").get("add_prefix_space", False)
    step = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    if is_clip:
        splitter = {"type": "Sequence", "pretokenizers": [CLIP_WORDS, step]}
        return _assembled(model, {"type": "Sequence", "normalizers": CLIP_NORMALIZERS}, splitter, step)
    return _assembled(model, None, step, step)


def _marian(folder: Path, side: Side) -> Definition:
    """Build the definition of Marian's tokenizer for one side, with that side's SentencePiece model.

    Both sides have the same vocabulary. Characters that this side lacks are read as pieces of the other side if it has
    them, at a higher cost than all other pieces; SentencePiece itself looks up a run of such characters only as a
    whole. Marian's tokenizer in `transformers` also normalises punctuation if sacremoses is installed; this one never
    does.
    """
    pieces = read_sentencepiece(folder / f"{side}.spm")
    ids = _read_json(folder / "vocab.json")
    names = sorted(ids, key=ids.__getitem__)
    if [ids[name] for name in names] != list(range(len(names))) or "<unk>" not in ids:
        raise InputError(
            f"{folder / 'vocab.json'}: does not number its pieces, <unk> included, from 0; download it again"
        )
    foreign_score = min(pieces.scores.values()) - FOREIGN_COST
    model = {
        "type": "Unigram",
        "unk_id": ids["<unk>"],
        "vocab": [[name, pieces.scores.get(name, foreign_score)] for name in names],
        "byte_fallback": False,
    }
    scheme = "always" if pieces.first_space else "never"
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": True}
    # In a model with several target languages, a token such as >>de<< chooses one; SentencePiece would split it.
    languages = [name for name in names if name.startswith(">>") and name.endswith("<<")]
    added = [{"id": ids[name], "content": name, **PLAIN_TOKEN} for name in languages]
    return _assembled(model, pieces.normalizer(), spaces, spaces) | {"added_tokens": added}


def _assembled(model: Definition, normalizer: Any, splitter: Any, decoder: Any) -> Definition:
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": splitter,
        "decoder": decoder,
        "model": model,
    }


# The first entry whose files are all in the folder is used. tokenizer.json comes first, because it has all steps.
_READERS: dict[tuple[str, ...], Callable[[Path, Side], Definition]] = {
    (DEFINITION,): read_definition,
    MARIAN: _marian,
    ("vocab.json", "merges.txt"): _gpt2,
    ("vocab.txt",): _bert,
}


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; return an empty one if the file does not exist."""
    if not path.exists():
        return {}
    try:
        contents = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, or not JSON ({error}); download it again") from error
    if not isinstance(contents, dict):
        raise InputError(f"{path}: damaged, or not a JSON object; download it again")
    return contents


def _read(path: Path) -> str:
    try:
        return read_small(path, MAX_FILE).decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: damaged (not UTF-8); download it again") from error


def adopt(definition: Definition, roles: Roles, origin: str) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Create a tokenizer from a tokenizer.json whose special tokens have other names and ids.

    Special tokens are not found in texts: "[MASK]" typed as text remains text. Other added tokens are found as before.

    Args:
        definition: The contents of a tokenizer.json.
        roles: The names of its special tokens.
        origin: The file or folder to name in errors.

    Returns:
        The tokenizer, and for each of its ids the old id, (V,); -1 for a special token that is missing.

    Raises:
        InputError: The library cannot read the definition, it has pieces of an unknown kind, or two of them would get
            the same name.
        KeyError, TypeError, ValueError, AttributeError: The definition does not have the form of a tokenizer.json.
    """
    model = definition["model"]
    # Files from before 2021 do not name the type of their model.
    kind = model.get("type") or ("BPE" if "merges" in model else "Unigram" if "unk_id" in model else "WordPiece")
    if kind not in _MODEL_TYPES:
        raise InputError(
            f"{origin}: a tokenizer of type {kind!r} cannot be imported; known types: {', '.join(_MODEL_TYPES)}"
        )
    old_ids = ids_of(definition)
    config = TokenizerConfig(kind="foreign", byte_fallback=False, mask=MASK in roles)
    head, special = specials(config), set(roles.values())
    rest = sorted((name for name in old_ids if name not in special), key=old_ids.__getitem__)
    if clashes := set(rest) & set(head):
        raise InputError(
            f"{origin}: has a piece with the reserved name {min(clashes)!r}, which is not one of its special tokens "
            f"({', '.join(sorted(special))}); rename it, or add it as a special token to tokenizer_config.json"
        )
    new_ids = {name: i for i, name in enumerate([*head, *rest])}
    old_id_of = [old_ids[roles[i]] if i in roles else ABSENT for i in range(len(head))]
    old_id_of += [old_ids[name] for name in rest]

    if kind == "Unigram":
        # Tokens without a score get the lowest one, which leaves the cost of unknown characters unchanged.
        scores = dict(model["vocab"])
        least = min(scores.values())
        names = specials(TokenizerConfig(mask=True))
        scores |= {names[i]: scores[name] for i, name in roles.items() if name in scores}
        new_model = {**model, "vocab": [[name, scores.get(name, least)] for name in new_ids], "unk_id": UNK}
    else:
        unknown = None if model.get("unk_token") is None else SPECIALS[UNK]
        new_model = {**model, "vocab": dict(new_ids), "unk_token": unknown}
    splitter = definition["pre_tokenizer"]
    steps = splitter["pretokenizers"] if splitter and splitter["type"] == "Sequence" else [splitter] if splitter else []
    adopted = {
        **definition,
        "truncation": None,
        "padding": None,
        "post_processor": None,
        "added_tokens": [
            {**token, "id": new_ids[token["content"]]}
            for token in definition["added_tokens"]
            if token["content"] not in special
        ],
        # A tokenizer that heedful exported already has this split, which must not be added twice.
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*(step for step in steps if step != CUT), CUT]},
        "model": new_model,
    }
    config = replace(config, vocab_size=len(new_ids))
    text = json.dumps(adopted, ensure_ascii=False)
    check_definition(text, config, origin)
    try:
        library = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library has no narrower exception
        raise InputError(
            f"{origin}: the installed tokenizers {tokenizers.__version__} cannot read it ({error}); "
            "download it again, or update tokenizers"
        ) from error
    writing_of(library, config)  # raises an InputError if pieces are written in an unknown way
    return Tokenizer(library.to_str(), config), np.array(old_id_of, dtype=np.int64)


_MODEL_TYPES = ("WordPiece", "WordLevel", "BPE", "Unigram")


def ids_of(definition: Definition) -> dict[str, int]:
    """Return the id of each token of a tokenizer.json by its text, added tokens included."""
    vocabulary = definition["model"]["vocab"]
    ids = {name: i for i, (name, _) in enumerate(vocabulary)} if isinstance(vocabulary, list) else dict(vocabulary)
    return ids | {token["content"]: token["id"] for token in definition["added_tokens"]}
