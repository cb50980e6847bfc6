"""Resampling of sound by a windowed sinc, for any two rates: band-limited interpolation (Smith & Gossett 1984)."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float32

Samples = Float32[np.ndarray, " N"]

CROSSINGS = 16  # zero crossings of the sinc on either side
ROLLOFF = 0.95  # the pass band ends below the lower of the two limits, where the window lets its mirror image through
GROUPS = 1024  # that are copied at a time


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
    reach = math.ceil(CROSSINGS * max(1.0, steps / phases) / ROLLOFF)
    kernel = sinc_kernel(steps, phases, reach)
    count = -(-len(samples) * phases // steps)
    groups = -(-count // phases)  # each of `phases` outputs, which begin `steps` inputs after those before
    needed = (groups - 1) * steps + kernel.size(-1)
    padded = F.pad(torch.from_numpy(samples), (reach, max(0, needed - reach - len(samples))))[:needed]
    windows = padded.unfold(0, kernel.size(-1), steps)  # a view
    return torch.cat([part @ kernel.T for part in windows.split(GROUPS)]).reshape(-1)[:count].numpy()


def sinc_kernel(steps: int, phases: int, reach: int) -> torch.Tensor:
    """Kernel (phases, 2 reach + steps): how each of the outputs between two groups weighs the inputs around it."""
    width = min(1.0, phases / steps) * ROLLOFF
    output = torch.arange(phases, dtype=torch.float64)[:, None] * steps / phases
    distance = torch.arange(-reach, reach + steps, dtype=torch.float64) - output
    window = torch.cos(distance * width * math.pi / 2 / CROSSINGS).square()
    inside = (distance * width).abs() <= CROSSINGS
    return (width * torch.sinc(distance * width) * window * inside).float()
