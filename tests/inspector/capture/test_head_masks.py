"""A head that is switched off is off, in the way that was asked for, and no other is."""

import pytest
import torch

from heedful.errors import InputError
from heedful.inspector.capture.recorder import Head, heads, switched_off
from heedful.inspector.capture.trace import trace
from heedful.registry import POSITIONS
from subjects import GERMAN, TEXT, generator, translator

SOURCES = [TEXT, "two women read a book .", "the old book"]


@pytest.fixture
def subject():
    return translator()


def test_every_head_of_a_model_is_named(subject):
    found = heads(subject.model)
    assert len(found) == 2 * (2 + 3 + 3)
    assert found[:3] == [Head("enc.0.self", 0), Head("enc.0.self", 1), Head("enc.1.self", 0)]
    assert Head("dec.2.cross", 1) in found
    assert {head.block for head in heads(generator().model)} == {"dec.0.self", "dec.1.self", "dec.2.self"}


def test_a_silent_head_reads_nothing_and_others_what_they_read(subject):
    off = [Head("dec.0.cross", 1), Head("enc.0.self", 0)]
    seen, plain = trace(subject, TEXT, GERMAN, edits=switched_off(off)), trace(subject, TEXT, GERMAN)
    assert not seen["dec.0.cross.z"].values[1].any()
    assert seen["dec.0.cross.z"].values[0].any()
    assert not seen["enc.0.self.z"].values[0].any()
    assert (seen["enc.0.self.z"].values[1] == plain["enc.0.self.z"].values[1]).all()


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("positions", POSITIONS)
def test_an_even_head_sees_all_that_it_may_alike(positions, heads):
    subject = translator(positions=positions, heads=heads, d_k=6)
    off = [Head(block, heads - 1) for block in ("enc.1.self", "dec.1.self", "dec.2.cross")]
    seen = trace(subject, TEXT, GERMAN, edits=switched_off(off, "even"))
    for head in off:
        weights = torch.from_numpy(seen[f"{head.block}.attn"].values[head.number])
        visible = torch.ones_like(weights)
        expected = visible.tril() if head.block.startswith("dec.1") else visible
        torch.testing.assert_close(weights, expected / expected.sum(-1, keepdim=True))
    assert max(seen.checks.values()) < 1e-5  # a search, which feeds a token at a time, does without the same heads


@pytest.mark.parametrize("positions", ["alibi", "relative"])
def test_beside_an_even_head_another_looks_where_it_looked(positions):
    subject = translator(positions=positions)
    even = trace(subject, TEXT, GERMAN, edits=switched_off([Head("enc.0.self", 1)], "even"))
    plain = trace(subject, TEXT, GERMAN)
    assert (even["enc.0.self.attn"].values[0] == plain["enc.0.self.attn"].values[0]).all()


def test_two_heads_of_a_block_are_off_together(subject):
    seen = trace(subject, TEXT, GERMAN, edits=switched_off([Head("dec.1.cross", 0), Head("dec.1.cross", 1)]))
    assert not seen["dec.1.cross.z"].values.any()


@pytest.mark.parametrize("way", ["silent", "even"])
@pytest.mark.parametrize("number", [-1, 2])
def test_a_head_that_is_not_there_is_refused(subject, way, number):
    with pytest.raises(InputError, match=f"head {number}: the block has 2"):
        trace(subject, TEXT, GERMAN, edits=switched_off([Head("dec.0.cross", number)], way))


def test_another_way_is_refused():
    with pytest.raises(InputError, match="choose one of silent, even"):
        switched_off([Head("dec.0.cross", 0)], "loud")


@pytest.mark.parametrize("block", ["*", "dec.*.cross", "dec.?.cross", "enc.[01].self"])
def test_a_pattern_of_blocks_is_no_head(block):
    with pytest.raises(InputError, match=r"is a pattern, but a head belongs to a single block; give that block"):
        Head(block, 0)
