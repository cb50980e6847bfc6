"""Tokenizers in Hugging Face's formats: imported from model folders, and exported for `transformers`.

All of heedful relies on <pad> 0, <unk> 1, <bos> 2, <eos> 3 and <mask> 4, so a vocabulary is permuted when it is
imported (`adopt`): its special tokens become the first ids, and the rest follows. The rows of a model's embeddings are
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
from heedful.text.tokenizer import LARGEST, Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import word_tokenizer

# A piece that is named like a special token must not be found in a text: a cut after its "<" leaves no such word.
CUT = {
    "type": "Split",
    "pattern": {"Regex": "<(?=(?:pad|unk|bos|eos|mask)>)"},
    "behavior": "MergedWithPrevious",
    "invert": False,
}

Definition = dict[str, Any]  # tokenizer.json
Roles = Mapping[int, str]  # PAD, UNK, BOS, EOS, MASK -> the name in the definition; lacking tokens are left out

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
    remaining = (i for i in range(len(tokenizer)) if i not in absent)
    ids = {old: new for new, old in enumerate(remaining)}
    special = [_special(i, name, ids[i], tokenizer.config) for i, name in enumerate(names) if i not in absent]
    added = [{**token, "id": ids[token["id"]]} for token in definition["added_tokens"]]
    definition |= {
        "added_tokens": special + added,
        "post_processor": _frame(family, names),
        "model": _relabelled(model, dict(zip(specials(tokenizer.config), names, strict=True)), ids),
    }
    roles = {"bos_token": names[EOS]} | {ROLES[i]: name for i, name in enumerate(names) if i not in absent}
    settings = _settings(roles, family, segments=segments)
    if max_length is not None:
        settings["model_max_length"] = max_length
    with named_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in (("tokenizer.json", definition), ("tokenizer_config.json", settings)):
            with atomic_file(folder / name) as stream:
                stream.write((json.dumps(contents, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


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


def _frame(family: FamilyName, names: tuple[str, ...]) -> dict[str, Any] | None:
    """The post-processor of a tokenizer.json: the special tokens around a text, and around two."""

    def token(name: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    begin, end = names[BOS], names[EOS]
    if FAMILIES[family].pairs:
        single = [text("A", 0), token(end, 0)]
        pair = [text("A", 0), text("B", 0), token(end, 0)]
    elif FAMILIES[family].writes:
        return None
    else:
        single = [token(begin, 0), text("A", 0), token(end, 0)]
        pair = [*single, text("B", 1), token(end, 1)]
    tokens = {names[i]: {"id": names[i], "ids": [i], "tokens": [names[i]]} for i in (BOS, EOS)}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


Side = Literal["source", "target"]

# Keys of tokenizer_config.json and special_tokens_map.json that name a special token, the first one that is set; then
# the names that it has by custom.
KEYS = {
    PAD: ["pad_token"],
    UNK: ["unk_token"],
    BOS: ["bos_token", "cls_token"],
    EOS: ["eos_token", "sep_token"],
    MASK: ["mask_token"],
}
CUSTOMARY = {
    PAD: ["[PAD]", "<pad>", "<blank>"],
    UNK: ["[UNK]", "<unk>"],
    BOS: ["[CLS]", "<s>", "<bos>", "<|endoftext|>"],
    EOS: ["[SEP]", "</s>", "<eos>", "<|endoftext|>"],
    MASK: ["[MASK]", "<mask>"],
}
SUFFIX = "</w>"  # ends the last piece of a word in CLIP's vocabulary
CLIP_NORMALIZERS = [
    {"type": "NFC"},
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Lowercase"},
]
CLIP_WORDS = {
    "type": "Split",
    "pattern": {"Regex": CLIP_EXPRESSION},
    "behavior": "Removed",
    "invert": True,
}
_SCHEMES = {True: "always", False: "never"}  # names in a tokenizer.json for a space before a text, or none
START = "decoder_start_token_id"
MAX_TOKENS = 2**31  # larger numbers are the id of no token
FOREIGN = 100.0  # nats: a piece of the other language costs at least so much more
MAX_WORD = 100  # characters; BERT takes a longer one for unknown


def from_hugging_face(folder: Path, side: Side = "source") -> tuple[Tokenizer, NDArray[np.int64]]:
    """Import the tokenizer of a Hugging Face model folder.

    Args:
        folder: Where the files are.
        side: The language whose SentencePiece model to use, where each has one; elsewhere one tokenizer serves both.

    Returns:
        The tokenizer, with heedful's special tokens as the first ids, and `old_id_of` (V,): for each of its ids
        the id in the folder. It is -1 for a special token that is lacking. An old id may stand twice: GPT-2's
        "<|endoftext|>" is <bos> and <eos>, and <bos> is whatever a decoder begins with, Marian's "<pad>" or a piece.

    Raises:
        InputError: A file is missing, damaged, or of a kind that heedful does not read.
    """
    for files, read in _READERS.items():
        if all((folder / name).is_file() for name in files):
            return _imported(read(folder, side), folder)
    readable = "; ".join(" with ".join(files) for files in _READERS)
    raise InputError(f"{folder}: holds no tokenizer that heedful reads; one of these has to be there: {readable}")


def pair_from_hugging_face(folder: Path) -> tuple[TokenizerPair, NDArray[np.int64]]:
    """Import the source and target tokenizers of a Hugging Face model folder, which have the same vocabulary.

    Returns:
        The tokenizers, and `old_id_of` as in `from_hugging_face`.

    Raises:
        InputError: As in `from_hugging_face`.
    """
    source, old_id_of = from_hugging_face(folder)
    if not all((folder / name).is_file() for name in MARIAN) or (folder / DEFINITION).is_file():
        return TokenizerPair(source, source), old_id_of
    return TokenizerPair(source, from_hugging_face(folder, "target")[0]), old_id_of


def from_words(words: Sequence[str], rows: int) -> tuple[Tokenizer, NDArray[np.int64]]:
    """Make a tokenizer of kind "word" from a list of tokens, which stand in a text with spaces between them.

    Args:
        words: Tokens in the order of their ids; of equal ones the first counts.
        rows: The number of rows of the model's embeddings: one more than there are words where an unknown word has the
            last row and no name, as in OpenNMT-tf.

    Returns:
        The tokenizer, and `old_id_of` (V,), -1 for a special token that is lacking.

    Raises:
        InputError: There are more words than rows.
    """
    if len(words) > rows:
        raise InputError(
            f"{len(words)} words do not fit the {rows} rows of the embeddings; is it the model's vocabulary?"
        )
    old_ids: dict[str, int] = {}
    for i, word in enumerate(words):
        old_ids.setdefault(word, i)
    head = [next((old_ids[name] for name in CUSTOMARY[i] if name in old_ids), -1) for i in range(len(SPECIALS))]
    if head[UNK] < 0 and rows == len(words) + 1:
        head[UNK] = len(words)
    rest = [word for word, i in old_ids.items() if i not in head]
    config = TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True)
    tokenizer = word_tokenizer({word: i for i, word in enumerate(rest, len(SPECIALS))}, config)
    return tokenizer, np.array(head + [old_ids[word] for word in rest], dtype=np.int64)


def _imported(definition: Definition, folder: Path) -> tuple[Tokenizer, NDArray[np.int64]]:
    try:
        roles = _roles(definition, folder)
        tokenizer, old_id_of = adopt(definition, roles, str(folder))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{folder}: damaged, or not a tokenizer ({error!r}); download it again") from error
    if BOS not in roles and (start := _start(folder)) is not None:
        old_id_of[BOS] = start  # a decoder begins with a piece that is a piece of texts too
    return tokenizer, old_id_of


def _start(folder: Path) -> int | None:
    """The id of the token that a decoder begins with, by the settings for generating, or else those of the model."""
    for name in ("generation_config.json", "config.json"):
        if (start := _json(folder / name).get(START)) is not None:
            if not isinstance(start, int) or not 0 <= start < MAX_TOKENS:
                raise InputError(f"{folder / name}: {START} is {json.dumps(start)}, and should be the id of a token")
            return start
    return None


def _roles(definition: Definition, folder: Path) -> Roles:
    """The special tokens among the tokens of a definition."""
    names = ids_of(definition)
    roles = {}
    for role in KEYS:
        if name := next((name for name in _candidates(role, folder) if name in names), None):
            roles[role] = name
    if (unknown := _unknown(definition["model"])) in names:
        roles[UNK] = unknown
    start = _start(folder)
    if start is None:
        start = names.get(roles.get(BOS, roles.get(PAD, "")))
    # <bos> is what the decoder begins with, whatever that is called: Marian's is <pad>.
    first = next((roles[i] for i in (BOS, EOS, PAD, UNK) if i in roles and names[roles[i]] == start), None)
    roles.pop(BOS, None)
    if first is not None:
        roles[BOS] = first
    # A stand-in is no special token of its own: GPT-2 names its <|endoftext|> for everything.
    return {i: name for i, name in roles.items() if i not in (PAD, UNK) or name != roles.get(EOS)}


def _candidates(role: int, folder: Path) -> list[str]:
    """Names that a special token may have: those in the settings of the folder, then those that are customary."""
    names = []
    for file in ("tokenizer_config.json", "special_tokens_map.json"):
        settings = _json(folder / file)
        named = (settings.get(key) for key in KEYS[role])
        names += [name["content"] if isinstance(name, dict) else name for name in named if name]
    return names + CUSTOMARY[role]


def _unknown(model: Definition) -> str | None:
    if model.get("type") == "Unigram" and model.get("unk_id") is not None:
        return model["vocab"][model["unk_id"]][0]
    return model.get("unk_token")


def read_definition(folder: Path, _side: Side = "source") -> Definition:
    """Read the tokenizer.json of a folder."""
    definition = _json(folder / DEFINITION)
    if not isinstance(definition.get("model"), dict):
        raise InputError(f"{folder / DEFINITION}: damaged, or not a tokenizer; download it again")
    blank = {"added_tokens": [], "pre_tokenizer": None, "normalizer": None, "decoder": None}
    return blank | definition


def _bert(folder: Path, _: Side) -> Definition:
    settings = _json(folder / "tokenizer_config.json")
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
    first = 1 if lines[0].startswith("#version") else 0
    vocabulary = _json(folder / "vocab.json")
    is_clip = any(name.endswith(SUFFIX) for name in vocabulary)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "",
        "end_of_word_suffix": SUFFIX if is_clip else "",
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocabulary,
        "merges": [line.rstrip("\r") for line in lines[first:] if line.strip()],
    }
    prefix = _json(folder / "tokenizer_config.json").get("add_prefix_space", False)
    step = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    if is_clip:
        splitter = {"type": "Sequence", "pretokenizers": [CLIP_WORDS, step]}
        return _assembled(model, {"type": "Sequence", "normalizers": CLIP_NORMALIZERS}, splitter, step)
    return _assembled(model, None, step, step)


def _marian(folder: Path, side: Side) -> Definition:
    """The definition of Marian's tokenizer for one side: one vocabulary, cut by that side's SentencePiece model.

    Characters that this side does not know are read as pieces of the other side where it has them, at a cost above all
    others; SentencePiece looks up a whole run of such characters only. Punctuation is not normalised as by sacremoses,
    which Marian's tokenizer in `transformers` does if it is installed.
    """
    pieces = read_sentencepiece(folder / f"{side}.spm")
    ids = _json(folder / "vocab.json")
    names = sorted(ids, key=ids.__getitem__)
    if [ids[name] for name in names] != list(range(len(names))) or "<unk>" not in ids:
        raise InputError(
            f"{folder / 'vocab.json'}: does not number its pieces from 0 on, <unk> among them; download it again"
        )
    foreign = min(pieces.scores.values()) - FOREIGN
    model = {
        "type": "Unigram",
        "unk_id": ids["<unk>"],
        "vocab": [[name, pieces.scores.get(name, foreign)] for name in names],
        "byte_fallback": False,
    }
    spaces = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": _SCHEMES[pieces.first_space], "split": True}
    languages = [name for name in names if name.startswith(">>") and name.endswith("<<")]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    added = [{"id": ids[name], "content": name, **flags} for name in languages]
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


def _json(path: Path) -> dict[str, Any]:
    """The contents of a JSON file; empty where there is no file."""
    if not path.exists():
        return {}
    try:
        contents = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, or not JSON ({error}); download it again") from error
    if not isinstance(contents, dict):
        raise InputError(f"{path}: damaged: its contents have no keys; download it again")
    return contents


def _read(path: Path) -> str:
    try:
        return read_small(path, LARGEST).decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: damaged (not UTF-8); download it again") from error


DEFINITION = "tokenizer.json"
MARIAN = ("vocab.json", "source.spm", "target.spm")
_READERS: dict[tuple[str, ...], Callable[[Path, Side], Definition]] = {
    (DEFINITION,): read_definition,
    MARIAN: _marian,
    ("vocab.json", "merges.txt"): _gpt2,
    ("vocab.txt",): _bert,
}


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
    # Files from before 2021 do not name the type of their model.
    kind = model.get("type") or ("BPE" if "merges" in model else "Unigram" if "unk_id" in model else "WordPiece")
    if kind not in _WITH_VOCABULARY:
        raise InputError(
            f"{origin}: a tokenizer of type {kind!r} cannot be taken over; {', '.join(_WITH_VOCABULARY)} can"
        )
    old_ids = ids_of(definition)
    config = TokenizerConfig(kind="foreign", byte_fallback=False, mask=MASK in roles)
    head, special = specials(config), set(roles.values())
    rest = sorted((name for name in old_ids if name not in special), key=old_ids.__getitem__)
    if twice := set(rest) & set(head):
        raise InputError(
            f"{origin}: has a piece {min(twice)!r} beside its special tokens {', '.join(sorted(special))}; rename it, "
            "or name it as a special token in tokenizer_config.json"
        )
    new_ids = {name: i for i, name in enumerate([*head, *rest])}
    old_id_of = [old_ids[roles[i]] if i in roles else ABSENT for i in range(len(head))]
    old_id_of += [old_ids[name] for name in rest]

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
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*(step for step in steps if step != CUT), CUT]},
        "model": _WITH_VOCABULARY[kind](model, new_ids, roles),
    }
    tokenizer = _tokenizer(adopted, replace(config, vocab_size=len(new_ids)), origin)
    return tokenizer, np.array(old_id_of, dtype=np.int64)


def ids_of(definition: Definition) -> dict[str, int]:
    """The id of each token of a tokenizer.json by its text, added tokens included."""
    vocabulary = definition["model"]["vocab"]
    ids = {name: i for i, (name, _) in enumerate(vocabulary)} if isinstance(vocabulary, list) else dict(vocabulary)
    return ids | {token["content"]: token["id"] for token in definition["added_tokens"]}


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
    writing_of(library, config)  # refuses pieces that are written in an unknown way
    return Tokenizer(library.to_str(), config)
