"""Log-mel spectrum of audio, as in Whisper (Radford et al. 2022, section 2.2), and masks over it.

N samples, T frames, M mel bands, K frequencies.
"""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from torch import Tensor

from heedful.config.modalities import AudioConfig
from heedful.random_numbers import KeyedGenerator

FLOOR = 1e-10  # smaller powers are raised to this, so that they have a logarithm
RANGE = 8.0  # the spectrum is clamped at this many powers of ten below the loudest band
LINEAR_UP_TO = 1000.0  # Hz; the mel scale of Slaney's auditory toolbox is linear below, and logarithmic above
MELS_PER_HERTZ = 3 / 200
LOG_STEP = math.log(6.4) / 27  # increase of ln(frequency) per mel in the logarithmic part


def log_mel(samples: Float32[Tensor, " N"], config: AudioConfig) -> Float32[Tensor, "T M"]:
    """Compute the log-mel spectrum of a clip, with one frame for each whole hop.

    The steps are a Hann window, the power of each frequency, bands of Slaney's mel scale, log10, a clamp at eight
    powers of ten below the loudest band of the clip, and (x + 4) / 4, so that no value is more than 2 below the
    largest. A clip shorter than a hop has one frame.
    """
    frames = config.frames(len(samples))
    samples = F.pad(samples.double(), (0, max(0, frames * config.hop - len(samples))))
    samples = F.pad(samples, (0, max(0, config.window // 2 + 1 - len(samples))))  # for the reflection at the ends
    window = torch.hann_window(config.window, dtype=torch.float64)
    spectrum = torch.stft(samples, config.window, config.hop, window=window, return_complex=True)
    # torch.stft returns one frame more than there are whole hops; Whisper drops it, too.
    power = spectrum[:, :frames].abs().square()
    # (M, K) @ (K, T)
    logarithms = (mel_bands(config.mels, config.window, config.rate) @ power).clamp(min=FLOOR).log10()
    return ((logarithms.clamp(min=float(logarithms.max()) - RANGE) + 4) / 4).T.float()


@lru_cache(maxsize=8)
def mel_bands(mels: int, window: int, rate: int) -> Float[Tensor, "M K"]:
    """Return the weights of the frequencies in each mel band: triangles of equal area (Slaney 1998)."""
    frequencies = torch.linspace(0, rate / 2, window // 2 + 1, dtype=torch.float64)
    edges = hertz(torch.linspace(0, mel(frequencies)[-1].item(), mels + 2, dtype=torch.float64))
    above, widths = edges[:, None] - frequencies, edges.diff()[:, None]
    # The triangle of a band rises from the previous edge to its own, and falls to the next edge.
    rising, falling = -above[:-2] / widths[:-1], above[2:] / widths[1:]
    height = 2 / (edges[2:] - edges[:-2])
    return torch.minimum(rising, falling).clamp(min=0) * height[:, None]


def mel(frequency: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    linear = frequency * MELS_PER_HERTZ
    above = LINEAR_UP_TO * MELS_PER_HERTZ + (frequency.clamp(min=LINEAR_UP_TO) / LINEAR_UP_TO).log() / LOG_STEP
    return torch.where(frequency < LINEAR_UP_TO, linear, above)


def hertz(mels: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    knee = LINEAR_UP_TO * MELS_PER_HERTZ
    return torch.where(mels < knee, mels / MELS_PER_HERTZ, LINEAR_UP_TO * ((mels - knee) * LOG_STEP).exp())


def masked(spectrum: Float32[Tensor, "T M"], config: AudioConfig, generator: KeyedGenerator) -> Float32[Tensor, "T M"]:
    """Mask spans of frames and ranges of bands with the mean of the clip (SpecAugment, Park et al. 2019)."""
    spectrum = spectrum.clone()
    mean = spectrum.mean()
    # `lines` is a view: rows of the transposed spectrum are bands, and writing to them changes `spectrum`.
    for count, share, lines in (
        (config.time_masks, config.time_mask, spectrum),
        (config.frequency_masks, config.frequency_mask, spectrum.T),
    ):
        for _ in range(count):
            length = generator.integer(int(share * len(lines)) + 1)
            begin = generator.integer(len(lines) - length + 1)
            lines[begin : begin + length] = mean
    return spectrum
