"""Videos from files (MP4, MOV, WebM, animated GIF, WebP, PNG) as 8-bit frames, evenly sampled and resized.

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
FORMATS = ("GIF", "WEBP", "PNG")  # formats of animated images in Pillow

Frames = UInt8[np.ndarray, "T H W C"]


def sampled_frames(count: int, config: VideoConfig) -> Sequence[int]:
    """Return the indices of the frames to read out of `count`: the middle frame of each of several equal parts.

    A video with too few frames to fill its last tubelet has some frames twice.
    """
    check_frames(count, config)
    parts = config.read(count)
    return [(2 * part + 1) * count // (2 * parts) for part in range(parts)]


def read_video(content: bytes, video: VideoConfig, image: ImageConfig) -> Frames:
    """Decode the bytes of a video or of an animated image as frames (T H W C), each resized like an image.

    A still image is a video of one frame. Frames count equally, whatever their durations.
    """
    if kind := container_format(content[:HEAD]):
        frames = container_frames(content, kind, image.max_pixels, lambda count: sampled_frames(count, video))
        return np.stack([from_pixels(frame, image) for frame in frames])
    with opened(content, image.max_pixels, FORMATS, "video") as animation:
        # Pillow's images in still formats have no `n_frames`.
        count = getattr(animation, "n_frames", 1)
        frames = []
        for number in [*sampled_frames(count, video), count - 1]:  # the last one too: it reveals a truncated file
            animation.seek(number)
            check_size(animation, image.max_pixels)  # a frame may be larger than the first
            frames.append(np.asarray(resized(upright(animation), image)).reshape(*image.size, image.channels))
        return np.stack(frames[:-1])


def from_frames(values: np.ndarray, video: VideoConfig, image: ImageConfig) -> Frames:
    """Sample and resize 8-bit frames, (T H W) or (T H W C) with 1, 3 or 4 channels, according to the settings."""
    check_pixels(values)
    return np.stack([from_pixels(values[number], image) for number in sampled_frames(len(values), video)])


def check_pixels(values: np.ndarray) -> None:
    if values.dtype != np.uint8 or not values.size or values.ndim not in (3, 4):
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is not a video; give pixels from 0 to 255 as "
            "uint8, (frames, height, width) or (frames, height, width, channels); put several arrays in a list"
        )


def animated_png(values: UInt8[np.ndarray, "T H W *C"]) -> bytes:
    """Encode 8-bit frames, (T H W) or (T H W C), as an animated PNG; transparent pixels are composited onto white."""
    check_pixels(values)
    first, *others = [upright(image_of(frame)) for frame in values]
    stream = BytesIO()
    # Pillow merges equal frames if they have the same blend mode; for opaque frames, both modes look the same.
    first.save(stream, "PNG", save_all=True, append_images=others, blend=[number % 2 for number in range(len(values))])
    return stream.getvalue()


def check_frames(count: int, config: VideoConfig) -> None:
    if count > config.max_frames:
        raise InputError(
            f"it has {count:,} frames, more than max_frames = {config.max_frames:,}; split it into shorter videos, or "
            "raise that limit"
        )
