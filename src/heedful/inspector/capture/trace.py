"""Traces: all tensors of a model's forward pass over one text, by name, and their safetensors file."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from torch import Tensor

from heedful.architectures.model import evaluating
from heedful.architectures.recurrent.layers import gate
from heedful.checkpoint.tensors import read_metadata, read_tensors, tensor_file
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import ForwardPass, TokenLine, of_text, reading
from heedful.inspector.capture.recorder import Edit, matching, recording
from heedful.inspector.capture.sources import Input, Pieces
from heedful.inspector.capture.taps import Axis, taps
from heedful.predictors.generator import Generator
from heedful.storage.written_files import own_file


class Encoding(NamedTuple):
    """How a trace stores float32 values, perhaps in fewer bits."""

    encode: Callable[[np.ndarray], np.ndarray]
    decode: Callable[[np.ndarray], np.ndarray]  # back to float32


def to_sqrt_u8(p: np.ndarray) -> np.ndarray:
    """Encode values from 0 to 1 as bytes: square roots in 255 steps.

    Small values stay distinct, and no error reaches 0.004.
    """
    return np.rint(np.sqrt(p.clip(0, 1)) * 255).astype(np.uint8)


def from_sqrt_u8(b: np.ndarray) -> np.ndarray:
    return np.square(b.astype(np.float32) / 255)


def to_f16(x: np.ndarray) -> np.ndarray:
    """Convert to float16; larger values, such as those of a mask, become the largest finite float16."""
    largest = np.finfo(np.float16).max
    return x.clip(-largest, largest).astype(np.float16)


def to_f32(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


STORED = {
    "f32": Encoding(to_f32, to_f32),
    "f16": Encoding(to_f16, to_f32),
    "sqrt_u8": Encoding(to_sqrt_u8, from_sqrt_u8),
}
SCHEMA = "trace/1"


@dataclass(frozen=True, eq=False)
class Recorded(NDArrayOperatorsMixin):
    """One tensor of a trace: an array with names for its axes and labels for the positions along each axis.

    Arithmetic, comparison, indexing and NumPy functions work as on a NumPy array and return plain arrays. Methods of
    arrays, such as `mean` or `tolist`, are available too.
    """

    name: str  # of the tap, such as "dec.0.cross.attn"
    axes: tuple[str, ...]  # names of the dimensions, such as "head", "query" and "key"
    values: np.ndarray  # float32
    labels: tuple[list[str], ...]  # of the positions for each dimension: tokens, or numbers from 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def numpy(self) -> np.ndarray:
        """Values as a NumPy array, not copied."""
        return self.values

    def tensor(self) -> Tensor:
        """Values as a PyTorch tensor that shares memory with the array."""
        return torch.from_numpy(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
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
        """Draw the tensor as a matplotlib figure, a panel for each head or for one head. Needs the extra `plot`."""
        from heedful.inspector.plots import plot

        return plot(self, head)

    def _repr_html_(self) -> str:
        from heedful.inspector.plots import svg

        return svg(self.plot())

    def __repr__(self) -> str:
        shape = ", ".join(f"{axis} {size}" for axis, size in zip(self.axes, self.values.shape, strict=True))
        return f"{self.name} ({shape})"


@dataclass(frozen=True)
class Trace(Mapping[str, Recorded]):
    """Recorded tensors of a model's forward pass over one text: a mapping from tap names to tensors.

    `checks` has the largest difference between the recorded logits and the logits of an unrecorded pass ("fused"), and
    of decoding one token at a time ("steps").
    """

    lines: dict[str, TokenLine]  # input and target tokens of each stack: "src", "tgt" or both
    axes: dict[str, tuple[Axis, ...]]
    tensors: dict[str, np.ndarray]  # float32, without the batch dimension
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
        """Labels of the positions along an axis: tokens, or numbers from 0 where one row stands for all tokens."""
        if axis.line is not None:
            line, part = axis.line.split(".")
            labels = getattr(self.lines[line], part).labels
            if len(labels) == size:
                return labels
        return [str(number) for number in range(size)]

    def only(self, names: Collection[str], head: int | None = None) -> "Trace":
        """Select tensors of the trace by names or patterns such as "dec.*.cross.attn", and one attention head.

        Tensors without heads stay whole. With grouped-query attention, keys and values are those of the head's group.

        Raises:
            InputError: there is no such tensor, or no such head.
        """
        selection = set(matching(names, self))
        tensors = {name: self.tensors[name] for name in self if name in selection}
        if head is not None:
            tensors = {name: self._one_head(name, values, head) for name, values in tensors.items()}
        return replace(self, axes={name: self.axes[name] for name in tensors}, tensors=tensors)

    def _one_head(self, name: str, values: np.ndarray, head: int) -> np.ndarray:
        if self.axes[name][0].name != "head":
            return values
        block = name.rpartition(".")[0]
        heads = max(
            len(other)
            for tap, other in self.tensors.items()
            if tap.rpartition(".")[0] == block and self.axes[tap][0].name == "head"
        )
        if not 0 <= head < heads:
            raise InputError(f"head {head}: {name} has {heads}, counted from 0")
        # With grouped-query attention, keys and values have fewer heads than queries: take those of the group.
        place = head * len(values) // heads
        return values[place : place + 1]

    def save(self, path: str | Path, stored: Mapping[str, str] | None = None, *, replace: bool = False) -> None:
        """Write the trace to a safetensors file.

        Args:
            path: the file. One that heedful wrote, and that nobody changed since, is replaced.
            stored: encoding of tensors by name, each a key of `STORED`; other tensors are stored as float32.
            replace: also replace any other file.

        Raises:
            InputError: there is another file and `replace` is False.
            OSError: the file cannot be written.
        """
        with own_file(Path(path), replace=replace) as file:
            file.writelines(self.encoded(stored))

    def encoded(self, stored: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
        """Encode the trace as the bytes of a safetensors file, in chunks; `stored` as in `save`.

        Raises:
            InputError: the trace has no such tensor, or there is no such encoding.
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
        """Read a trace from a safetensors file that `Trace.save` wrote.

        Raises:
            InputError: the file is not a trace, or is damaged.
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
            axes = {name: tuple(Axis(*axis) for axis in of_tensor) for name, of_tensor in manifest["axes"].items()}
            values = {name: STORED[manifest["stored"][name]].decode(tensors[name]) for name in axes}
            return cls(lines, axes, values, manifest["checks"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wrong = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}: is no {SCHEMA} ({wrong}); write one with heedful.trace(...).save") from error


def trace(
    subject: Any,
    value: Input,
    target: str | None = None,
    keep: str | Collection[str] = ("*",),
    edits: Mapping[str, Edit] | None = None,
) -> Trace:
    """Run a predictor's model over a text, image or audio, and record its tensors, as in `heedful.trace`.

    A language model reads the text alone, unless there is a target.
    """
    if isinstance(subject, Generator) and isinstance(value, str) and value.strip() and target is None:
        return traced(of_text(subject, value), keep, edits)
    return traced(reading(subject, value, target), keep, edits)


@torch.no_grad()
def traced(
    forward: ForwardPass, keep: str | Collection[str] = ("*",), edits: Mapping[str, Edit] | None = None
) -> Trace:
    """Run a forward pass and record its tensors in a trace."""
    model = forward.model
    with evaluating(model):
        with recording(model, keep, edits) as recorded:
            output = forward.run()
        # The trace says how far its numbers are from those of a pass that nobody records, and from the search's.
        with recording(model, edits=edits):
            checks = {"fused": largest_difference(output, forward.run())}
            if forward.steps:
                checks["steps"] = largest_difference(output, forward.steps())

    model_taps = taps(model)
    axes = {name: tap.axes for name, tap in model_taps.items() if name in recorded}
    position_embeddings, gate_values = positions(model, recorded), gates(model, recorded)
    tensors = {name: recorded[name] for name in axes} | position_embeddings | gate_values
    axes |= {name: model_taps[name.replace(".pos", ".tok")].axes for name in position_embeddings}
    axes |= {name: model_taps[f"{name.rpartition('.')[0]}.hidden"].axes for name in gate_values}
    arrays = {name: tensor[0].float().cpu().numpy() for name, tensor in tensors.items()}
    return Trace(forward.lines, axes, arrays, checks)


def largest_difference(x: Tensor, y: Tensor) -> float:
    return float((x - y).abs().max())


def positions(model: Any, recorded: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Position embeddings that each stack adds to its token embeddings, as "src.pos" and "tgt.pos".

    Only for stacks whose token embeddings are recorded; zeros if the stack encodes positions in another way.
    """
    embeddings = {}
    for side in model.named_stacks():
        tokens = recorded.get(f"{side.sequence}.tok")
        if tokens is not None:
            length = tokens.size(1)
            numbers = torch.arange(length, device=tokens.device)[None]
            embeddings[f"{side.sequence}.pos"] = side.stack.positions.embed(torch.zeros_like(tokens), numbers, length)
    return embeddings


def gates(model: Any, recorded: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values of the gates of recurrent layers, as "enc.0.forget_gate".

    torch's fused kernels do not show their gates: they are computed here from the recorded inputs and states.
    """
    values = {}
    for side in model.recurrent_stacks():
        for number, layer in enumerate(side.stack.layers):
            parts = [f"{side.name}.{number}.{part}" for part in ("in", "hidden", *(["start"] if side.bridges else []))]
            if all(part in recorded for part in parts):
                x, hidden, *start = (recorded[part][0] for part in parts)
                before = start[0][:1] if start else hidden.new_zeros(layer.directions, layer.units)
                for name in layer.gates:
                    values[f"{side.name}.{number}.{name}"] = gate(layer, name, x, before, hidden)[None]
    return values
