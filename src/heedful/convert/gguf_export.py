"""Write GPTs with the Llama architecture as GGUF files, which llama.cpp and programs based on it open.

llama.cpp splits texts into tokens itself, so the export supports only tokenizers that one of llama.cpp's algorithms
reproduces.

V tokens, H heads, K head size, D model.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.checkpoint.load import LoadedModel
from heedful.convert.exporter import Agreement, Exporter, compare_generator
from heedful.convert.llama import SETTINGS as LLAMA
from heedful.convert.llama import changes, llama_form
from heedful.convert.model import Model, check_empty, count_values
from heedful.convert.weights import Names, present_tokens
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.text.hugging_face import CUT, Definition
from heedful.text.pipeline import BYTES, EOS, PAD, SPACE, UNK, reserved
from heedful.text.tokenizer import Tokenizer

TITLE = "llama.cpp"
FILE = "model.gguf"
PRECISIONS = ("float32", "float16", "bfloat16", "q8_0")
BLOCK = 32  # number of values of a row that share a scale in q8_0
MISSING = 'the export needs gguf: pip install "heedful[gguf]"'

NAMES = Names(
    {
        "backbone.embedding": "token_embd",
        "backbone.stack.blocks.#.self_residual.norm": "blk.#.attn_norm",
        "backbone.stack.blocks.#.self_attention.q": "blk.#.attn_q",
        "backbone.stack.blocks.#.self_attention.k": "blk.#.attn_k",
        "backbone.stack.blocks.#.self_attention.v": "blk.#.attn_v",
        "backbone.stack.blocks.#.self_attention.out": "blk.#.attn_output",
        "backbone.stack.blocks.#.feed_residual.norm": "blk.#.ffn_norm",
        "backbone.stack.blocks.#.feed_forward.gate": "blk.#.ffn_gate",
        "backbone.stack.blocks.#.feed_forward.up": "blk.#.ffn_up",
        "backbone.stack.blocks.#.feed_forward.down": "blk.#.ffn_down",
        "backbone.stack.norm": "output_norm",
        "output": "output",
    }
)
ROTATED = r".*\.attn_[qk]\.(?:weight|bias)"

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
GPT4_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Pre-tokenizers of byte-level BPE, by their names in llama.cpp: the steps, and the value of model.ignore_merges.
SPLITTERS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "gpt-2": ([BYTE_LEVEL], False),
    "smollm": ([{"type": "Digits", "individual_digits": True}, BYTE_LEVEL], False),
    "llama-bpe": (
        [
            {"type": "Split", "pattern": {"Regex": GPT4_WORDS.format(digits="{1,3}")}, "behavior": "Isolated"},
            BYTE_LEVEL | {"use_regex": False},
        ],
        True,
    ),
    "qwen2": (
        [
            {"type": "Split", "pattern": {"Regex": GPT4_WORDS.format(digits="")}, "behavior": "Isolated"},
            BYTE_LEVEL | {"use_regex": False},
        ],
        False,
    ),
}
# The two sequences of steps with which a tokenizer.json replaces spaces as SentencePiece does.
SENTENCEPIECE = (
    [{"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}],
    [{"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}],
)


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """A tokenizer as llama.cpp describes it.

    Attributes:
        algorithm: "llama" for BPE, which merges pieces by their scores, "t5" for unigram, "gpt2" for byte-level BPE.
        splitter: Name of the pre-tokenizer.
        names: Name of each token, (V,), with "▁" for a space, or "Ġ" in byte-level BPE.
        scores: Score of each token, (V,).
        merges: Merges of byte-level BPE.
        first_space: True if a space is added in front of texts.
        in_texts: Names of tokens that are found in a text before it is split.
    """

    algorithm: str
    names: list[str]
    scores: list[float]
    splitter: str = "default"
    merges: Sequence[str] = ()
    first_space: bool = False
    in_texts: frozenset[str]


def write(model: Model, folder: Path, precision: str = "float32") -> int:
    """Write a GPT with the Llama architecture as model.gguf to a new or empty folder.

    Vectors are stored in float32, matrices in one of `PRECISIONS`; with q8_0, matrices whose row length is not a
    multiple of 32 are stored in float16. Returns the number of values in the weights.

    Raises:
        InputError: The model is not a Llama, llama.cpp lacks its tokenizer, or the package gguf is not installed.
        RunError: The folder cannot be written.
    """
    try:
        import gguf
    except ImportError as error:
        raise InputError(MISSING) from error
    check_empty(folder)
    settings, weights, absent = llama_form(model)
    vocabulary = vocabulary_of(model.tokenizers.source)
    heads = {"q": settings["num_attention_heads"], "k": settings["num_key_value_heads"]}
    tensors = {name: _interleaved(name, value, heads) for name, value in NAMES.theirs(weights).items()}
    with named_write_errors(folder), atomic_folder(folder.resolve()) as target:
        writer = gguf.GGUFWriter(target.path / FILE, "llama")
        add_settings(writer, settings, model.recipe.name)
        add_vocabulary(writer, vocabulary, model.tokenizers.source, absent)
        for name, value in tensors.items():
            add_tensor(writer, name, value, precision)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return count_values(tensors)


def reject_misfit(model: Model) -> None:
    """Raise an InputError if a model is not a Llama, or if llama.cpp lacks its tokenizer."""
    llama_form(model)
    vocabulary_of(model.tokenizers.source)


def _interleaved(name: str, value: Tensor, heads: Mapping[str, int]) -> Tensor:
    """Reorder the rows of a query or key projection, (HK, D) or (HK,); return other weights unchanged.

    heedful rotates dimension i of a head together with dimension i + K/2, and llama.cpp rotates dimension 2i together
    with dimension 2i + 1.
    """
    if not re.fullmatch(ROTATED, name):
        return value
    count = heads[name.split(".attn_")[1][0]]
    # (H K, D) -> (H, 2, K/2, D) -> (H, K/2, 2, D) -> (H K, D)
    return value.unflatten(0, (count, 2, -1)).transpose(1, 2).flatten(0, 2)


def add_settings(writer: Any, settings: Mapping[str, Any], name: str) -> None:
    writer.add_name(name)
    writer.add_context_length(settings["max_position_embeddings"])
    writer.add_embedding_length(settings["hidden_size"])
    writer.add_block_count(settings["num_hidden_layers"])
    writer.add_feed_forward_length(settings["intermediate_size"])
    writer.add_head_count(settings["num_attention_heads"])
    writer.add_head_count_kv(settings["num_key_value_heads"])
    writer.add_key_length(settings["head_dim"])
    writer.add_value_length(settings["head_dim"])
    writer.add_rope_dimension_count(settings["head_dim"])
    writer.add_rope_freq_base(settings["rope_theta"])
    writer.add_layer_norm_rms_eps(settings["rms_norm_eps"])


def add_vocabulary(writer: Any, vocabulary: Vocabulary, tokenizer: Tokenizer, absent: Sequence[int]) -> None:
    """Add a tokenizer, without the special tokens that have no row in the weights."""
    from gguf import TokenType

    def kind(i: int, name: str) -> TokenType:
        # Like heedful, llama.cpp finds added tokens (user-defined) in texts, but not special tokens (control).
        if i < tokenizer.first_piece:
            return TokenType.UNKNOWN if i == UNK else TokenType.CONTROL
        if name in vocabulary.in_texts:
            return TokenType.USER_DEFINED
        is_byte = vocabulary.algorithm == "llama" and name in BYTES
        return TokenType.BYTE if is_byte else TokenType.NORMAL

    present = [i for i in range(len(tokenizer)) if i not in absent]
    new_ids = {old: new for new, old in enumerate(present)}
    writer.add_vocab_size(len(present))
    writer.add_tokenizer_model(vocabulary.algorithm)
    writer.add_tokenizer_pre(vocabulary.splitter)
    writer.add_token_list([vocabulary.names[i] for i in present])
    writer.add_token_types([kind(i, vocabulary.names[i]) for i in present])
    writer.add_token_scores([vocabulary.scores[i] for i in present])
    if vocabulary.merges:
        writer.add_token_merges(vocabulary.merges)
    writer.add_add_space_prefix(vocabulary.first_space)
    # As in heedful, nothing precedes a prompt, and a text without a prompt follows <eos>.
    writer.add_add_bos_token(False)
    writer.add_bos_token_id(new_ids[EOS])
    writer.add_eos_token_id(new_ids[EOS])
    for i, add in ((UNK, writer.add_unk_token_id), (PAD, writer.add_pad_token_id)):
        if i in new_ids:
            add(new_ids[i])


def add_tensor(writer: Any, name: str, value: Tensor, precision: str) -> None:
    from gguf import GGMLQuantizationType, quants

    types = {
        "float32": GGMLQuantizationType.F32,
        "float16": GGMLQuantizationType.F16,
        "bfloat16": GGMLQuantizationType.BF16,
        "q8_0": GGMLQuantizationType.Q8_0 if value.size(-1) % BLOCK == 0 else GGMLQuantizationType.F16,
    }
    dtype = types["float32" if value.ndim == 1 else precision]
    array = value.detach().float().contiguous().numpy()
    writer.add_tensor(name, quants.quantize(array, dtype), raw_dtype=dtype)


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    """Describe a tokenizer as llama.cpp does.

    Raises:
        InputError: llama.cpp has no algorithm that splits texts as the tokenizer does.
    """
    definition = json.loads(tokenizer.definition)
    model = definition["model"]
    in_texts = frozenset(token["content"] for token in definition["added_tokens"])
    scores = {piece: float(score) for piece, score in model["vocab"]} if model["type"] == "Unigram" else {}
    ids = dict(zip(scores, range(len(scores)), strict=True)) if scores else dict(model["vocab"])
    ids |= {token["content"]: token["id"] for token in definition["added_tokens"]}
    names = sorted(ids, key=ids.__getitem__)
    common: dict[str, Any] = {"in_texts": in_texts, "first_space": tokenizer.first_space == " "}
    is_foreign = tokenizer.config.kind == "foreign"
    if problems := list(_foreign_problems(definition) if is_foreign else _own_problems(tokenizer, names)):
        raise InputError("\n  ".join(["llama.cpp splits text differently from this model's tokenizer:", *problems]))

    if _is_byte_level(definition):
        common |= {"splitter": splitter_name(definition), "merges": [" ".join(merge) for merge in model["merges"]]}
        return Vocabulary(algorithm="gpt2", names=names, scores=[0.0] * len(names), **common)
    names = [name.replace(" ", SPACE) for name in names]
    if scores:
        return Vocabulary(algorithm="t5", names=names, scores=list(scores.values()), **common)
    ranks: dict[str, int] = {}  # rank of the merge that produces each piece
    for rank, (left, right) in enumerate(model["merges"]):
        # Several merges can produce the same piece: the one with the lowest rank counts.
        ranks.setdefault((left + right).replace(" ", SPACE), rank)
    # SentencePiece's BPE merges the neighbours whose combined piece has the highest score.
    return Vocabulary(
        algorithm="llama", names=names, scores=[-float(ranks.get(name, len(ranks))) for name in names], **common
    )


def _own_problems(tokenizer: Tokenizer, names: Sequence[str]) -> Iterator[str]:
    """Yield the settings of a tokenizer trained by heedful that llama.cpp does not support."""
    config = tokenizer.config
    if config.kind not in ("bpe", "unigram", "character"):
        yield f'tokenizer.kind = "{config.kind}": must be "bpe", "unigram" or "character"'
    # llama.cpp splits unknown characters into bytes with BPE, and reads them as <unk> with unigram.
    if config.byte_fallback != (config.kind != "unigram"):
        value, other = json.dumps(config.byte_fallback), json.dumps(not config.byte_fallback)
        yield f'tokenizer.byte_fallback = {value}: must be {other} with tokenizer.kind = "{config.kind}"'
    if config.normalization != "none":
        yield f'tokenizer.normalization = "{config.normalization}": must be "none"'
    if config.lowercase:
        yield "tokenizer.lowercase = true: must be false"
    if marked := next((name for name in names[len(reserved(config)) :] if SPACE in name), None):
        yield f"the vocabulary has the piece {marked!r}, but {SPACE!r} is a space in llama.cpp"


def _foreign_problems(definition: Definition) -> Iterator[str]:
    """Yield the features of an imported tokenizer that llama.cpp does not support."""
    model = definition["model"]
    normalizers, splitters = _steps(definition["normalizer"], "normalizers"), _splitters(definition)
    if model["type"] != "BPE" or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        yield f"it is of type {model['type']}, but only BPE without prefixes and suffixes can be exported"
    if not _is_byte_level(definition):
        if not model.get("byte_fallback"):
            yield "it does not split unknown characters into bytes"
        if [*normalizers, *splitters] not in SENTENCEPIECE:
            steps = json.dumps([*normalizers, *splitters], ensure_ascii=False)
            yield f"its normaliser and pre-tokenizer have the steps {steps}"
        return
    if normalizers:
        yield f"it normalises texts: {json.dumps(normalizers, ensure_ascii=False)}"
    if splitter_name(definition) is None:
        steps = json.dumps(splitters, ensure_ascii=False)
        yield f"its pre-tokenizer is not one of {', '.join(SPLITTERS)}: {steps}"


def splitter_name(definition: Definition) -> str | None:
    """Return llama.cpp's name for a byte-level BPE pre-tokenizer; None if it has no equivalent."""
    ignores_merges = bool(definition["model"].get("ignore_merges"))
    splitters = _splitters(definition)
    matches = (
        name for name, (steps, ignores) in SPLITTERS.items() if ignores == ignores_merges and _match(splitters, steps)
    )
    return next(matches, None)


def _is_byte_level(definition: Definition) -> bool:
    return (definition["decoder"] or {}).get("type") == "ByteLevel"


def _splitters(definition: Definition) -> list[Definition]:
    return [step for step in _steps(definition["pre_tokenizer"], "pretokenizers") if step != CUT]


def _steps(step: Definition | None, inner: str) -> list[Definition]:
    return [] if step is None else step[inner] if step["type"] == "Sequence" else [step]


def _match(steps: Sequence[Definition], expected: Sequence[Definition]) -> bool:
    """Return True if steps have the expected settings. Other settings of ByteLevel and Split do not change tokens."""
    return len(steps) == len(expected) and all(
        all(step.get(key) == value for key, value in those.items() if key != "trim_offsets")
        for step, those in zip(steps, expected, strict=True)
    )


def compare_outputs(loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> Agreement:
    """Compare the outputs of a model with those of its export, which llama.cpp runs with a KV cache in float32."""
    engine = Engine(folder, loaded.recipe.data.max_length, present_tokens(loaded.model))
    return compare_generator(loaded, engine, texts, TITLE)


class Engine:
    """Adapter for a GPT in llama.cpp. It takes and returns heedful's token ids.

    Args:
        folder: The folder with model.gguf.
        context: Maximum number of tokens that the model reads.
        present: heedful's id of each token in the file, (V,).
    """

    def __init__(self, folder: Path, context: int, present: Sequence[int]) -> None:
        llama_cpp = import_module("llama_cpp")  # not in the extra gguf, because pip builds it from source
        self.present = np.array(present)
        # Keys and values in float32, and logits of all tokens: by default, llama.cpp rounds keys and values to float16
        # and keeps only the logits of the last token.
        self._llama = llama_cpp.Llama(
            str(folder / FILE),
            n_ctx=context,
            type_k=llama_cpp.GGML_TYPE_F32,
            type_v=llama_cpp.GGML_TYPE_F32,
            logits_all=True,
            verbose=False,
        )

    def continue_greedily(self, prompt: str, count: int, suppressed: Sequence[int]) -> list[int]:
        """Continue a prompt with the most probable tokens except `suppressed`, up to <eos> or `count` tokens."""
        tokens = self._llama.tokenize(prompt.encode(), add_bos=False)
        self._llama.reset()
        output: list[int] = []
        while len(output) < count:
            logits = np.where(np.isin(self.present, suppressed), -np.inf, self._eval(tokens)[-1])
            tokens = [int(logits.argmax())]
            if self.present[tokens[0]] == EOS:
                break
            output.append(int(self.present[tokens[0]]))
        return output

    def log_probs(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Compute the log-probability of each id after the first one, given the ids before it."""
        # `present` is sorted, so the index of an id in it is the id in the file.
        tokens = np.searchsorted(self.present, ids)
        self._llama.reset()
        scores = torch.from_numpy(self._eval(tokens[:-1].tolist())).log_softmax(-1)
        return scores[range(len(scores)), tokens[1:]].numpy()

    def _eval(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """Read T further tokens, and return the logits after each of them, (T, V)."""
        read = self._llama.n_tokens
        self._llama.eval(tokens)
        return self._llama.scores[read : read + len(tokens)].astype(np.float64)


EXPORTER = Exporter(
    title=TITLE,
    writer=write,
    check=reject_misfit,
    tasks=LLAMA.tasks,
    precisions=PRECISIONS,
    compare=compare_outputs,
    engine="llama_cpp",
    changes=changes,
)
