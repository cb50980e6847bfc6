"""Small tokenizers of other toolkits, made on the spot."""

import json
import struct
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

LINES = [
    "The cat sits on the mat, and the other cat sat there!",
    "Unaffable Zürich cafés don't play; playing players played.",
    "我吃苹果。他也吃苹果，苹果很好吃。",
    "A man in 2024: it's 12.5 km to the next café?",
] * 3
TEXTS = [
    *LINES[:4],
    "",
    "  two  spaces ",
    "THE ÉCOLE naïve ☃ Ωmega",
    "tab\tand\nline",
    "cat 我 plays 我吃x",
    "(don't)...",
    "ﬁnal Ⅳ",
]
MARIAN_SCORES = {
    "▁": -3.1,
    "▁the": -2.3,
    "▁cat": -2.9,
    "s": -2.7,
    "▁s": -3.7,
    "at": -3.3,
    "it": -4.1,
    "a": -5.3,
    "t": -5.9,
}


def bert_vocabulary() -> list[str]:
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer = normalizers.BertNormalizer(lowercase=False)
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    named = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    learner.train_from_iterator(
        LINES + [line.lower() for line in LINES],
        trainers.WordPieceTrainer(vocab_size=211, special_tokens=named, show_progress=False),
    )
    vocabulary = learner.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def write_bert(folder: Path, **settings: object) -> Path:
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(bert_vocabulary()) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **settings}))
    return folder


def write_gpt2(folder: Path) -> Path:
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=307, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(LINES, trainer)
    model = json.loads(learner.to_str())["model"]
    vocabulary = model["vocab"] | {"<|endoftext|>": len(model["vocab"])}
    merges = ["#version: 0.2", *(" ".join(merge) for merge in model["merges"])]
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    return folder


def write_clip(folder: Path) -> Path:
    """The vocabulary of CLIP's tokenizer: bytes, bytes that end a word, merges of them, and two special tokens."""
    learner = tokenizers.Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    learner.normalizer = normalizers.Lowercase()
    split = pre_tokenizers.Split(tokenizers.Regex(r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", invert=True)
    learner.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=613, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False
    )
    learner.train_from_iterator(LINES, trainer)
    model = json.loads(learner.to_str())["model"]
    merged = ["".join(merge) for merge in model["merges"]]
    named = ["<|startoftext|>", "<|endoftext|>"]
    names = dict.fromkeys([*alphabet, *(f"{byte}</w>" for byte in alphabet), *merged, *named])
    merges = ["#version: 0.2", *(" ".join(merge) for merge in model["merges"])]
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
    special = {"bos_token": named[0], "eos_token": named[1], "unk_token": named[1], "pad_token": named[1]}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer", **special}))
    return folder


SPOKEN = ["en", "de", "yue"]
CONTROLS = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in SPOKEN), "<|translate|>"]
CONTROLS += ["<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def write_whisper(folder: Path, times: int) -> list[str]:
    """The tokenizer of a Whisper with so many time stamps; returns all tokens in the order of their ids."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=283, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(LINES, trainer)
    learner.add_special_tokens(CONTROLS)
    learner.add_tokens([tokenizers.AddedToken(f"<|{i * 0.02:.2f}|>", normalized=False) for i in range(times)])
    folder.mkdir()
    learner.save(str(folder / "tokenizer.json"))
    settings = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), "<|endoftext|>")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer", **settings}))
    ids = learner.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def write_unigram(folder: Path) -> Path:
    """The layout of T5 and XLM-R: pieces with U+2581, and a name that is found in texts."""
    library = tokenizers.Tokenizer(models.Unigram())
    library.normalizer = normalizers.NFKC()
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    named = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=97, special_tokens=named, unk_token="<unk>", show_progress=False)
    library.train_from_iterator(LINES, trainer)
    library.add_tokens(["<speaker>"])
    library.add_special_tokens(["<mask>"])
    library.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    library.enable_truncation(7)
    folder.mkdir()
    library.save(str(folder / "tokenizer.json"))
    settings = {
        "bos_token": "<s>",
        "eos_token": {"__type": "AddedToken", "content": "</s>"},
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    settings |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_llama(folder: Path) -> Path:
    """The layout of Llama 2 and TinyLlama: BPE as in SentencePiece, with bytes for characters that it lacks."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=151, show_progress=False)
    learner.train_from_iterator(LINES, trainer)
    model = json.loads(learner.to_str())["model"]
    named = ["<unk>", "<s>", "</s>"]
    names = [*named, *(f"<0x{byte:02X}>" for byte in range(256)), *sorted(model["vocab"], key=model["vocab"].get)]
    model |= {"vocab": {name: i for i, name in enumerate(names)}, "unk_token": "<unk>"}
    model |= {"byte_fallback": True, "fuse_unk": True}
    definition = json.loads(learner.to_str()) | {"model": model, "pre_tokenizer": None}
    library = tokenizers.Tokenizer.from_str(json.dumps(definition))
    library.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    strip = decoders.Strip(" ", left=1, right=0)
    library.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip])
    library.add_special_tokens(named)
    library.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    folder.mkdir()
    library.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "pad_token": "</s>"}
    settings |= {"bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def gpt4_words(digits: str) -> pre_tokenizers.PreTokenizer:
    """The words of GPT-4 and its successors, with numbers cut into this many digits."""
    expression = (
        rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    words = pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


SPLITTERS = {  # of byte-level BPE, by the names of llama.cpp
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    ),
    "llama-bpe": gpt4_words("{1,3}"),
    "qwen2": gpt4_words(""),
}


def write_smollm(folder: Path, splitter: str = "smollm") -> Path:
    """The layout of SmolLM: byte-level BPE, one token for both ends of a text, and names of roles in a conversation."""
    library = tokenizers.Tokenizer(models.BPE(ignore_merges=splitter == "llama-bpe"))
    library.pre_tokenizer = SPLITTERS[splitter]
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    named = ["<|endoftext|>", "<|im_start|>"]
    trainer = trainers.BpeTrainer(vocab_size=309, initial_alphabet=alphabet, special_tokens=named, show_progress=False)
    library.train_from_iterator(LINES, trainer)
    folder.mkdir()
    library.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "GPT2Tokenizer", "bos_token": named[0], "eos_token": named[0], "unk_token": named[0]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_marian(folder: Path) -> Path:
    folder.mkdir()
    (folder / "source.spm").write_bytes(sentencepiece(MARIAN_SCORES))
    (folder / "target.spm").write_bytes(sentencepiece({"▁": -2.3, "▁die": -3.1, "e": -3.7, "Ä": -4.3}))
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(marian_pieces())}))
    return folder


def marian_pieces() -> list[str]:
    return ["</s>", "<unk>", *sorted({*MARIAN_SCORES, "▁die", "e", "Ä", ">>de<<"}), "<pad>"]


def sentencepiece(scores: dict[str, float], model_type: int = 1) -> bytes:
    """A model of SentencePiece in the encoding of Protocol Buffers."""
    controls = [piece("<unk>", 0.0, 2), piece("<s>", 0.0, 3), piece("</s>", 0.0, 3)]
    pieces = [*controls, *(piece(name, score) for name, score in scores.items())]
    trainer = b"\x18" + bytes([model_type]) + inner(44, b" ? ")
    return b"".join(inner(1, message) for message in pieces) + inner(2, trainer) + inner(3, inner(1, b"identity"))


def piece(name: str, score: float, kind: int = 1) -> bytes:
    return (
        inner(1, name.encode()) + b"\x15" + struct.pack("<f", score) + (b"" if kind == 1 else b"\x18" + bytes([kind]))
    )


def inner(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])
