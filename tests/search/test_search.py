import pytest

from heedful.config.schema import DecodeConfig
from heedful.search.beam import beam_search, greedy_search, search
from toy_states import ToyState


@pytest.mark.parametrize(("width", "strategy"), [(1, greedy_search), (2, beam_search), (5, beam_search)])
def test_a_beam_of_one_is_searched_greedily_and_a_wider_one_by_beam_search(width, strategy):
    config = DecodeConfig(beam=width, penalty="average", alpha=2.0, patience=0.0)
    seeds, lengths = list(range(13)), [57] * 13
    found = {one: one(ToyState(seeds), lengths, config) for one in (greedy_search, beam_search)}
    assert found[greedy_search] != found[beam_search]
    assert search(ToyState(seeds), lengths, config) == found[strategy]


@pytest.mark.parametrize("width", [1, 3])
def test_nothing_to_decode_gives_nothing(width):
    assert search(ToyState([]), [], DecodeConfig(beam=width)) == []
