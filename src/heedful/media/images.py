"""Pictures from files: PNG, JPEG, WebP and others as arrays of 8 bits, resized; what cannot be read has a clear error.

H height, W width, C channels.
"""

import struct
from collections.abc import Callable, Container, Iterator
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
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO", "HEIF", "TGA", "MPO")
# of Pillow, whose others include programs such as EPS
HEIC = (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")  # brands of files that pillow-heif reads
DAMAGE = (
    EOFError,
    IndexError,
    OSError,
    struct.error,
    SyntaxError,
    TypeError,
    ValueError,
)  # what Pillow raises for bad bytes
WHITE = {"I;16": 65_535, "I;16B": 65_535, "I;16L": 65_535, "I": 65_535, "F": 1.0}  # in Pillow's modes of over 8 bits
LARGEST_SCALED = 2**26  # pixels of a picture that is scaled before its middle is cut out
ORIENTATION = 0x0112  # the EXIF tag that says how a camera was held
TURNS = {  # what brings a picture upright, by that tag
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}

SWITCH = Lock()

Pixels = UInt8[np.ndarray, "H W C"]


def read_picture(content: bytes, config: ImageConfig, *, truncated: bool = False) -> Pixels:
    """Read the bytes of a picture file as pixels (H W C), turned upright by its EXIF data and resized.

    Of an animated picture the first frame is read. Transparent pixels lie on white. Pictures of 16 bits, and of
    numbers from 0 to 1, are scaled to 8 bits; CMYK becomes RGB. With `truncated`, what is there of an image that is cut
    off is read, and the rest is black or grey.
    """
    with opened(content, config.max_pixels) as picture, loading(truncated=truncated):
        return np.asarray(resized(upright(picture), config)).reshape(*config.size, config.channels)


MORE_KINDS = {"video": " and, with heedful[media], MP4, MOV, WebM, MKV, AVI"}  # that Pillow does not read


@contextmanager
def opened(content: bytes, max_pixels: int, formats: tuple[str, ...] = FORMATS, noun: str = "picture") -> Iterator[Any]:
    """Open the bytes of a picture file as a picture of Pillow, which is unpacked when its pixels are used."""
    library = pillow()
    if not content:
        raise InputError("the file is empty; take it out, or save it again")
    if content[4:8] == b"ftyp" and content[8:12] in HEIC:
        register_heif()
    try:
        known = [one for one in formats if one in known_formats()]
        with without_foreign_messages(), library.open(BytesIO(content), formats=known) as picture:
            check_size(picture, max_pixels)
            yield picture
    except library.UnidentifiedImageError as error:
        kinds = f"{', '.join(formats)}{MORE_KINDS.get(noun, '')}"
        raise InputError(f"it is no {noun}, or of a kind that is not read ({kinds})") from error
    except library.DecompressionBombError as error:
        raise InputError(f"it has more pixels than Pillow opens ({error}); make it smaller") from error
    except DAMAGE as error:
        raise InputError(f"the {noun} is damaged or cut off ({str(error).strip()}); save it again") from error


@contextmanager
def loading(*, truncated: bool) -> Iterator[None]:
    """Let Pillow unpack images that are cut off, if that is asked for: a switch of the whole process, put back after.

    One image at a time is unpacked then.
    """
    from PIL import ImageFile

    if not truncated:
        yield
        return
    with SWITCH:
        before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, True
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def check_size(picture: Any, max_pixels: int) -> None:
    """Check that a picture of Pillow has at most `max_pixels` pixels; they are not unpacked for that."""
    width, height = picture.size
    if width * height > max_pixels:
        raise InputError(
            f"it has {width:,} x {height:,} pixels, more than max_pixels = {max_pixels:,}; make it smaller, or raise "
            "that limit"
        )


def from_pixels(values: np.ndarray, config: ImageConfig) -> Pixels:
    """Bring pixels of 8 bits, (H W), (H W 1), RGB (H W 3) or with transparency (H W 4), to the size of the settings."""
    return np.asarray(resized(upright(image_of(values)), config)).reshape(*config.size, config.channels)


def image_of(values: np.ndarray) -> Any:
    """Make an image of Pillow of pixels of 8 bits, (H W), (H W 1), (H W 3) or (H W 4)."""
    if values.dtype != np.uint8 or not values.size or values.shape[2:] not in ((), (1,), (3,), (4,)) or values.ndim < 2:
        raise InputError(
            f"an array of type {values.dtype} and shape {values.shape} is no picture; give pixels from 0 to 255 as "
            "uint8, (height, width) or (height, width, channels) with 1, 3 or 4 channels; several go in a list"
        )
    return pillow().fromarray(np.ascontiguousarray(values[:, :, 0] if values.shape[2:] == (1,) else values))


def pixels_of(picture: Any) -> UInt8[np.ndarray, "H W *C"]:
    """Return the pixels of an image of Pillow, upright and of 8 bits."""
    try:
        turned = upright(picture)
        return np.asarray(turned if turned.mode in ("L", "RGB", "RGBA") else turned.convert("RGB"))
    except DAMAGE as error:
        raise InputError(f"the image is damaged or cut off ({str(error).strip()}); save it again") from error


def upright(picture: Any) -> Any:
    """Turn a picture of Pillow as its EXIF data says, and lay it on white where it is transparent; 8 bits a channel."""
    library = pillow()
    picture.load()  # after which a TIFF is upright, and its tag gone
    if turn := TURNS.get(picture.getexif().get(ORIENTATION)):
        picture = picture.transpose(library.Transpose[turn])
    if picture.mode in WHITE:
        return library.fromarray(of_8_bits(np.asarray(picture, dtype=np.float64), WHITE[picture.mode]))
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        white = library.new("RGBA", picture.size, "white")
        return library.alpha_composite(white, picture).convert("RGB")
    return picture


def of_8_bits(values: np.ndarray, white: float) -> np.ndarray:
    """Scale the pixels of a grey picture from 0 to `white` to 8 bits."""
    if not np.isfinite(values).all():
        raise InputError(f"{np.sum(~np.isfinite(values)):,} of its pixels are no finite numbers")
    low, high = values.min(), values.max()
    if low < 0 or high > white:
        raise InputError(
            f"its pixels go from {low:g} to {high:g}, and a picture of this kind from 0 to {white:g}; scale them"
        )
    return (values / white * 255).round().astype(np.uint8)


def resized(picture: Any, config: ImageConfig) -> Any:
    """Bring a picture of Pillow to the size and the channels of the settings."""
    picture = picture.convert("L" if config.channels == 1 else "RGB")
    height, width = config.size
    resample = pillow().Resampling[config.resample.upper()]
    return RESIZES[config.resize](picture, (width, height), resample)


def cropped(picture: Any, size: tuple[int, int], resample: Any) -> Any:
    """Scale a picture until it covers the size, and cut out its middle at whole pixels, as CLIP does.

    The longer side is rounded down, and so is the first pixel of the middle: the processors of Hugging Face and of
    Radford et al. (2021) do the same, so that converted models read the pixels with which they were trained.
    """
    if picture.size == size:
        return picture
    (width, height), (wide, high) = picture.size, size
    if width * high > wide * height:  # wider than the size, so that the height fits
        scaled = (max(wide, int(high * width / height)), high)
    else:
        scaled = (wide, max(high, int(wide * height / width)))
    left, top = (scaled[0] - wide) // 2, (scaled[1] - high) // 2
    if scaled[0] * scaled[1] > LARGEST_SCALED:  # of a strip the middle alone, equal but for rounding
        x, y = width / scaled[0], height / scaled[1]
        return picture.resize(size, resample, (left * x, top * y, (left + wide) * x, (top + high) * y))
    return picture.resize(scaled, resample).crop((left, top, left + wide, top + high))


def squashed(picture: Any, size: tuple[int, int], resample: Any) -> Any:
    """Scale a picture to the size, whatever becomes of its ratio."""
    return picture if picture.size == size else picture.resize(size, resample)


def letterboxed(picture: Any, size: tuple[int, int], resample: Any) -> Any:
    """Scale a picture until it fits into the size, with black beside it."""
    from PIL import ImageOps

    return picture if picture.size == size else ImageOps.pad(picture, size, resample, "black")


RESIZES: dict[str, Callable[[Any, tuple[int, int], Any], Any]] = {
    "crop": cropped,
    "squash": squashed,
    "pad": letterboxed,
}


def png(pixels: UInt8[np.ndarray, "H W *C"]) -> bytes:
    """Encode pixels of 8 bits as the bytes of a PNG file."""
    stream = BytesIO()
    image_of(pixels).save(stream, "PNG")
    return stream.getvalue()


def known_formats() -> Container[str]:
    """Names of the formats that this Pillow opens, after its plugins were loaded."""
    library = pillow()
    library.init()
    return library.OPEN


def register_heif() -> None:
    """Let Pillow open HEIC and HEIF files."""
    try:
        import pillow_heif
    except ImportError as error:
        raise InputError(
            "HEIC and HEIF images are read by pillow-heif, which is not installed: pip install 'heedful[media]'"
        ) from error
    pillow_heif.register_heif_opener()


def pillow() -> Any:
    """Import Pillow's module of pictures."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("pictures are read by Pillow, which is not installed: pip install 'heedful[image]'") from error
    return Image
