"""A beam that cannot be is refused with the numbers, before anything is searched."""

import pytest
import torch

from heedful.errors import InputError
from heedful.search.beam import check_beam, needed_memory

CPU = torch.device("cpu")


def test_a_beam_of_the_whole_vocabulary_is_the_largest():
    check_beam(23, 23, CPU)
    with pytest.raises(InputError, match="a beam size of 24 is more than the 23 tokens of the vocabulary; lower it"):
        check_beam(24, 23, CPU)


def test_a_beam_that_needs_more_memory_than_is_free_is_refused(monkeypatch):
    monkeypatch.setattr("heedful.search.beam.free_memory", lambda: 3_140_000_000)
    check_beam(1009, 6007, CPU)
    with pytest.raises(
        InputError, match=r"a beam size of 5,003 needs about 5\.2 GB .* but only 3\.1 GB are free; lower it"
    ):
        check_beam(5003, 6007, CPU)


@pytest.mark.parametrize(("beam", "megabytes"), [(100, 36), (300, 104), (1000, 370), (2000, 1000)])
def test_the_estimate_is_near_what_was_measured(beam, megabytes):
    """With the model in the box, a vocabulary of 6,000 and a sentence of 20 words."""
    assert needed_memory(beam, 6000) * 1000 == pytest.approx(megabytes, rel=0.25)
