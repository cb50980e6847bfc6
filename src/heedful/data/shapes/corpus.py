"""Files of a corpus of shapes: a table for each part, and the pictures and sounds that its rows name."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from heedful.data.media.pictures import pillow
from heedful.data.shapes.captions import LANGUAGES, boxes, caption
from heedful.data.shapes.drawing import png
from heedful.data.shapes.scene import Scene

Speak = Callable[[Scene], bytes]  # gives the sound of a scene's caption


def corpus_files(parts: Mapping[str, Sequence[Scene]], speak: Speak | None = None) -> dict[str, Callable[[], bytes]]:
    """Return the files of a corpus of shapes by name, each as a function that makes its bytes when it is called.

    For a part "train" these are pictures/train-000001.png and so on; with `speak` also sounds/train-000001.wav and so
    on; and behind them train.jsonl with a line for each picture. In it "picture" and "sound" are the names of the
    files, "en", "de" and "zh" the captions, and "boxes" has a list for each word of each caption, from `boxes`.

    Raises:
        InputError: Pillow is not installed.
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
    rows = (_names(part, number, spoken) | _row(scene) for number, scene in enumerate(scenes, start=1))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _row(scene: Scene) -> dict[str, object]:
    told = {language: caption(language, scene) for language in LANGUAGES}
    texts: dict[str, object] = {language: one.text for language, one in told.items()}
    return texts | {"boxes": {language: boxes(one, scene) for language, one in told.items()}}
