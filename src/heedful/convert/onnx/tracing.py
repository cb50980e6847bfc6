"""Write graphs as ONNX files, check their outputs in ONNX Runtime, and quantise them."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.convert.exporter import MAX_ROUNDING
from heedful.convert.onnx.graphs import Graph
from heedful.errors import RunError

MAX_FILE = 2**30  # bytes of weights in a graph file, whose limit is 2 GB; larger weights go into a separate file


def write_graph(graph: Graph, file: Path) -> None:
    """Trace a graph and write it, with the names of its dimensions."""
    dynamic = torch.export.Dim.DYNAMIC
    # torch.export names the dynamic dimensions itself; `name_axes` gives them the names of the graph afterwards.
    shapes = tuple(dict.fromkeys(graph.axes.get(name, {}), dynamic) for name in graph.inputs)
    examples = tuple(graph.inputs.values())
    with torch.no_grad(), without_internal_warnings():
        traced = torch.export.export(graph.module.eval(), examples, dynamic_shapes=shapes, strict=False)
        program: Any = torch.onnx.export(
            traced, input_names=list(graph.inputs), output_names=list(graph.outputs), dynamo=True, verbose=False
        )
    name_axes(program.model.graph, graph)
    size = sum(value.numel() * value.element_size() for value in graph.module.state_dict().values())
    program.save(file, external_data=size > MAX_FILE)


@contextmanager
def without_internal_warnings() -> Iterator[None]:
    """Hide the warnings of torch's exporter about its own code, such as deprecated names, and optional packages."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FutureWarning)
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            yield
    finally:
        log.setLevel(level)


def name_axes(traced: Any, graph: Graph) -> None:
    """Rename the dynamic dimensions, which the trace names s27 and the like, to the names in `graph.axes`."""
    names: dict[str, str] = {}
    for value, axes in zip(traced.inputs, map(graph.axes.get, graph.inputs), strict=True):
        for index, name in (axes or {}).items():
            names.setdefault(str(value.shape[index]), name)
    # Sizes of outputs can be expressions, such as s27 + s53, so symbols are replaced within their text.
    symbol = re.compile(r"\bs\d+\b")
    for value in chain(traced.inputs, traced.outputs, *(node.outputs for node in traced)):
        if value.shape is not None:
            sizes = [size if isinstance(size, int) else str(size) for size in value.shape]
            value.shape = type(value.shape)(
                [
                    size if isinstance(size, int) else symbol.sub(lambda match: names.get(match[0], match[0]), size)
                    for size in sizes
                ]
            )


def check_graph(graph: Graph, file: Path) -> None:
    """Compare a graph with its module on random inputs whose sizes differ from those of the trace.

    Raises:
        RunError: An output differs by more than rounding.
    """
    generator = np.random.default_rng(1)
    # The sizes differ from the trace, which detects dimensions that became constants. One new token is a search step;
    # 0 stands for one more than in the example.
    sizes = {"batch": 3, "length": 5, "source": 4, "new": 1, "past": 4, "samples": 0}
    inputs: dict[str, Tensor] = {}
    for name, value in graph.inputs.items():
        axes = graph.axes.get(name, {})
        shape = [(sizes[axes[i]] or size + 1) if i in axes else size for i, size in enumerate(value.shape)]
        if value.dtype == torch.float32:
            inputs[name] = torch.tensor(generator.standard_normal(shape), dtype=torch.float32)
        else:
            # Every vocabulary has the ids 0 to 3; masks and segments are 0 or 1.
            high = 256 if value.dtype == torch.uint8 else 4 if name == "input_ids" else 2
            inputs[name] = torch.tensor(generator.integers(0, high, shape), dtype=value.dtype)
            if "mask" in name:
                inputs[name][:, -1] = 1  # no row is all padding
    with torch.no_grad():
        result = graph.module(*inputs.values())
    our_outputs = (result,) if isinstance(result, Tensor) else result
    their_outputs = session(file).run(None, {name: value.numpy() for name, value in inputs.items()})
    for name, ours, theirs in zip(graph.outputs, our_outputs, their_outputs, strict=True):
        difference = float(np.abs(ours.numpy() - theirs).max())
        if not difference < MAX_ROUNDING * max(1.0, float(ours.abs().max())):
            raise RunError(
                f"{file.name}: {name} in ONNX Runtime differ by {difference:.2g} from the model's; please report this "
                "with the recipe"
            )


def session(file: Path) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


def quantise(file: Path) -> None:
    """Store the matrices of a graph in int8, and multiply them in int8 as well ("dynamic quantisation")."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    weights = file.with_name(file.name + ".data")
    is_large = weights.exists()
    with TemporaryDirectory(dir=file.parent) as folder:
        prepared = Path(folder) / file.name
        quant_pre_process(
            file,
            prepared,
            skip_optimization=True,
            skip_symbolic_shape=True,
            save_as_external_data=is_large,
            all_tensors_to_one_file=True,
            external_data_location=weights.name,
        )
        # The quantised weights are written to a file of the same name.
        weights.unlink(missing_ok=True)
        quantize_dynamic(
            prepared, file, weight_type=QuantType.QInt8, per_channel=True, use_external_data_format=is_large
        )
