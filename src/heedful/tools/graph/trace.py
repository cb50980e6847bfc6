"""Record of a forward pass on paper: which parts of a model compute, and whose results they read.

Every operation of torch belongs to the module whose method called it, which is the innermost `self` on Python's call
stack. Forward hooks would see less: the queries of an attention and the vectors of positions come from methods other
than `forward`. An operation inside a box (a module with a kind, such as an attention or a norm, as `heedful info`
counts them) is part of the box. Outside of boxes, an operation that combines two values becomes a node, such as the
sum of a residual connection; all others, such as reshaping, are left out. Modules need no declarations for this, so
custom architectures are recorded like heedful's, and the record cannot differ from what a model computes.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from heedful.architectures.heads import POOLINGS
from heedful.architectures.parameters import kind_of
from heedful.architectures.transformer.layers import ACTIVATIONS
from heedful.nn.attention import Attention
from heedful.nn.embedding import InputLayer
from heedful.nn.masks import causal_mask
from heedful.nn.paper import GPU, Paper

INPUT, OUTPUT, SUM = "input", "result", "+"
SYMBOLS = {"add": SUM, "sub": "−", "mul": "×", "div": "÷", "mm": "·", "bmm": "·", "cat": "concat", "stack": "concat"}
SINGULAR = {"norms": "norm", "embeddings": "embedding", "convolutions": "convolution"}
POOLING = {(pool.__module__, pool.__name__): f"{name} pooling" for name, pool in POOLINGS.items()}
CAUSAL = (causal_mask.__module__, causal_mask.__name__)


@dataclass(eq=False)
class Node:
    """Box or operator of a graph.

    Attributes:
        path: The name of the module in the model; of an operator, the module that computes it.
        kind: The kind of the module, such as "self-attention"; the symbol of an operator; "input" or "result".
        detail: The class and the sizes of the module, or what an input consists of.
        inputs: The nodes whose results it reads, each with the names of the parts that read them, such as "q".
        is_masked: True if an attention hides later tokens.
        is_shared: True if other boxes have the same weights.
    """

    path: str
    kind: str
    detail: str = ""
    inputs: dict["Node", set[str]] = field(default_factory=dict)
    is_operator: bool = False
    is_masked: bool = False
    is_shared: bool = False
    order: int = 0  # time of its last operation
    ancestors: set["Node"] = field(default_factory=set)

    @property
    def title(self) -> str:
        if self.kind == INPUT:
            return self.path
        kind = SINGULAR.get(self.kind, self.kind)
        return f"masked {kind}" if self.is_masked else kind

    def read(self, source: "Node", part: str = "") -> None:
        self.inputs.setdefault(source, set()).update({part} - {""})
        self.ancestors |= {source, *source.ancestors}

    def label(self, source: "Node") -> str:
        """Return the parts that read a source, if different parts read different sources."""
        parts = [tuple(sorted(names)) for names in self.inputs.values() if names]
        return ", ".join(sorted(self.inputs[source])) if len(set(parts)) > 1 else ""


class Trace(Paper):
    """Mode that computes on paper, and records which boxes and operators each result comes from."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(GPU)
        self.paths = {id(module): path for path, module in model.named_modules()}
        self.boxes = boxes_of(model)
        self.model = model
        self.nodes: list[Node] = []
        self._clock = count(1)
        self._current: dict[str, Node] = {}
        self._begun: dict[str, int] = {}  # time of the first operation of boxes
        # By the id of a tensor: the node that it comes from; or the path of a box, if it depends on no input.
        self._sources: dict[int, Node | str] = {}
        self._causal: set[int] = set()
        self._pending: set[Node] = set()  # sums at the end of a box, unless the box uses them afterwards
        self._tensors: dict[int, list[Tensor]] = {}  # all tensors, by storage, so that their ids stay valid
        for box in set(self.boxes.values()):
            model.get_submodule(box).register_forward_hook(self._end_of_box)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        operands, results = tensors_in((args, kwargs)), tensors_in(result)
        path, function = self._place()
        box = f"{path}.{POOLING[function]}" if function in POOLING else self.boxes.get(path, "")
        is_causal = function == CAUSAL or any(id(tensor) in self._causal for tensor in operands)
        part = path.removeprefix(box).removeprefix(".").partition(".")[0]
        sources = [self._source(tensor, box, part) for tensor in operands]
        source = self._box_result(func, box, part, sources) if box else self._free_result(func, path, sources)
        if isinstance(source, Node) and is_causal and source.kind.endswith("attention"):
            source.is_masked, is_causal = True, False
        changed = operands[:1] if func._schema.is_mutable else []
        views = [view for tensor in changed for view in self._tensors.get(storage_of(tensor), [])]
        for tensor in (*results, *views):
            self._assign(tensor, source, is_causal=is_causal)
        return result

    def _end_of_box(self, _module: nn.Module, _inputs: Any, result: Any) -> None:
        for source in [self._sources.get(id(tensor)) for tensor in tensors_in(result)]:
            if isinstance(source, Node) and source in self._pending:
                self._add_sum(source)

    def input(self, tensor: Tensor, node: Node) -> None:
        self.nodes.append(node)
        self._assign(tensor, node, is_causal=False)

    def output(self, node: Node, results: Iterable[Tensor]) -> None:
        for source in [self._source(tensor, "", "") for tensor in results]:
            if isinstance(source, Node):
                node.read(source)
        node.order = next(self._clock)
        self.nodes.append(node)

    def _place(self) -> tuple[str, tuple[str, str] | None]:
        """Return the module that computes at present and, if there is one, a function that is drawn by itself."""
        frame, function = inspect.currentframe(), None
        while frame is not None:
            name = (frame.f_globals.get("__name__", ""), frame.f_code.co_name)
            if function is None and (name in POOLING or name == CAUSAL):
                function = name
            path = self.paths.get(id(frame.f_locals.get("self")))
            if path is not None:
                return path, function
            frame = frame.f_back
        return "", function

    def _source(self, tensor: Tensor, box: str, part: str) -> Node | str | None:
        """Return the node that an operand comes from, or the path of this box if it depends on no input."""
        source = self._sources.get(id(tensor))
        if isinstance(source, str):
            return source if source == box else self._node(source)
        if source not in self._pending or source is None:
            return source
        if source.path == box:  # the sum is not the last operation of its box
            inner = self._current[box]
            for outer in source.inputs:
                if outer is not inner:
                    inner.read(outer, part)
            return inner
        self._add_sum(source)
        return source

    def _add_sum(self, node: Node) -> None:
        self._pending.discard(node)
        node.path, node.order = node.path.rpartition(".")[0], next(self._clock)
        self.nodes.append(node)

    def _node(self, box: str) -> Node:
        if box not in self._current:
            self._current[box] = self._new(box)
        return self._current[box]

    def _new(self, box: str) -> Node:
        path, _, name = box.rpartition(".")
        if name in POOLING.values():
            node = Node(path, name)
        else:
            module = self.model.get_submodule(box)
            node = Node(box, kind_of(module, name) or "layer", detail_of(module))
        node.order = self._begun[box]
        self.nodes.append(node)
        return node

    def _box_result(self, func: Any, box: str, part: str, sources: Sequence[Node | str | None]) -> Node | str:
        self._begun.setdefault(box, next(self._clock))
        nodes = list(dict.fromkeys(source for source in sources if isinstance(source, Node)))
        if not nodes:
            return box
        node = self._current.get(box)
        if node is None or any(node in source.ancestors for source in nodes if source is not node):
            node = self._current[box] = self._new(box)  # with shared weights, a box may compute several times
        node.order = next(self._clock)
        others = [source for source in nodes if source is not node]
        if func is torch.ops.aten.add.Tensor and len(others) == 1 and any(source in (node, box) for source in sources):
            total = Node(box, SUM, is_operator=True)
            for source in (*others, node):
                total.read(source)
            self._pending.add(total)
            return total
        for source in others:
            node.read(source, part)
        return node

    def _free_result(self, func: Any, path: str, sources: Sequence[Node | str | None]) -> Node | None:
        nodes = list(dict.fromkeys(source for source in sources if isinstance(source, Node)))
        name = func.overloadpacket.__name__
        if name.startswith("new_") or name.endswith("_like"):  # only the shape of the operand matters
            return None
        if len(nodes) < 2:
            return nodes[0] if nodes else None
        node = Node(path, SYMBOLS.get(name.removesuffix("_")) or name, is_operator=True, order=next(self._clock))
        for source in nodes:
            node.read(source)
        self.nodes.append(node)
        return node

    def _assign(self, tensor: Tensor, source: Node | str | None, *, is_causal: bool) -> None:
        self._tensors.setdefault(storage_of(tensor), []).append(tensor)
        self._sources.pop(id(tensor), None)
        self._causal.discard(id(tensor))
        if source is not None and tensor.dtype != torch.bool:  # masks carry no content
            self._sources[id(tensor)] = source
        if is_causal:
            self._causal.add(id(tensor))


def storage_of(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def record(model: nn.Module, arguments: Sequence[tuple[Tensor, Node | None]]) -> Trace:
    """Record a forward pass of a model on torch's device "meta", with inputs, which have nodes, and masks."""
    separate(model.eval())
    trace = Trace(model)
    trace.move(model)
    for tensor, node in arguments:
        if node is not None:
            trace.input(tensor, node)
    with torch.no_grad(), trace:
        result = model(*(tensor for tensor, _ in arguments))
    trace.output(Node("", OUTPUT), tensors_in(result))
    return trace


def tensors_in(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def boxes_of(model: nn.Module) -> dict[str, str]:
    """Map the path of each module in a box to the path of the box: the outermost module that has a kind.

    A module with parameters that has no kind is a box if none of its children has parameters.
    """
    boxes: dict[str, str] = {}

    def visit(module: nn.Module, path: str, box: str) -> None:
        has_weights = any(True for _ in module.parameters(recurse=False))
        is_leaf = has_weights and not any(True for child in module.children() for _ in child.parameters())
        if not box and path and (kind_of(module, path.rpartition(".")[2]) or is_leaf):
            box = path
        if box:
            boxes[path] = box
        for name, child in module.named_children():
            visit(child, f"{path}.{name}" if path else name, box)

    visit(model, "", "")
    return boxes


def detail_of(module: nn.Module) -> str:
    """Describe a module by its class, its sizes and its activation function."""
    activation = getattr(module, "activation", None)
    names = [name for name, function in ACTIVATIONS.items() if function is activation]
    if isinstance(module, InputLayer):  # the parts of a layer for files: its stem and its positions
        parts = [part for part in module.children() if not type(part).__module__.startswith("torch.")]
        names += [type(part).__name__ for part in parts]
    return ", ".join((f"{type(module).__name__} {sizes_of(module)}".rstrip(), *names))


def sizes_of(module: nn.Module) -> str:
    if isinstance(module, Attention):
        shared = f", {module.kv_heads} for keys and values" if module.kv_heads != module.heads else ""
        return f"{module.q.in_features:,}, {module.heads} heads{shared}"
    if isinstance(module, nn.RNNBase):
        return f"{module.input_size:,} → {module.hidden_size:,}{', both directions' if module.bidirectional else ''}"
    chains: list[list[int]] = []
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    for inputs, outputs in dict.fromkeys((layer.in_features, layer.out_features) for layer in layers):
        if chains and chains[-1][-1] == inputs:
            chains[-1].append(outputs)
        else:
            chains.append([inputs, outputs])
    shapes = [tuple(weight.shape) for weight in module.parameters() if weight.numel()]
    matrices = [shape for shape in shapes if len(shape) > 1] or shapes
    texts = [" → ".join(f"{size:,}" for size in chain) for chain in chains]
    return ", ".join(texts or dict.fromkeys(" × ".join(f"{size:,}" for size in shape) for shape in matrices))


def separate(model: nn.Module) -> None:
    """Replace modules that have several names with copies that share their weights, so that each has one name."""
    visited: set[nn.Module] = set()
    for path, module in list(model.named_modules(remove_duplicate=False)):
        if module in visited:
            tensors = (*module.parameters(), *module.buffers())
            model.set_submodule(path, deepcopy(module, {id(tensor): tensor for tensor in tensors}))
        visited.add(module)
