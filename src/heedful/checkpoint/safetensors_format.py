"""Conversion of tensors to the bytes of safetensors files and back, in a single file or sharded over several.

Each process that holds a shard of the weights writes a file: `model-00002-of-00004.safetensors` contains the rows of
the second of four processes. Its metadata has the first row and the total number of rows of each sharded tensor. The
files are read as one, however many processes wrote them.
"""

import json
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from heedful.distributed.shards import is_sharded, local, rows_of
from heedful.storage.atomic import Content
from heedful.storage.complete_folder import DamagedError, Manifest

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
SCALE = ".scale"  # suffix of the name of the scales of a matrix of integers
ROWS = "rows"  # metadata key: JSON of the first row and the total number of rows, by tensor name
PART = re.compile(r"-\d{5}-of-\d{5}(?=\.safetensors$)")
RENAMED = {"trunk": "backbone"}  # parts of weight names in files of older versions


def tensor_file(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a safetensors file tensor by tensor, so that memory never holds a copy of the whole file."""
    # Tensors with larger elements come first, so that every tensor begins at a multiple of its element size.
    entries = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, dict[str, object]] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    end = 0
    for name, tensor in entries:
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    # With this padding, the first tensor begins at a multiple of 8, the largest element size.
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for _, tensor in entries:
        # Viewed as bytes, since numpy has no bfloat16.
        yield tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError, MemoryError) as error:
        raise DamagedError(path, f"is not a readable safetensors file ({error})") from error


def read_tensors(path: Path) -> dict[str, Tensor]:
    with _named_errors(path):
        return {current_name(name): tensor for name, tensor in load_file(path).items()}


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read the names and shapes of the tensors in a safetensors file from its header, without their values.

    The scales of matrices of integers are not listed.
    """
    with _named_errors(path), safe_open(path, "pt") as file:
        names = file.keys()
        slices = {name: file.get_slice(name) for name in names}
        scales = {name + SCALE for name, value in slices.items() if value.get_dtype() in ("I8", "U8")}
        shapes = {name: tuple(value.get_shape()) for name, value in slices.items() if name not in scales}
        # A byte of an int4 matrix holds two columns.
        packed = {name for name in shapes if slices[name].get_dtype() == "U8" and name + SCALE in slices}
        return {
            current_name(name): (*shape[:-1], 2 * shape[-1]) if name in packed and shape else shape
            for name, shape in shapes.items()
        }


def read_metadata(path: Path) -> dict[str, str]:
    with _named_errors(path), safe_open(path, "pt") as file:
        return file.metadata() or {}


def current_name(name: str) -> str:
    """Translate a weight name of an older version: "trunk.embedding.weight" becomes "backbone.embedding.weight"."""
    return ".".join(RENAMED.get(part, part) for part in name.split("."))


def part_name(name: str, rank: int, world_size: int) -> str:
    """Return the file name for one process: "model-00002-of-00004.safetensors" for "model.safetensors"."""
    return name.replace(".safetensors", f"-{rank + 1:05d}-of-{world_size:05d}.safetensors")


def part_file(tensors: Mapping[str, Tensor], *, is_rank_zero: bool) -> Content:
    """Return the bytes of one process's file: its rows, and on rank zero also the tensors that are not sharded."""
    own: dict[str, Tensor] = {}
    own_rows: dict[str, list[int]] = {}  # the first row and the total number of rows
    for name, tensor in tensors.items():
        if not is_sharded(tensor):
            if is_rank_zero:
                own[name] = tensor
        # With HSDP, several processes hold the same rows, which only one of them writes. If a tensor has fewer rows
        # than there are processes, some hold none.
        elif (rows := rows_of(tensor)).first_copy and rows.end > rows.begin:
            own[name], own_rows[name] = local(tensor), [rows.begin, rows.all]
    return tensor_file(own, {ROWS: json.dumps(own_rows)})


class Part(NamedTuple):
    """File of one process, with the first row and the total number of rows of each sharded tensor, by name."""

    path: Path
    rows: dict[str, tuple[int, int]]


def files_of(manifest: Manifest, name: str) -> list[str]:
    """List the files of a folder that contain the tensors of `name`: a single file, or one per process in order."""
    return sorted(file for file in manifest.files if PART.sub("", file) == name)


def parts_of(manifest: Manifest, name: str, verify: Callable[[str], Path]) -> Iterator[Part]:
    """Yield the files of several processes that together contain the tensors of `name`, each checked by `verify`."""
    for file in files_of(manifest, name):
        path = verify(file)
        try:
            rows = json.loads(read_metadata(path)[ROWS])
            yield Part(path, {current_name(key): (int(begin), int(count)) for key, (begin, count) in rows.items()})
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise DamagedError(path, f"does not say which rows of the tensors it contains ({error})") from error


def whole_shapes(manifest: Manifest, name: str) -> dict[str, tuple[int, ...]]:
    """Read the shapes of the whole tensors of `name`, from one file or several, and verify only the files' sizes."""
    if files_of(manifest, name) in ([], [name]):
        return read_shapes(manifest.verify_size(name))
    return {
        key: (part.rows[key][1], *shape[1:]) if key in part.rows else shape
        for part in parts_of(manifest, name, manifest.verify_size)
        for key, shape in read_shapes(part.path).items()
    }


def read_whole(manifest: Manifest, name: str) -> dict[str, Tensor]:
    """Read and verify the tensors of `name`, on the CPU, from a single file or from the files of several processes."""
    if name in manifest.files:
        return read_tensors(manifest.verify(name))
    tensors: dict[str, Tensor] = {}
    rows: dict[str, int] = {}  # number of rows read so far, by tensor name
    for part in parts_of(manifest, name, manifest.verify):
        for key, tensor in read_tensors(part.path).items():
            if key not in part.rows:
                tensors[key] = tensor
                continue
            begin, count = part.rows[key]
            if key not in tensors:
                tensors[key] = torch.empty(count, *tensor.shape[1:], dtype=tensor.dtype)
            tensors[key][begin : begin + len(tensor)] = tensor
            rows[key] = rows.get(key, 0) + len(tensor)
    missing = [key for key, count in rows.items() if count != len(tensors[key])]
    if missing or not tensors:
        raise DamagedError(manifest.folder / name, f"lacks rows of {', '.join(missing) or 'its tensors'}")
    return tensors
