"""How the numbers of a trace are stored: exactly, or in fewer bits where they are looked at and not computed with."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Stored:
    """One way to store numbers.

    Attributes:
        encode: float32 to what is stored.
        decode: and back.
    """

    encode: Callable[[np.ndarray], np.ndarray]
    decode: Callable[[np.ndarray], np.ndarray]


def to_sqrt_u8(p: np.ndarray) -> np.ndarray:
    """The square roots of numbers from 0 to 1 in 255 steps: small weights stay apart, and none is off by 0.004."""
    return np.rint(np.sqrt(p.clip(0, 1)) * 255).astype(np.uint8)


def from_sqrt_u8(b: np.ndarray) -> np.ndarray:
    """Back to numbers from 0 to 1."""
    return np.square(b.astype(np.float32) / 255)


def to_f16(x: np.ndarray) -> np.ndarray:
    """Half precision; what is too large for it, such as a mask, becomes the largest number there is."""
    largest = np.finfo(np.float16).max
    return x.clip(-largest, largest).astype(np.float16)


def to_f32(x: np.ndarray) -> np.ndarray:
    """Single precision."""
    return x.astype(np.float32)


STORED = {
    "f32": Stored(to_f32, to_f32),
    "f16": Stored(to_f16, to_f32),
    "sqrt_u8": Stored(to_sqrt_u8, from_sqrt_u8),
}
