"""Measures of a head are what their names say, on matrices that a reader can check."""

import math

import pytest
import torch
from torch.testing import assert_close

from heedful.inspector.measures.attention import MEASURES, distance


def weights(*heads):
    return torch.stack(heads)


def shifted(size, distance):
    return torch.eye(size).roll(distance, dims=1)


def test_heads_that_do_one_thing_have_one_measure():
    uniform = torch.full((5, 5), 0.2)
    first = torch.zeros(5, 5)
    first[:, 0] = 1
    seen = weights(torch.eye(5), shifted(5, -1), shifted(5, 1), first, uniform)
    found = {name: measure(seen).tolist() for name, measure in MEASURES["self"].items()}
    assert found["entropy"] == pytest.approx([0, 0, 0, 0, math.log(5)], abs=1e-6)
    assert found["itself"] == pytest.approx([1, 0, 0, 0.2, 0.2])
    assert found["previous"] == pytest.approx([0, 1, 0, 0.25, 0.2])
    assert found["following"] == pytest.approx([0, 0, 1, 0, 0.2])
    assert found["first"] == pytest.approx([0.2, 0.2, 0.2, 1, 0.2])
    assert found["last"] == pytest.approx([0.2, 0.2, 0.2, 0, 0.2])


@pytest.mark.parametrize("kind", MEASURES)
def test_measures_are_those_of_loops(kind):
    seen = torch.rand(3, 7, 11 if kind == "cross" else 7).softmax(-1)
    for name, measure in MEASURES[kind].items():
        expected = []
        for head in seen.double().tolist():
            values = (
                {
                    "entropy": [-sum(p * math.log(p) for p in row) for row in head],
                    "first": [row[0] for row in head],
                    "last": [row[-1] for row in head],
                    "itself": [row[t] for t, row in enumerate(head)],
                    "previous": [row[t - 1] for t, row in enumerate(head) if t],
                    "following": [row[t + 1] for t, row in enumerate(head) if t + 1 < len(row)],
                }[name]
                if kind == "self" or name in ("entropy", "first", "last")
                else []
            )
            expected.append(sum(values) / len(values))
        assert_close(measure(seen).double(), torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=1e-6)


def test_a_token_that_is_alone_looks_at_itself_and_at_none_beside_it():
    found = {name: measure(torch.ones(3, 1, 1)).tolist() for name, measure in MEASURES["self"].items()}
    assert found["itself"] == [1, 1, 1]
    assert found["previous"] == found["following"] == [0, 0, 0]
    assert found["entropy"] == [0, 0, 0]


def test_the_distance_is_that_of_a_loop_without_class_tokens():
    places = torch.tensor([[math.nan, math.nan], *([row, column] for row in range(3) for column in range(5))])
    seen = torch.rand(2, 16, 16).softmax(-1)
    for head, found in zip(seen, distance(seen, places).tolist(), strict=True):
        reached, even, mass = 0.0, [], 0.0
        for query in range(1, 16):
            for key in range(1, 16):
                apart = math.dist(places[query], places[key])
                reached, mass = reached + float(head[query, key]) * apart, mass + float(head[query, key])
                even.append(apart)
        assert found == pytest.approx(reached / mass / (sum(even) / len(even)), rel=1e-5)


def test_the_distance_is_1_for_even_attention_and_0_for_a_look_at_itself():
    places = torch.arange(7.0)[:, None]
    heads = weights(torch.full((7, 7), 1 / 7), torch.eye(7))
    assert distance(heads, places).tolist() == pytest.approx([1, 0])
    assert distance(torch.ones(1, 1, 1), torch.zeros(1, 1)).tolist() == [0]
