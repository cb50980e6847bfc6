"""`heedful init` for images, audio files and videos: what is seen, written and refused, and that its recipe trains."""

import json
import re
import shutil
from pathlib import Path

import pytest
from invocation import invoke

from heedful.config.load import load_recipe
from heedful.data.readers.media_files import media_files
from heedful.errors import InputError
from toy_captions import write_table
from toy_media import DIRECTIONS, PITCHES, SIDES, write_files, write_pictures, write_sounds, write_videos

NOUNS = {"pictures": "images", "sounds": "audio files"}  # in messages, of the files in folders of these names


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures and videos by class, images in parts, and audio files that a table names."""
    monkeypatch.chdir(tmp_path)
    for label in SIDES[:2]:
        write_pictures(tmp_path / "pictures" / label, label, 20)
    for label in DIRECTIONS:
        write_videos(tmp_path / "motions" / label, label, 11)
    write_files("image_classification", tmp_path / "parts")
    rows = []
    for pitch in PITCHES:
        write_sounds(tmp_path / "clips" / pitch, pitch, 17)
        rows += [(f"clips/{pitch}/{number:02}.wav", pitch) for number in range(17)]
    Path("clips.csv").write_text("file,label\n" + "".join(f"{file},{label}\n" for file, label in rows))
    Path("clips.tsv").write_text("".join(f"{file}\t{label}\n" for file, label in rows))
    objects = [json.dumps({"wav": file, "pitch": label}) + "\n" for file, label in rows]
    Path("clips.jsonl").write_text("".join(objects))
    return tmp_path


def run(*arguments: object) -> str:
    return invoke("init", *arguments).output


def files_of(folder: str) -> list[list[Path]]:
    """The files of each part of a recipe."""
    data = load_recipe(folder).data
    corpora = [*data.train, data.valid, data.test]
    return [[file.path.resolve() for file in media_files(corpus, data)] for corpus in corpora if corpus]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "arguments",
    [["pictures"], ["parts"], ["clips"], ["clips.csv"], ["motions", "--task", "video_classification"]],
    ids=" ".join,
)
def test_a_proposed_recipe_trains_evaluates_and_answers(arguments: list[str], here: Path) -> None:
    told = run(*arguments, "--out", "mine")
    commands = [line.split()[1:] for line in told.splitlines() if line.startswith("  heedful ")]
    assert [command[0] for command in commands] == ["train", "evaluate", "predict"]
    few = [
        "train.max_updates=3",
        "train.save_every=3",
        "train.threads=1",
        "train.precision=float32",
        "train.device=cpu",
    ]
    assert invoke(*commands[0], *(word for key in few for word in ("--set", key))).exit_code == 0
    assert "accuracy" in invoke(*commands[1]).output
    file, answer = invoke(*commands[2]).stdout.strip().split("\t")
    assert Path(file).is_file()
    assert answer in load_recipe("mine").data.labels


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of images and one of audio files, each with texts that are all different."""
    monkeypatch.chdir(tmp_path)
    for task, name in (("captioning", "pictures"), ("speech_recognition", "sounds")):
        rows = map(json.loads, write_table(task, tmp_path / name).joinpath("train.jsonl").read_text().splitlines())
        texts = [(row["file"], f"{row['text']} and number {number}") for number, row in enumerate(rows)]
        Path(name, "all.csv").write_text("file,caption\n" + "".join(f"{file},{text}\n" for file, text in texts))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "verb", "score"), [("pictures", "caption", "exact_match"), ("sounds", "transcribe", "wer")]
)
def test_a_proposed_recipe_for_texts_trains_evaluates_and_writes(
    name: str, verb: str, score: str, described: Path
) -> None:
    told = run(f"{name}/all.csv", "--out", "mine")
    assert f"{NOUNS[name]}: file in 'file', text in 'caption'" in told
    commands = [line.split()[1:] for line in told.splitlines() if line.startswith("  heedful ")]
    assert [command[0] for command in commands] == ["train", "evaluate", verb]
    few = ["max_updates=3", "save_every=3", "threads=1", "precision=float32", "device=cpu"]
    assert invoke(*commands[0], *(word for key in few for word in ("--set", f"train.{key}"))).exit_code == 0
    assert score in invoke(*commands[1]).output
    assert invoke(*commands[2]).exit_code == 0


def test_the_task_decides_between_texts_and_classes(described: Path) -> None:
    run("pictures/all.csv", "--out", "texts")
    recipe = load_recipe("texts")
    assert (recipe.task, recipe.data.train[0].target_field) == ("captioning", "caption")
    assert recipe.decode.extra >= max(
        len(file.target.split()) for file in media_files(recipe.data.train[0], recipe.data)
    )
    run("pictures/all.csv", "--out", "classes", "--task", "image_classification")
    assert load_recipe("classes").task == "image_classification"
    with pytest.raises(InputError, match=r"--task speech_recognition: pictures/all\.csv contains images"):
        run("pictures/all.csv", "--task", "speech_recognition")


def test_what_is_seen_in_a_folder_is_told(here: Path) -> None:
    shutil.copy("pictures/left/00.png", "pictures/left/copy.png")
    Path("pictures/left/bad.png").write_bytes(b"x")
    told = run("pictures")
    assert "\n41 images: one folder per class\n  in colour, 15 x 23 pixels (height x width)\n" in told
    assert "  2 classes: left (21), right (20)\n" in told
    assert "  copies of earlier files (same bytes, pixels or samples): 1\n" in told
    assert "  1 file cannot be read; the first: pictures/left/bad.png: not an image" in told
    assert "    they are left out of all parts\n" in told
    assert "  shuffled, because nothing says which files belong together" in told
    recipe = load_recipe("pictures-image-classification")
    assert (recipe.name, recipe.image.size, recipe.data.bad_files) == (
        "pictures-image-classification",
        (16, 24),
        "skip",
    )


def test_videos_are_told_from_pictures_by_the_task(here: Path) -> None:
    told = run("motions")
    assert "\n22 images: one folder per class\n" in told
    assert told.splitlines()[0].endswith("if this is wrong, run: heedful init motions --task video_classification")
    assert (
        "  22 files ending in .gif or .apng: only the first frame is read; for videos, add --task video_class" in told
    )
    assert load_recipe("motions-image-classification").task == "image_classification"
    told = run("motions", "--task", "video_classification")
    assert "\n22 videos: one folder per class\n  grey, 14 x 21 pixels (height x width)\n  frames: few" in told
    recipe = load_recipe("motions-video-classification")
    assert (recipe.task, recipe.data.labels, recipe.image.size) == ("video_classification", ("left", "right"), (16, 24))
    paths = [f"motions/{label}/{number:02}.gif" for label in DIRECTIONS for number in range(11)]
    Path("motions.csv").write_text("file,way\n" + "".join(f"{path},{path.split('/')[1]}\n" for path in paths))
    assert "\n22 videos: file in 'file'" in run("motions.csv", "--task", "video_classification", "--out", "named")
    with pytest.raises(InputError, match=r"--task video_classification: clips\.csv contains no video files"):
        run("clips.csv", "--task", "video_classification")


@pytest.mark.parametrize("name", ["pictures", "parts"])
def test_parts_of_a_folder_share_nothing_and_leave_nothing_out(name: str, here: Path) -> None:
    run(name, "--out", "mine")
    parts = files_of("mine")
    found = [path for part in parts for path in part]
    assert sorted(found) == sorted(Path(name).resolve().rglob("*.png"))
    assert all(len({path.parent.name for path in part}) > 1 for part in parts)


@pytest.mark.parametrize("name", ["clips.csv", "clips.tsv", "clips.jsonl"])
def test_a_file_of_a_table_is_in_one_part_with_its_copies(name: str, here: Path) -> None:
    shutil.copy("clips/low/00.wav", "clips/low/16.wav")
    told = run(name, "--out", "deep/mine")
    assert f"\n34 audio files: file in {load_recipe('deep/mine').data.train[0].source_field!r}, class in " in told
    train, valid, test = files_of("deep/mine")
    found = [*train, *valid, *test]
    assert len(set(found)) == len(found) >= 33
    assert set(found) <= set(Path("clips").resolve().rglob("*.wav"))
    contents = [{path.read_bytes() for path in part} for part in (train, valid, test)]
    assert not contents[0] & contents[1] | contents[0] & contents[2] | contents[1] & contents[2]
    assert min(len(valid), len(test)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["pictures", "--task", "audio_classification"],
            "--task audio_classification: pictures contains images; leave --task out, or use",
        ),
        (["empty", "--task", "image_classification"], "empty: contains no files to train on"),
        (["pictures", "--source-field", "x"], "pictures: a folder has no columns"),
        (["pictures", "--source-language", "de"], "--source-language is for translations"),
        (["clips.csv", "--target-field", "x"], "no column of classes or texts is named 'x'"),
        (["one"], "one/left: contains 20 images, but nothing shows their classes or texts"),
        (
            ["whole"],
            "all files have the class 'left'; if a table in this folder has the classes, give the table, as in: "
            "heedful init ",
        ),
        (["flat"], "flat: contains 20 images, but nothing shows their classes or texts"),
        (
            ["lost.csv"],
            "the first error: lost.csv, line 2: nowhere/0.wav: no such file",
        ),
        (["taken"], "config.toml already exists and was not overwritten"),
    ],
)
def test_what_cannot_become_a_recipe_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, here: Path
) -> None:
    Path("empty").mkdir()
    shutil.copytree("pictures/left", "one/left")
    shutil.copytree("one", "whole")
    Path("whole/classes.csv").write_text("file,label\n")
    shutil.copytree("pictures/left", "flat")
    Path("lost.csv").write_text("file,label\n" + "".join(f"nowhere/{n}.wav,{'ab'[n % 2]}\n" for n in range(17)))
    shutil.copytree("pictures", "taken")
    Path("taken-image-classification").mkdir()
    Path("taken-image-classification/config.toml").touch()
    before = sorted(here.rglob("*"))
    with pytest.raises(InputError, match=message):
        run(*arguments)
    assert sorted(here.rglob("*")) == before


KINDS = NOUNS


def write_loose(kind: str, folder: Path, names: list[str]) -> list[str]:
    """Write files of one kind into a folder without folders; return their names."""
    write, label, ending = (write_pictures, SIDES[0], ".png") if kind == "pictures" else (write_sounds, "low", ".wav")
    write(folder, label, len(names))
    for file, name in zip(sorted(folder.glob(f"*{ending}")), names, strict=True):
        file.rename(folder / f"{name}{ending}")
    return [f"{name}{ending}" for name in names]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("names", "suggestion"),
    [
        ([f"rec-{n}" for n in range(9)], r"nor a table\. Put"),
        ([f"{('dog', 'cat')[n % 2]}{n}" for n in range(8)], r"begin with cat, dog: .* such as mine/cat/cat1"),
        ([f"{n % 3}_anna_{n}" for n in range(12)], r"begin with 0, 1, 2: .* such as mine/0/0_anna_0"),
    ],
    ids=["no classes", "words", "digits"],
)
def test_loose_files_are_refused_in_one_way_which_names_what_is_missing(
    kind: str, names: list[str], suggestion: str, here: Path
) -> None:
    write_loose(kind, here / "mine", names)
    with pytest.raises(
        InputError, match=f"mine: contains {len(names)} {NOUNS[kind]}, but nothing shows .*{suggestion}"
    ) as error:
        run("mine")
    assert "folder for each class, taken" not in str(error.value)
    assert not [path for path in here.iterdir() if path.name.startswith("mine-")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["", "files/"])
def test_a_table_in_the_folder_names_loose_files(kind: str, place: str, here: Path) -> None:
    names = write_loose(kind, here / "mine" / place, [f"rec{n}" for n in range(16)])
    rows = [f"{place}{name},a text of number {number}\n" for number, name in enumerate(names)]
    Path("mine/metadata.csv").write_text("".join(["file_name,text\n", *rows]))
    assert run("mine", "--out", "out").startswith(f"mine/metadata.csv: table of {NOUNS[kind]}, interpreted as ")
    shutil.copy("mine/metadata.csv", "mine/other.csv")
    with pytest.raises(InputError, match=r"2 tables list .* heedful init mine/metadata.csv or heedful init mine/other"):
        run("mine")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["one", "blank", "tab"])
def test_transcripts_next_to_loose_files_are_named(kind: str, layout: str, here: Path) -> None:
    names = [f"rec{n}" for n in range(6)]
    write_loose(kind, here / "mine", names)
    lines = [f"{name}{chr(9) if layout == 'tab' else ' '}a text\n" for name in names]
    files = dict.fromkeys(names, "a text\n") if layout == "one" else {"said": "".join(lines)}
    for name, text in files.items():
        Path("mine", f"{name}.txt").write_text(text)
    first = "rec0.txt etc." if layout == "one" else "said.txt"
    with pytest.raises(InputError, match=f"contains 6 {NOUNS[kind]}, apparently with their texts in {first}; list"):
        run("mine")


def test_files_next_to_the_folders_of_classes_are_counted(here: Path) -> None:
    shutil.copy("pictures/left/00.png", "pictures/00.png")
    assert "not used: '1 image outside these folders'" in run("pictures", "--out", "out")


def test_texts_are_still_texts_beside_some_pictures(here: Path) -> None:
    write_pictures(here / "book/figures", "left", 1)
    for number in range(3):
        Path(f"book/{number}.txt").write_text("A long enough text of a book. " * 200)
    run("book")
    assert load_recipe("book-language-model").task == "language_model"


def test_a_class_of_few_files_is_in_each_part(here: Path) -> None:
    shutil.copytree("pictures/left", "few/left")
    write_pictures(here / "few/right", "right", 3)
    run("few", "--out", "mine")
    assert [sorted({path.parent.name for path in part}) for part in files_of("mine")] == [["left", "right"]] * 3


def test_folders_without_classes_are_not_classes(here: Path) -> None:
    shutil.copytree("pictures", "pets/train")
    shutil.copytree("pictures/left", "pets/unlabelled")
    shutil.copytree("pictures", "pets/test")
    shutil.copytree("pictures/left", "pets/test/unsup")
    told = run("pets", "--out", "mine")
    told_data = "in train, test, interpreted as image classification data (confidence: certain)"
    assert f"{told_data}; not used: 'unlabelled', 'test/unsup'; " in told
    assert told.splitlines()[0].endswith("heedful init pets/train")
    assert load_recipe("mine").data.labels == ("left", "right")
    train, valid, test = files_of("mine")
    assert (len(train) + len(valid), len(test)) == (40, 40)
    assert not any("unsup" in path.parts for path in test)
    shutil.copytree("pictures/left", "pictures/unlabelled")
    assert "2 classes: " in run("pictures", "--out", "flat")
    assert sum(map(len, files_of("flat"))) == 40


@pytest.mark.parametrize("odd", [False, True], ids=["", "and a file without a speaker"])
@pytest.mark.parametrize("layout", ["names", "folders", "column"])
def test_the_files_of_a_speaker_are_in_one_part_and_that_is_said(here: Path, layout: str, odd: bool) -> None:
    lines = ["file,label,speaker"]
    for number, pitch in ((number, pitch) for number in range(24) for pitch in PITCHES):
        speaker = ("ann", "ben", "cem", "dee")[number % 4]
        name = {
            "names": f"{pitch}_{speaker}_{number}.wav",
            "folders": f"{speaker}/{number}.wav",
            "column": f"{number}.wav",
        }
        file = Path("said", pitch, name[layout])
        file.parent.mkdir(parents=True, exist_ok=True)
        content = bytearray(Path(f"clips/{pitch}/{number % 17:02}.wav").read_bytes())
        content[-2] = number  # of the last sample, so that no two audio files are equal
        file.write_bytes(content)
        lines.append(f"{file},{pitch},{speaker}")
    if odd and layout != "column":  # as a phone names it
        shutil.copy(f"clips/{min(PITCHES)}/00.wav", f"said/{min(PITCHES)}/memo.wav")
    Path("said.csv").write_text("\n".join(lines) + "\n")
    told = run("said.csv" if layout == "column" else "said", "--out", "mine")
    assert re.search(
        r"  split by the (speaker|folder) .* \(4, such as 'ann'(, and 1 file without one)?\); none is in", told
    )
    speaker = {line.split(",")[0]: line.split(",")[2] for line in lines}
    names = [[path.relative_to(here).as_posix() for path in part if path.stem != "memo"] for part in files_of("mine")]
    parts = [{speaker[name] for name in part} for part in names]
    assert sorted(name for part in parts for name in part) == ["ann", "ben", "cem", "dee"]
    assert all(parts)


def test_classes_that_look_alike_and_folders_of_other_kinds_are_told(here: Path) -> None:
    shutil.copytree("pictures/left", "mixed/cat")
    shutil.copytree("pictures/right", "mixed/CAT")
    shutil.copytree("clips/low", "mixed/bird")
    told = run("mixed", "--out", "mine")
    assert "not used: 'bird (17 files of another kind)'" in told.splitlines()[0]
    assert "differ only in capitals, spaces or number format: 'CAT', 'cat'" in told
    assert load_recipe("mine").data.labels == ("CAT", "cat")


def test_few_different_texts_are_said_with_the_other_reading(here: Path) -> None:
    rows = [
        f"pictures/{side}/{n:02}.png,{text}"
        for n in range(20)
        for side, text in (("left", "a dog runs"), ("right", "a cat"))
    ]
    Path("told.csv").write_text("\n".join(["image,caption", *rows]) + "\n")
    first = run("told.csv", "--out", "mine").splitlines()[0]
    assert "interpreted as image captioning data (confidence: likely)" in first
    assert first.endswith(
        "heedful init told.csv --task image_classification --source-field image --target-field caption"
    )
    spoken = [f"clips/{pitch}/{n:02}.wav,{pitch}" for n in range(17) for pitch in PITCHES]
    Path("spoken.csv").write_text("\n".join(["audio,text", *spoken]) + "\n")
    with pytest.raises(
        InputError, match=r"unclear(?s:.*)--task speech_recognition (?s:.*)--task audio_classification "
    ):
        run("spoken.csv")
