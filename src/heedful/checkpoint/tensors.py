"""Contents of safetensors files, whole or in parts: each process that shares the weights has a file with its rows.

`run_folder` writes them to checkpoints, and `model_folder` to model folders.

`model-00002-of-00004.safetensors` holds the rows of the second of four processes; its metadata say for each tensor
where its rows begin, and of how many there are. The files are read as one, whatever number of processes wrote them.
"""

import json
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from heedful.distributed import Sharded, local, rows_of
from heedful.storage.atomic import Content
from heedful.storage.manifest import DamagedError, Manifest

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
ROWS = "rows"  # the key of the metadata: JSON of the first row and the number of all rows, by the name of the tensor
PART = re.compile(r"-\d{5}-of-\d{5}(?=\.safetensors$)")
RENAMED = {"trunk": "backbone"}  # parts of the names of weights in the files of older versions


def tensor_file(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """Produce the bytes of a safetensors file, a tensor at a time, so that the whole is never in memory twice."""
    # Tensors with larger elements come first, so that every tensor begins at a multiple of its element size.
    entries = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, dict[str, object]] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    end = 0
    for name, tensor in entries:
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for _, tensor in entries:
        yield tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return {current_name(name): tensor for name, tensor in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise DamagedError(path, f"is no readable safetensors file ({error})") from error


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read the names and shapes of the tensors of a safetensors file from its header, without their numbers."""
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
    try:
        with safe_open(path, "pt") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise DamagedError(path, f"is no readable safetensors file ({error})") from error


def part_name(name: str, rank: int, world_size: int) -> str:
    """Name of the file of one process: "model-00002-of-00004.safetensors" for "model.safetensors"."""
    return name.replace(".safetensors", f"-{rank + 1:05d}-of-{world_size:05d}.safetensors")


def part_file(tensors: Mapping[str, Tensor], *, is_rank_zero: bool) -> Content:
    """Produce the bytes of the file of one process: its rows, and whole tensors if it is the first process."""
    own: dict[str, Tensor] = {}
    places: dict[str, list[int]] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Sharded):
            if is_rank_zero:
                own[name] = tensor
        elif (rows := rows_of(tensor)).first_copy and rows.end > rows.begin:
            own[name], places[name] = local(tensor), [rows.begin, rows.all]
    return tensor_file(own, {ROWS: json.dumps(places)})


def read_whole(manifest: Manifest, name: str) -> dict[str, Tensor]:
    """Read the tensors of a folder, verified, on the CPU, from one file or from those of several processes."""
    if name in manifest.files:
        return read_tensors(manifest.verified(name))
    tensors: dict[str, Tensor] = {}
    rows: dict[str, int] = {}  # read so far, by the name of the tensor
    for file in sorted(file for file in manifest.files if PART.sub("", file) == name):
        path = manifest.verified(file)
        places = {current_name(one): place for one, place in json.loads(read_metadata(path)[ROWS]).items()}
        for one, tensor in read_tensors(path).items():
            if one not in places:
                tensors[one] = tensor
                continue
            begin, count = places[one]
            if one not in tensors:
                tensors[one] = torch.empty(count, *tensor.shape[1:], dtype=tensor.dtype)
            tensors[one][begin : begin + len(tensor)] = tensor
            rows[one] = rows.get(one, 0) + len(tensor)
    missing = [one for one, count in rows.items() if count != len(tensors[one])]
    if missing or not tensors:
        raise DamagedError(manifest.folder / name, f"has not all rows of {', '.join(missing) or 'its tensors'}")
    return tensors
