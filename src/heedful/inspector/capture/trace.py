"""Everything that a model computes for one text, by name: `heedful.trace("en-de", "Two dogs are running.")`.

On disk and on the wire a trace is a safetensors file whose metadata hold a manifest in JSON (`SCHEMA`), so that any
reader of that format gets at every number.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import Tensor

from heedful.checkpoint.tensors import read_metadata, read_tensors, tensor_file
from heedful.data.atomic_write import replacing
from heedful.decode.translator import evaluating
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import ForwardPass, TokenLine, reading
from heedful.inspector.capture.pieces import Pieces
from heedful.inspector.capture.recorder import Edit, matching, patterns, recording
from heedful.inspector.capture.stored import STORED
from heedful.inspector.capture.taps import Axis, taps

SCHEMA = "trace/1"


@dataclass(frozen=True, eq=False)
class Recorded(NDArrayOperatorsMixin):
    """One tensor of a trace: an array with names for its axes and for the places on them.

    It computes, compares and is indexed as an array of NumPy, and functions of NumPy take it; the result is a plain
    array. Whatever else an array has, such as `mean` or `tolist`, it has as well.

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

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.values.shape

    def numpy(self) -> np.ndarray:
        """The values as an array, which is not copied."""
        return self.values

    def tensor(self) -> Tensor:
        """The values as a tensor of torch, which shares their memory."""
        return torch.from_numpy(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values, for numpy."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Compute with the values."""
        plain = [x.values if isinstance(x, Recorded) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **keywords)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, places: Any) -> Any:
        return self.values[places]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "values":
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return getattr(self.values, name)

    def plot(self, head: int | None = None) -> Any:
        """A matplotlib figure: a panel for each head, or for one of them. Needs the extra `plot`."""
        from heedful.inspector.pictures.plots import plot

        return plot(self, head)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from heedful.inspector.pictures.plots import svg

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

    lines: dict[str, TokenLine]
    axes: dict[str, tuple[Axis, ...]]
    tensors: dict[str, np.ndarray]
    checks: dict[str, float]

    def __repr__(self) -> str:
        read = "; ".join(f"{name} {' '.join(line.read.labels)}" for name, line in self.lines.items())
        return f"Trace({len(self)} tensors, such as {', '.join(list(self)[-3:])}; {read})"

    def __getitem__(self, name: str) -> Recorded:
        if name not in self.tensors:
            near = " or ".join(get_close_matches(str(name), self))
            hint = f"did you mean {near}?" if near else f"list(trace) names all {len(self):,}"
            raise KeyError(f"{name} is not in this trace; {hint}")
        axes, values = self.axes[name], self.tensors[name]
        labels = tuple(self._labels(axis, size) for axis, size in zip(axes, values.shape, strict=True))
        return Recorded(name, tuple(axis.name for axis in axes), values, labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def _labels(self, axis: Axis, size: int) -> list[str]:
        """What the places of an axis are called."""
        if axis.line is None:
            return [str(number) for number in range(size)]
        line, part = axis.line.split(".")
        return getattr(self.lines[line], part).labels

    def only(self, names: Collection[str], head: int | None = None) -> "Trace":
        """Some of its tensors, by name or by patterns such as "dec.*.cross.attn"; of those with heads one head.

        Queries that share keys and values find those of their group.

        Raises:
            InputError: there is no such tensor, or no such head.
        """
        kept = {name for pattern in patterns(names) for name in matching(pattern, self)}
        chosen = {name: self.tensors[name] for name in self if name in kept}
        if head is not None:
            chosen = {name: self._one_head(name, values, head) for name, values in chosen.items()}
        return replace(self, axes={name: self.axes[name] for name in chosen}, tensors=chosen)

    def _one_head(self, name: str, values: np.ndarray, head: int) -> np.ndarray:
        if self.axes[name][0].name != "head":
            return values
        heads = len(self.tensors[f"{name.rpartition('.')[0]}.attn"])
        if not 0 <= head < heads:
            raise InputError(f"head {head}: {name} has {heads}, counted from 0")
        place = head * len(values) // heads
        return values[place : place + 1]

    def save(self, path: str | Path, stored: Mapping[str, str] | None = None) -> None:
        """Write a safetensors file.

        Args:
            path: the file.
            stored: how tensors are stored, by name, one of `stored.STORED`; exactly where it does not
                say.

        Raises:
            OSError: it cannot be written.
        """
        with replacing(Path(path)) as file:
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
    def load(cls, path: str | Path) -> "Trace":
        """Read what `save` wrote.

        Raises:
            InputError: it is no trace, or a damaged one.
        """
        path = Path(path)
        tensors = {name: tensor.numpy() for name, tensor in read_tensors(path).items()}
        try:
            manifest = json.loads(read_metadata(path)["manifest"])
            if manifest["schema"] != SCHEMA:
                raise ValueError(f"its schema is {manifest['schema']}")
            lines = {
                name: TokenLine(Pieces(**line["read"]), line["written"] and Pieces(**line["written"]))
                for name, line in manifest["lines"].items()
            }
            axes = {name: tuple(Axis(*axis) for axis in found) for name, found in manifest["axes"].items()}
            values = {name: STORED[manifest["stored"][name]].decode(tensors[name]) for name in axes}
            return cls(lines, axes, values, manifest["checks"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}: is no {SCHEMA} ({wrong}); write one with heedful.trace(...).save") from error


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
def traced(found: ForwardPass, keep: Collection[str] = ("*",), edits: Mapping[str, Edit] | None = None) -> Trace:
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
    axes = {name: tap.axes for name, tap in there.items() if name in kept}
    added = positions(model, kept)
    tensors = {name: kept[name] for name in axes} | added
    return Trace(
        found.lines,
        axes | {name: there[name.replace(".pos", ".tok")].axes for name in added},
        {name: tensor[0].float().cpu().numpy() for name, tensor in tensors.items()},
        checks,
    )


def apart(x: Tensor, y: Tensor) -> float:
    """The largest difference."""
    return float((x - y).abs().max())


def positions(model: Any, kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What each stack adds to what it embeds, where that is kept: nothing, if it tells positions in another way."""
    found = {}
    for side in model.named_stacks():
        embedded = kept.get(f"{side.sequence}.tok")
        if embedded is not None:
            length = embedded.size(1)
            places = torch.arange(length, device=embedded.device)[None]
            found[f"{side.sequence}.pos"] = side.stack.positions.embed(torch.zeros_like(embedded), places, length)
    return found
