"""Principal components of vectors: the plane in which they differ most (Pearson 1901).

N vectors of size D.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from heedful.errors import InputError


class Plane(NamedTuple):
    """Vectors in the plane of their first two principal components, and the share of the variance along each."""

    places: Float[np.ndarray, "N 2"]
    shares: tuple[float, float]


def principal_components(vectors: Float[np.ndarray, "N D"]) -> Plane:
    """Project vectors onto their first two principal components, computed in float64.

    The sign of a component is free; here the entry of largest size in its direction is positive, so that the same
    vectors give the same picture everywhere.

    Raises:
        InputError: there are fewer than three vectors, or they have fewer than two dimensions.
    """
    if len(vectors) < 3 or vectors.shape[1] < 2:
        raise InputError(f"{len(vectors)} vectors of size {vectors.shape[1]} span no plane to draw; give more words")
    centred = torch.from_numpy(vectors).double()
    centred = centred - centred.mean(0)
    _, lengths, directions = torch.linalg.svd(centred, full_matrices=False)
    plane = directions[:2]
    signs = plane.gather(1, plane.abs().argmax(1, keepdim=True)).sign()
    places = centred @ (plane * signs).T
    shares = lengths.square() / lengths.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
    return Plane(places.numpy(), (shares[0].item(), shares[1].item()))
