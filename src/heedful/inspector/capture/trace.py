"""Traces: the recorded tensors of a model's forward pass over one input, by name, and their safetensors file."""

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
from heedful.checkpoint.safetensors_format import read_metadata, read_tensors, tensor_file
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import ForwardPass, TokenLine, of_text, reading
from heedful.inspector.capture.recorder import Edit, matching, recording
from heedful.inspector.capture.sources import Input, Pieces
from heedful.inspector.capture.taps import Axis, taps
from heedful.predictors.generator import Generator
from heedful.storage.written_files import own_file
from heedful.wording import counted, did_you_mean


class Encoding(NamedTuple):
    """Storage format of float32 values."""

    encode: Callable[[np.ndarray], np.ndarray]
    decode: Callable[[np.ndarray], np.ndarray] = lambda x: x.astype(np.float32)


MAX_F16 = np.finfo(np.float16).max
STORED = {
    "f32": Encoding(lambda x: x.astype(np.float32)),
    # larger values, such as those of a mask, become the largest finite float16
    "f16": Encoding(lambda x: x.clip(-MAX_F16, MAX_F16).astype(np.float16)),
    # values from 0 to 1 as square roots in 255 steps: small ones stay distinct, and errors are below 0.004
    "sqrt_u8": Encoding(
        lambda x: np.rint(np.sqrt(x.clip(0, 1)) * 255).astype(np.uint8),
        lambda x: np.square(x.astype(np.float32) / 255),
    ),
}
SCHEMA = "trace/1"


@dataclass(frozen=True, eq=False)
class Recorded(NDArrayOperatorsMixin):
    """One tensor of a trace: an array with names for its axes and labels for the positions along each axis.

    Arithmetic, comparison, indexing, NumPy functions and methods such as `mean` or `tolist` work as on a NumPy array,
    and never return a `Recorded`.
    """

    name: str  # tap name, such as "dec.0.cross.attn"
    axes: tuple[str, ...]  # names of the dimensions, such as "head", "query" and "key"
    values: np.ndarray  # float32
    labels: tuple[list[str], ...]  # position labels for each dimension: tokens, or numbers from 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def numpy(self) -> np.ndarray:
        """Return the values as a NumPy array, without a copy."""
        return self.values

    def tensor(self) -> Tensor:
        """Return the values as a PyTorch tensor that shares memory with the array."""
        return torch.from_numpy(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [x.values if isinstance(x, Recorded) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **keywords)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __getattr__(self, name: str) -> Any:
        # Copying and unpickling look up attributes before `values` exists, which would call this method forever.
        if name.startswith("_") or name == "values":
            raise AttributeError(f"{type(self).__name__} does not have {name}")
        return getattr(self.values, name)

    def plot(self, head: int | None = None) -> Any:
        """Plot the tensor with matplotlib: one panel per head, or only that of `head`. Needs the extra `plot`."""
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
    """Recorded tensors of a model's forward pass over one input: a mapping from tap names to tensors.

    `checks` has the largest difference of the recorded logits from those of an unrecorded pass ("fused") and, if the
    model generates, from those of decoding one token at a time ("steps").
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
            near = get_close_matches(str(name), self)
            hint = did_you_mean(near) if near else f"list(trace) lists all {counted(len(self), 'tensors')}"
            raise KeyError(f"{name} is not in this trace; {hint}")
        axes, values = self.axes[name], self.tensors[name]
        labels = []
        for axis, size in zip(axes, values.shape, strict=True):
            line, _, part = (axis.line or "").partition(".")
            tokens = getattr(self.lines[line], part).labels if line else []
            # Positions are numbered if all tokens share a single row.
            labels.append(tokens if line and len(tokens) == size else [str(number) for number in range(size)])
        return Recorded(name, tuple(axis.name for axis in axes), values, tuple(labels))

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def only(self, names: Collection[str], head: int | None = None) -> "Trace":
        """Select tensors by names or patterns such as "dec.*.cross.attn", and one attention head if `head` is given.

        Tensors without heads are kept as they are. With grouped-query attention, keys and values are those of the
        head's group.
        """
        selection = set(matching(names, self))
        tensors = {name: self.tensors[name] for name in self if name in selection}
        with_heads = {name for name in self if self.axes[name][0].name == "head"}
        for name in [name for name in tensors if name in with_heads]:
            if head is None:
                break
            block = name.rpartition(".")[0]
            # The number of query heads: a shared bias has one head, and grouped keys and values have fewer.
            heads = max(len(self.tensors[tap]) for tap in with_heads if tap.rpartition(".")[0] == block)
            if not 0 <= head < heads:
                raise InputError(f"head {head}: {name} has {counted(heads, 'heads')}, counted from 0")
            # The queries of a group share one head of keys and values.
            index = head * len(tensors[name]) // heads
            tensors[name] = tensors[name][index : index + 1]
        return replace(self, axes={name: self.axes[name] for name in tensors}, tensors=tensors)

    def save(self, path: str | Path, stored: Mapping[str, str] | None = None, *, replace: bool = False) -> None:
        """Write the trace to a safetensors file.

        Args:
            path: The file. A file that heedful wrote is replaced if it is unchanged.
            stored: Encoding of tensors by name, each a key of `STORED`; other tensors are stored as float32.
            replace: Also replace any other file.

        Raises:
            OSError: The file cannot be written.
        """
        with own_file(Path(path), replace=replace) as file:
            file.writelines(self.encoded(stored))

    def encoded(self, stored: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
        """Encode the trace as the bytes of a safetensors file, in chunks; `stored` as in `save`."""
        stored = stored or {}
        if unknown := [f"{name} = {way}" for name, way in stored.items() if name not in self or way not in STORED]:
            raise InputError(f"{unknown[0]}: no such tensor or encoding; the encodings are {', '.join(STORED)}")
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
        """Read a trace from a safetensors file that `Trace.save` wrote."""
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
            problem = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}: not a {SCHEMA} ({problem}); write one with heedful.trace(...).save") from error


def trace(
    subject: Any,
    value: Input,
    target: str | None = None,
    keep: str | Collection[str] = ("*",),
    edits: Mapping[str, Edit] | None = None,
) -> Trace:
    """Run a predictor's model over a text, image or audio, and record its tensors, as `heedful.trace` does.

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
        # The checks compare the logits with those of an unrecorded pass, and of decoding one token at a time.
        with recording(model, edits=edits):
            checks = {"fused": float((output - forward.run()).abs().max())}
            if forward.steps:
                checks["steps"] = float((output - forward.steps()).abs().max())

    model_taps = taps(model)
    axes = {name: tap.axes for name, tap in model_taps.items() if name in recorded}
    # Position embeddings and gates are not outputs of modules: they are computed, with the axes of recorded tensors.
    position_embeddings, gate_values = positions(model, recorded), gates(model, recorded)
    tensors = {name: recorded[name] for name in axes} | position_embeddings | gate_values
    axes |= {name: model_taps[name.replace(".pos", ".tok")].axes for name in position_embeddings}
    axes |= {name: model_taps[f"{name.rpartition('.')[0]}.hidden"].axes for name in gate_values}
    arrays = {name: tensor[0].float().cpu().numpy() for name, tensor in tensors.items()}
    return Trace(forward.lines, axes, arrays, checks)


def positions(model: Any, recorded: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Compute the position embeddings that each stack adds to its token embeddings, as "src.pos" and "tgt.pos".

    Stacks whose token embeddings are not recorded are left out. The result is zero for a stack that encodes positions
    in another way, such as by rotation.
    """
    embeddings = {}
    for side in model.named_stacks():
        tokens = recorded.get(f"{side.sequence}.tok")
        if tokens is not None:
            length = tokens.size(1)
            # `embed` adds positions to its argument; with zeros, only the positions remain.
            numbers = torch.arange(length, device=tokens.device)[None]
            embeddings[f"{side.sequence}.pos"] = side.stack.positions.embed(torch.zeros_like(tokens), numbers, length)
    return embeddings


def gates(model: Any, recorded: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Compute the gates of recurrent layers from their recorded inputs and states, as "enc.0.forget_gate".

    torch's fused kernels do not return them.
    """
    values = {}
    for side in model.recurrent_stacks():
        for number, layer in enumerate(side.stack.layers):
            parts = [f"{side.name}.{number}.{part}" for part in ("in", "hidden", *(["start"] if side.bridges else []))]
            if all(part in recorded for part in parts):
                x, hidden, *start = (recorded[part][0] for part in parts)
                # The first vector of a state is hidden; the second, the memory cell of an LSTM, enters no gate.
                before = start[0][:1] if start else hidden.new_zeros(layer.directions, layer.units)
                for name in layer.gates:
                    values[f"{side.name}.{number}.{name}"] = gate(layer, name, x, before, hidden)[None]
    return values
