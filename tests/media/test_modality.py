"""Images, audio and videos as a model reads them: scaled, cut into frames, augmented by a key, padded in batches."""

import numpy as np
import pytest
import torch

from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.config.schema import DataConfig, Recipe
from heedful.errors import InputError
from heedful.media.log_mel import log_mel
from heedful.media.modality import AudioClips, Images, Videos, modality_of, padded, sample_frames
from heedful.random_numbers import AUGMENTATION, KeyedGenerator
from toy_media import RATE, animated, drawn, moving, png, tone, wav

PIXELS = np.random.default_rng(1).integers(256, size=(7, 11, 3), dtype=np.uint8)
IMAGE = ImageConfig(size=(7, 11), patch=1, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2.0))
AUDIO = AudioConfig(rate=RATE, window=50, hop=20, mels=7, max_seconds=1.0)


def chance(example: int = 1, epoch: int = 2) -> KeyedGenerator:
    return KeyedGenerator(7, AUGMENTATION, epoch, example)


def test_a_recipe_says_what_is_read():
    assert isinstance(modality_of(Recipe(data=DataConfig(modality="image"))), Images)
    assert isinstance(modality_of(Recipe(data=DataConfig(modality="audio"))), AudioClips)
    assert isinstance(modality_of(Recipe(data=DataConfig(modality="video"))), Videos)


def test_pixels_are_scaled_by_the_mean_and_the_deviation_of_each_channel():
    found = Images(IMAGE).features(PIXELS)
    for channel, (mean, std) in enumerate(zip(IMAGE.mean, IMAGE.std, strict=True)):
        np.testing.assert_allclose(found[..., channel], (PIXELS[..., channel] / 255 - mean) / std, atol=1e-6)
    assert found.dtype == torch.float32
    one = Images(ImageConfig(size=(7, 11), patch=1)).features(PIXELS)
    assert (one.min().item(), one.max().item()) == (PIXELS.min() / 127.5 - 1, PIXELS.max() / 127.5 - 1)


@pytest.mark.parametrize(
    "kinds", [{"flip": True}, {"shift": 2}, {"zoom": 0.5}, {"erase": 0.9}, {"trivial_augment": True}]
)
def test_a_picture_is_augmented_by_its_key_and_then_scaled(kinds):
    medium = Images(ImageConfig(size=(7, 11), patch=1, **kinds))
    found = [medium.augmented(PIXELS, chance(number)) for number in range(11)]
    again = [medium.augmented(PIXELS, chance(number)) for number in range(11)]
    assert all(map(torch.equal, found, again))
    assert len({tuple(one.flatten().tolist()) for one in found}) > 1
    assert {one.shape for one in found} == {(7, 11, 3)}


def test_a_mirrored_picture_is_mirrored_from_left_to_right():
    medium = Images(ImageConfig(size=(7, 11), patch=1, flip=True))
    plain = medium.features(PIXELS)
    kinds = [torch.equal(medium.augmented(PIXELS, chance(number)), plain.flip(1)) for number in range(200)]
    assert 70 < sum(kinds) < 130
    same = [torch.equal(medium.augmented(PIXELS, chance(number)), plain) for number in range(200)]
    assert sum(kinds) + sum(same) == 200


def test_a_picture_has_a_position_for_each_patch_and_the_class_token():
    assert Images(ImageConfig(size=(14, 21), patch=7)).tokens(PIXELS) == 7
    assert Images(ImageConfig(size=(14, 21), patch=7, class_token=False)).tokens(PIXELS) == 6


def test_an_array_is_read_as_a_file_with_its_pixels():
    for size in ((7, 11), (14, 21)):
        medium = Images(ImageConfig(size=size, patch=7))
        for pixels in (drawn("left", 1), drawn("left", 1)[:, :, 0], drawn("left", 1)[:, ::-1]):
            assert np.array_equal(medium.from_array(pixels), medium.read(png(np.ascontiguousarray(pixels))))
        assert np.array_equal(medium.from_array(drawn("top", 1)[:, :, :1]), medium.from_array(drawn("top", 1)[:, :, 0]))
    clear = np.concatenate([PIXELS, np.zeros((7, 11, 1), np.uint8)], axis=2)
    assert (Images(IMAGE).from_array(clear) == 255).all()


@pytest.mark.parametrize(
    "values",
    [PIXELS / 255, PIXELS.astype(np.int64), PIXELS[0, 0], PIXELS[None], PIXELS[:, :, :2], PIXELS[:0], np.uint8(7)],
)
def test_an_array_that_is_no_picture_is_refused(values):
    with pytest.raises(InputError, match="is not an image; give pixels from 0 to 255 as uint8"):
        Images(IMAGE).from_array(np.asarray(values))


def test_a_video_is_read_from_a_file_or_an_array_and_has_a_position_for_each_tubelet_and_the_class_token():
    medium = Videos(ImageConfig(size=(14, 21), patch=7, mean=(0.3,)), VideoConfig(frames=6, tubelet=2))
    frames = moving("left", 1)[:3]
    found = medium.read(animated(frames))
    assert np.array_equal(medium.from_array(frames), found)
    assert found.shape == (4, 14, 21, 3)
    assert medium.tokens(found) == 2 * 6 + 1
    np.testing.assert_allclose(medium.features(found), (found / 255 - 0.3) / 0.5, atol=1e-6)


@pytest.mark.parametrize("kinds", [{"flip": True}, {"shift": 2}, {"zoom": 0.5}, {"erase": 0.9}])
def test_all_frames_of_a_video_are_augmented_alike(kinds):
    medium = Videos(ImageConfig(size=(7, 11), patch=1, **kinds), VideoConfig())
    found = [medium.augmented(np.stack([PIXELS] * 3), chance(number)) for number in range(11)]
    again = [medium.augmented(np.stack([PIXELS] * 3), chance(number)) for number in range(11)]
    assert all(map(torch.equal, found, again))
    assert len({tuple(one.flatten().tolist()) for one in found}) > 1
    for one in found:
        changed = (one != medium.features(PIXELS[None])).any(-1)
        assert (changed == changed[:1]).float().mean() > 0.98  # noise may have the value of a pixel


def test_a_video_without_augmentation_is_what_validation_reads():
    medium = Videos(ImageConfig(size=(14, 21), patch=7), VideoConfig())
    frames = medium.from_array(moving("right", 5))
    assert torch.equal(medium.augmented(frames, chance()), medium.features(frames))


def test_samples_in_memory_are_read_as_those_of_a_file():
    samples = tone("low", 3)
    assert np.array_equal(AudioClips(AUDIO).from_array(samples), AudioClips(AUDIO).read(wav(samples, subtype="FLOAT")))
    assert AudioClips(AUDIO).from_array(samples.astype(np.float64)).dtype == np.float32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(7, np.int64), "is not audio; give samples of one channel, 1,000 per second, from -1.0 to 1.0 or"),
        (32_768 * np.ones(7), "its samples reach 32,768, but audio ranges from -1 to 1; divide them by"),
        (np.zeros((7, 2)), "is not audio"),
        (np.zeros(0), "it has no samples"),
        (np.array([0.1, np.nan]), "1 of its 2 samples are not finite"),
        (np.zeros(1001), r"it is 1.0 seconds long, more than max_seconds = 1.0"),
    ],
)
def test_an_array_that_is_no_sound_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        AudioClips(AUDIO).from_array(values)


def test_a_sound_is_read_as_its_spectrum_or_as_its_samples():
    samples = tone("low", 3)
    assert torch.equal(AudioClips(AUDIO).features(samples), log_mel(torch.tensor(samples), AUDIO))
    raw = AudioConfig(rate=RATE, hop=20, features="samples", stem="linear")
    assert torch.equal(AudioClips(raw).features(samples), sample_frames(torch.tensor(samples), raw))


@pytest.mark.parametrize(("count", "frames"), [(1, 1), (19, 1), (20, 1), (39, 1), (40, 2), (101, 5)])
def test_samples_are_cut_into_whole_frames_and_there_is_at_least_one(count, frames):
    config = AudioConfig(rate=RATE, hop=20, features="samples", stem="linear")
    samples = torch.arange(1.0, count + 1)
    found = sample_frames(samples, config)
    assert found.shape == (frames, 20)
    flat = found.flatten()
    real = min(count, frames * 20)
    assert torch.equal(flat[:real], samples[:real])
    assert (flat[real:] == 0).all()
    assert AudioClips(config).tokens(samples.numpy()) == frames


def test_a_short_clip_is_padded_with_silence_to_the_length_of_the_settings():
    config = AudioConfig(rate=RATE, hop=20, features="samples", stem="linear", pad_seconds=0.3)
    found = sample_frames(torch.ones(47), config)
    assert found.shape == (15, 20)
    assert found.sum() == 47


@pytest.mark.parametrize("kinds", [{"speed": 0.3}, {"time_masks": 2}, {"frequency_masks": 1}])
def test_a_sound_is_augmented_by_its_key(kinds):
    medium = AudioClips(AudioConfig(rate=RATE, window=50, hop=20, mels=7, max_seconds=1.0, **kinds))
    samples = tone("high", 5)
    found = [medium.augmented(samples, chance(number)) for number in range(11)]
    again = [medium.augmented(samples, chance(number)) for number in range(11)]
    assert all(map(torch.equal, found, again))
    assert len({one.numpy().tobytes() for one in found}) > 3


def test_a_faster_clip_is_shorter_within_the_limits_and_never_longer_than_a_clip_may_be():
    medium = AudioClips(AudioConfig(rate=RATE, hop=1, features="samples", stem="linear", max_seconds=1.0, speed=0.2))
    short, long = np.ones(500, np.float32), np.ones(1000, np.float32)
    lengths = [len(medium.augmented(short, chance(number))) for number in range(200)]
    assert 500 / 1.21 < min(lengths) < 430
    assert 590 < max(lengths) < 500 / 0.79
    assert max(len(medium.augmented(long, chance(number))) for number in range(50)) == 1000


def test_a_whole_hertz_tone_that_is_played_faster_is_higher():
    config = AudioConfig(rate=RATE, hop=1, features="samples", stem="linear", max_seconds=9.0, speed=0.2)
    samples = np.sin(2 * np.pi * 100 * np.arange(4000) / RATE).astype(np.float32)
    for number in range(5):
        played = AudioClips(config).augmented(samples, chance(number))[:, 0].numpy()
        pitch = np.abs(np.fft.rfft(played)).argmax() * RATE / len(played)
        assert pitch == pytest.approx(100 * len(samples) / len(played), abs=0.5)


def test_without_augmentation_a_sound_is_what_validation_reads():
    samples = tone("high", 5)
    assert torch.equal(AudioClips(AUDIO).augmented(samples, chance()), AudioClips(AUDIO).features(samples))


def test_examples_of_different_lengths_are_padded_at_the_end():
    rows = [torch.randn(length, 3, 2) for length in (5, 1, 7)]
    batch, mask = padded(rows)
    assert batch.shape == (3, 7, 3, 2)
    assert mask.sum(1).tolist() == [5, 1, 7]
    for row, values, real in zip(rows, batch, mask, strict=True):
        assert torch.equal(values[real], row)
        assert (values[~real] == 0).all()
        assert real[: len(row)].all()
