"""Everything that a model computes for one text, by name: `heedful.trace("en-de", "Two dogs are running.")`.

On disk and on the wire a trace is a safetensors file whose metadata hold a manifest in JSON (`SCHEMA`), so that any
reader of that format gets at every number.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.checkpoint.tensors import read_metadata, read_tensors, tensor_file
from heedful.decode.translator import evaluating
from heedful.errors import InputError
from heedful.inspect_.pieces import Pieces
from heedful.inspect_.reading import Line, Reading, reading
from heedful.inspect_.recorder import Edit, recording
from heedful.inspect_.stored import STORED
from heedful.inspect_.taps import STREAM, sides, taps

SCHEMA = "trace/1"


@dataclass(frozen=True)
class Recorded:
    """One tensor of a trace.

    Attributes:
        name: that of its tap.
        axes: what its dimensions are.
        values: float32.
        labels: for each dimension what its places are called; numbers from 0 where they have no names.
    """

    name: str
    axes: tuple[str, ...]
    values: np.ndarray
    labels: tuple[list[str], ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values, for numpy."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def plot(self, head: int | None = None) -> Any:
        """A matplotlib figure: a panel for each head, or for one of them. Needs the extra `plot`."""
        from heedful.inspect_.plots import plot

        return plot(self, head)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from heedful.inspect_.plots import svg

        return svg(self.plot())

    def __repr__(self) -> str:
        shape = ", ".join(f"{axis} {size}" for axis, size in zip(self.axes, self.values.shape, strict=True))
        return f"{self.name} ({shape})"


@dataclass(frozen=True)
class Trace(Mapping[str, Recorded]):
    """What a model computed for one text; a mapping from the names of taps.

    Attributes:
        lines: the tokens that went in and, where the model writes, what follows them: "src", "tgt" or both.
        axes: of each tensor.
        tensors: float32, without the dimension of the batch.
        checks: by how much logits differ at most from those without a recorder ("fused"), and from those of a search
            that feeds a token at a time ("steps").
    """

    lines: dict[str, Line]
    axes: dict[str, tuple[str, ...]]
    tensors: dict[str, np.ndarray]
    checks: dict[str, float]

    def __getitem__(self, name: str) -> Recorded:
        if name not in self.tensors:
            raise KeyError(f"{name} is not in this trace; it has {', '.join(self)}")
        axes, values = self.axes[name], self.tensors[name]
        labels = tuple(self._labels(name, axis, size) for axis, size in zip(axes, values.shape, strict=True))
        return Recorded(name, axes, values, labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def _labels(self, name: str, axis: str, size: int) -> list[str]:
        """What the places of an axis are called."""
        read_by_others = ".cross." in name
        of_source = name.startswith(("src", "enc")) or (read_by_others and axis == "key")
        line = list(self.lines.values())[0 if of_source else -1]
        if axis in ("key", "token") or (axis == "query" and not read_by_others):
            names = line.read.labels
        elif axis == "query":
            names = line.said.labels
        else:
            names = []
        return names if len(names) == size else [str(number) for number in range(size)]

    def save(self, path: Path, stored: Mapping[str, str] | None = None) -> None:
        """Write a safetensors file.

        Args:
            path: the file.
            stored: how tensors are stored, by name, one of `heedful.inspect_.stored.STORED`; exactly where it does not
                say.

        Raises:
            OSError: it cannot be written.
        """
        with path.open("wb") as file:
            file.writelines(self.encoded(stored))

    def encoded(self, stored: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
        """The same as bytes.

        Raises:
            InputError: there is no such tensor, or no such way to store it.
        """
        stored = stored or {}
        if strange := [f"{name} = {way}" for name, way in stored.items() if name not in self or way not in STORED]:
            raise InputError(f"{strange[0]}: tensors of the trace are stored as {', '.join(STORED)}")
        ways = dict.fromkeys(self.tensors, "f32") | dict(stored)
        manifest = {
            "schema": SCHEMA,
            "lines": {name: asdict(line) for name, line in self.lines.items()},
            "axes": self.axes,
            "stored": ways,
            "checks": self.checks,
        }
        tensors = {name: torch.from_numpy(STORED[ways[name]].encode(values)) for name, values in self.tensors.items()}
        return tensor_file(tensors, {"manifest": json.dumps(manifest, ensure_ascii=False)})

    @classmethod
    def load(cls, path: Path) -> "Trace":
        """Read what `save` wrote.

        Raises:
            InputError: it is no trace, or a damaged one.
        """
        manifest = json.loads(read_metadata(path).get("manifest", "{}"))
        if manifest.get("schema") != SCHEMA:
            raise InputError(f"{path}: is no {SCHEMA}; write one with heedful.trace(...).save")
        tensors = {name: tensor.numpy() for name, tensor in read_tensors(path).items()}
        lines = {
            name: Line(Pieces(**line["read"]), line["written"] and Pieces(**line["written"]))
            for name, line in manifest["lines"].items()
        }
        axes = {name: tuple(names) for name, names in manifest["axes"].items()}
        values = {name: STORED[manifest["stored"][name]].decode(tensors[name]) for name in axes}
        return cls(lines, axes, values, manifest["checks"])


def trace(
    subject: Any,
    text: str,
    target: str | None = None,
    keep: Collection[str] = ("*",),
    edits: Mapping[str, Edit] | None = None,
) -> Trace:
    """Run a model over a text and keep what it computes. See `heedful.trace`."""
    return traced(reading(subject, text, target), keep, edits)


@torch.no_grad()
def traced(found: Reading, keep: Collection[str] = ("*",), edits: Mapping[str, Edit] | None = None) -> Trace:
    """The trace of a pass.

    Raises:
        InputError: the model has no such tap.
    """
    model = found.model
    with evaluating(model):
        with recording(model, keep, edits) as kept:
            output = found.run()
        with recording(model, edits=edits):
            checks = {"fused": apart(output, found.run())}
            if found.steps:
                checks["steps"] = apart(output, found.steps())
    there = taps(model)
    tensors = {name: kept[name] for name in there if name in kept} | positions(model, kept)
    return Trace(
        found.lines,
        {name: there[name].axes if name in there else STREAM for name in tensors},
        {name: tensor[0].float().cpu().numpy() for name, tensor in tensors.items()},
        checks,
    )


def apart(x: Tensor, y: Tensor) -> float:
    """The largest difference."""
    return float((x - y).abs().max())


def positions(model: Any, kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What each stack adds to what it embeds, where that is kept: nothing, if it tells positions in another way."""
    found = {}
    for side in sides(model):
        embedded = kept.get(f"{side.sequence}.tok")
        if embedded is not None:
            length = embedded.size(1)
            places = torch.arange(length, device=embedded.device)[None]
            found[f"{side.sequence}.pos"] = side.stack.positions.embed(torch.zeros_like(embedded), places, length)
    return found
