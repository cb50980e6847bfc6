"""Odd and damaged files of images and audio files: the bytes of each, made here."""

import struct
import zlib
from io import BytesIO

import numpy as np
import soundfile
from PIL import Image

HEIGHT, WIDTH = 7, 11
PIXELS = np.random.default_rng(1).integers(256, size=(HEIGHT, WIDTH, 3), dtype=np.uint8)
GREY = PIXELS[:, :, :1].repeat(3, axis=2)
SMOOTH = np.stack(  # keeps its pixels in a JPEG
    [*np.meshgrid(np.linspace(0, 250, WIDTH), np.linspace(0, 250, HEIGHT)), np.full((HEIGHT, WIDTH), 60)], axis=-1
).astype(np.uint8)
RATE = 8000
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(1999) / RATE)).astype(np.float32)


def picture(pixels: np.ndarray = PIXELS, kind: str = "PNG", mode: str | None = None, **options: object) -> bytes:
    """An image file of Pillow."""
    stream = BytesIO()
    image = Image.fromarray(pixels)
    image = image.convert(mode) if mode else image
    image.save(stream, kind, **options)
    return stream.getvalue()


def animated(kind: str) -> bytes:
    """An image of two frames, or of two pages, of which the second is white."""
    white = Image.fromarray(np.full_like(PIXELS, 255))
    return picture(PIXELS, kind, save_all=True, append_images=[white], **({"lossless": True} if kind == "WEBP" else {}))


def turned(orientation: int = 6) -> bytes:
    """A JPEG of a camera that was turned: its left is up."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    stream = BytesIO()
    image = Image.fromarray(SMOOTH).transpose(Image.Transpose.ROTATE_90)
    image.save(stream, "JPEG", quality=95, exif=exif)
    return stream.getvalue()


def transparent(alpha: int, mode: str = "RGBA") -> bytes:
    """A black PNG of an even transparency."""
    stream = BytesIO()
    Image.new(mode, (WIDTH, HEIGHT), (*[0] * (len(mode) - 1), alpha)).save(stream, "PNG")
    return stream.getvalue()


def clear_palette() -> bytes:
    """A PNG with a palette whose colours are all transparent."""
    stream = BytesIO()
    Image.fromarray(PIXELS[:, :, 0] * 0).convert("P").save(stream, "PNG", transparency=0)
    return stream.getvalue()


def png(width: int, height: int, depth: int, colours: int, rows: bytes, interlace: int = 0) -> bytes:
    """A PNG file whose parts are written here, as Pillow does not write all kinds of them."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, interlace))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def sixteen_bit_colours() -> bytes:
    """A PNG of 16 bits a channel, whose higher bytes are `PIXELS`."""
    rows = (PIXELS.astype(">u2") * 257).astype(">u2")
    return png(WIDTH, HEIGHT, 16, 2, b"".join(b"\0" + row.tobytes() for row in rows))


def interlaced() -> bytes:
    """A PNG that is stored in seven passes."""
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    parts = [PIXELS[top::down, left::right] for top, left, down, right in passes]
    return png(WIDTH, HEIGHT, 8, 2, b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part), 1)


def changed(content: bytes, place: int) -> bytes:
    """A file with another byte at a place."""
    return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]


def sound(samples: np.ndarray = TONE, kind: str = "WAV", subtype: str | None = None, rate: int = RATE) -> bytes:
    """An audio file of libsndfile."""
    stream = BytesIO()
    soundfile.write(stream, samples, rate, format=kind, subtype=subtype)
    return stream.getvalue()


def wav(*chunks: tuple[bytes, bytes], size: int | None = None) -> bytes:
    """A WAV file of 16 bits with chunks between its format and its samples; `size` stands where theirs should."""
    samples = (TONE * 32767).round().astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    found = b"".join(
        name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
        for name, content in ((b"fmt ", form), *chunks)
    )
    found += b"data" + struct.pack("<I", len(samples) if size is None else size) + samples
    return b"RIFF" + struct.pack("<I", min(4 + len(found), 2**32 - 1) if size is None else size) + b"WAVE" + found
