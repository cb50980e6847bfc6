"""Encodings of a trace's tensors for storage: exact float32, float16, or one byte for attention weights."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Stored:
    """Encoding that stores a float32 array, perhaps in fewer bits.

    Attributes:
        encode: converts float32 values to the stored array.
        decode: converts the stored array back to float32.
    """

    encode: Callable[[np.ndarray], np.ndarray]
    decode: Callable[[np.ndarray], np.ndarray]


def to_sqrt_u8(p: np.ndarray) -> np.ndarray:
    """Encode values from 0 to 1 as bytes: square roots in 255 steps.

    Small values stay distinct, and no error reaches 0.004.
    """
    return np.rint(np.sqrt(p.clip(0, 1)) * 255).astype(np.uint8)


def from_sqrt_u8(b: np.ndarray) -> np.ndarray:
    """Decode bytes that hold square roots in 255 steps to float32 values from 0 to 1."""
    return np.square(b.astype(np.float32) / 255)


def to_f16(x: np.ndarray) -> np.ndarray:
    """Convert to float16; larger values, such as those of a mask, become the largest finite float16."""
    largest = np.finfo(np.float16).max
    return x.clip(-largest, largest).astype(np.float16)


def to_f32(x: np.ndarray) -> np.ndarray:
    """Convert to float32."""
    return x.astype(np.float32)


STORED = {
    "f32": Stored(to_f32, to_f32),
    "f16": Stored(to_f16, to_f32),
    "sqrt_u8": Stored(to_sqrt_u8, from_sqrt_u8),
}
