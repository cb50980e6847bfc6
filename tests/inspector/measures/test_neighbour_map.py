import numpy as np
import pytest

from heedful.errors import InputError
from heedful.inspector.measures.embeddings import neighbour_map


def groups():
    chance = np.random.default_rng(3)
    centres = 5 * chance.normal(size=(3, 13))
    return np.concatenate([centre + chance.normal(size=(11, 13)) for centre in centres]).astype(np.float32)


def test_the_nearest_neighbours_are_of_the_same_group():
    places = neighbour_map(groups())
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag([np.inf] * 33)
    assert (distances.argmin(1) // 11 == np.arange(33) // 11).all()


def test_the_same_vectors_give_the_same_map():
    np.testing.assert_array_equal(neighbour_map(groups()), neighbour_map(groups()))


def test_four_vectors_are_too_few():
    with pytest.raises(InputError, match="needs at least 5 vectors"):
        neighbour_map(groups()[:4])
