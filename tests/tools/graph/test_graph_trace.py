"""A recorded forward pass: boxes of any module, sums at their end, weights that are used several times."""

import torch
from torch import Tensor, nn

from heedful.tools.graph.graph import Folding
from heedful.tools.graph.trace import Node, Trace, record


def recorded(model: nn.Module) -> Trace:
    return record(model.to("meta"), [(torch.ones(1, 2, 4), Node("x", "input"))])


def reads(trace: Trace) -> list[tuple[str, list[str]]]:
    nodes = sorted(trace.nodes, key=lambda node: node.order)
    return [(name(node), [name(source) for source in node.inputs]) for node in nodes]


def name(node: Node) -> str:
    return f"{node.path}{node.kind}" if node.is_operator else node.path or node.kind


class Gate(nn.Module):
    """Two linear layers, one of which is called by a method other than `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.gate = nn.Linear(4, 4), nn.Linear(4, 4)

    def opened(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.gate(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.value(x) * self.opened(x)


class Whole(nn.Module):
    """A box with a residual connection at its end."""

    parameter_kind = "feed-forward"

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(x).relu())


class Inner(Whole):
    """A box with a sum inside, which goes on."""

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x + self.down(self.up(x))))


class Filled(nn.Module):
    """A module that writes into a view of another tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        result = torch.zeros_like(x)
        result[:, 0] = self.map(x)[:, 0]
        return result


class Again(nn.Module):
    """A block whose weights are used three times."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Whole()

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.block(x)
        return x


def test_modules_are_boxes_and_what_combines_two_values_is_an_operator():
    assert reads(recorded(Gate())) == [
        ("x", []),
        ("value", ["x"]),
        ("gate", ["x"]),
        ("×", ["value", "gate"]),
        ("result", ["×"]),
    ]


def test_a_sum_at_the_end_of_a_box_is_outside_and_one_inside_is_not():
    expected = [("x", []), ("0", ["x"]), ("+", ["x", "0"]), ("result", ["+"])]
    assert reads(recorded(nn.Sequential(Whole()))) == expected
    assert reads(recorded(nn.Sequential(Inner()))) == [("x", []), ("0", ["x"]), ("result", ["0"])]


def test_what_is_written_into_a_view_is_in_the_whole_tensor():
    assert reads(recorded(Filled())) == [("x", []), ("map", ["x"]), ("result", ["map"])]


def test_a_layer_without_a_kind_is_a_box():
    trace = recorded(nn.Sequential(nn.Conv1d(2, 2, 1), nn.PReLU(), nn.Tanh()))
    assert [(node.path, node.title, node.detail) for node in trace.nodes[1:-1]] == [
        ("0", "layer", "Conv1d 2 × 2 × 1"),
        ("1", "layer", "PReLU 1"),
    ]


def test_a_module_with_two_names_is_two_boxes():
    layer = nn.Linear(4, 4)
    trace = recorded(nn.Sequential(layer, nn.Tanh(), layer))
    assert reads(trace)[1:-1] == [("0", ["x"]), ("2", ["0"])]
    assert trace.model.get_parameter("0.weight") is trace.model.get_parameter("2.weight")


def test_a_block_that_computes_several_times_is_drawn_as_often_and_folded():
    trace = recorded(Again())
    assert [name(node) for node in trace.nodes].count("block") == 3
    _, [group] = Folding(sorted(trace.nodes, key=lambda node: node.order)).folded()
    assert (group.count, [name(node) for node in group.nodes]) == (3, ["block", "+"])


def test_blocks_are_folded_only_if_each_alone_reads_the_one_before():
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            outputs = []
            for layer in self.layers:
                x = layer(x)
                outputs.append(x)
            return torch.cat(outputs, dim=-1)

    def groups(model: nn.Module) -> list[tuple[int, int]]:
        nodes = sorted(recorded(model).nodes, key=lambda node: node.order)
        return [(group.count, len(group.nodes)) for group in Folding(nodes).folded()[1]]

    assert groups(Dense()) == []
    assert groups(nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))) == [(4, 1)]
    assert groups(nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 5), nn.Linear(5, 5))) == [(2, 1)]
