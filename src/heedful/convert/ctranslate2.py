"""Reading of model folders in CTranslate2's format: model.bin, config.json and the vocabulary files.

model.bin is little-endian: the format version, the name and revision of the model's specification, the variables, and,
since version 3, the aliases, which are second names of variables. A variable is stored as name, shape, type, size and
values. Versions 2 and 3 give the type as bytes per element, later versions as a type number. A string is stored as its
length, including the closing zero byte, and its bytes.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np

from heedful.convert.settings import CONFIG, read_config, read_json
from heedful.errors import InputError
from heedful.storage.disk import read_small
from heedful.text.tokenizer import MAX_FILE
from heedful.wording import counted

MODEL_BIN = "model.bin"
MIN_VERSION, MAX_VERSION = 2, 6  # of the format
ALIASES_SINCE, TYPES_SINCE = 3, 4  # versions
TYPE_BY_WIDTH = {4: "float32", 2: "int16", 1: "int8"}
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
STORED = {"bfloat16": "uint16"}  # numpy has no bfloat16: the bits are read as integers
INT16_SCALE = np.float32(1000.0)  # the scale of int16 variables that have no variable NAME_scale
MIN_SCALE = 1e-30  # far below any real scale, and large enough that dividing by it stays finite
MAX_AXES = 8
REMEDY = "damaged, or not a CTranslate2 model; convert or download it again"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ModelBin:
    """Contents of CTranslate2's model.bin: format version, specification, variables and aliases."""

    version: int  # of the format
    spec: str  # such as "TransformerSpec"
    revision: int
    variables: dict[str, np.ndarray]  # weights as float32, settings as stored; an alias shares its variable's array
    aliases: dict[str, str]  # second name -> name of the variable


@dataclass(frozen=True, kw_only=True)
class Ctranslate2Model:
    """Model folder in CTranslate2's format: model.bin, config.json and both vocabularies."""

    binary: ModelBin
    config: dict[str, Any]  # config.json; empty if the folder has no config.json
    source_vocabulary: list[str]
    target_vocabulary: list[str]


def read_ctranslate2(folder: Path) -> Ctranslate2Model:
    """Read a model folder in CTranslate2's format: weights, vocabularies, and config.json if there is one."""
    config = read_config(folder) if (folder / CONFIG).exists() else {}
    binary = read_model_bin(folder / MODEL_BIN)
    source, target = read_vocabularies(folder)
    return Ctranslate2Model(binary=binary, config=config, source_vocabulary=source, target_vocabulary=target)


def read_model_bin(path: Path) -> ModelBin:
    """Read the variables of a CTranslate2 model from its model.bin.

    Weights in 16 bits and quantised weights become float32: int8 and int16 values are divided by their scales, one per
    row or one per matrix.
    """
    try:
        with path.open("rb") as file:
            return _model_bin(_Reader(file, path))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); check that {path.parent} is a model folder in "
            "CTranslate2's format"
        ) from error


def read_specification(path: Path) -> str:
    """Read the name of the specification in a model.bin, such as "TransformerSpec", without the variables."""
    try:
        with path.open("rb") as file:
            return _specification(_Reader(file, path))[1]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def read_vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """Read the source and target vocabularies of a CTranslate2 folder, with tokens in the order of their ids."""
    for stems in (("source_vocabulary", "target_vocabulary"), ("shared_vocabulary",) * 2, ("vocabulary",) * 2):
        candidates = ((folder / f"{stem}.json", folder / f"{stem}.txt") for stem in stems)
        source, target = (next((path for path in pair if path.is_file()), None) for pair in candidates)
        if source and target:
            return _vocabulary(source), _vocabulary(target)
    raise InputError(
        f"{folder}: has no vocabularies; it needs source_vocabulary and target_vocabulary, or shared_vocabulary, "
        "as .json or .txt"
    )


class _Reader:
    """Reader of values from a binary file; it checks sizes first, so that a damaged file does not exhaust memory."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.path = path
        self._file = file
        self._remaining = file.seek(0, 2)
        file.seek(0)

    def take(self, count: int) -> bytes:
        """Read the next `count` bytes; raise an InputError if fewer remain."""
        if count > self._remaining:
            raise self.error(f"expected {counted(count, 'bytes')}, but only {self._remaining:,} left")
        data = self._file.read(count)
        if len(data) != count:
            raise self.error("the file was shortened while it was read")
        self._remaining -= count
        return data

    def number(self, form: str) -> int:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self) -> str:
        """Read the next string: its length, its UTF-8 bytes and a zero byte."""
        text = self.take(self.number("<H"))
        if not text.endswith(b"\0"):
            raise self.error("a name is not terminated")
        try:
            return text[:-1].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error("a name is not UTF-8") from error

    def end(self) -> None:
        if self._remaining:
            raise self.error(f"{counted(self._remaining, 'bytes')} after the end of the model")

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.path}, byte {self._file.tell()}: {problem}: {REMEDY}")


def _specification(reader: _Reader) -> tuple[int, str]:
    version = reader.number("<I")
    if not MIN_VERSION <= version <= MAX_VERSION:
        raise InputError(
            f"{reader.path}: has version {version} of CTranslate2's format, but heedful reads only {MIN_VERSION} to "
            f"{MAX_VERSION}; convert the original model with another release of CTranslate2"
        )
    return version, reader.string()


def _model_bin(reader: _Reader) -> ModelBin:
    version, spec = _specification(reader)
    revision = reader.number("<I")
    stored: dict[str, np.ndarray] = {}
    aliases: dict[str, str] = {}
    for _ in range(reader.number("<I")):
        _add(reader, stored, *_variable(reader, version))
    for _ in range(reader.number("<I") if version >= ALIASES_SINCE else 0):
        _add(reader, aliases, reader.string(), reader.string())
    reader.end()
    # A scale is applied to the variable that it belongs to; it is not a weight of the model.
    scales = {f"{name}_scale" for name in stored}
    variables = {name: _dequantized(name, stored, reader) for name in stored if name not in scales}
    for alias, name in aliases.items():
        if alias in variables or name not in variables:
            raise reader.error(f"{alias!r} cannot be a second name for {name!r}")
    variables |= {alias: variables[name] for alias, name in aliases.items()}
    return ModelBin(version=version, spec=spec, revision=revision, variables=variables, aliases=aliases)


def _add(reader: _Reader, entries: dict[str, T], name: str, value: T) -> None:
    if name in entries:
        raise reader.error(f"{name!r} occurs twice")
    entries[name] = value


def _variable(reader: _Reader, version: int) -> tuple[str, np.ndarray]:
    name = reader.string()
    shape = tuple(reader.number("<I") for _ in range(reader.number("<B")))
    kind = reader.number("<B")
    kinds: Mapping[int, str] = TYPE_BY_WIDTH if version < TYPES_SINCE else dict(enumerate(TYPES))
    if kind not in kinds:
        raise reader.error(f"the variable {name!r} has the unknown type {kind}")
    dtype = np.dtype(STORED.get(kinds[kind], kinds[kind])).newbyteorder("<")
    size = reader.number("<I") * (kind if version < TYPES_SINCE else 1)  # elements in versions 2 and 3, bytes later
    if size != math.prod(shape) * dtype.itemsize or size == 0 or len(shape) > MAX_AXES:
        bytes_text = counted(size, "bytes")
        raise reader.error(
            f"the variable {name!r} has an invalid size: shape {shape}, type {kinds[kind]}, but {bytes_text}"
        )
    values = np.frombuffer(reader.take(size), dtype).reshape(shape)
    if kinds[kind] == "bfloat16":  # its bits are the upper half of a float32
        return name, (values.astype(np.uint32) << 16).view(np.float32)
    # Arrays of np.frombuffer are read-only, and torch.from_numpy warns about them: copy what is not converted.
    return name, values.astype(np.float32) if kinds[kind] == "float16" else values.copy()


def _dequantized(name: str, stored: Mapping[str, np.ndarray], reader: _Reader) -> np.ndarray:
    """Return a quantised variable divided by its scale, and any other unchanged, such as the number of heads."""
    value = stored[name]
    default = INT16_SCALE if value.dtype == np.int16 and value.ndim else None
    scale = stored.get(f"{name}_scale", default)
    is_quantised = value.dtype in (np.int8, np.int16)
    if value.ndim > 1 and (scale is None or not is_quantised) and value.dtype.kind != "f":
        raise reader.error(f"the {value.dtype} matrix {name!r} has no scale")
    if scale is None or not is_quantised:
        return value
    # (rows,) -> (rows, 1, ...), to divide each row by its scale.
    rows = scale.reshape(scale.shape + (1,) * (value.ndim - scale.ndim)) if scale.ndim else scale
    if (
        scale.shape not in ((), value.shape[:1])
        or scale.dtype != np.float32
        # NaN fails both comparisons, so a damaged scale is rejected as well.
        or not np.all((rows > MIN_SCALE) & (rows < np.inf))
    ):
        raise reader.error(
            f"{name}_scale, of shape {scale.shape}, is not a valid scale for {name!r}, of shape {value.shape}"
        )
    return value.astype(np.float32) / rows


def _vocabulary(path: Path) -> list[str]:
    if path.suffix == ".json":
        tokens = read_json(path)
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise InputError(f"{path}: is not a list of tokens: {REMEDY}")
        return tokens
    try:
        # Not splitlines, which also splits at characters that can be tokens, such as U+2028.
        return read_small(path, MAX_FILE).decode("utf-8").removesuffix("\n").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8: {REMEDY}") from error
