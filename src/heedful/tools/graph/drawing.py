"""Drawings of the graph of a model: as SVG, from bottom to top as in Figure 1 of Vaswani et al. (2017), and as mermaid.

The SVG has a column for each chain of nodes, such as an encoder and a decoder. What skips nodes, such as a residual
connection, runs in lanes next to the column of the node that reads it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import chain, takewhile
from typing import NamedTuple

from heedful.tools.graph.graph import Graph
from heedful.tools.graph.trace import INPUT, OUTPUT, Node

HEIGHT, RADIUS, GAP, LANE, LABEL, MARGIN = 50, 12, 38, 16, 32, 24
BRANCH, EXIT = GAP - 14, GAP - 24  # above a node: where edges leave for the same column, and for another one
TITLE_WIDTH, DETAIL_WIDTH = 8.2, 6.8  # of a letter
STEP = "next step"
STYLE = """
    .page { fill: #ffffff; } .group { fill: #f4f5f7; stroke: #9aa5b1; }
    text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933; }
    .title { font-size: 14px; font-weight: 600; text-anchor: middle; } .detail { font-size: 12px; text-anchor: middle; }
    .label, .note { font-size: 12px; } .times { font-size: 18px; } .times, .left { text-anchor: end; }
    .box { fill: #eceff2; stroke: #52606d; } .edge { fill: none; stroke: #52606d; stroke-width: 1.5; }
    .tip { fill: #52606d; } .step { stroke-dasharray: 5 4; }
    .attention { fill: #fbdcb4; } .feed-forward { fill: #cfe5f2; } .norms { fill: #f5f2c4; }
    .embeddings, .positions, .segments { fill: #f8d9de; } .output { fill: #dddcf3; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #14181d; } .group { fill: #20262d; stroke: #6b7885; } text { fill: #f0f4f8; }
      .box { fill: #39434d; stroke: #9fb0c0; } .edge { stroke: #9fb0c0; } .tip { fill: #9fb0c0; }
      .attention { fill: #6b4a1d; } .feed-forward { fill: #24495f; } .norms { fill: #55521f; }
      .embeddings, .positions, .segments { fill: #6b3540; } .output { fill: #403e73; }
    }
"""


def to_mermaid(graph: Graph) -> str:
    """Write a graph as a mermaid flowchart, which GitHub and many editors draw."""
    names = {node: f"n{number}" for number, node in enumerate(graph.nodes)}

    def line(node: Node) -> str:
        text = "<br/>".join(escape(line) for line in lines_of(node))
        return f'{names[node]}(("{text}"))' if node.is_operator else f'{names[node]}["{text}"]'

    grouped = set(chain.from_iterable(group.nodes for group in graph.groups))
    lines = ["flowchart BT", *(f"  {line(node)}" for node in graph.nodes if node not in grouped)]
    for number, group in enumerate(graph.groups):
        lines += [f'  subgraph g{number}["{group.count} ×"]', *(f"    {line(node)}" for node in group.nodes), "  end"]
    for source, target, label in graph.edges():
        lines.append(f"  {names[source]} -->{f'|{label}|' if label else ''} {names[target]}")
    lines += [f"  {names[source]} -.->|{STEP}| {names[target]}" for source, target in graph.steps]
    return "\n".join([*lines, *(f"  %% {note}" for note in notes_of(graph))]) + "\n"


def lines_of(node: Node) -> list[str]:
    return [node.title, *([node.detail] if node.detail else []), *(["shared weights"] if node.is_shared else [])]


def notes_of(graph: Graph) -> list[str]:
    notes = [f"Shared weights: {', '.join(names)}" for names in graph.shared]
    return notes + ([f"Not part of the forward pass: {', '.join(graph.unused)}"] if graph.unused else [])


@dataclass
class Column:
    """Chain of nodes in an SVG, each of which reads the one below, with lanes on both sides."""

    nodes: list[Node]
    x: float = 0.0
    lanes: dict[int, list[list[tuple[float, float]]]] = field(default_factory=lambda: {-1: [], 1: []})

    @property
    def half(self) -> float:
        return max(map(width_of, self.nodes)) / 2

    def edge(self, side: int) -> float:
        """Return the outer border of the lanes on the left (-1) or right (1)."""
        return self.lane_x(side, len(self.lanes[side])) if self.lanes[side] else self.x + side * (self.half + LANE / 2)

    def lane_x(self, side: int, lane: int) -> float:
        return self.x + side * (self.half + LABEL + LANE * lane)

    def lane(self, side: int, low: float, high: float) -> int:
        """Reserve the innermost lane that is free between two heights."""
        lanes = self.lanes[side]
        free = (number for number, lane in enumerate(lanes) if all(high < a or b < low for a, b in lane))
        number = next(free, len(lanes))
        if number == len(lanes):
            lanes.append([])
        lanes[number].append((low, high))
        return number


class Route(NamedTuple):
    """Edge that skips nodes, in a lane on the left (-1) or right (1) of the column of its target."""

    source: Node
    target: Node
    label: str
    side: int
    lane: int


def width_of(node: Node) -> float:
    if node.is_operator:
        return 2 * RADIUS if len(node.kind) == 1 else TITLE_WIDTH * len(node.kind) + 16
    return max(96.0, TITLE_WIDTH * len(node.title) + 24, DETAIL_WIDTH * len(node.detail) + 24)


def height_of(node: Node) -> float:
    return 2 * RADIUS if node.is_operator else HEIGHT + 16 * (len(lines_of(node)) - 2)


class Layout:
    """Places of nodes and edges. Heights grow upwards.

    Attributes:
        columns: The columns, from left to right: a column that feeds another one is on its left.
        constants: Nodes without inputs, such as positions, which are drawn next to the node that reads them.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        readers: dict[Node, list[Node]] = {}
        for source, target, _ in graph.edges():
            readers.setdefault(source, []).append(target)
        self.constants: dict[Node, Node] = {}
        for node in graph.nodes:
            is_constant = not node.inputs and node.kind not in (INPUT, OUTPUT)
            if is_constant and len(readers.get(node, [])) == 1 and readers[node][0] not in self.constants.values():
                self.constants[node] = readers[node][0]
        self.column: dict[Node, Column] = {}
        self.columns: list[Column] = []
        self.y: dict[Node, float] = {}
        for node in graph.nodes:
            if node not in self.constants:
                self._place(node)
        self._order_columns()
        # Shorter edges get the inner lanes.
        edges = [(source, target, label) for source, target, label in graph.edges() if self.skips(source, target)]
        edges += [(source, target, STEP) for source, target in graph.steps]
        self.routes: list[Route] = []
        for source, target, label in sorted(edges, key=lambda edge: abs(self.y[edge[1]] - self.top(edge[0]))):
            side = 1 if label == STEP or self.rank(source) > self.rank(target) else -1
            low, high = sorted((self.top(source) + BRANCH, self.y[target]))
            self.routes.append(Route(source, target, label, side, self.column[target].lane(side, low, high)))
        x = 3.0 * MARGIN
        for column in self.columns:
            column.x = 0.0
            sides = [width_of(node) for node, reader in self.constants.items() if self.column[reader] is column]
            column.x = x - column.edge(-1)
            x = column.edge(1) + (max(sides) + MARGIN if sides else 0) + 2 * MARGIN
        self.width = x

    def top(self, node: Node) -> float:
        return self.y[node] + height_of(node) / 2

    def _place(self, node: Node) -> None:
        """Put a node above one that it reads, at the top of a column; without one, into a new column."""
        ends = [source for source in node.inputs if source in self.column and self.column[source].nodes[-1] is source]
        if ends:
            below = max(ends, key=lambda source: (self.kinship(source, node), self.graph.nodes.index(source)))
            column = self.column[below]
            self.y[node] = self.top(below) + GAP + height_of(node) / 2
        else:
            column = Column([])
            self.columns.append(column)
            sources = [self.top(source) + GAP for source in node.inputs if source in self.y]
            self.y[node] = max(sources, default=0.0) + height_of(node) / 2
        column.nodes.append(node)
        self.column[node] = column

    @staticmethod
    def kinship(source: Node, node: Node) -> int:
        """Return how many levels of the module tree two nodes have in common."""
        pairs = zip(source.path.split("."), node.path.split("."), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _order_columns(self) -> None:
        """Move columns that feed others to the left of them."""
        feeds = {(id(self.column[s]), id(self.column[t])) for s, t, _ in self.graph.edges() if s in self.column}
        rest, ordered = list(self.columns), []
        while rest:
            free = [c for c in rest if not any((id(other), id(c)) in feeds for other in rest if other is not c)]
            ordered.append((free or rest)[0])
            rest.remove(ordered[-1])
        self.columns = ordered

    def rank(self, node: Node) -> int:
        return self.columns.index(self.column[node])

    def skips(self, source: Node, target: Node) -> bool:
        if source in self.constants:
            return False
        nodes = self.column[target].nodes
        return source not in nodes or nodes.index(target) != nodes.index(source) + 1


class Picture:
    """SVG of a graph."""

    def __init__(self, graph: Graph, title: str) -> None:
        self.graph, self.title = graph, title
        self.layout = Layout(graph)
        self.notes = notes_of(graph)
        self.height = max(map(self.layout.top, self.layout.y)) + 2 * MARGIN + 18 * len(self.notes)

    def svg(self) -> str:
        reading = [node for node in self.graph.nodes if node.inputs]
        text = "; ".join(f"{node.title} reads {', '.join(s.title for s in node.inputs)}" for node in reading)
        width = max(self.layout.width, 6.3 * max(map(len, self.notes), default=0) + 2 * MARGIN)
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {width:.0f} {self.height:.0f}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(self.title)}</title>\n<desc id="desc">{escape(text)}</desc>',
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>',
            f'<rect class="page" width="{width:.0f}" height="{self.height:.0f}"/>',
            *self.groups(),
            *self.edges(),
            *map(self.node, self.graph.nodes),
        ]
        lines += [text_at(MARGIN, self.height - 10 - 18 * n, note, "note") for n, note in enumerate(self.notes[::-1])]
        return "\n".join([*lines, "</svg>"]) + "\n"

    def down(self, y: float) -> float:
        """Return the height in SVG, which counts from the top."""
        return self.height - MARGIN - 18 * len(self.notes) - y

    def centre(self, node: Node) -> tuple[float, float]:
        """Return the centre of a node, with the height in SVG."""
        layout = self.layout
        if node not in layout.constants:
            return layout.column[node].x, self.down(layout.y[node])
        reader = layout.constants[node]
        return layout.column[reader].edge(1) + MARGIN + width_of(node) / 2, self.down(layout.y[reader])

    def node(self, node: Node) -> str:
        x, y = self.centre(node)
        half, height = width_of(node) / 2, height_of(node)
        radius = RADIUS if node.is_operator else 6
        kinds = f"box {node.kind.removeprefix('self-').removeprefix('cross-')}" if not node.is_operator else "box"
        lines = [
            f'<g><title>{escape(node.path)}</title><rect class="{kinds}" x="{x - half:.1f}" y="{y - height / 2:.1f}" '
            f'width="{2 * half:.1f}" height="{height}" rx="{radius}"/>'
        ]
        texts = lines_of(node)
        for number, text in enumerate(texts):
            middle = y + 5 + 17 * (number - (len(texts) - 1) / 2)
            lines.append(text_at(x, middle, text, "detail" if number else "title"))
        return "".join(lines) + "</g>"

    def groups(self) -> Iterator[str]:
        for group in self.graph.groups:
            nodes = [node for node in group.nodes if node not in self.layout.constants]
            columns = [self.layout.column[node] for node in nodes]
            left, right = min(c.edge(-1) for c in columns), max(c.edge(1) for c in columns)
            bottom = min(self.layout.y[node] - height_of(node) / 2 for node in nodes) - GAP + 18
            top = max(map(self.layout.top, nodes)) + 8
            yield (
                f'<rect class="group" x="{left:.1f}" y="{self.down(top):.1f}" width="{right - left:.1f}" '
                f'height="{top - bottom:.1f}" rx="12"/>'
            )
            yield text_at(left - 6, self.down((top + bottom) / 2) + 6, f"{group.count} ×", "times")

    def edges(self) -> Iterator[str]:
        layout = self.layout
        for source, target, label in self.graph.edges():
            if layout.skips(source, target):
                continue
            (x, y), (x2, y2) = self.centre(source), self.centre(target)
            if source in layout.constants:
                yield arrow(f"M{x:.1f} {y:.1f} H{x2 + width_of(target) / 2:.1f}")
            else:
                yield arrow(f"M{x:.1f} {y:.1f} V{y2 + height_of(target) / 2:.1f}")
                yield text_at(x + 6, y2 + height_of(target) / 2 + 15, label, "label")
        for source, target, label, side, lane in layout.routes:
            column, style = layout.column[target], "edge step" if label == STEP else "edge"
            (x, y), (x2, y2) = self.centre(source), self.centre(target)
            turn = y - height_of(source) / 2 - (BRANCH if source in column.nodes else EXIT)
            way = column.lane_x(side, lane)
            end = x2 + side * width_of(target) / 2
            yield arrow(f"M{x:.1f} {y:.1f} V{turn:.1f} H{way:.1f} V{y2:.1f} H{end:.1f}", style)
            yield text_at(end + 9 * side, y2 - 5, label, "label" if side > 0 else "label left")


def arrow(path: str, kind: str = "edge") -> str:
    return f'<path class="{kind}" d="{path}" marker-end="url(#tip)"/>'


def text_at(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' if text else ""


WRITERS: dict[str, Callable[[Graph, str], str]] = {  # by the ending of the file; each takes the name of the model
    ".svg": lambda graph, name: Picture(graph, f"Graph of {name}").svg(),
    ".mmd": lambda graph, _: to_mermaid(graph),
}
