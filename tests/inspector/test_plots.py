"""Every kind of tensor can be drawn, and a notebook gets an image with nothing of the text in it but text."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.inspector.capture.trace import trace
from subjects import GERMAN, TEXT, generator, translator


@pytest.mark.parametrize("subject", [translator, generator])
def test_every_kind_of_tensor_can_be_drawn(subject):
    seen = trace(subject(), TEXT, GERMAN)
    for name in {re.sub(r"\.\d+\.", ".", name): name for name in seen}.values():  # of the last layer
        panels = [axes for axes in seen[name].plot().axes if axes.get_visible()]
        assert len(panels) == (len(seen[name].values) if seen[name].values.ndim == 3 else 1)


def test_a_panel_shows_the_numbers_of_its_head():
    recorded = trace(translator(), TEXT, GERMAN)["dec.1.cross.attn"]
    (axes,) = recorded.plot(head=1).axes
    assert np.array_equal(np.asarray(axes.collections[0].get_array()), recorded.values[1])
    assert [label.get_text() for label in axes.get_yticklabels()] == [name[:12] for name in recorded.labels[1]]
    assert axes.get_title() == "head 1"
    for head in (2, -1):
        with pytest.raises(InputError, match=rf"^head {head}: dec\.1\.cross\.attn has 2 heads, counted from 0$"):
            recorded.plot(head=head)


def test_numbers_below_zero_are_drawn_about_zero():
    recorded = trace(translator(), TEXT, GERMAN)["enc.0.ffn.out"]
    (axes,) = recorded.plot().axes
    low, high = axes.collections[0].get_clim()
    assert low == -high == -np.abs(recorded.values).max()


def test_a_notebook_gets_one_picture_that_is_well_formed():
    shown = trace(translator(), TEXT, GERMAN)["dec.0.cross.attn"]._repr_html_()
    assert ET.fromstring(shown).tag.endswith("svg")
    assert "<script" not in shown
