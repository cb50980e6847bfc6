"""Axes begin and end at round numbers and hold every value; series are told apart without colour."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.tools.compare.charts import COLOURS, DASHES, SHAPES, Axis, Chart, Series, legend_key, round_step

NUMBERS = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(NUMBERS, min_size=1, max_size=7))
def test_an_axis_holds_all_values_between_round_ticks(values):
    axis = Axis.over(values, 0.0, 100.0)
    room = 1e-6 * axis.step
    assert axis.low - room <= min(values) <= max(values) <= axis.high + room
    assert 1 <= len(axis.ticks) - 1 <= 7
    assert axis.ticks[-1] == pytest.approx(axis.high)
    assert (axis.place(axis.low), axis.place(axis.high)) == (0.0, pytest.approx(100.0))


@pytest.mark.parametrize(("rough", "step"), [(0.9, 1), (1.0, 1), (1.1, 2), (3.0, 5), (6.0, 10), (0.03, 0.05)])
def test_steps_are_one_two_and_five(rough, step):
    assert round_step(rough) == pytest.approx(step)


def test_ticks_are_written_short():
    axis = Axis.over([0.0, 0.11], 0.0, 100.0)
    assert [axis.tick_label(tick) for tick in axis.ticks[:3]] == ["0.00", "0.05", "0.10"]
    large = Axis.over([0.0, 4.1e13], 0.0, 100.0)
    assert large.scale == (1e12, "T")
    assert [large.tick_label(tick, 1e12) for tick in large.ticks[:3]] == ["0", "10", "20"]


def test_a_chart_labels_its_axes_with_units_and_names_its_series():
    chart = Chart("loss against FLOPs", "FLOPs", "loss", [Series("a", 0, [(1e12, 2.0), (3e13, 1.0)])], prefixed=True)
    svg = chart.svg()
    assert ">TFLOPs<" in svg
    assert ">loss<" in svg
    assert "<title>a</title>" in svg
    assert 'aria-label="loss against FLOPs"' in svg


def test_error_bars_lie_inside_the_chart():
    series = Series("a", 1, [(0.0, 2.0), (1.0, 3.0)], spread=[1.0, 5.0])
    svg = Chart("t", "x", "y", [series], names=["few", "many"]).svg()
    ends = [float(y) for y in re.findall(r'class="bar".*?y1="([\d.]+)"', svg)]
    assert len(ends) == 2
    assert ">few<" in svg


def test_one_point_and_equal_values_can_be_drawn():
    for points in ([(0.0, 0.0)], [(1.0, 5.0), (2.0, 5.0)], []):
        assert Chart("t", "x", "y", [Series("a", 0, points)]).svg().endswith("</svg>")


def test_series_differ_in_dashes_and_marks():
    assert len(set(DASHES)) == len(set(SHAPES)) == 6


def test_more_series_than_colours_are_told_apart():
    assert len({legend_key(style) for style in range(5 * COLOURS)}) == 5 * COLOURS
