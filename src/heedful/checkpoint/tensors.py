"""Writes and reads safetensors files."""

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from heedful.storage.manifest import DamagedError

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
RENAMED = {"trunk": "backbone"}  # parts of the names of weights in the files of older versions


def tensor_file(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """Produce the bytes of a safetensors file, a tensor at a time, so that the whole is never in memory twice."""
    # Tensors with larger elements come first, so that every tensor begins at a multiple of its element size.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, dict[str, object]] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    end = 0
    for name, tensor in ordered:
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for _, tensor in ordered:
        yield tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, on the CPU.

    Raises:
        DamagedError: The file is not a safetensors file.
    """
    try:
        return {current_name(name): tensor for name, tensor in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise DamagedError(path, f"is no readable safetensors file ({error})") from error


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read the names and shapes of the tensors of a safetensors file from its header, without their numbers.

    Raises:
        DamagedError: The file is not a safetensors file.
    """
    try:
        with safe_open(path, "pt") as file:
            names = file.keys()
            return {current_name(name): tuple(file.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError, MemoryError) as error:
        raise DamagedError(path, f"is no readable safetensors file ({error})") from error


def current_name(name: str) -> str:
    """Translate a weight's name of an older version: "trunk.embedding.weight" becomes "backbone.embedding.weight"."""
    return ".".join(RENAMED.get(part, part) for part in name.split("."))


def read_metadata(path: Path) -> dict[str, str]:
    """Read the metadata of a safetensors file, without its tensors.

    Raises:
        DamagedError: The file is not a safetensors file.
    """
    try:
        with safe_open(path, "pt") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise DamagedError(path, f"is no readable safetensors file ({error})") from error
