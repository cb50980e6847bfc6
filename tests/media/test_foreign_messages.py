"""What libraries in C print about damaged files does not reach the user; everything else on standard error does."""

import ctypes
import os
import platform
from contextlib import suppress
from io import BytesIO
from threading import Barrier, Thread

import numpy as np
import pytest
import soundfile
from PIL import Image

from heedful.config.modalities import AudioConfig, ImageConfig
from heedful.errors import InputError
from heedful.media.audio import read_audio
from heedful.media.audio_reader import FileAudioReader
from heedful.media.foreign_messages import without_foreign_messages
from heedful.media.images import read_image

CHANCE = np.random.default_rng(7)
NOISE = (0.3 * CHANCE.standard_normal(40_000)).astype(np.float32)
PIXELS = CHANCE.integers(0, 256, (61, 67, 3)).astype(np.uint8)
CONFIG = AudioConfig(rate=16_000, max_seconds=9)

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep their stream")


def with_noise(content: bytes, begin: int, end: int) -> bytes:
    return content[:begin] + CHANCE.bytes(end - begin) + content[end:]


def mp3() -> bytes:
    stream = BytesIO()
    soundfile.write(stream, NOISE, CONFIG.rate, format="MP3")
    return stream.getvalue()


def tiff(compression: str) -> bytes:
    stream = BytesIO()
    Image.fromarray(PIXELS).convert("1" if compression == "group4" else "RGB").save(
        stream, "TIFF", compression=compression
    )
    return stream.getvalue()


@glibc
@pytest.mark.parametrize("damage", [(3000, 3600), (None, 5000)])
def test_a_damaged_mp3_has_no_message_but_that_of_heedful(damage, tmp_path, capfd):
    whole = mp3()
    begin, end = damage
    content = whole[:end] if begin is None else with_noise(whole, begin, end)
    (tmp_path / "bad.mp3").write_bytes(content)
    with suppress(InputError):
        read_audio(content, CONFIG)
    with suppress(InputError):
        FileAudioReader(tmp_path / "bad.mp3", CONFIG).check()
    assert capfd.readouterr().err == ""


@glibc
@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "jpeg", "group4"])
def test_a_damaged_tiff_has_no_message_but_that_of_heedful(compression, capfd):
    content = tiff(compression)
    with suppress(InputError):
        read_image(with_noise(content, len(content) // 2, len(content) // 2 + 60), ImageConfig())
    assert capfd.readouterr().err == ""


@glibc
def test_only_what_c_prints_meanwhile_is_left_out(capfd):
    library = ctypes.CDLL(None)
    with without_foreign_messages():
        library.perror(b"of a library")
        os.write(2, b"of Python\n")
    library.perror(b"of later")
    err = capfd.readouterr().err
    assert "of a library" not in err
    assert "of Python\n" in err
    assert "of later" in err


@glibc
def test_the_last_of_several_threads_puts_the_stream_back(capfd):
    library = ctypes.CDLL(None)
    first_left = Barrier(2, timeout=9)

    def reads_longer() -> None:
        with without_foreign_messages():
            first_left.wait()
            first_left.wait()
            library.perror(b"meanwhile")

    thread = Thread(target=reads_longer)
    thread.start()
    with without_foreign_messages():
        first_left.wait()
    first_left.wait()
    thread.join()
    library.perror(b"later")
    err = capfd.readouterr().err
    assert "meanwhile" not in err
    assert "later" in err
