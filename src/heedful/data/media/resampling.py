"""Resampling of sound by a windowed sinc, for any two rates: band-limited interpolation (Smith & Gossett 1984)."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float32

Samples = Float32[np.ndarray, " N"]

CROSSINGS = 16  # zero crossings of the sinc on either side
ROLLOFF = 0.95  # the pass band ends below the lower of the two limits, where the window lets its mirror image through
OUTPUTS = 4096  # that are computed at a time


def resampled(samples: Samples, before: int, after: int) -> Samples:
    """Resample sound from one number of samples a second to another; at equal rates nothing changes.

    Args:
        samples: one channel.
        before: its samples a second.
        after: the wanted samples a second.

    Returns:
        ceil(N x after / before) samples, the first at the time of the first.
    """
    if before == after:
        return samples
    common = math.gcd(before, after)
    steps, phases = before // common, after // common
    count = -(-len(samples) * phases // steps)
    reach = math.ceil(CROSSINGS * max(1.0, steps / phases) / ROLLOFF)
    kernel = sinc_kernel(steps, phases, reach)
    around = F.pad(torch.from_numpy(samples), (reach, reach)).unfold(0, 2 * reach + 1, 1)  # a view
    parts = [
        (around[outputs * steps // phases] * kernel[outputs % phases]).sum(1)
        for outputs in torch.arange(count).split(OUTPUTS)
    ]
    return torch.cat(parts).numpy()


def sinc_kernel(steps: int, phases: int, reach: int) -> torch.Tensor:
    """Kernel (phases, 2 reach + 1): how each of the outputs of a period weighs the inputs around it."""
    width = min(1.0, phases / steps) * ROLLOFF
    behind = (torch.arange(phases) * steps % phases).double()[:, None] / phases  # the input before an output
    distance = (torch.arange(-reach, reach + 1) - behind) * width
    window = torch.cos(distance * math.pi / 2 / CROSSINGS).square() * (distance.abs() <= CROSSINGS)
    return (width * torch.sinc(distance) * window).float()
