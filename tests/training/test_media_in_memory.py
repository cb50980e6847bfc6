"""Pictures, audio files and videos that a program holds become training data without the loss of a bit."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import heedful
from every_task import RECIPES
from heedful.config.modalities import AudioConfig
from heedful.config.schema import DataConfig, Recipe
from heedful.errors import InputError
from heedful.media.audio import resampled
from heedful.media.modality import modality_of
from heedful.tasks import find_task
from heedful.training.in_process import with_data

RANDOM = np.random.default_rng(1)
IMAGES = Recipe(task="image_classification", data=DataConfig(modality="image"))
SOUNDS = Recipe(task="audio_classification", data=DataConfig(modality="audio"), audio=AudioConfig(rate=8000))
VIDEOS = Recipe(task="video_classification", data=DataConfig(modality="video"))


def pixels(*shape: int) -> np.ndarray:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def samples(count: int = 800) -> np.ndarray:
    return RANDOM.uniform(-1, 1, count).astype(np.float32)


def image(content: bytes) -> Any:
    return pytest.importorskip("PIL.Image").open(BytesIO(content))


def contents(recipe: Recipe, values: list[Any], folder: Path) -> list[bytes]:
    """What the files hold to which the values are written."""
    corpus = with_data(recipe, [(value, "a") for value in values], folder).data.train[0]
    table = Path(corpus.source)
    rows = map(json.loads, table.read_text().splitlines())
    return [(table.parent / row["source"]).read_bytes() for row in rows]


@pytest.mark.parametrize(
    ("recipe", "shape"),
    [
        (IMAGES, (40, 30)),
        (IMAGES, (40, 30, 1)),
        (IMAGES, (40, 30, 3)),
        (IMAGES, (40, 30, 4)),
        (VIDEOS, (9, 20, 30)),
        (VIDEOS, (9, 20, 30, 1)),
        (VIDEOS, (9, 20, 30, 3)),
        (VIDEOS, (9, 20, 30, 4)),
        (VIDEOS, (1, 20, 30, 3)),
    ],
)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_pixels_are_read_from_their_file_as_from_their_array(recipe, shape, as_tensor, tmp_path):
    values, medium = pixels(*shape), modality_of(recipe)
    [content] = contents(recipe, [torch.from_numpy(values) if as_tensor else values], tmp_path)
    assert np.array_equal(medium.read(content), medium.from_array(values))


def test_frames_that_are_equal_stay_as_many(tmp_path):
    values = np.repeat(pixels(3, 20, 30, 3), [4, 1, 5], axis=0)
    [content] = contents(VIDEOS, [values], tmp_path)
    animated = image(content)
    assert animated.n_frames == len(values)
    for number, frame in enumerate(values):
        animated.seek(number)
        assert np.array_equal(np.asarray(animated.convert("RGB")), frame)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "CMYK", "I;16"])
@pytest.mark.parametrize("recipe", [IMAGES, VIDEOS], ids=["image", "video"])
def test_images_of_pillow_are_read_as_a_predictor_reads_them(mode, recipe, tmp_path):
    library = pytest.importorskip("PIL.Image")
    given = library.fromarray(pixels(20, 30, 3))
    given = library.fromarray(pixels(20, 30).astype(np.uint16) * 200) if mode == "I;16" else given.convert(mode)
    stream = BytesIO()
    given.save(stream, "TIFF" if mode == "CMYK" else "PNG")
    [content] = contents(recipe, [given], tmp_path)
    read = modality_of(recipe).read(content)
    assert np.array_equal(read if recipe is IMAGES else read[0], modality_of(IMAGES).read(stream.getvalue()))


@pytest.mark.parametrize("kind", ["float32", "float64", "int16", "int32", "uint8"])
def test_samples_are_read_from_their_file_as_from_their_array(kind, tmp_path):
    values = samples()
    if kind.endswith("8"):
        values = values * 100 + 100
    elif kind.startswith("int"):
        values = values * 2**14
    values = values.astype(kind)
    [content] = contents(SOUNDS, [values], tmp_path)
    assert np.array_equal(modality_of(SOUNDS).read(content), modality_of(SOUNDS).from_array(values))


@pytest.mark.parametrize(
    "form",
    [
        lambda sound: (sound, 12_000),
        lambda sound: [sound, np.int64(12_000)],
        lambda sound: {"array": sound, "sampling_rate": 12_000, "path": None},
        lambda sound: {"array": sound.tolist(), "rate": 12_000},
    ],
)
def test_a_sound_has_its_own_rate(form, tmp_path):
    sound = samples()
    [content] = contents(SOUNDS, [form(sound)], tmp_path)
    assert np.array_equal(modality_of(SOUNDS).read(content), resampled(sound, 12_000, 8000))


@pytest.mark.parametrize("form", [lambda x: x, BytesIO, lambda x: {"bytes": x, "path": "not/here.png"}])
def test_bytes_are_a_file(form, tmp_path):
    stream = BytesIO()
    pytest.importorskip("PIL.Image").fromarray(pixels(20, 30, 3)).save(stream, "JPEG")
    assert contents(IMAGES, [form(stream.getvalue())], tmp_path) == [stream.getvalue()]


def test_a_dictionary_with_a_path_names_a_file(tmp_path):
    corpus = with_data(IMAGES, [({"bytes": None, "path": "x.png"}, "a")], tmp_path).data.train[0]
    assert json.loads(Path(corpus.source).read_text())["source"] == str(Path("x.png").absolute())


@pytest.mark.parametrize(
    ("recipe", "value", "message"),
    [
        (IMAGES, np.zeros((3, 20, 30), np.uint8), r"array of type uint8 and shape \(3, 20, 30\) is not an image"),
        (IMAGES, np.zeros((20, 30)), "array of type float64 .* is not an image; give pixels from 0 to 255"),
        (IMAGES, 7, "7 .int. cannot be read as image; give a file name, bytes"),
        (IMAGES, {"pixels": 1}, "cannot be read as image"),
        (VIDEOS, np.zeros((20, 30), np.uint8), "is not a video"),
        (SOUNDS, np.zeros((7, 2)), "is not audio; give samples of one channel"),
        (SOUNDS, np.zeros(0), "it has no samples"),
        (SOUNDS, np.array([0.5, np.nan]), "1 of its 2 samples are not finite"),
        (
            SOUNDS,
            (8000, np.zeros(7)),
            "8000 .int. cannot be read as audio; .* or .samples, rate",
        ),
        (SOUNDS, (np.zeros(7), 0), "0 .int. is not a sample rate"),
        (SOUNDS, "nothing", None),
    ],
)
def test_what_is_not_an_example_is_named_with_its_row(recipe, value, message, tmp_path):
    if message is None:  # names of files are looked for when they are read
        assert with_data(recipe, [(value, "a")], tmp_path)
        return
    with pytest.raises(InputError, match=f"train, row 2: .*{message}"):
        with_data(recipe, [("a.png", "a"), (value, "a")], tmp_path)


class Images:
    """A data set of torch, which has a length and no end."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> tuple[np.ndarray, int]:
        return np.full((20, 30), number, np.uint8), number % 2


@pytest.mark.parametrize(
    "data",
    [
        Images(),
        {"image": pixels(4, 20, 30, 3), "label": [0, 1, 0, 1]},
        [{"image": pixels(20, 30), "label": number % 2} for number in range(4)],
    ],
    ids=["data set", "columns", "rows"],
)
def test_data_sets_columns_and_rows_of_images_are_training_data(data, tmp_path):
    corpus = with_data(IMAGES, data, tmp_path).data.train[0]
    rows = [json.loads(line) for line in Path(corpus.source).read_text().splitlines()]
    assert rows == [{"source": f"train/{number + 1}.png", "target": number % 2} for number in range(4)]


def value_of(path: Path) -> Any:
    """What a program would hold of a file."""
    if path.suffix == ".wav":
        library = pytest.importorskip("soundfile")
        return library.read(path, dtype="int16")
    return image(path.read_bytes()) if path.suffix == ".png" else path.read_bytes()


@pytest.mark.parametrize("task", [name for name in RECIPES if find_task(name).spec.modality != "text"])
def test_every_task_of_files_is_prepared_from_values(task, tmp_path):
    (tmp_path / "data").mkdir()
    recipe = RECIPES[task](tmp_path / "data")
    names = sorted(path for path in (tmp_path / "data").rglob("*.*") if path.suffix in (".png", ".wav", ".gif"))
    texts = [["left", "right"][number % 2] + f" {number}" * (task == "image_text_retrieval") for number in range(999)]
    pairs = [(path, value_of(path), text) for path, text in zip(names, texts, strict=False)]
    alone = task == "masked_patches"
    named = [path if alone else (path, text) for path, _, text in pairs]
    held = [value if alone else (value, text) for _, value, text in pairs]
    tasks = []
    for folder, rows in (("named", named), ("held", held)):
        made = with_data(recipe, {"train": rows, "valid": rows}, tmp_path / folder)
        tasks.append(find_task(task).prepare(made, tmp_path / folder / "prepared", lambda _: None))
    store, other = (one.data.examples.train[0] for one in tasks)
    medium = modality_of(tasks[0].recipe)
    assert len(store) == len(other) == len(names)
    for number in range(len(names)):
        assert np.array_equal(medium.read(store.content(number)), medium.read(other.content(number)))


def test_training_on_arrays_resumes_and_refuses_other_arrays(tmp_path):
    recipe = {
        "task": "audio_classification",
        "audio": {"rate": 8000, "max_seconds": 1},
        "model": {"family": "encoder", "d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1},
        "train": {"max_updates": 1, "save_every": 1, "average_last": 1, "device": "cpu"},
    }
    rows = [((samples(), 8000), label) for label in "abab"]
    quiet = Console(quiet=True)
    heedful.train(recipe, tmp_path / "run", rows, console=quiet)
    longer = {"train.max_updates": 2}
    assert heedful.train(recipe, tmp_path / "run", rows, console=quiet, set=longer).update == 2
    with pytest.raises(InputError, match="data has changed"):
        heedful.train(recipe, tmp_path / "run", rows[::-1], console=quiet, set={"train.max_updates": 3})
