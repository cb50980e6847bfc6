"""Channels of sound made into one: their mean, or the one that is asked for; channels that cancel are refused.

N samples, C channels.
"""

import math

import numpy as np
from jaxtyping import Float32

from heedful.data.media.resampling import Samples
from heedful.errors import InputError

CANCELLED = 1e-4  # power of the mean, as a share of the power of the channels: 40 dB less


class ChannelMixer:
    """Makes one channel of several, block by block, and notices channels that cancel.

    Two microphones or two wires of opposite polarity give the same sound with opposite signs, whose mean is silence.

    Args:
        channel: the number of the channel to take, from 1; None: the mean of all.
    """

    def __init__(self, channel: int | None) -> None:
        self.channel = channel
        self._before = self._after = 0.0  # power, summed over all samples

    def mix(self, block: Float32[np.ndarray, "N C"]) -> Samples:
        """Return one channel of the next block.

        Raises:
            InputError: there is no channel of this number.
        """
        channels = block.shape[1]
        if self.channel is not None:
            if self.channel > channels:
                raise InputError(
                    f"it has {channels} channel{'s' * (channels > 1)}, and channel {self.channel} is asked for; "
                    "choose another one"
                )
            return np.ascontiguousarray(block[:, self.channel - 1])
        mean = block.mean(axis=1)
        if channels > 1:
            self._before += float(np.square(block, dtype=np.float64).sum()) / channels
            self._after += float(np.square(mean, dtype=np.float64).sum())
        return mean

    def check(self) -> None:
        """Check that the channels of all blocks so far do not cancel each other.

        Raises:
            InputError: they do; the mean is silent where the channels are not.
        """
        if self._before > 0 and self._after < CANCELLED * self._before:
            quieter = 10 * math.log10(self._before / self._after) if self._after else math.inf
            silent = "silence" if math.isinf(quieter) else f"{quieter:.0f} dB quieter than they are"
            raise InputError(
                f"its channels cancel each other: their mean is {silent}; choose one, with --channel 1 or, in a "
                "recipe, audio.channel = 1"
            )
