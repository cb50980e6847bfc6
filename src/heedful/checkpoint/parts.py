"""Sharded tensors on disk: each process writes the rows that it holds to a safetensors file of its own.

`model-00002-of-00004.safetensors` holds the rows of the second of four processes; its metadata say for each tensor
where its rows begin, and of how many there are. The files are read as one, whatever number of processes wrote them.
"""

import json
import re
from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.checkpoint.tensors import current_name, read_metadata, read_tensors, tensor_file
from heedful.parallel import Sharded, local, rows_of
from heedful.storage.atomic import Content
from heedful.storage.manifest import DamagedError, Manifest

ROWS = "rows"  # the key of the metadata: JSON of the first row and the number of all rows, by the name of the tensor
PART = re.compile(r"-\d{5}-of-\d{5}(?=\.safetensors$)")


def part_name(name: str, rank: int, world_size: int) -> str:
    """Name of the file of one process: "model-00002-of-00004.safetensors" for "model.safetensors"."""
    return name.replace(".safetensors", f"-{rank + 1:05d}-of-{world_size:05d}.safetensors")


def part_file(tensors: Mapping[str, Tensor], *, is_first: bool) -> Content:
    """Produce the bytes of the file of one process: its rows, and whole tensors if it is the first process."""
    own: dict[str, Tensor] = {}
    places: dict[str, list[int]] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Sharded):
            if is_first:
                own[name] = tensor
        elif (rows := rows_of(tensor)).first_copy and rows.end > rows.begin:
            own[name], places[name] = local(tensor), [rows.begin, rows.all]
    return tensor_file(own, {ROWS: json.dumps(places)})


def read_whole(manifest: Manifest, name: str) -> dict[str, Tensor]:
    """Read the tensors of a folder, verified, on the CPU, from one file or from those of several processes.

    Args:
        manifest: the manifest of the folder.
        name: the name of the file, such as "model.safetensors".

    Raises:
        DamagedError: A file is not what was saved, or rows are missing.
    """
    if name in manifest.files:
        return read_tensors(manifest.verified(name))
    found: dict[str, Tensor] = {}
    read: dict[str, int] = {}
    for file in sorted(file for file in manifest.files if PART.sub("", file) == name):
        path = manifest.verified(file)
        places = {current_name(one): place for one, place in json.loads(read_metadata(path)[ROWS]).items()}
        for one, tensor in read_tensors(path).items():
            if one not in places:
                found[one] = tensor
                continue
            begin, count = places[one]
            if one not in found:
                found[one] = torch.empty(count, *tensor.shape[1:], dtype=tensor.dtype)
            found[one][begin : begin + len(tensor)] = tensor
            read[one] = read.get(one, 0) + len(tensor)
    missing = [one for one, count in read.items() if count != len(found[one])]
    if missing or not found:
        raise DamagedError(manifest.folder / name, f"has not all rows of {', '.join(missing) or 'its tensors'}")
    return found
