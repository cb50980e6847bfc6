"""Export of tokenizers to SentencePiece: a .model file for its library, and a human-readable .vocab file.

heedful splits a text into words before it looks for pieces, and SentencePiece does not. Both find the same pieces,
because none of heedful's pieces crosses the end of a word. In BPE, both must merge in the same order: SentencePiece
merges the piece with the highest score first, so the score of a piece is minus the rank of its merge in heedful.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tokenizers import normalizers

from heedful.checkpoint.load import LoadedModel
from heedful.config.schema import TokenizerConfig
from heedful.convert.exporter import Agreement, Exporter
from heedful.convert.model import Model, check_empty
from heedful.errors import InputError
from heedful.storage.atomic import atomic_folder, named_write_errors
from heedful.text.pipeline import BOS, EOS, PAD, SPACE, SPECIALS, UNK, first_space
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_pair import TokenizerPair

TITLE = "SentencePiece"
KINDS = {"bpe": "BPE", "unigram": "UNIGRAM", "character": "CHAR", "byte": "CHAR"}  # types of SentencePiece models
NAMES = {True: ("sentencepiece",), False: ("source", "target")}  # of the files, by whether the tokenizer is joint
MISSING = 'the export needs sentencepiece: pip install "heedful[sentencepiece]"'


def write(model: Model, folder: Path, _: str = "float32") -> int:
    """Write the tokenizers of a model to a new or empty folder: sentencepiece.model, or source.model and target.model.

    Each has a .vocab file next to it. Returns 0, because no weights are written.

    Raises:
        InputError: The package is not installed.
        RunError: The folder cannot be written.
    """
    check_empty(folder)
    sides = tokenizers_by_name(model.tokenizers)
    files = {name: sentencepiece_model(tokenizer) for name, tokenizer in sides.items()}
    with named_write_errors(folder), atomic_folder(folder.resolve()) as writer:
        for name, file in files.items():
            writer.write(f"{name}.model", [file.SerializeToString()])
            lines = "".join(f"{piece.piece}\t{piece.score:g}\n" for piece in file.pieces)
            writer.write(f"{name}.vocab", [lines.encode("utf-8")])
    return 0


def tokenizers_by_name(pair: TokenizerPair) -> dict[str, Tokenizer]:
    """Return the tokenizers of a pair by file name."""
    return dict(zip(NAMES[pair.joint], (pair.source, pair.target), strict=False))


def sentencepiece_model(tokenizer: Tokenizer) -> Any:
    """Build a SentencePiece model, a Protocol Buffers message, that encodes and decodes like a tokenizer that fits.

    Raises:
        InputError: The package is not installed.
    """
    messages = message_types()
    config, scores = tokenizer.config, scores_of(tokenizer)
    names = tokenizer.texts(range(len(tokenizer)))
    file, piece = messages.ModelProto(), messages.ModelProto.SentencePiece
    for i, name in enumerate(names):
        kind = piece.NORMAL
        if i < tokenizer.first_piece:
            kind = piece.UNKNOWN if i == UNK else piece.CONTROL  # texts are not searched for control symbols
        elif i in tokenizer.byte_ids:
            kind = piece.BYTE
        # SentencePiece writes a space as U+2581 in its pieces; heedful keeps the space itself.
        file.pieces.add(piece=name.replace(" ", SPACE), score=scores.get(name, 0.0), type=kind)

    trainer = file.trainer_spec
    trainer.model_type = messages.TrainerSpec.ModelType.Value(KINDS[config.kind])
    trainer.vocab_size = len(names)
    trainer.byte_fallback = True
    trainer.pad_id, trainer.unk_id, trainer.bos_id, trainer.eos_id = PAD, UNK, BOS, EOS
    trainer.pad_piece, trainer.unk_piece, trainer.bos_piece, trainer.eos_piece = SPECIALS
    # The text that <unk> decodes to; by default U+2047 between spaces.
    trainer.unk_surface = SPECIALS[UNK]

    # Without a character table nothing is normalised. By default SentencePiece removes repeated spaces, which heedful
    # keeps.
    normalizer = file.normalizer_spec
    normalizer.name = "identity"
    normalizer.add_dummy_prefix = first_space(config) != ""
    normalizer.remove_extra_whitespaces = False
    normalizer.escape_whitespaces = " " in names  # a space that is not a piece is encoded as the byte 0x20
    if config.lowercase:
        normalizer.name = "lowercase"
        normalizer.precompiled_charsmap = lowercase_table()
    return file


def message_types() -> Any:
    """Import the Protocol Buffers messages that a .model file consists of."""
    try:
        return import_module("sentencepiece.sentencepiece_model_pb2")
    except ImportError as error:
        raise InputError(MISSING) from error


def reject_misfit(model: Model) -> None:
    """Raise an InputError if SentencePiece cannot represent the tokenizers of a model."""
    for tokenizer in tokenizers_by_name(model.tokenizers).values():
        if misfits := sentencepiece_misfits(tokenizer):
            raise InputError("\n  ".join(["SentencePiece cannot represent the tokenizer:", *misfits]))


def sentencepiece_misfits(tokenizer: Tokenizer) -> list[str]:
    """List the settings of a tokenizer that SentencePiece cannot represent, each with the values that it supports."""
    config: TokenizerConfig = tokenizer.config
    misfits = []
    if config.kind not in KINDS:
        choices = ", ".join(f'"{kind}"' for kind in KINDS)
        misfits.append(f'tokenizer.kind = "{config.kind}": must be one of {choices}')
    if config.normalization != "none":
        misfits.append(f'tokenizer.normalization = "{config.normalization}": must be "none"')
    if not config.byte_fallback:
        # SentencePiece joins consecutive unknown characters into one <unk>.
        misfits.append("tokenizer.byte_fallback = false: must be true")
    if config.kind in KINDS and any(SPACE in name for name in tokenizer.texts(range(len(tokenizer)))):
        misfits.append(
            f'the vocabulary has the character "{SPACE}" (U+2581), which SentencePiece writes for a space: the '
            "tokenizer must be trained on text without it"
        )
    return misfits


def scores_of(tokenizer: Tokenizer) -> dict[str, float]:
    """Return the scores of a tokenizer's pieces.

    In BPE, the pair of pieces with the highest score is merged first. In unigram, scores are log-probabilities.
    """
    model = json.loads(tokenizer.definition)["model"]
    if tokenizer.config.kind == "unigram":
        return dict(model["vocab"])
    return {left + right: -float(rank) for rank, (left, right) in enumerate(model["merges"])}


def lowercase_table() -> bytes:
    """Compile the table with which SentencePiece replaces each character with its lower case."""
    import sentencepiece

    # All characters in one call. Surrogates cannot be encoded, and the line feed is the separator.
    characters = [chr(i) for i in range(1, 0x110000) if not 0xD800 <= i < 0xE000 and i != ord("\n")]
    lower = normalizers.Lowercase().normalize_str("\n".join(characters)).split("\n")

    def numbers(text: str) -> str:
        return " ".join(f"{ord(character):X}" for character in text)

    rules = [f"{numbers(a)}\t{numbers(b)}\n" for a, b in zip(characters, lower, strict=True) if a != b]
    sentencepiece.set_min_log_level(1)  # it logs its progress to standard error
    with TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        table.write_text("".join(rules), encoding="ascii")
        compiled = sentencepiece.SentencePieceNormalizer(rule_tsv=str(table))
    file = message_types().ModelProto.FromString(compiled.serialized_model_proto())
    return file.normalizer_spec.precompiled_charsmap


def compare_outputs(loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> Agreement:
    """Compare the ids and the decoded texts of a model's tokenizers with SentencePiece's.

    Texts with the character U+2581 are left out: SentencePiece reads it as a space.
    """
    from sentencepiece import SentencePieceProcessor

    texts = [text for text in texts if SPACE not in text]
    is_equal = [True] * len(texts)
    for name, tokenizer in tokenizers_by_name(loaded.tokenizers).items():
        processor = SentencePieceProcessor(model_file=str(folder / f"{name}.model"))
        ours, theirs = tokenizer.encode_batch(texts), processor.encode(list(texts))
        for index, (ids, their_ids) in enumerate(zip(ours, theirs, strict=True)):
            is_equal[index] &= ids == their_ids and tokenizer.decode(ids) == processor.decode(their_ids)
    return Agreement(inputs=len(texts), equal=sum(is_equal), difference=0.0, program=TITLE)


EXPORTER = Exporter(title=TITLE, writer=write, check=reject_misfit, compare=compare_outputs, architecture=None)
