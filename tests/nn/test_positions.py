import math

import pytest
import torch

from heedful.config.schema import ModelConfig
from heedful.nn.positions import POSITIONS, sinusoids


def test_sinusoids_equal_the_papers_formula():
    table = sinusoids(97, 26)
    for pos in (0, 1, 53, 96):
        for i in range(13):
            angle = pos / 10000 ** (2 * i / 26)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_of_positions_is_a_rotation_of_each_pair_of_dimensions():
    table = sinusoids(601, 34).double().unflatten(1, (17, 2))
    frequency = 10000.0 ** (-torch.arange(17, dtype=torch.float64) / 17)
    for pos, k in ((0, 7), (11, 41), (503, 97)):
        sin, cos = (k * frequency).sin(), (k * frequency).cos()
        s, c = table[pos, :, 0], table[pos, :, 1]
        rotated = torch.stack([s * cos + c * sin, c * cos - s * sin], dim=1)
        torch.testing.assert_close(rotated, table[pos + k], atol=1e-6, rtol=0)


def test_every_position_has_its_own_code():
    table = sinusoids(5003, 32)
    assert torch.nn.functional.pdist(table[::7]).min() > 0
    assert (table[1:] - table[:-1]).norm(dim=1).min() > 0.1


def test_sinusoids_have_no_limit():
    config = ModelConfig(d_model=6, heads=2, max_positions=5)
    positions = POSITIONS["sinusoidal"](config)
    x = torch.zeros(1, 23, 6)
    torch.testing.assert_close(positions.embed(x, torch.arange(23)[None], 23)[0], sinusoids(23, 6))
    assert not positions.state_dict()


def test_learned_positions_end_with_a_clear_error():
    positions = POSITIONS["learned"](ModelConfig(d_model=6, heads=2, max_positions=5))
    with pytest.raises(IndexError, match=r"7 tokens, but model.max_positions is 5"):
        positions.embed(torch.zeros(1, 7, 6), torch.arange(7)[None], 7)


def test_no_positions_leave_the_embeddings_alone():
    x = torch.randn(2, 3, 6)
    positions = POSITIONS["none"](ModelConfig(d_model=6, heads=2))
    assert positions.embed(x, torch.arange(3).expand(2, 3), 3) is x
