"""Files of a shapes corpus: a table for each part, PNG images, and captions spoken by espeak-ng."""

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
    """Draw a scene and return the bytes of a PNG file, which depend on the scene alone."""
    library = pillow()
    from PIL import ImageDraw

    image = library.new("RGB", (SIDE * UNITS, SIDE * UNITS), scene.background)
    pen = ImageDraw.Draw(image)
    for item in scene.objects:
        pen.polygon(item.outline, fill=item.figure.colour.rgb)
    stream = BytesIO()
    image.reduce(UNITS).save(stream, "PNG")
    return stream.getvalue()


PROGRAM = "espeak-ng"
VOICES = {"en": "en", "de": "de", "zh": "cmn-latn-pinyin"}  # the voice cmn of espeak-ng 1.51 spells out characters
RATE = 16_000  # samples per second


class Speaker:
    """Text-to-speech for the captions of scenes in one language."""

    def __init__(self, language: str) -> None:
        if language not in LANGUAGES:
            raise InputError(f"--speak {language}: unknown language; choose one of {', '.join(LANGUAGES)}")
        program = shutil.which(PROGRAM)
        if program is None:
            raise InputError(
                f"--speak {language}: needs the program {PROGRAM}, which is not installed; install it with "
                f"`apt install {PROGRAM}` or `brew install {PROGRAM}`, or leave --speak out"
            )
        self._language, self._program = language, program

    def __call__(self, scene: Scene) -> bytes:
        """Speak the caption of a scene, and return a one-channel WAV file with RATE samples per second."""
        from heedful.media.audio import resampled

        text = caption(self._language, scene).text
        with TemporaryDirectory() as folder:
            path = Path(folder) / "caption.wav"
            command = [self._program, "-v", VOICES[self._language], "-w", str(path), text]
            process = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if process.returncode or not path.is_file():
                raise RunError(f"{PROGRAM} cannot speak {text!r}: {process.stderr.strip() or 'it wrote no audio'}")
            with wave.open(str(path)) as file:  # one channel and 16 bits, at the program's rate
                rate = file.getframerate()
                samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").astype(np.float32)
        converted = resampled(samples, rate, RATE).round().clip(-32768, 32767).astype("<i2")
        stream = BytesIO()
        with wave.open(stream, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(converted.tobytes())
        return stream.getvalue()


Speak = Callable[[Scene], bytes]  # returns the audio file of a scene's caption


def corpus_files(parts: Mapping[str, Sequence[Scene]], speak: Speak | None = None) -> dict[str, Callable[[], bytes]]:
    """Return the files of a shapes corpus by name, each as a function that returns its bytes.

    For the part "train", these are pictures/train-000001.png and so on; with `speak` also sounds/train-000001.wav and
    so on; and after them train.jsonl with a line for each image. In it, "picture" and "sound" are the file names, "en",
    "de" and "zh" the captions, and "boxes" maps each language to what `boxes` returns for the words of its caption.
    """
    pillow()
    files: dict[str, Callable[[], bytes]] = {}
    for part, scenes in parts.items():
        names = [{"picture": f"pictures/{part}-{number:06}.png"} for number in range(1, len(scenes) + 1)]
        for number, scene in enumerate(scenes, start=1):
            files[names[number - 1]["picture"]] = partial(png, scene)
            if speak is not None:
                names[number - 1]["sound"] = f"sounds/{part}-{number:06}.wav"
                files[names[number - 1]["sound"]] = partial(speak, scene)
        files[f"{part}.jsonl"] = partial(_table, scenes, names)
    return files


def _table(scenes: Sequence[Scene], names: Sequence[Mapping[str, str]]) -> bytes:
    lines = []
    for scene, files in zip(scenes, names, strict=True):
        captions = {language: caption(language, scene) for language in LANGUAGES}
        texts = {language: item.text for language, item in captions.items()}
        word_boxes = {language: boxes(item, scene) for language, item in captions.items()}
        lines.append(json.dumps({**files, **texts, "boxes": word_boxes}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()
