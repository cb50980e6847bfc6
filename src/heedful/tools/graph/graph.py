"""Graph of a model: the nodes of a recorded forward pass, with repeated blocks folded."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import torch
from torch import Tensor, nn

from heedful.config.schema import Recipe
from heedful.config.user_code import custom_code_errors
from heedful.nn.meta_device import meta_device
from heedful.tasks import find_task
from heedful.tasks.model_size import SizeOnly
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.tools.graph.trace import INPUT, Node, Trace, record

EXAMPLES: dict[str, Callable[[Recipe, int], Tensor]] = {  # by `data.modality`: one input, of this many tokens or frames
    "text": lambda _, length: torch.ones(1, length, dtype=torch.long),
    "image": lambda recipe, _: torch.zeros(1, *recipe.image.size, recipe.image.channels),
    "audio": lambda recipe, length: torch.zeros(1, length, recipe.audio.width),
    "video": lambda recipe, length: torch.zeros(
        1, length * recipe.video.tubelet, *recipe.image.size, recipe.image.channels
    ),
}


@dataclass(frozen=True)
class Group:
    """Nodes of a block that is repeated, each time with the results of the block before it."""

    count: int
    nodes: Sequence[Node]


@dataclass(frozen=True)
class Graph:
    nodes: Sequence[Node]  # in the order of the computation, with one block of each group
    groups: Sequence[Group]
    steps: Sequence[tuple[Node, Node]]  # what a node passes to another one at the next step of a recurrent decoder
    shared: Sequence[Sequence[str]]  # names of boxes with the same weights
    unused: Sequence[str]  # names of modules with weights that are not part of the forward pass

    def edges(self) -> Iterator[tuple[Node, Node, str]]:
        for node in self.nodes:
            for source in node.inputs:
                yield source, node, node.label(source)


def graph_of(recipe: Recipe, vocabularies: tuple[int, int]) -> Graph:
    """Record the graph of a recipe's model, without allocating its weights.

    Raises:
        InputError: the model cannot be built, or reads inputs that heedful cannot make up.
    """
    one, two = (recorded(recipe, vocabularies, length) for length in (1, 2))
    shared, result = shared_weights(one), one.nodes[-1]
    # What a recurrent decoder passes from one token to the next is missing from a text of one token.
    steps = flows(two.nodes) - flows(one.nodes)
    used = [node for node in one.nodes if not node.is_operator or node in result.ancestors]
    folding = Folding(sorted(used, key=lambda node: node.order))
    nodes, groups = folding.folded()
    named = {node.path: kept for node, kept in folding.kept_for.items() if not node.is_operator}
    unseen = dict.fromkeys(one.boxes.values()).keys() - {node.path for node in one.nodes}
    return Graph(
        nodes,
        groups,
        [(named[source], named[target]) for source, target in sorted(steps) if {source, target} <= named.keys()],
        shared,
        sorted(box for box in unseen if next(one.model.get_submodule(box).parameters(), None) is not None),
    )


def recorded(recipe: Recipe, vocabularies: tuple[int, int], length: int) -> Trace:
    with custom_code_errors(recipe, "the model cannot be built"), meta_device():
        model = find_task(recipe.task).build(recipe, TokenizerPair(*map(SizeOnly, vocabularies)))
    inputs = "token ids" if recipe.data.modality == "text" else f"inputs of modality {recipe.data.modality}"
    with custom_code_errors(recipe, f"the graph cannot be drawn, because the model does not run on {inputs}"):
        return record(model, list(example_arguments(model, recipe, length)))


def example_arguments(model: nn.Module, recipe: Recipe, length: int) -> Iterator[tuple[Tensor, Node | None]]:
    """Make up the arguments that a model needs: inputs with their nodes, and masks."""
    inputs = torch.empty(0)
    modality: str = recipe.data.modality
    parameters = inspect.signature(model.forward).parameters.values()
    for name in [parameter.name for parameter in parameters if parameter.default is parameter.empty]:
        if name.endswith("mask"):
            yield torch.ones(inputs.shape[:2], dtype=torch.bool), None
        elif name == "masked":
            yield torch.zeros(1, *recipe.image.grid, dtype=torch.bool), None
        else:
            inputs = EXAMPLES[modality](recipe, length)
            # The number of frames is made up, but the size of a frame or an image is not.
            shape = " × ".join(f"{size:,}" for size in inputs.shape[1 if modality == "image" else 2 :])
            yield inputs, Node(name, INPUT, f"{modality}, {shape}" if shape else "token ids")
            modality = "text"  # further inputs of a model that reads files are texts


def shared_weights(trace: Trace) -> list[list[str]]:
    """List the boxes that share weights, and mark their nodes."""
    owners: dict[int, dict[str, None]] = {}
    for name, weight in trace.model.named_parameters(remove_duplicate=False):
        box = trace.boxes.get(name.rpartition(".")[0])
        if box:
            owners.setdefault(id(weight), {})[box] = None
    shared = [list(names) for names in owners.values() if len(names) > 1]
    for node in trace.nodes:
        node.is_shared = any(node.path in names for names in shared)
    return list(map(list, dict.fromkeys(map(tuple, shared))))


def flows(nodes: Iterable[Node]) -> set[tuple[str, str]]:
    """Return the pairs of boxes of which one reads the results of the other, directly or through operators."""

    def boxes(node: Node) -> Iterator[Node]:
        for source in node.inputs:
            if source.is_operator:
                yield from boxes(source)
            else:
                yield source

    pairs = {(source.path, node.path) for node in nodes if not node.is_operator for source in boxes(node)}
    return {(source, target) for source, target in pairs if source != target}


class Folding:
    """Search for blocks of nodes that are repeated, each with the results of the block before it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.kept_for = {node: node for node in nodes}  # the node of the first block for each folded node
        self.index = {node: number for number, node in enumerate(nodes)}
        self.last_reader = {source: number for number, node in enumerate(nodes) for source in node.inputs}
        self.looks = [(re.sub(r"\d+", "*", node.path), node.title, node.detail) for node in nodes]

    def folded(self) -> tuple[list[Node], list[Group]]:
        """Return the nodes with one block of each group; later nodes read from it instead of the last block."""
        kept, groups, start = [], [], 0
        while start < len(self.nodes):
            size, times = self.longest_run(start)
            block, end = self.nodes[start : start + size], start + size * times
            if times > 1:
                groups.append(Group(times, block))
                self.kept_for.update(zip(self.nodes[start:end], cycle(block), strict=False))
            kept += block
            start = end
        for node in kept:
            node.inputs = {self.kept_for[source]: parts for source, parts in node.inputs.items()}
        return kept, groups

    def longest_run(self, start: int) -> tuple[int, int]:
        """Return the size and the number of the blocks from a node on that cover most nodes; (1, 1) without any."""
        runs = [(size, self.repetitions(start, size)) for size in range(1, (len(self.nodes) - start) // 2 + 1)]
        blocks = [(size, times) for size, times in runs if times > 1 and self.has_box(start, size)]
        return max(blocks, key=lambda run: (run[0] * run[1], run[1]), default=(1, 1))

    def has_box(self, start: int, size: int) -> bool:
        return not all(node.is_operator for node in self.nodes[start : start + size])

    def repetitions(self, start: int, size: int) -> int:
        """Count the equal blocks of this size from a node on, each of which only the next one reads."""
        times, pattern = 1, None
        first = [self.reads(start, number, size) for number in range(start, start + size)]
        while (begin := start + times * size) + size <= len(self.nodes):
            if self.looks[begin : begin + size] != self.looks[start : start + size]:
                break
            if any(self.last_reader.get(node, 0) >= begin + size for node in self.nodes[begin - size : begin]):
                break
            block = [self.reads(begin, number, size, start) for number in range(begin, begin + size)]
            is_chain = any(where == "before" for node in block for where, _, _ in node)
            if not is_chain or block != (pattern or block) or not all(map(continues, first, block)):
                break
            times, pattern = times + 1, block
        return times

    def reads(self, begin: int, number: int, size: int, start: int | None = None) -> Counter[tuple[str, int, str]]:
        """Count what a node reads: from its block, from the block before if there is one, and from elsewhere."""
        node, places = self.nodes[number], Counter()
        for source in node.inputs:
            place = self.index[source] - begin
            where = "block" if place >= 0 else "before" if start is not None and place >= -size else "elsewhere"
            places[where, place if where != "elsewhere" else self.index[source], node.label(source)] += 1
        return places


def continues(first: Counter[tuple[str, int, str]], later: Counter[tuple[str, int, str]]) -> bool:
    """Return True if a later block reads from the block before it where the first one reads from elsewhere."""
    kept = Counter({key: n for key, n in later.items() if key[0] != "before"})
    entries = Counter(label for where, _, label in (first - kept).elements() if where == "elsewhere")
    return kept <= first and entries == Counter(label for where, _, label in (later - kept).elements())
