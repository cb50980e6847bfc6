"""Image files (PNG, JPEG, WebP and others) as resized 8-bit arrays; a file that cannot be read raises an InputError.

H height, W width, C channels.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import UInt8

from heedful.config.modalities import ImageConfig
from heedful.errors import InputError
from heedful.media.foreign_messages import without_foreign_messages

ENDINGS = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".pnm")
ENDINGS += (".avif", ".heic", ".heif", ".jp2", ".j2k", ".ico", ".tga")
# the formats that Pillow may open; others, such as EPS, contain programs
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO", "HEIF", "TGA", "MPO")
HEIC = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")  # brands of files that pillow-heif reads
# exceptions that Pillow raises for damaged files
DAMAGE = (EOFError, IndexError, OSError, struct.error, SyntaxError, TypeError, ValueError)
WHITE = {"I;16": 65_535, "I;16B": 65_535, "I;16L": 65_535, "I": 65_535, "F": 1.0}  # Pillow modes with more than 8 bits
MAX_SCALED_PIXELS = 2**26  # maximum size of the scaled image from which the middle is cropped
ORIENTATION = 0x0112  # the EXIF tag for the camera's rotation
TURNS = {  # transpositions that turn an image upright, by the value of this tag
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}

TRUNCATED_IMAGES_LOCK = Lock()

Pixels = UInt8[np.ndarray, "H W C"]


def read_image(content: bytes, config: ImageConfig, *, truncated: bool = False) -> Pixels:
    """Decode the bytes of an image file as pixels (H W C), turned upright according to its EXIF data, and resized.

    From an animated image, the first frame is read. Transparent pixels are composited onto white. 16-bit images, and
    images with values from 0 to 1, are scaled to 8 bits; CMYK becomes RGB. With `truncated`, an image that is cut off
    is read as far as possible, and the rest is black or grey.
    """
    with opened(content, config.max_pixels) as image, loading(truncated=truncated):
        return np.asarray(resized(upright(image), config)).reshape(*config.size, config.channels)


MORE_KINDS = {"video": " and, with heedful[media], MP4, MOV, WebM, MKV, AVI"}  # which PyAV reads, not Pillow


@contextmanager
def opened(content: bytes, max_pixels: int, formats: tuple[str, ...] = FORMATS, noun: str = "image") -> Iterator[Any]:
    """Open the bytes of an image file as a Pillow image, which is decoded when its pixels are used."""
    library = pillow()
    if not content:
        raise InputError("the file is empty; remove it, or save it again")
    if content[4:8] == b"ftyp" and content[8:12] in HEIC:
        try:
            import pillow_heif
        except ImportError as error:
            raise InputError(
                "HEIC and HEIF images are read with pillow-heif, which is not installed: pip install 'heedful[media]'"
            ) from error
        pillow_heif.register_heif_opener()
    try:
        library.init()  # loads the plugins, which add formats
        supported = [name for name in formats if name in library.OPEN]
        with without_foreign_messages(), library.open(BytesIO(content), formats=supported) as image:
            check_size(image, max_pixels)
            yield image
    except library.UnidentifiedImageError as error:
        kinds = f"{', '.join(formats)}{MORE_KINDS.get(noun, '')}"
        article = "an" if noun == "image" else "a"
        raise InputError(f"not {article} {noun}, or in an unsupported format (supported formats: {kinds})") from error
    except library.DecompressionBombError as error:
        raise InputError(f"it has more pixels than Pillow accepts ({error}); make it smaller") from error
    except DAMAGE as error:
        raise InputError(f"the {noun} is damaged or cut off ({str(error).strip()}); save it again") from error


@contextmanager
def loading(*, truncated: bool) -> Iterator[None]:
    """Make Pillow decode images that are cut off, if `truncated`.

    Pillow has a process-wide switch for this, so only one thread at a time may set it and decode such an image.
    """
    from PIL import ImageFile

    if not truncated:
        yield
        return
    with TRUNCATED_IMAGES_LOCK:
        before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, True
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def check_size(image: Any, max_pixels: int) -> None:
    """Check that a Pillow image has at most `max_pixels` pixels, before they are decoded."""
    width, height = image.size
    if width * height > max_pixels:
        raise InputError(
            f"it has {width:,} x {height:,} pixels, more than max_pixels = {max_pixels:,}; make it smaller, or raise "
            "that limit"
        )


def from_pixels(values: np.ndarray, config: ImageConfig) -> Pixels:
    """Resize 8-bit pixels, (H W), (H W 1), RGB (H W 3) or RGBA (H W 4), to the configured size."""
    return np.asarray(resized(upright(image_of(values)), config)).reshape(*config.size, config.channels)


def image_of(values: np.ndarray) -> Any:
    if values.dtype != np.uint8 or not values.size or values.shape[2:] not in ((), (1,), (3,), (4,)) or values.ndim < 2:
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is not an image; give pixels from 0 to 255 as "
            "uint8, (height, width) or (height, width, channels) with 1, 3 or 4 channels; put several arrays in a list"
        )
    return pillow().fromarray(np.ascontiguousarray(values[:, :, 0] if values.shape[2:] == (1,) else values))


def pixels_of(image: Any) -> UInt8[np.ndarray, "H W *C"]:
    """Return the pixels of a Pillow image, upright and with 8 bits."""
    try:
        turned = upright(image)
        return np.asarray(turned if turned.mode in ("L", "RGB", "RGBA") else turned.convert("RGB"))
    except DAMAGE as error:
        raise InputError(f"the image is damaged or cut off ({str(error).strip()}); save it again") from error


def upright(image: Any) -> Any:
    """Turn a Pillow image upright by its EXIF data, composite it onto white if transparent, and convert to 8 bits."""
    library = pillow()
    image.load()  # for a TIFF, Pillow turns it upright here, and removes the tag
    if turn := TURNS.get(image.getexif().get(ORIENTATION)):
        image = image.transpose(library.Transpose[turn])
    # Pillow would convert these modes to 8 bits by clipping, and most pixels would become white.
    if image.mode in WHITE:
        values, white = np.asarray(image, dtype=np.float64), WHITE[image.mode]
        if not np.isfinite(values).all():
            raise InputError(f"{np.sum(~np.isfinite(values)):,} of its pixels are not finite")
        low, high = values.min(), values.max()
        if low < 0 or high > white:
            raise InputError(
                f"its pixels range from {low:g} to {high:g}, but this format's range is 0 to {white:g}; scale them"
            )
        return library.fromarray((values / white * 255).round().astype(np.uint8))
    if image.has_transparency_data:
        # Transparent pixels also have a colour, often black, which a plain conversion would show.
        image = image.convert("RGBA")
        white = library.new("RGBA", image.size, "white")
        return library.alpha_composite(white, image).convert("RGB")
    return image


def resized(image: Any, config: ImageConfig) -> Any:
    # Converted before resizing: palette indices cannot be interpolated.
    image = image.convert("L" if config.channels == 1 else "RGB")
    height, width = config.size
    if image.size == (width, height):
        return image
    return RESIZES[config.resize](image, (width, height), pillow().Resampling[config.resample.upper()])


def cropped(image: Any, size: tuple[int, int], resample: Any) -> Any:
    """Scale an image until it covers the size, and crop its centre at whole pixels, as CLIP does.

    The longer side is rounded down, and so are the margins before the centre: the processors of Hugging Face and of
    Radford et al. (2021) do the same, so that converted models read the pixels that they were trained on.
    """
    if image.size == size:
        return image
    (width, height), (wide, high) = image.size, size
    if width * high > wide * height:  # wider than the size, so that the height fits
        full = (max(wide, int(high * width / height)), high)
    else:
        full = (wide, max(high, int(wide * height / width)))
    left, top = (full[0] - wide) // 2, (full[1] - high) // 2
    if full[0] * full[1] > MAX_SCALED_PIXELS:  # of a long strip, scale only the centre; equal up to rounding
        x, y = width / full[0], height / full[1]
        return image.resize(size, resample, (left * x, top * y, (left + wide) * x, (top + high) * y))
    return image.resize(full, resample).crop((left, top, left + wide, top + high))


def letterboxed(image: Any, size: tuple[int, int], resample: Any) -> Any:
    from PIL import ImageOps

    return ImageOps.pad(image, size, resample, "black")


RESIZES: dict[str, Callable[[Any, tuple[int, int], Any], Any]] = {
    "crop": cropped,
    "squash": lambda image, size, resample: image.resize(size, resample),
    "pad": letterboxed,
}


def png(pixels: UInt8[np.ndarray, "H W *C"]) -> bytes:
    stream = BytesIO()
    image_of(pixels).save(stream, "PNG")
    return stream.getvalue()


def pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("images are read with Pillow, which is not installed: pip install 'heedful[image]'") from error
    return Image
