"""Videos as animated images of every kind: read as the same frames, evenly drawn, or refused with a reason."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from damage import damaged
from heedful.config.modalities import ImageConfig, VideoConfig
from heedful.errors import InputError
from heedful.media.videos import from_frames, read_video, sampled_frames
from odd_files import picture
from toy_media import animated

IMAGE = ImageConfig(size=(7, 11), patch=1)
VIDEO = VideoConfig(frames=6, tubelet=2)
LOSSLESS = {"GIF": {}, "WEBP": {"lossless": True}, "PNG": {}}


def frames(count: int, seed: int = 1) -> np.ndarray:
    """Frames (T 7 11 3), each different in every pixel and of few colours, as a GIF has."""
    return np.random.default_rng(seed).integers(256, size=(count, 7, 11, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("count", "chosen"),
    [
        (1, [0, 0]),
        (2, [0, 1]),
        (3, [0, 1, 1, 2]),
        (5, [0, 1, 2, 2, 3, 4]),
        (6, [0, 1, 2, 3, 4, 5]),
        (7, [0, 1, 2, 4, 5, 6]),
        (12, [1, 3, 5, 7, 9, 11]),
        (60, [5, 15, 25, 35, 45, 55]),
    ],
)
def test_frames_are_drawn_evenly_and_fill_whole_tubelets(count, chosen):
    assert list(sampled_frames(count, VIDEO)) == chosen


@pytest.mark.parametrize("count", [1, 2, 3, 6, 13])
@pytest.mark.parametrize("kind", LOSSLESS)
def test_lossless_files_are_read_frame_by_frame(kind, count):
    given = frames(count)
    content = animated(given, kind, **LOSSLESS[kind])
    assert np.array_equal(read_video(content, VIDEO, IMAGE), given[list(sampled_frames(count, VIDEO))])


@pytest.mark.parametrize("kind", LOSSLESS)
def test_an_array_is_read_as_a_file_with_its_frames(kind):
    image = replace(IMAGE, size=(14, 5), resize="pad")
    for given in (frames(5), frames(5)[..., 0]):
        content = animated(given, kind, **LOSSLESS[kind])
        found = read_video(content, VIDEO, image)
        assert found.shape == (6, 14, 5, 3)
        assert np.array_equal(from_frames(given, VIDEO, image), found)
    assert np.array_equal(from_frames(given[..., None], VIDEO, image), found)


def test_frames_may_become_grey():
    grey = replace(IMAGE, channels=1)
    found = read_video(animated(frames(4)[..., 0]), VIDEO, grey)
    assert np.array_equal(found, frames(4)[..., :1])


def test_what_is_transparent_lies_on_white():
    clear = np.zeros((3, 7, 11, 4), np.uint8)
    clear[1, ..., 3] = 255
    for found in (read_video(animated(clear, "PNG"), VIDEO, IMAGE), from_frames(clear, VIDEO, IMAGE)):
        assert [frame.mean() for frame in found] == [255, 0, 0, 255]


def test_a_still_picture_is_a_video_of_one_frame():
    pixels = frames(1)[0]
    assert np.array_equal(read_video(picture(pixels), VIDEO, IMAGE), np.stack([pixels, pixels]))


@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_video_of_too_many_frames_is_refused_before_it_is_unpacked(kind, monkeypatch):
    content = animated(frames(13), kind, **LOSSLESS[kind])
    few = replace(VIDEO, max_frames=12)
    monkeypatch.setattr(Image.Image, "convert", None)
    message = "it has 13 frames, more than max_frames = 12; split it into shorter videos, or raise that limit"
    with pytest.raises(InputError, match=message):
        read_video(content, few, IMAGE)
    with pytest.raises(InputError, match=message):
        from_frames(frames(13), few, IMAGE)


def test_a_video_whose_frames_have_too_many_pixels_is_refused():
    with pytest.raises(InputError, match="it has 11 x 7 pixels, more than max_pixels = 76"):
        read_video(animated(frames(3)), VIDEO, replace(IMAGE, max_pixels=76))


def test_an_empty_file_is_told_of_as_empty():
    with pytest.raises(InputError, match="the file is empty; remove it, or save it again"):
        read_video(b"", VIDEO, IMAGE)


@pytest.mark.parametrize("content", [b"A text.\n", b"\0" * 99, picture(kind="JPEG"), picture(kind="BMP")])
def test_what_is_no_video_is_refused(content):
    message = r"not a video, or in an unsupported format \(supported formats: GIF, WEBP, PNG and, with heedful"
    with pytest.raises(InputError, match=message):
        read_video(content, VIDEO, IMAGE)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.9, 0.97])
@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_video_that_is_cut_off_is_refused_also_behind_the_last_frame_that_is_read(kind, share):
    given = np.random.default_rng(2).integers(256, size=(13, 30, 30), dtype=np.uint8)
    content = animated(given, kind, **LOSSLESS[kind])
    with pytest.raises(InputError, match=r"the video is damaged or cut off|not a video"):
        read_video(content[: int(share * len(content))], replace(VIDEO, frames=2), IMAGE)


def test_a_frame_that_is_larger_than_the_first_is_refused_if_it_is_too_large():
    content = bytearray(animated(frames(3)[..., 0]))
    place = content.rindex(b"," + bytes(4) + bytes([11, 0, 7, 0]))  # where the last frame lies, and its size
    for side, message in (
        (2000, "it has 2,000 x 2,000 pixels, more than"),
        (30_000, "more pixels than Pillow accepts"),
    ):
        content[place + 5 : place + 9] = side.to_bytes(2, "little") * 2
        with pytest.raises(InputError, match=message):
            read_video(bytes(content), VIDEO, replace(IMAGE, max_pixels=1_000_000))


@pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL", "ignore::PIL.Image.DecompressionBombWarning")  # by Pillow
@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_damaged_file_is_read_or_refused(kind):
    for content in damaged(animated(frames(5), kind, **LOSSLESS[kind]), 300):
        with suppress(InputError):
            assert read_video(content, VIDEO, IMAGE).shape[1:] == (7, 11, 3)


@pytest.mark.parametrize(
    "values",
    [frames(2) / 255, frames(2).astype(np.int64), frames(2)[0, 0], frames(2)[None], frames(2)[..., :2], frames(2)[:0]],
)
def test_an_array_that_is_no_video_is_refused(values):
    with pytest.raises(InputError, match=r"is not an? (video|image); give pixels from 0 to 255 as uint8"):
        from_frames(np.asarray(values), VIDEO, IMAGE)
