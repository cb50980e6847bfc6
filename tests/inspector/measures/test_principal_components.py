import re

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.inspector.measures.embeddings import principal_components


def test_points_of_a_plane_keep_their_distances_and_all_of_their_variance():
    chance = np.random.default_rng(3)
    points = chance.normal(size=(17, 2)) * [3, 1]
    plane, _ = np.linalg.qr(chance.normal(size=(5, 2)))
    found = principal_components((points @ plane.T + 7).astype(np.float32))
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.shares[0] > found.shares[1]
    distances = [np.linalg.norm(places[:, None] - places[None], axis=2) for places in (points, found.places)]
    np.testing.assert_allclose(*distances, atol=1e-5)
    assert abs(found.places.T @ found.places)[0, 1] < 1e-3


def test_the_sign_of_a_component_does_not_depend_on_the_order_of_the_vectors():
    vectors = np.random.default_rng(5).normal(size=(11, 7)).astype(np.float32)
    np.testing.assert_allclose(
        principal_components(vectors[::-1].copy()).places[::-1], principal_components(vectors).places, atol=1e-6
    )


def test_too_few_vectors_span_no_plane():
    with pytest.raises(InputError, match=re.escape("2 vectors of size 7 cannot span a plane")):
        principal_components(np.ones((2, 7), np.float32))
