"""Drawings of graphs: every node and edge is there, nothing overlaps or leaves the page, and names are escaped."""

import re
from functools import cache
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from every_architecture import ENCODER_DECODERS
from heedful.config.load import load_preset
from heedful.config.schema import Recipe
from heedful.tools.graph import WRITERS, Graph, graph_of

SVG = "{http://www.w3.org/2000/svg}"
PRESETS = ("tiny", "gpt2", "bert-tiny", "clip-small", "whisper-tiny")
RECURRENT = ("gru with Bahdanau's attention", "lstm with input feeding", "convolutional", "bytenet")


@cache
def graph_named(name: str) -> Graph:
    recipe = load_preset(name) if name in PRESETS else Recipe(task="translation", model=ENCODER_DECODERS[name])
    return graph_of(recipe, (97, 97))


def rectangles(root: ElementTree.Element, kind: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom."""
    found = [
        {key: it.get(key) for key in ("x", "y", "width", "height")}
        for it in root.iter(f"{SVG}rect")
        if kind in (it.get("class") or "").split()
    ]
    numbers = [[float(value or 0) for value in it.values()] for it in found]
    return [(x, y, x + width, y + height) for x, y, width, height in numbers]


@pytest.mark.parametrize("name", [*PRESETS, *RECURRENT])
def test_an_image_has_every_node_and_edge_within_the_page_and_no_boxes_overlap(name):
    graph = graph_named(name)
    root = ElementTree.fromstring(WRITERS[".svg"](graph, name))
    boxes, [page] = rectangles(root, "box"), rectangles(root, "page")
    assert len(boxes) == len(graph.nodes)
    titles = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "title"]
    assert titles == [node.title for node in graph.nodes]
    assert [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "times"] == [
        f"{group.count} ×" for group in graph.groups
    ]
    paths = [path for path in root.iter(f"{SVG}path") if "edge" in (path.get("class") or "")]
    assert len(paths) == len([*graph.edges(), *graph.steps])
    assert len([path for path in paths if "step" in path.get("class", "")]) == len(graph.steps)
    for left, top, right, bottom in [*boxes, *rectangles(root, "group")]:
        assert 0 <= left < right <= page[2]
        assert 0 <= top < bottom <= page[3]
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_the_image_in_the_documentation_is_what_the_command_draws():
    graph = graph_of(load_preset("vaswani-base"), (37_000, 37_000))
    shown = Path(__file__).parents[3] / "docs/vaswani-base.svg"
    assert shown.read_text(encoding="utf-8") == WRITERS[".svg"](graph, "vaswani-base")


def test_an_image_is_drawn_from_bottom_to_top_for_light_and_dark_pages():
    text = WRITERS[".svg"](graph_named("tiny"), "tiny")
    boxes = rectangles(ElementTree.fromstring(text), "box")
    assert boxes[0][1] > boxes[-1][3]  # an input is below the result
    assert "prefers-color-scheme: dark" in text


def test_mermaid_text_has_every_node_edge_and_block():
    graph = graph_named("tiny")
    lines = WRITERS[".mmd"](graph, "tiny").splitlines()
    assert lines[0] == "flowchart BT"
    assert len([line for line in lines if re.match(r'\s+n\d+(\["|\(\(")', line)]) == len(graph.nodes)
    assert len([line for line in lines if "-->" in line]) == len([*graph.edges()])
    assert len([line for line in lines if "-->|k, v|" in line]) == 1
    assert [line.strip() for line in lines if "subgraph" in line] == ['subgraph g0["4 ×"]', 'subgraph g1["4 ×"]']
    assert lines[-1] == "  %% Shared weights: source_embedding, target_embedding, output"


def test_what_is_passed_to_the_next_step_is_dashed():
    assert len(re.findall(r"-\.->\|next step\|", WRITERS[".mmd"](graph_named("lstm with input feeding"), "it"))) == 1


def test_the_name_of_a_model_is_escaped():
    root = ElementTree.fromstring(WRITERS[".svg"](graph_named("tiny"), "<a & b>"))
    assert next(title.text for title in root.iter(f"{SVG}title")) == "Graph of <a & b>"
