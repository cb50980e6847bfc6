"""Odd and damaged files that real folders hold: each is read as what it shows or says, or refused by its name.

A value is what is expected, and how far it may be off; a text is the reason of the refusal.
"""

from pathlib import Path

import numpy as np
import pytest

import odd_files as odd
from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from heedful.data.preparation.media import read_files
from heedful.data.readers.drop_report import DropReport
from heedful.errors import InputError
from heedful.media.modality import modality_of
from odd_files import GREY, PIXELS, RATE, SMOOTH, TONE

NO_PICTURE = r"not an image, or in an unsupported format \(supported formats: PNG, "
DAMAGED = r"the image is damaged or cut off \(.*\); save it again"
NO_SOUND = "it is not audio, is damaged, or is in an unsupported format"
WHITE, BLACK, HALF = (np.full_like(PIXELS, level) for level in (255, 0, 127))
LONG = np.tile(TONE, 3)

Expected = tuple[np.ndarray, float] | str

PICTURES: dict[str, tuple[bytes, Expected]] = {
    "PNG": (odd.picture(), (PIXELS, 0)),
    "BMP": (odd.picture(kind="BMP"), (PIXELS, 0)),
    "WebP without loss": (odd.picture(kind="WEBP", lossless=True), (PIXELS, 0)),
    "WebP with loss": (odd.picture(SMOOTH, "WEBP", quality=95), (SMOOTH, 30)),
    "TIFF, packed": (odd.picture(kind="TIFF", compression="tiff_lzw"), (PIXELS, 0)),
    "TIFF of two pages": (odd.animated("TIFF"), (PIXELS, 0)),
    "animated WebP": (odd.animated("WEBP"), (PIXELS, 0)),
    "animated PNG": (odd.animated("PNG"), (PIXELS, 0)),
    "JPEG": (odd.picture(SMOOTH, "JPEG", quality=95), (SMOOTH, 20)),
    "progressive JPEG": (odd.picture(SMOOTH, "JPEG", quality=95, progressive=True), (SMOOTH, 20)),
    "CMYK": (odd.picture(SMOOTH, "JPEG", "CMYK", quality=95), (SMOOTH, 20)),
    "turned camera": (odd.turned(), (SMOOTH, 20)),
    "interlaced PNG": (odd.interlaced(), (PIXELS, 0)),
    "16 bits, grey": (odd.picture(GREY[:, :, 0].astype(np.uint16) * 257), (GREY, 0)),
    "16 bits, colours": (odd.sixteen_bit_colours(), (PIXELS, 0)),
    "numbers from 0 to 1": (odd.picture(GREY[:, :, 0].astype(np.float32) / 255, "TIFF"), (GREY, 0)),
    "1 bit": (odd.picture(GREY[:, :, 0] > 128), ((GREY > 128) * 255, 0)),
    "grey PGM": (odd.picture(GREY[:, :, 0], "PPM"), (GREY, 0)),
    "transparent": (odd.transparent(0), (WHITE, 0)),
    "half transparent": (odd.transparent(128), (HALF, 0)),
    "grey, half transparent": (odd.transparent(128, "LA"), (HALF, 0)),
    "palette, transparent": (odd.clear_palette(), (WHITE, 0)),
    "one pixel": (odd.picture(PIXELS[:1, :1]), (np.broadcast_to(PIXELS[:1, :1], PIXELS.shape), 0)),
    "a thousand pixels wide": (odd.picture(np.zeros((1, 1009, 3), np.uint8)), (BLACK, 0)),
    "more behind its end": (odd.picture() + b"sent by a server", (PIXELS, 0)),
    "nothing": (b"", "the file is empty; remove it, or save it again"),
    "text": (b"A text with the name of an image.\n", NO_PICTURE),
    "page of a failed download": (b"<!DOCTYPE html><html>404</html>\n", NO_PICTURE),
    "SVG": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', NO_PICTURE),
    "PostScript": (b"%!PS-Adobe-3.0 EPSF-3.0\n", NO_PICTURE),
    "HEIC": (b"\0\0\0\x18ftypheic" + bytes(99), NO_PICTURE),
    "header only": (odd.picture()[:33], NO_PICTURE),
    "PNG without pixels": (odd.png(11, 7, 8, 2, b""), DAMAGED),
    "PNG that is cut off": (odd.picture()[:-60], DAMAGED),
    "JPEG that is cut off": (odd.picture(SMOOTH, "JPEG", quality=95)[:-40], DAMAGED),
    "changed byte": (odd.changed(odd.picture(), 60), DAMAGED),
    "bomb": (odd.png(60_000, 60_000, 8, 2, b""), "it has more pixels than Pillow accepts"),
    "a little too large": (
        odd.png(11_000, 9_000, 8, 2, b""),
        "11,000 x 9,000 pixels, more than max_pixels = 89,478,485",
    ),
    "no numbers": (odd.picture(np.full((7, 11), np.nan, np.float32), "TIFF"), "77 of its pixels are not finite"),
}

SOUNDS: dict[str, tuple[bytes, Expected]] = {
    "WAV": (odd.sound(), (TONE, 1e-4)),
    "8 bits": (odd.sound(subtype="PCM_U8"), (TONE, 1e-2)),
    "24 bits": (odd.sound(subtype="PCM_24"), (TONE, 1e-6)),
    "float64": (odd.sound(subtype="DOUBLE"), (TONE, 1e-7)),
    "louder than 1": (odd.sound(9 * TONE, subtype="FLOAT"), (9 * TONE, 0)),
    "mu-law": (odd.sound(subtype="ULAW"), (TONE, 2e-2)),
    "a-law": (odd.sound(subtype="ALAW"), (TONE, 2e-2)),
    "MS ADPCM, in blocks": (odd.sound(subtype="MS_ADPCM"), (np.append(TONE, 0), 0.2)),
    "stereo": (odd.sound(np.stack([TONE, TONE / 4], axis=1), subtype="FLOAT"), (0.625 * TONE, 1e-6)),
    "six channels": (odd.sound(np.tile(TONE[:, None], 6)), (TONE, 1e-4)),
    "odd chunk": (odd.wav((b"LIST", b"odd"), (b"junk", b"7")), (TONE, 1e-4)),
    "length not known when it was written": (odd.wav(size=2**32 - 1), (TONE, 1e-4)),
    "more behind its end": (odd.sound() + b"sent by a server", (TONE, 1e-4)),
    "RF64": (odd.sound(kind="RF64"), (TONE, 1e-4)),
    "FLAC": (odd.sound(kind="FLAC"), (TONE, 1e-4)),
    "AIFF": (odd.sound(kind="AIFF"), (TONE, 1e-4)),
    "AU": (odd.sound(kind="AU"), (TONE, 1e-4)),
    "Ogg Vorbis": (odd.sound(LONG, "OGG"), (LONG, 0.2)),
    "Ogg Opus": (odd.sound(LONG, "OGG", "OPUS"), (LONG, 0.2)),
    "MP3": (odd.sound(LONG, "MP3"), (LONG, 0.2)),
    "one sample": (odd.sound(TONE[5:6], subtype="FLOAT"), (TONE[5:6], 0)),
    "silence": (odd.sound(0 * TONE), (0 * TONE, 0)),
    "twice the rate": (
        odd.sound(np.full(2000, 0.5, np.float32), subtype="FLOAT", rate=2 * RATE),
        (np.full(1000, 0.5), 0.3),
    ),
    "GSM 6.10, in blocks and late": (odd.sound(subtype="GSM610"), (np.zeros(2560), 1.1)),
    "nothing": (b"", "the file is empty; remove it, or save it again"),
    "text": (b"A text with the name of an audio file.\n" * 9, NO_SOUND),
    "page of a failed download": (b"<!DOCTYPE html><html>404</html>\n" * 9, NO_SOUND),
    "M4A": (b"\0\0\0\x18ftypM4A " + bytes(99), "it is damaged or cut off"),
    "MIDI": (b"MThd\0\0\0\x06\0\x01\0\x02\0\x60MTrk\0\0\0\x04\0\xff\x2f\0", NO_SOUND),
    "WAV that is cut off": (odd.sound()[:2000], "it is cut off: it has 2,000 of 4,042 bytes; save it again"),
    "header only": (odd.sound()[:44], "it is cut off: it has 44 of 4,042 bytes; save it again"),
    "FLAC that is cut off": (odd.sound(kind="FLAC")[:900], rf"{NO_SOUND}|cut off"),
    "Ogg that is cut off": (odd.sound(LONG, "OGG")[:-300], rf"{NO_SOUND}|cut off|it has no samples"),
    "no samples": (odd.sound(TONE[:0]), "it has no samples"),
    "no numbers": (
        odd.sound(np.array([0.1, np.nan, np.inf]), subtype="FLOAT"),
        "2 of its 3 samples are not finite",
    ),
    "three hours": (
        odd.sound(np.zeros(108_000), "FLAC", rate=10),
        "it is 10,800.0 seconds long, more than max_seconds = 2.0",
    ),
    "two billion samples per second": (odd.sound(rate=2_000_000_011), "2,000,000,011 Hz, which is impossible"),
}


def in_a_class(folder: Path, name: str, content: bytes, task: str) -> tuple[Path, Recipe]:
    """A recipe over a folder with this file only."""
    file = folder / "train/some" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    settings = {
        "image_classification": {"image": {"size": [7, 11], "patch": 1}},
        "audio_classification": {"audio": {"rate": RATE, "max_seconds": 2.0}},
    }
    corpora = {"train": [{"source": "train"}]}
    return file, make_recipe({"task": task, "data": corpora, **settings[task]}, data_root=folder)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")  # with Pillow, of an image that is refused
@pytest.mark.parametrize(
    ("task", "name", "content", "expected"),
    [
        *(("image_classification", f"{kind}.jpg", *given) for kind, given in PICTURES.items()),
        *(("audio_classification", f"{kind}.wav", *given) for kind, given in SOUNDS.items()),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_a_file_is_read_as_what_it_holds_whatever_its_name_or_refused_by_name(task, name, content, expected, tmp_path):
    file, recipe = in_a_class(tmp_path, name, content, task)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected) as caught:
            list(read_files(recipe.data.train[0], recipe, DropReport(), skip=False))
        assert str(caught.value).startswith(f"{file}: ")
        drops = DropReport()
        assert list(read_files(recipe.data.train[0], recipe, drops, skip=True)) == []
        assert str(file) in drops.examples["bad file"]
    else:
        [(_, kept, _)] = read_files(recipe.data.train[0], recipe, DropReport(), skip=False)
        found = modality_of(recipe).read(kept)
        wanted, off = expected
        assert found.shape == wanted.shape
        assert np.abs(found.astype(np.float64) - wanted).max() <= off


def test_there_are_thirty_kinds_of_each():
    assert min(len(PICTURES), len(SOUNDS)) >= 30
