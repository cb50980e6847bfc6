"""Speaks captions by espeak-ng, a program that makes speech from text by rules, without a network."""

import shutil
import subprocess
import wave
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from heedful.data.media.resampling import resampled
from heedful.data.shapes.captions import LANGUAGES, caption
from heedful.data.shapes.scene import Scene
from heedful.errors import InputError, RunError

PROGRAM = "espeak-ng"
VOICES = {"en": "en", "de": "de", "zh": "cmn-latn-pinyin"}  # the voice cmn of espeak-ng 1.51 spells characters out
RATE = 16_000  # samples a second


class Speaker:
    """Speaks the captions of scenes in one language.

    Args:
        language: "en", "de" or "zh".

    Raises:
        InputError: There are no captions in the language, or espeak-ng is not installed.
    """

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            raise InputError(f"--speak {language}: captions come in {', '.join(LANGUAGES)}; name one of them")
        found = shutil.which(PROGRAM)
        if found is None:
            raise InputError(
                f"--speak {language}: captions are spoken by the program {PROGRAM}, which is not installed; install it "
                f"with `apt install {PROGRAM}` or `brew install {PROGRAM}`, or leave --speak out"
            )
        self._language, self._program = language, found

    def __call__(self, scene: Scene) -> bytes:
        """Speak the caption of a scene, and return a WAV file of one channel with RATE samples a second.

        Raises:
            RunError: The program failed.
        """
        text = caption(self._language, scene).text
        with TemporaryDirectory() as folder:
            sound = Path(folder) / "caption.wav"
            command = [self._program, "-v", VOICES[self._language], "-w", str(sound), text]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode or not sound.is_file():
                raise RunError(f"{PROGRAM} does not speak {text!r}: {done.stderr.strip() or 'it wrote no sound'}")
            return _converted(sound.read_bytes())


def _converted(content: bytes) -> bytes:
    """Bring a WAV file of one channel and 16 bits, as the program writes it, to RATE samples a second."""
    with wave.open(BytesIO(content)) as sound:
        rate = sound.getframerate()
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(np.float32)
    converted = resampled(samples, rate, RATE).round().clip(-32768, 32767).astype("<i2")
    stream = BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(converted.tobytes())
    return stream.getvalue()
