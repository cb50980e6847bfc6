"""Videos from files (MP4, MOV, WebM, animated GIF, WebP, PNG) as frames of 8 bits, evenly drawn and resized.

T frames, H height, W width, C channels.
"""

from collections.abc import Sequence
from io import BytesIO

import numpy as np
from jaxtyping import UInt8

from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.errors import InputError
from heedful.media.containers import HEAD, VIDEO_ENDINGS, container_format, container_frames
from heedful.media.images import check_size, from_pixels, image_of, opened, resized, upright

ENDINGS = (".gif", ".webp", ".png", ".apng", *VIDEO_ENDINGS)
FORMATS = ("GIF", "WEBP", "PNG")  # those of Pillow that are animated

Frames = UInt8[np.ndarray, "T H W C"]


def chosen_frames(count: int, config: VideoConfig) -> Sequence[int]:
    """Choose frames of a video that has `count`: the middle of each of as many equal parts as frames are read.

    Where these are all frames but do not fill the last tubelet, some are read twice.
    """
    parts = config.read(count)
    return [(2 * part + 1) * count // (2 * parts) for part in range(parts)]


def read_video(content: bytes, video: VideoConfig, image: ImageConfig) -> Frames:
    """Read the bytes of a video or of an animated image as frames (T H W C), each read and resized like an image.

    A still image is a video of one frame. How long a frame is shown does not count.
    """
    if kind := container_format(content[:HEAD]):

        def choose(count: int) -> Sequence[int]:
            check_frames(count, video)
            return chosen_frames(count, video)

        frames = container_frames(content, kind, image.max_pixels, choose)
        return np.stack([from_pixels(frame, image) for frame in frames])
    with opened(content, image.max_pixels, FORMATS, "video") as picture:
        count = getattr(picture, "n_frames", 1)
        check_frames(count, video)
        frames = []
        for number in [*chosen_frames(count, video), count - 1]:  # the last frame tells whether the file is whole
            picture.seek(number)
            check_size(picture, image.max_pixels)  # a frame may be larger than the first
            frames.append(np.asarray(resized(upright(picture), image)).reshape(*image.size, image.channels))
        return np.stack(frames[:-1])


def from_frames(values: np.ndarray, video: VideoConfig, image: ImageConfig) -> Frames:
    """Bring frames of 8 bits, (T H W) or (T H W C) of 1, 3 or 4 channels, to the number and size of the settings."""
    check_pixels(values)
    check_frames(len(values), video)
    return np.stack([from_pixels(values[number], image) for number in chosen_frames(len(values), video)])


def check_pixels(values: np.ndarray) -> None:
    if values.dtype != np.uint8 or not values.size or values.ndim not in (3, 4):
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is no video; give pixels from 0 to 255 as "
            "uint8, (frames, height, width) or (frames, height, width, channels); several go in a list"
        )


def animated_png(values: UInt8[np.ndarray, "T H W *C"]) -> bytes:
    """Encode frames of 8 bits, (T H W) or (T H W C), as an animated PNG file; transparent ones on white."""
    check_pixels(values)
    first, *others = [upright(image_of(frame)) for frame in values]
    stream = BytesIO()
    # Pillow joins frames that are equal and blended alike; over opaque ones, both ways to blend are the same.
    first.save(stream, "PNG", save_all=True, append_images=others, blend=[number % 2 for number in range(len(values))])
    return stream.getvalue()


def check_frames(count: int, config: VideoConfig) -> None:
    if count > config.max_frames:
        raise InputError(
            f"it has {count:,} frames, more than max_frames = {config.max_frames:,}; cut it into shorter ones, or "
            "raise that limit"
        )
