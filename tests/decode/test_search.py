import pytest

from heedful.config.schema import DecodeConfig
from heedful.decode import beam, greedy
from heedful.decode.search import search
from toy_states import ToyState


@pytest.mark.parametrize(("width", "strategy"), [(1, greedy), (2, beam), (5, beam)])
def test_a_beam_of_one_is_searched_greedily_and_a_wider_one_by_beam_search(width, strategy):
    config = DecodeConfig(beam=width, penalty="average", alpha=2.0, patience=0.0)
    seeds, lengths = list(range(13)), [57] * 13
    found = {module: module.search(ToyState(seeds), lengths, config) for module in (greedy, beam)}
    assert found[greedy] != found[beam]
    assert search(ToyState(seeds), lengths, config) == found[strategy]


@pytest.mark.parametrize("width", [1, 3])
def test_nothing_to_decode_gives_nothing(width):
    assert search(ToyState([]), [], DecodeConfig(beam=width)) == []
