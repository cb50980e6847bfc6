"""Pictures of every kind that a folder may hold: read as the same pixels, or refused with a reason."""

import struct
from contextlib import suppress
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image, ImageOps

from damage import damaged
from heedful.config.modalities import ImageConfig
from heedful.errors import InputError
from heedful.media.images import cropped, read_image

CONFIG = ImageConfig(size=(7, 11), channels=3)
PIXELS = np.random.default_rng(1).integers(256, size=(7, 11, 3), dtype=np.uint8)
SMOOTH = np.stack([*np.meshgrid(np.linspace(0, 250, 11), np.linspace(0, 250, 7)), np.full((7, 11), 60)], axis=-1)


def saved(picture: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def picture(pixels: np.ndarray = PIXELS) -> Image.Image:
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.mark.parametrize(("kind", "options"), [("PNG", {}), ("WEBP", {"lossless": True}), ("BMP", {}), ("TIFF", {})])
def test_lossless_files_are_read_pixel_by_pixel(kind, options):
    assert np.array_equal(read_image(saved(picture(), kind, **options), CONFIG), PIXELS)


@pytest.mark.parametrize("mode", ["RGB", "CMYK"])
def test_a_jpeg_has_almost_the_pixels_that_were_saved_in_whatever_colours(mode):
    content = saved(picture(SMOOTH).convert(mode), "JPEG", quality=95)
    assert np.abs(read_image(content, CONFIG) - SMOOTH).max() < 20


def test_a_grey_picture_has_three_equal_channels_and_a_colourful_one_may_become_grey():
    grey = picture(PIXELS[:, :, 0])
    assert np.array_equal(read_image(saved(grey), CONFIG), np.repeat(PIXELS[:, :, :1], 3, axis=2))
    one = ImageConfig(size=(7, 11), channels=1)
    assert np.array_equal(read_image(saved(grey), one), PIXELS[:, :, :1])
    assert read_image(saved(picture()), one).shape == (7, 11, 1)


@pytest.mark.parametrize("light", [255, 1, 0])
def test_sixteen_bits_are_scaled_to_eight_also_in_a_dark_picture(light):
    grey = PIXELS[:, :, 0].clip(max=light)
    wide = Image.fromarray(grey.astype(np.uint16) * 257)
    assert np.array_equal(read_image(saved(wide), CONFIG)[:, :, 0], grey)


def test_numbers_from_0_to_1_are_scaled_to_eight_bits():
    numbers = Image.fromarray(PIXELS[:, :, 0].astype(np.float32) / 255)
    assert np.array_equal(read_image(saved(numbers, "TIFF"), CONFIG)[:, :, 0], PIXELS[:, :, 0])


def test_pixels_that_are_no_numbers_are_refused():
    numbers = np.full((7, 11), np.nan, np.float32)
    numbers[0] = 0.5
    with pytest.raises(InputError, match="66 of its pixels are not finite"):
        read_image(saved(Image.fromarray(numbers), "TIFF"), CONFIG)


def test_transparent_pixels_lie_on_white_also_in_a_palette():
    clear = np.concatenate([PIXELS, np.zeros((7, 11, 1), np.uint8)], axis=2)
    assert (read_image(saved(picture(clear)), CONFIG) == 255).all()
    palette = picture(np.zeros((7, 11), np.uint8)).convert("P")
    assert (read_image(saved(palette, transparency=0), CONFIG) == 255).all()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_an_animated_picture_the_first_frame_is_read(kind):
    black, white = (picture(np.full((7, 11, 3), value)) for value in (0, 255))
    content = saved(black, kind, save_all=True, append_images=[white])
    assert (read_image(content, CONFIG) == 0).all()


def test_a_photograph_is_turned_as_its_exif_data_says():
    exif = Image.Exif()
    exif[0x0112] = 6  # was taken with the camera turned: its left is up
    turned = picture(PIXELS).transpose(Image.Transpose.ROTATE_90)
    assert np.array_equal(read_image(saved(turned, exif=exif), CONFIG), PIXELS)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_as_pillow_turns_it(orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = saved(picture(PIXELS), kind, exif=exif)
    with Image.open(BytesIO(content)) as there:
        upright = np.asarray(ImageOps.exif_transpose(there))
    config = replace(CONFIG, size=upright.shape[:2])
    assert np.array_equal(read_image(content, config), upright)


@pytest.mark.parametrize("tag", [0x011A, 0x0128, 0x0100], ids=["resolution", "its unit", "width"])
def test_other_odd_entries_of_exif_data_do_not_matter(tag):
    turned = picture(PIXELS).transpose(Image.Transpose.ROTATE_90)
    odd = struct.pack("<HHI4s", tag, 2, 4, b"abc\0")  # a text where there should be a number
    entries = sorted([struct.pack("<HHII", 0x0112, 3, 1, 6), odd], key=lambda entry: entry[1::-1])
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(entries) + bytes(4)
    assert np.array_equal(read_image(saved(turned, exif=exif), CONFIG), PIXELS)


@pytest.mark.parametrize("values", [np.float32([[0.5, 1.5]]), np.float32([[-0.1, 0.5]]), np.int32([[0, 70_000]])])
def test_pixels_beyond_white_or_black_are_refused(values):
    with pytest.raises(InputError, match=r"its pixels range from .* but this format's range is 0 to .*; scale them"):
        read_image(saved(Image.fromarray(values), "TIFF"), CONFIG)


@pytest.mark.parametrize(("resize", "black"), [("crop", 0), ("squash", 0), ("pad", 4)])
def test_a_wide_picture_is_cut_squashed_or_given_a_black_border(resize, black):
    wide = picture(np.full((10, 20, 3), 255))
    pixels = read_image(saved(wide), ImageConfig(size=(8, 8), resize=resize))
    assert np.all(pixels == 0, axis=(1, 2)).sum() == black


@pytest.mark.parametrize("shape", [(2, 500_000), (500_000, 2)])
def test_a_strip_is_cut_without_being_scaled_as_a_whole(shape):
    strip = Image.new("RGB", shape, "white")
    assert np.all(np.asarray(cropped(strip, (224, 224), Image.Resampling.BICUBIC)) == 255)


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_unpacked():
    content = saved(Image.new("L", (3000, 2000)))
    with pytest.raises(InputError, match=r"3,000 x 2,000 pixels, more than max_pixels = 1,000,000"):
        read_image(content, ImageConfig(max_pixels=1_000_000))


def test_a_picture_that_pillow_does_not_open_for_its_size_is_refused(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 30)  # Pillow refuses twice as many
    with pytest.raises(InputError, match="more pixels than Pillow accepts"):
        read_image(saved(picture()), CONFIG)


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
def test_a_picture_that_is_cut_off_is_refused(kind, share):
    content = saved(picture(np.random.default_rng(2).integers(256, size=(90, 90, 3))), kind)
    with pytest.raises(InputError, match=r"damaged or cut off|is not an image"):
        read_image(content[: int(share * len(content))], CONFIG)


@pytest.mark.parametrize("content", [b"A text with the name of an image.\n", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\0" * 99])
def test_what_is_no_picture_is_refused(content):
    with pytest.raises(InputError, match="not an image, or in an unsupported format"):
        read_image(content, CONFIG)


def test_an_empty_file_is_told_of():
    with pytest.raises(InputError, match="the file is empty; remove it, or save it again"):
        read_image(b"", CONFIG)


@pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning")  # by Pillow
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
def test_a_damaged_file_is_read_or_refused(kind):
    for content in damaged(saved(picture(), kind), 200):
        with suppress(InputError):
            assert read_image(content, CONFIG).shape == (7, 11, 3)
