"""Files of a corpus of shapes: a table for each part, with drawn PNG images and captions spoken by espeak-ng."""

import json
import shutil
import subprocess
import wave
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from heedful.corpora.shapes.captions import LANGUAGES, boxes, caption
from heedful.corpora.shapes.scene import SIDE, UNITS, Scene
from heedful.errors import InputError, RunError
from heedful.media.images import pillow


def png(scene: Scene) -> bytes:
    """Draw a scene and return the bytes of a PNG file; the same scene always has the same."""
    library = pillow()
    from PIL import ImageDraw

    picture = library.new("RGB", (SIDE * UNITS, SIDE * UNITS), scene.background)
    pen = ImageDraw.Draw(picture)
    for item in scene.objects:
        pen.polygon(item.outline, fill=item.figure.colour.rgb)
    stream = BytesIO()
    picture.reduce(UNITS).save(stream, "PNG")
    return stream.getvalue()


PROGRAM = "espeak-ng"
VOICES = {"en": "en", "de": "de", "zh": "cmn-latn-pinyin"}  # the voice cmn of espeak-ng 1.51 spells characters out
RATE = 16_000  # samples a second


class Speaker:
    """Speaks the captions of scenes in one language."""

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            raise InputError(f"--speak {language}: captions come in {', '.join(LANGUAGES)}; name one of them")
        program = shutil.which(PROGRAM)
        if program is None:
            raise InputError(
                f"--speak {language}: captions are spoken by the program {PROGRAM}, which is not installed; install it "
                f"with `apt install {PROGRAM}` or `brew install {PROGRAM}`, or leave --speak out"
            )
        self._language, self._program = language, program

    def __call__(self, scene: Scene) -> bytes:
        """Speak the caption of a scene, and return a WAV file of one channel with RATE samples a second."""
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
    from heedful.media.audio import resampled

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


Speak = Callable[[Scene], bytes]  # gives the sound of a scene's caption


def corpus_files(parts: Mapping[str, Sequence[Scene]], speak: Speak | None = None) -> dict[str, Callable[[], bytes]]:
    """Return the files of a corpus of shapes by name, each as a function that makes its bytes when it is called.

    For a part "train" these are pictures/train-000001.png and so on; with `speak` also sounds/train-000001.wav and so
    on; and behind them train.jsonl with a line for each picture. In it "picture" and "sound" are the names of the
    files, "en", "de" and "zh" the captions, and "boxes" has a list for each word of each caption, from `boxes`.
    """
    pillow()
    files: dict[str, Callable[[], bytes]] = {}
    for part, scenes in parts.items():
        for number, scene in enumerate(scenes, start=1):
            names = _names(part, number, speak is not None)
            files[names["picture"]] = partial(png, scene)
            if speak is not None:
                files[names["sound"]] = partial(speak, scene)
        files[f"{part}.jsonl"] = partial(_table, part, scenes, speak is not None)
    return files


def _names(part: str, number: int, spoken: bool) -> dict[str, str]:
    names = {"picture": f"pictures/{part}-{number:06}.png"}
    return names | {"sound": f"sounds/{part}-{number:06}.wav"} if spoken else names


def _table(part: str, scenes: Sequence[Scene], spoken: bool) -> bytes:
    rows = []
    for number, scene in enumerate(scenes, start=1):
        captions = {language: caption(language, scene) for language in LANGUAGES}
        texts = {language: one.text for language, one in captions.items()}
        places = {language: boxes(one, scene) for language, one in captions.items()}
        rows.append(_names(part, number, spoken) | texts | {"boxes": places})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
