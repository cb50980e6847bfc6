"""Spoken captions: what the program is asked for, and what becomes of its audio."""

import sys
import wave
from io import BytesIO

import numpy as np
import pytest

from heedful.corpora.shapes import caption, scene
from heedful.corpora.shapes.corpus import Speaker
from heedful.errors import InputError, RunError

SCENE = scene(1, 1)
STUB = """#!{python}
import math, struct, sys, wave
dash_v, voice, dash_w, path, text = sys.argv[1:]
assert (dash_v, dash_w) == ("-v", "-w")
{broken}
with wave.open(path, "wb") as audio:
    audio.setparams((1, 2, 22050, 0, "NONE", ""))
    tone = [round(9000 * math.sin(2 * math.pi * 441 * t / 22050)) for t in range(100 * len(text) + len(voice))]
    audio.writeframes(struct.pack(f"<{{len(tone)}}h", *tone))
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program of the name of espeak-ng that whistles as long as the text is, and the only one there is."""

    def make(broken=""):
        (tmp_path / "espeak-ng").write_text(STUB.format(python=sys.executable, broken=broken))
        (tmp_path / "espeak-ng").chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    return make


@pytest.mark.parametrize(("language", "voice"), [("en", "en"), ("de", "de"), ("zh", "cmn-latn-pinyin")])
def test_a_caption_becomes_a_sound_of_one_channel_at_16_kilohertz(language, voice, program):
    program()
    content = Speaker(language)(SCENE)
    with wave.open(BytesIO(content)) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 16_000)
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2")
    before = 100 * len(caption(language, SCENE).text) + len(voice)
    assert len(samples) == -(-before * 320 // 441)
    spectrum = np.abs(np.fft.rfft(samples))
    assert spectrum.argmax() * 16_000 / len(samples) == pytest.approx(441, abs=3)
    assert samples[100:-100].max() == pytest.approx(9000, rel=0.02)


def test_a_missing_program_is_named_with_the_ways_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"espeak-ng, which is not installed; install it with `apt install espeak-ng`"):
        Speaker("en")


def test_an_unknown_language_is_refused(program):
    program()
    with pytest.raises(InputError, match="--speak fr: unknown language; choose one of en, de, zh"):
        Speaker("fr")


@pytest.mark.parametrize(
    ("broken", "message"), [("sys.exit('no voices')", "no voices"), ("sys.exit()", "wrote no audio")]
)
def test_a_program_that_fails_is_told_with_what_it_said(broken, message, program):
    program(broken)
    with pytest.raises(RunError, match=f"espeak-ng cannot speak '.*': .*{message}"):
        Speaker("de")(SCENE)
