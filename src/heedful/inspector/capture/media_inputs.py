"""Pictures and sounds as a model reads them: what a page shows of them, and labels for the positions of the encoder.

H height, W width, C channels, Q queries, S positions of the encoder, P coordinates, T frames, M mel bands.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from heedful.media.images import pillow
from heedful.media.log_mel import hertz, log_mel, mel
from heedful.media.modality import Medium, Pictures, Sounds, Videos

CLASS = "<class>"  # label of the class token


class MediaInput(ABC):
    """Base class of a picture or sound in a look: labels of its positions in the encoder, and its form for a page."""

    @property
    @abstractmethod
    def labels(self) -> list[str]:
        """Label of each position of the encoder."""

    @property
    @abstractmethod
    def places(self) -> Float32[np.ndarray, "S P"]:
        """Place of each position of the encoder: row and column in patches, or seconds; NaN for a class token."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Picture or sound as JSON values for the page; "kind" says which it is."""


@dataclass(frozen=True)
class PictureInput(MediaInput):
    """Picture at the size at which a model reads it, and the patches into which the model cuts it.

    Attributes:
        pixels: the pixels, of 8 bits.
        grid: rows and columns of patches.
        before: positions of the encoder before the patches: 1 for a class token, or 0.
        frames: frames of a video that stand one below the other; 1 for a picture.
    """

    pixels: UInt8[np.ndarray, "H W C"]
    grid: tuple[int, int]
    before: int
    frames: int = 1

    @property
    def labels(self) -> list[str]:
        """Row and column of each patch, from 1, such as "2,7"; and the class token."""
        rows, columns = self.grid
        patches = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
        return [CLASS] * self.before + patches

    @property
    def places(self) -> Float32[np.ndarray, "S 2"]:
        """Row and column of each patch in its frame, in patches; NaN for a class token."""
        rows, columns = self.grid
        patches = np.mgrid[: rows // self.frames, :columns].reshape(2, -1).T
        token = np.full((self.before, 2), np.nan)
        return np.concatenate([token, np.tile(patches, (self.frames, 1))]).astype(np.float32)

    def laid(self, weights: Float32[np.ndarray, "Q S"]) -> Float32[np.ndarray, "Q R P"]:
        """Lay the weights of Q queries on the patches, R rows of P; those of a class token are left out."""
        return weights[:, self.before :].reshape(-1, *self.grid)

    def shares(self, box: Sequence[int | float]) -> Float32[np.ndarray, " S"]:
        """Share of the area of each patch that lies in a box; 0 for a class token.

        Args:
            box: left, top, right and bottom in pixels of the picture as the model reads it; the right and the bottom
                edge are the first pixels outside.
        """
        left, top, right, bottom = box
        height, width, _ = self.pixels.shape
        rows, columns = self.grid
        shares = np.outer(overlaps(top, bottom, rows, height / rows), overlaps(left, right, columns, width / columns))
        return np.concatenate([np.zeros(self.before), shares.ravel()]).astype(np.float32)

    def described(self) -> dict[str, Any]:
        """Size, grid and pixels of the picture as JSON values; the pixels are a PNG file in base64."""
        height, width, channels = self.pixels.shape
        rows, columns = self.grid
        stream = BytesIO()
        pillow().fromarray(self.pixels[:, :, 0] if channels == 1 else self.pixels).save(stream, "PNG")
        return {
            "kind": "picture",
            "height": height,
            "width": width,
            "rows": rows,
            "columns": columns,
            "before": self.before,
            "png": base64.b64encode(stream.getvalue()).decode(),
        }


@dataclass(frozen=True)
class SoundInput(MediaInput):
    """Log-mel spectrum of a sound, and the frames that a model makes of it.

    Attributes:
        spectrum: one row a hop; a model that reads samples does not read it, but a page draws it all the same.
        bands: middle of each mel band, in Hz.
        hop: seconds from one row to the next.
        stride: rows for each position of the encoder.
        positions: number of positions of the encoder.
    """

    spectrum: Float32[np.ndarray, "T M"]
    bands: list[float]
    hop: float
    stride: int
    positions: int

    @property
    def labels(self) -> list[str]:
        """Time at which each position of the encoder begins, such as "0.24 s"."""
        step = self.hop * self.stride
        digits = 2 if step >= 0.01 else 4
        return [f"{position * step:.{digits}f} s" for position in range(self.positions)]

    @property
    def places(self) -> Float32[np.ndarray, "S 1"]:
        """Time at which each position of the encoder begins, in seconds."""
        return np.arange(self.positions, dtype=np.float32)[:, None] * np.float32(self.hop * self.stride)

    def described(self) -> dict[str, Any]:
        """Spectrum and times of the sound as JSON values; the spectrum is a byte a value in base64, row by row."""
        frames, mels = self.spectrum.shape
        low, high = float(self.spectrum.min()), float(self.spectrum.max())
        shades = np.rint((self.spectrum - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
        return {
            "kind": "sound",
            "frames": frames,
            "mels": mels,
            "hop": self.hop,
            "stride": self.stride,
            "bands": [round(middle, 1) for middle in self.bands],
            "spectrum": base64.b64encode(shades.tobytes()).decode(),
        }


def overlaps(begin: int | float, end: int | float, count: int, step: float) -> np.ndarray:
    """Share of each of `count` intervals of length `step`, from 0, that lies between `begin` and `end`."""
    starts = np.arange(count) * step
    return np.clip(np.minimum(end, starts + step) - np.maximum(begin, starts), 0, None) / step


def picture_input(medium: Pictures, decoded: np.ndarray) -> PictureInput:
    """Picture input of a look from decoded pixels."""
    config = medium.config
    return PictureInput(decoded, config.grid, config.tokens - config.grid[0] * config.grid[1])


def sound_input(medium: Sounds, decoded: np.ndarray) -> SoundInput:
    """Sound input of a look from decoded samples."""
    config = medium.config
    edges = hertz(torch.linspace(0, float(mel(torch.tensor(config.rate / 2))), config.mels + 2))
    return SoundInput(
        spectrum=log_mel(torch.tensor(decoded), config).numpy(),
        bands=edges[1:-1].tolist(),
        hop=config.hop / config.rate,
        stride=config.stride,
        positions=medium.tokens(decoded),
    )


def video_input(medium: Videos, decoded: np.ndarray) -> PictureInput:
    """Picture input of a look from decoded frames: a strip of the first frame of each tubelet, one below the other.

    So the tubelets stand on it as the patches of a picture do, row by row.
    """
    first = decoded[:: medium.video.tubelet]
    rows, columns = medium.config.grid
    grid = len(first) * rows, columns
    return PictureInput(np.concatenate(first), grid, int(medium.config.class_token), frames=len(first))


INPUTS: dict[type[Medium], Callable[[Any, np.ndarray], MediaInput]] = {
    Pictures: picture_input,
    Sounds: sound_input,
    Videos: video_input,
}


def media_input(medium: Medium, decoded: np.ndarray) -> MediaInput:
    """Picture or sound input of a look from what a medium has decoded."""
    return INPUTS[type(medium)](medium, decoded)
