"""Surveys, layouts and proposals of images, audio and videos: what is seen in files, and the recipe that follows."""

import math
import shutil
import tomllib
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

import odd_files as odd
from heedful.config.load import make_recipe
from heedful.config.modalities import VideoConfig
from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.columns import columns_of
from heedful.data.readers.media_files import MediaFile, media_files
from heedful.errors import InputError
from heedful.tools.proposals import media_survey
from heedful.tools.proposals.media_proposal import image_size, propose_classifier
from heedful.tools.proposals.media_survey import (
    FACTS,
    AudioFacts,
    ImageFacts,
    Kind,
    MediaSurvey,
    VideoFacts,
    audio_facts,
    file_column,
    image_facts,
    kind_of_folder,
    parts_of_folder,
    survey_media,
    target_of,
    video_facts,
)
from heedful.tools.proposals.proposal import Machine, RecipeData
from toy_media import SIDES, animated, moving, write_files, write_pictures, write_sounds

IMAGES = DataConfig(modality="image")
LAPTOP = Machine(cores=2, bfloat16=False)
SERVER = Machine(cores=16, bfloat16=True, gpu_memory=80)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (odd.picture(), ImageFacts(7, 11, False)),
        (odd.picture(odd.GREY), ImageFacts(7, 11, True)),
        (odd.picture(odd.GREY[:, :, 0]), ImageFacts(7, 11, True)),
        (odd.turned(), ImageFacts(7, 11, False)),
        (odd.turned(3), ImageFacts(11, 7, False)),
        (odd.picture(kind="TIFF", tiffinfo={0x0112: 6}), ImageFacts(11, 7, False)),
    ],
)
def test_the_size_of_a_picture_is_that_which_is_seen(content, expected):
    assert image_facts(content) == expected


def test_the_length_of_a_sound_is_in_its_header():
    assert audio_facts(odd.sound(np.zeros((999, 2)), rate=500)) == AudioFacts(1.998, 500, 2, silent=True)
    clicks = np.zeros((99_999, 2))
    clicks[70_000, 1] = 0.01
    assert not audio_facts(odd.sound(clicks, rate=500)).silent
    with pytest.raises(InputError, match="it has no samples"):
        audio_facts(odd.sound(odd.TONE[:0]))
    with pytest.raises(InputError, match="it is cut off"):
        audio_facts(odd.sound()[:99])


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_large_picture_that_is_cut_off_is_found(kind):
    pixels = np.random.default_rng(3).integers(256, size=(300, 400, 3), dtype=np.uint8)
    content = odd.picture(pixels, kind)
    assert image_facts(content) == ImageFacts(300, 400, False)
    with pytest.raises(InputError, match="damaged or cut off"):
        image_facts(content[: len(content) // 2])


def test_a_sound_that_is_cut_off_is_found():
    content = odd.sound(np.random.default_rng(3).normal(0, 0.1, 40_000), kind="FLAC")
    with pytest.raises(InputError, match=r"cut off|damaged"):
        audio_facts(content[: len(content) // 2])


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_frames_of_a_video_are_counted(kind):
    assert video_facts(odd.animated(kind)) == VideoFacts(7, 11, False, 2)
    with pytest.raises(InputError, match="not a video"):
        video_facts(odd.turned())
    whole = animated(moving("left", 1))
    for length in (len(whole) // 3, len(whole) // 2, len(whole) - 9):
        with pytest.raises(InputError, match="the video is damaged or cut off"):
            video_facts(whole[:length])


def test_a_video_of_too_many_frames_is_bad(monkeypatch):
    monkeypatch.setattr(media_survey, "VideoConfig", partial(VideoConfig, max_frames=1))
    assert video_facts(odd.picture()).frames == 1
    with pytest.raises(InputError, match="it has 2 frames, more than max_frames = 1"):
        video_facts(odd.animated("GIF"))


def surveyed(folder: Path) -> MediaSurvey[ImageFacts]:
    corpus = CorpusConfig(source=str(folder))
    return survey_media(media_files(corpus, IMAGES), corpus, image_facts)


def test_classes_copies_and_bad_files_are_counted(tmp_path):
    write_pictures(tmp_path / "left", "left", 7)
    write_pictures(tmp_path / "top", "top", 5)
    shutil.copy(tmp_path / "left/00.png", tmp_path / "left/zz.png")
    (tmp_path / "top/03.png").write_bytes(b"")
    (tmp_path / "top/04.png").write_bytes(b"x")
    found = surveyed(tmp_path)
    assert found.labels == Counter(left=8, top=3)
    assert (len(found.facts), found.copies, found.conflict) == (11, 1, None)
    assert [digest is None for digest in found.digests] == [False] * 11 + [True] * 2
    assert found.digests[0] == found.digests[7]
    assert [message.partition(": ")[2][:12] for message in found.bad] == ["the file is ", "not an image"]
    shutil.copy(tmp_path / "left/00.png", tmp_path / "top/zz.png")
    assert surveyed(tmp_path).conflict == f"{tmp_path}/left/00.png (left) and {tmp_path}/top/zz.png (top)"


def test_if_no_file_can_be_read_that_is_told(tmp_path):
    (tmp_path / "left").mkdir()
    (tmp_path / "left/a.png").write_bytes(b"x")
    with pytest.raises(InputError, match=r"no file can be read; the first error: .*left/a.png: not an image"):
        surveyed(tmp_path)


def test_a_folder_is_of_what_most_of_its_files_are(tmp_path):
    write_pictures(tmp_path / "left", "left", 2)
    (tmp_path / "left/notes.txt").touch()
    assert kind_of_folder(tmp_path) == "image"
    write_sounds(tmp_path / "low", "low", 3)
    assert kind_of_folder(tmp_path) == "audio"
    for number in range(3):
        (tmp_path / f"{number}.txt").touch()
    assert kind_of_folder(tmp_path) is None


def parts(folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    found = parts_of_folder(folder, IMAGES)
    return {part: path.relative_to(folder).as_posix() for part, path in found.folders.items()}, found.unused


def test_parts_are_folders_of_usual_names_that_hold_classes(tmp_path):
    write_files("image_classification", tmp_path / "all")
    folder = tmp_path / "all"
    assert parts(folder) == ({"train": "train", "valid": "valid"}, ())
    (folder / "valid").rename(folder / "Test")
    assert parts(folder) == ({"train": "train", "test": "Test"}, ())
    shutil.copytree(folder / "Test", folder / "dev")
    assert parts(folder) == ({"train": "train", "valid": "dev", "test": "Test"}, ())
    assert parts(folder / "train") == ({"train": "."}, ())
    shutil.copytree(folder / "Test/left", folder / "unlabelled/x")
    (folder / "Test/left").rename(folder / "Test/unsup")
    assert parts(folder) == ({"train": "train", "valid": "dev", "test": "Test"}, ("unlabelled", "Test/unsup"))


def test_a_train_among_other_classes_is_a_vehicle_and_parts_without_classes_are_refused(tmp_path):
    for name in ("train", "car", "unsup"):
        write_pictures(tmp_path / "vehicles" / name, "left", 3)
    assert parts(tmp_path / "vehicles") == ({"train": "."}, ("unsup",))
    for name in ("train", "test"):
        write_pictures(tmp_path / "flat" / name, "left", 3)
    with pytest.raises(InputError, match="flat: train, test are parts, not classes; put the files of each class into"):
        parts(tmp_path / "flat")


def table(folder: Path, text: str, name: str = "list.csv"):
    (folder / name).write_text(text)
    return columns_of(folder / name, DataConfig())


ROWS = [f"clips/{number}.wav,{'ab'[number % 2]},{number}" for number in range(17)]


def test_the_columns_of_files_and_of_classes_are_found_by_what_they_hold(tmp_path):
    columns = table(tmp_path, "path,kind,seconds\n" + "\n".join(ROWS) + "\n")
    assert file_column(columns) == ("path", "audio")
    assert target_of(columns, "path", None, "list.csv").column.name == "kind"
    assert target_of(columns, "path", "seconds", "list.csv").column.name == "seconds"
    assert file_column(table(tmp_path, "text,kind\n" + "a text,b\n" * 7)) is None


def test_a_usual_name_decides_between_columns_of_classes(tmp_path):
    rows = "".join(f"{row},{'mf'[number % 2]}\n" for number, row in enumerate(ROWS))
    columns = table(tmp_path, "path,label,seconds,sex\n" + rows)
    assert target_of(columns, "path", None, "list.csv").column.name == "label"
    columns = table(tmp_path, "path,kind,seconds,sex\n" + rows)
    with pytest.raises(InputError, match="give the one with the classes as --target-field"):
        target_of(columns, "path", None, "list.csv")


def test_where_there_are_no_classes_texts_about_files_are_found(tmp_path):
    rows = [f"{number}.png,an image of number {number},{number}\n" for number in range(17)]
    columns = table(tmp_path, "path,caption,id\n" + "".join(rows))
    found = target_of(columns, "path", None, "list.csv")
    assert (found.column.name, found.writes, found.certainty) == ("caption", True, "certain")
    with pytest.raises(InputError, match="no column of classes or texts is named 'label'"):
        target_of(columns, "path", "label", "list.csv")
    columns = table(
        tmp_path, "path,en,de\n" + "".join(f"{n}.png,number {n} of it,davon Nummer {n}\n" for n in range(17))
    )
    with pytest.raises(InputError, match="give the one with the classes or the texts as --target-field"):
        target_of(columns, "path", None, "list.csv")
    assert target_of(columns, "path", "de", "list.csv").column.name == "de"


FEW_TEXTS = {  # the name of the column, its values, and whether they are texts to write, and how certain that is
    "captions": ("caption", ["a red ball", "two dogs play", "the sea at night"], True, "likely"),
    "words that are said": ("text", ["yes", "no", "stop"], True, "unsure"),
    "classes": ("kind", ["yes", "no", "stop"], False, "likely"),
    "labels": ("label", ["a red ball", "two dogs play", "the sea at night"], False, "certain"),
}


@pytest.mark.parametrize("name", FEW_TEXTS)
def test_few_different_texts_are_texts_or_classes_by_the_name_of_their_column(tmp_path, name):
    column, values, writes, certainty = FEW_TEXTS[name]
    rows = "".join(f"{number}.png,{values[number % 3]}\n" for number in range(60))
    found = target_of(table(tmp_path, f"file,{column}\n{rows}"), "file", None, "list.csv")
    assert (found.column.name, found.writes, found.certainty) == (column, writes, certainty)


def test_classes_and_texts_of_one_table_are_both_named(tmp_path):
    rows = "".join(f"{number}.png,{'ab'[number % 2]},an image of {number}\n" for number in range(60))
    found = target_of(table(tmp_path, f"file,label,caption\n{rows}"), "file", None, "list.csv")
    assert found.second is not None
    assert (found.column.name, found.second.name) == ("label", "caption")


def facts(height: int, width: int, count: int = 101) -> list[ImageFacts]:
    return [ImageFacts(height, width, True)] * count


@pytest.mark.parametrize(
    ("height", "width", "machine", "expected"),
    [
        (28, 28, LAPTOP, (28, 28, 4)),
        (15, 23, LAPTOP, (16, 24, 4)),
        (3, 40, LAPTOP, (8, 40, 4)),
        (41, 60, LAPTOP, (48, 64, 8)),
        (96, 96, LAPTOP, (96, 96, 8)),
        (480, 640, LAPTOP, (128, 128, 16)),
        (480, 640, SERVER, (224, 224, 16)),
    ],
)
def test_small_pictures_keep_their_size_and_large_ones_become_squares(height, width, machine, expected):
    assert image_size([*facts(height, width), *facts(7, 7, 100)], machine) == expected


def survey(found: list, bad: list[str]) -> MediaSurvey:
    return MediaSurvey(Counter(a=len(found)), found, [], bad, 0, None)


def texts() -> RecipeData:
    source = {"source": "files"}
    return RecipeData("mine", "error", dict.fromkeys(("train", "valid", "test"), source))


@pytest.mark.sampled(14)
@pytest.mark.parametrize("machine", [LAPTOP, SERVER])
@pytest.mark.parametrize("count", [20, 3_000, 40_000, 300_000, 2_000_000])
@pytest.mark.parametrize(
    "found",
    [
        ImageFacts(28, 28, True),
        ImageFacts(300, 400, False),
        AudioFacts(0.4, 8000, 1),
        VideoFacts(28, 28, True, 7),
        VideoFacts(300, 400, False, 97),
    ],
)
def test_every_proposal_is_a_recipe_that_grows_with_the_files_and_the_machine(found, count, machine):
    kinds: dict[type, Kind] = {ImageFacts: "image", AudioFacts: "audio", VideoFacts: "video"}
    kind = kinds[type(found)]
    recipe = make_recipe(tomllib.loads(propose_classifier(kind, survey([found] * count, []), SIDES, machine, texts())))
    assert recipe.data.labels == SIDES
    assert recipe.train.batch_tokens >= recipe.longest_input
    assert recipe.optimizer.warmup < recipe.train.max_updates
    assert recipe.train.max_updates % recipe.train.save_every == 0
    assert recipe.image.channels == (1 if isinstance(found, ImageFacts) and found.is_grey else 3)
    assert recipe.model.d_model == 64 or count > 5_000
    assert recipe.model.d_model <= 128 or machine is SERVER


@pytest.mark.parametrize(("frames", "read"), [((1, 1, 9), 2), ((7, 7, 8), 6), ((5, 8, 90), 8), ((99, 100, 101), 16)])
def test_as_many_frames_are_read_as_most_videos_have_in_whole_tubelets(frames, read):
    found = [VideoFacts(28, 28, True, count) for count in frames]
    values = tomllib.loads(propose_classifier("video", survey(found, []), SIDES, LAPTOP, texts()))
    assert (values["video"]["frames"], values["model"]["max_positions"]) == (read, read // 2 * 49 + 1)


def test_a_long_clip_decides_on_the_limit_and_a_high_rate_is_lowered():
    clips = [AudioFacts(0.5, 44_100, 2)] * 99 + [AudioFacts(31.2, 44_100, 2)]
    values = tomllib.loads(propose_classifier("audio", survey(clips, []), SIDES, LAPTOP, texts()))
    assert values["audio"]["max_seconds"] == 31.5
    assert (values["audio"]["rate"], values["audio"]["window"], values["audio"]["mels"]) == (16_000, 400, 80)
    exact = propose_classifier("audio", survey([AudioFacts(2.0, 8000, 1)] * 99, []), SIDES, LAPTOP, texts())
    assert math.isclose(tomllib.loads(exact)["audio"]["max_seconds"], 2.5)


def test_bad_files_are_skipped_in_training_only_where_there_are_some():
    values = [
        tomllib.loads(propose_classifier("image", survey(facts(28, 28), bad), SIDES, LAPTOP, texts()))
        for bad in ([], ["a"])
    ]
    assert ["bad_files" in value["data"] for value in values] == [False, True]


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_equal_pictures_and_sounds_in_other_formats_are_copies(kind: Kind, tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).integers(0, 255, (2, 24, 31, 3), dtype=np.uint8)
    files = []
    for number, values in enumerate(numbers):
        for ending in ("png", "bmp", "tiff") if kind == "image" else ("wav", "flac"):
            path = tmp_path / f"{number}.{ending}"
            files.append(MediaFile(path, "x", None))
            if kind == "image":
                Image.fromarray(values).save(path)
            else:
                soundfile.write(path, (values.reshape(-1, 1).astype(np.int16) - 128) * 99, 8000, subtype="PCM_16")
    found = survey_media(files, CorpusConfig(source=str(tmp_path)), FACTS[kind])
    assert len(set(found.digests)) == 2
    assert found.copies == len(files) - 2
