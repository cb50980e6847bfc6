"""Graph of a model: observed in a forward pass, and drawn as SVG or written as mermaid text."""

from heedful.tools.graph.drawing import WRITERS
from heedful.tools.graph.graph import Graph, graph_of

__all__ = ["WRITERS", "Graph", "graph_of"]
