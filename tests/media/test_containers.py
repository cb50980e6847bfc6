"""Files of phones, cameras and browsers: their audio and their frames, and what is wrong with them."""

import sys
from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from heedful.config.modalities import AudioConfig, ImageConfig, VideoConfig
from heedful.data.readers.media_files import ENDINGS
from heedful.errors import InputError
from heedful.media.audio import read_audio
from heedful.media.audio_reader import FileAudioReader
from heedful.media.containers import SEGMENT, matroska_bytes
from heedful.media.images import read_image
from heedful.media.videos import read_video
from heedful.tools.proposals.media_survey import VideoFacts, video_facts

AUDIO = AudioConfig(rate=16_000, max_seconds=9)
IMAGE, VIDEO = ImageConfig(size=(24, 32), patch=8), VideoConfig(frames=5, tubelet=1)
SOUNDS = {
    ".m4a": "aac",
    ".mp4": "aac",
    ".mov": "aac",
    ".3gp": "aac",
    ".aac": "aac",
    ".webm": "libopus",
    ".mkv": "pcm_s16le",
}
VIDEOS = {".mp4": "mpeg4", ".mov": "mpeg4", ".webm": "libvpx", ".avi": "mpeg4", ".mkv": "mpeg4"}


def sound(path: Path, seconds: float = 2.0, layout: str = "mono") -> np.ndarray:
    """Write a tone into an audio file; return its samples at 16 kHz."""
    codec = SOUNDS[path.suffix]
    rate = 48_000 if codec == "libopus" else 16_000
    tone = 0.3 * np.sin(2 * np.pi * 440 * np.arange(round(rate * seconds)) / rate)
    channels = np.stack([tone] if layout == "mono" else [tone, -tone]).astype(np.float32)
    with av.open(str(path), "w", format="adts" if path.suffix == ".aac" else None) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        frame = av.AudioFrame.from_ndarray(channels, format="fltp", layout=layout)
        frame.sample_rate = rate
        resampler = av.AudioResampler(format=stream.format.name, layout=layout, rate=rate)
        for part in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(part))
        container.mux(stream.encode(None))
    return tone[:: rate // 16_000].astype(np.float32)


def film(path: Path) -> Path:
    """Write a video of 2 seconds with a tone."""
    codec = SOUNDS[path.suffix]
    with av.open(str(path), "w") as container:
        frames = container.add_stream(VIDEOS[path.suffix], rate=10)
        frames.width, frames.height, frames.pix_fmt = 64, 48, "yuv420p"
        tone = container.add_stream(codec, rate=48_000, layout="mono")
        resampler = av.AudioResampler(format=tone.format.name, layout="mono", rate=48_000)
        for number in range(20):
            container.mux(frames.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")))
            times = np.arange(4800 * number, 4800 * (number + 1)) / 48_000
            samples = 0.3 * np.sin(2 * np.pi * 440 * times[None]).astype(np.float32)
            frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
            frame.sample_rate = 48_000
            for part in resampler.resample(frame):
                container.mux(tone.encode(part))
        for stream in (frames, tone):
            container.mux(stream.encode(None))
    return path


def video(path: Path, frames: int = 20) -> None:
    """Write a video whose frames become lighter, by 10 each."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(VIDEOS[path.suffix], rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(frames):
            pixels = np.full((48, 64, 3), 10 * number, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))


@pytest.mark.parametrize("ending", SOUNDS)
def test_sound_of_a_container_is_read_whole_and_in_pieces(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    tone = sound(path)
    whole = read_audio(path.read_bytes(), AUDIO)
    assert abs(len(whole) - len(tone)) < 2500  # coders add some at either end
    best = max(np.corrcoef(whole[skip : skip + 16_000], tone[:16_000])[0, 1] for skip in range(0, 2100, 4))
    assert best > 0.95
    recording = FileAudioReader(path, AUDIO)
    recording.check()
    pieces = [recording.read(begin, begin + 7001) for begin in range(0, recording.length, 7001)]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-6)
    assert ending in ENDINGS["audio"]


def test_channels_of_a_container_cancel_like_those_of_other_files(tmp_path):
    sound(tmp_path / "a.mkv", layout="stereo")
    with pytest.raises(InputError, match="its channels cancel each other"):
        read_audio((tmp_path / "a.mkv").read_bytes(), AUDIO)


@pytest.mark.parametrize("ending", VIDEOS)
def test_frames_of_a_video_are_drawn_evenly(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    video(path)
    frames = read_video(path.read_bytes(), VIDEO, IMAGE)
    assert frames.shape == (5, 24, 32, 3)
    assert np.abs(frames.mean((1, 2, 3)) - [20, 60, 100, 140, 180]).max() < 6
    assert ending in ENDINGS["video"]


@pytest.mark.parametrize("ending", VIDEOS)
def test_a_survey_counts_the_frames_of_a_video(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    video(path)
    assert video_facts(path.read_bytes()) == VideoFacts(48, 64, True, 20)
    with pytest.raises(InputError, match="cut off"):
        video_facts(path.read_bytes()[: path.stat().st_size // 2])


def test_what_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "a.webm"
    sound(path)
    content = path.read_bytes()
    with pytest.raises(InputError, match=r"it is (damaged or )?cut off"):
        read_audio(content[: len(content) // 2], AUDIO)
    assert 8000 < len(read_audio(content[: len(content) // 2], AUDIO, truncated=True)) < 24_000


@pytest.mark.parametrize("ending", [".webm", ".mkv"])
def test_the_sound_of_a_video_that_is_cut_off_is_refused(ending, tmp_path):
    content = film(tmp_path / f"a{ending}").read_bytes()
    (tmp_path / "b").write_bytes(content[: len(content) * 2 // 3])
    assert matroska_bytes(content) == len(content)
    for part in (content[: len(content) * 2 // 3], content[:-10]):
        with pytest.raises(InputError, match=r"it is cut off: it has .* bytes"):
            read_audio(part, AUDIO)
        assert len(read_audio(part, AUDIO, truncated=True)) > 8000
    with pytest.raises(InputError, match=r"it is cut off: it has .* bytes"):
        FileAudioReader(tmp_path / "b", AUDIO).check()
    read_audio(content, AUDIO)


def test_a_matroska_file_of_unknown_length_is_read(tmp_path):
    content = film(tmp_path / "a.webm").read_bytes()
    place = content.index(SEGMENT) + len(SEGMENT)
    streamed = content[:place] + b"\x01" + b"\xff" * 7 + content[place + 8 :]
    assert matroska_bytes(streamed) is None
    np.testing.assert_array_equal(read_audio(streamed, AUDIO), read_audio(content, AUDIO))


def test_a_video_that_is_cut_off_is_refused(tmp_path):
    for ending in VIDEOS:
        video(tmp_path / f"a{ending}")
        content = (tmp_path / f"a{ending}").read_bytes()
        with pytest.raises(InputError, match="cut off"):
            read_video(content[: len(content) // 2], VIDEO, IMAGE)


def test_what_a_file_lacks_is_said(tmp_path):
    sound(tmp_path / "a.mp4")
    video(tmp_path / "b.mp4")
    with pytest.raises(InputError, match="it has no frames: it is an audio file without a video track"):
        read_video((tmp_path / "a.mp4").read_bytes(), VIDEO, IMAGE)
    content = (tmp_path / "b.mp4").read_bytes()
    with pytest.raises(InputError, match="it has no audio: it is a video without an audio track"):
        read_audio(content, AUDIO)
    with pytest.raises(InputError, match="it has 20 frames, more than max_frames = 19"):
        read_video(content, VideoConfig(max_frames=19), IMAGE)
    with pytest.raises(InputError, match="it has 64 x 48 pixels, more than max_pixels = 3,071"):
        read_video(content, VIDEO, ImageConfig(max_pixels=3071))


@pytest.mark.parametrize("head", [b"\0\0\0\x1cftypM4A ", b"\x1a\x45\xdf\xa3", b"RIFF\0\0\0\0AVI ", b"\xff\xf1\x50\x80"])
def test_a_damaged_container_is_refused(head):
    for read in (lambda content: read_audio(content, AUDIO), lambda content: read_video(content, VIDEO, IMAGE)):
        with pytest.raises(InputError, match=r"damaged|cut off|it has no"):
            read(head + bytes(500))


def test_without_pyav_the_extra_is_named(tmp_path, monkeypatch):
    sound(tmp_path / "a.m4a")
    monkeypatch.setitem(sys.modules, "av", None)
    words = r"M4A, MP4, MOV, WebM, .* AAC and AVI need PyAV, which is not installed: pip install 'heedful\[media\]'"
    for read in (lambda content: read_audio(content, AUDIO), lambda content: read_video(content, VIDEO, IMAGE)):
        with pytest.raises(InputError, match=words):
            read((tmp_path / "a.m4a").read_bytes())
    with pytest.raises(
        InputError, match=r"WAV, FLAC, Ogg, Opus, MP3, AIFF, AU and CAF and, with heedful\[media\], M4A"
    ):
        read_audio(b"a text" * 20, AUDIO)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("HEIF", ".heic"),
        ("AVIF", ".avif"),
        ("JPEG", ".jfif"),
        ("JPEG2000", ".jp2"),
        ("ICO", ".ico"),
        ("TGA", ".tga"),
        ("PNG", ".png"),
    ],
)
def test_images_of_phones_and_browsers_are_read(kind, ending):
    import pillow_heif

    pillow_heif.register_heif_opener()
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, :32] = (250, 100, 10)
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    found = read_image(stream.getvalue(), ImageConfig(size=(32, 32), patch=8))
    assert np.abs(found[8:24, 4:12].astype(int) - [250, 100, 10]).max() < 12
    assert ending in ENDINGS["image"]


def test_without_pillow_heif_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(
        InputError, match=r"read with pillow-heif, which is not installed: pip install 'heedful\[media\]'"
    ):
        read_image(b"\0\0\0\x18ftypheic" + bytes(100), IMAGE)
