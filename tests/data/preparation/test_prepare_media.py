"""Pictures and audio files are read once: a bad file is named or skipped, and nothing old is taken for new."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.config.schema import Recipe
from heedful.data.preparation.media import prepare_media, read_files
from heedful.data.preparation.prepared_data import PreparedData
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.media_files import MediaFile
from heedful.data.stores import MediaStore
from heedful.errors import InputError
from heedful.text.tokenizer_pair import NoTokenizers
from toy_media import SIDES, recipe, write_files, write_sounds

TASK = "image_classification"


@pytest.fixture
def files(tmp_path):
    return write_files(TASK, tmp_path / "files")


def prepared(settings: Recipe, said: list[str] | None = None) -> PreparedData[MediaStore]:
    folder = Path(settings.data.root).parent / "data"
    labels = settings.data.labels or SIDES

    def target(file: MediaFile, *_: object) -> list[int]:
        return [labels.index(file.target)]

    return prepare_media(
        settings,
        folder,
        target,
        NoTokenizers,
        lambda _: NoTokenizers(),
        [].append if said is None else said.append,
    )


def test_every_file_is_stored_as_it_is_with_its_target(files):
    data = prepared(recipe(TASK, files))
    assert [len(store) for store in (*data.train, data.valid)] == [33, 15]
    paths = sorted(files.glob("train/*/*.png"))
    assert [data.train[0].content(index) for index in range(33)] == [path.read_bytes() for path in paths]
    targets = [int(data.train[0].target(index)[0]) for index in range(33)]
    assert targets == [SIDES.index(path.parent.name) for path in paths]
    assert data.train[0].lengths.tolist() == [[7, 1]] * 33


def test_each_corpus_has_a_store_and_a_weight(files):
    corpora = [{"source": "train", "weight": 2.0}, {"source": "valid"}]
    data = prepared(recipe(TASK, files, data={"train": corpora}))
    assert [len(store) for store in data.train] == [33, 15]
    assert data.weights == (2.0, 1.0)


@pytest.mark.parametrize("part", ["train", "valid"])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"no picture", "not an image"), (None, "no such file")],
)
def test_a_file_that_cannot_be_read_is_named(part, content, message, files):
    bad = files / part / "right/03.png"
    bad.unlink()
    if content is None:
        bad.symlink_to("nowhere")
        rows = "".join(f"{path.relative_to(files)}\tleft\n" for path in sorted(files.glob(f"{part}/*/*.png")))
        (files / "list.tsv").write_text(f"source\ttarget\n{rows}{part}/right/03.png\tleft\n")
        sources = {"train": [{"source": "train"}], "valid": {"source": "valid"}}
        sources[part] = {"train": [{"source": "list.tsv"}], "valid": {"source": "list.tsv"}}[part]
        settings = recipe(TASK, files, data=sources)
        place = r"list.tsv, line \d+: .*03.png"
    else:
        bad.write_bytes(content)
        settings = recipe(TASK, files)
        place = f"{part}/right/03.png"
    with pytest.raises(InputError, match=f"{place}: {message}"):
        prepared(settings)
    assert not (files.parent / "data").exists()


def test_bad_training_files_may_be_skipped_and_are_counted(files):
    (files / "train/left/00.png").write_bytes(b"")
    (files / "train/right/03.png").write_bytes(b"no picture")
    said: list[str] = []
    data = prepared(recipe(TASK, files, data={"bad_files": "skip"}), said)
    assert len(data.train[0]) == 31
    assert data.report.counts == {"bad file": 2}
    first = f"{files}/train/left/00.png: the file is empty; remove it, or save it again"
    assert data.report.examples == {"bad file": first}
    assert f"train: 31 files, 2 dropped: 2 as unreadable (first: {first})" in said
    again: list[str] = []
    assert prepared(recipe(TASK, files, data={"bad_files": "skip"}), again).report == data.report
    assert any("prepared earlier" in line for line in again)


def test_a_file_that_is_named_and_not_there_may_be_skipped(files):
    (files / "list.tsv").write_text(
        "source\ttarget\ntrain/left/00.png\tleft\nnowhere.png\tleft\ntrain/top/00.png\ttop\n"
    )
    changes = {"train": [{"source": "list.tsv"}], "bad_files": "skip"}
    data = prepared(recipe(TASK, files, data=changes))
    assert (len(data.train[0]), data.report.counts) == (2, {"bad file": 1})
    assert "list.tsv, line 3: " in data.report.examples["bad file"]


def test_bad_validation_files_are_never_skipped(files):
    (files / "valid/left/00.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"valid/left/00.png: not an image"):
        prepared(recipe(TASK, files, data={"bad_files": "skip"}))
    alone = recipe(
        TASK, files, data={"bad_files": "skip", "train": [{"source": "valid"}], "valid": {"source": "valid"}}
    )
    with pytest.raises(InputError, match=r"valid/left/00.png: not an image"):
        prepared(alone)


def test_if_all_files_are_skipped_that_is_told(files):
    for path in files.glob("train/*/*.png"):
        path.write_bytes(b"x")
    with pytest.raises(InputError, match=r"train: no files are left \(33 dropped: 33 as unreadable \(first: .*left/00"):
        prepared(recipe(TASK, files, data={"bad_files": "skip"}))


def change_a_picture(files: Path, settings: Recipe) -> Recipe:
    (files / "train/left/00.png").write_bytes((files / "train/right/01.png").read_bytes())
    return settings


def rename_a_class(files: Path, settings: Recipe) -> Recipe:
    (files / "train/right").rename(files / "train/bottom")
    return replace(settings, data=replace(settings.data, labels=("bottom", "left", "right", "top")))


def give_a_picture_another_class(files: Path, settings: Recipe) -> Recipe:
    (files / "train/left/10.png").rename(files / "train/right/-0.png")  # all bytes stay in their order
    return settings


def take_a_picture_out(files: Path, settings: Recipe) -> Recipe:
    (files / "valid/left/00.png").unlink()
    return settings


def resize(files: Path, settings: Recipe) -> Recipe:
    return replace(settings, image=replace(settings.image, size=(21, 21)))


def name_the_classes(files: Path, settings: Recipe) -> Recipe:
    return replace(settings, data=replace(settings.data, labels=("top", "left", "right")))


def skip(files: Path, settings: Recipe) -> Recipe:
    return replace(settings, data=replace(settings.data, bad_files="skip"))


def take_a_part(files: Path, settings: Recipe) -> Recipe:
    corpus = replace(settings.data.train[0], part=(0.0, 0.9))
    return replace(settings, data=replace(settings.data, train=(corpus,)))


def weigh(files: Path, settings: Recipe) -> Recipe:
    corpus = replace(settings.data.train[0], weight=3.0)
    return replace(settings, data=replace(settings.data, train=(corpus,)))


def rename_a_picture(files: Path, settings: Recipe) -> Recipe:
    (files / "train/left/00.png").rename(files / "train/left/0.png")
    return settings


def move(files: Path, settings: Recipe) -> Recipe:
    shutil.move(files / "valid", files / "validation")
    return replace(settings, data=replace(settings.data, valid=replace(settings.data.valid, source="validation")))


def train_longer(files: Path, settings: Recipe) -> Recipe:
    return replace(settings, train=replace(settings.train, max_updates=1009))


@pytest.mark.parametrize(
    "change",
    [
        change_a_picture,
        rename_a_class,
        give_a_picture_another_class,
        take_a_picture_out,
        resize,
        name_the_classes,
        skip,
        take_a_part,
    ],
)
def test_data_is_prepared_again_if_what_it_depends_on_has_changed(change, files):
    settings = recipe(TASK, files)
    before = prepared(settings)
    said: list[str] = []
    after = prepared(change(files, settings), said)
    assert not any("prepared earlier" in line for line in said)
    contents = [[*map(store.content, range(len(store)))] for store in (*after.train, after.valid)]
    assert len(contents) == len(before.train) + 1


@pytest.mark.parametrize("change", [weigh, rename_a_picture, move, train_longer])
def test_data_is_used_again_if_nothing_has_changed_that_it_depends_on(change, files):
    settings = recipe(TASK, files)
    before = prepared(settings)
    said: list[str] = []
    after = prepared(change(files, settings), said)
    assert any("prepared earlier" in line for line in said)
    assert after.digest == before.digest


def test_a_changed_byte_of_prepared_data_is_noticed_and_mended(files):
    prepared(recipe(TASK, files))
    path = files.parent / "data/train-0/contents.bin"
    content = bytearray(path.read_bytes())
    content[1009] ^= 1
    path.write_bytes(content)
    said: list[str] = []
    prepared(recipe(TASK, files), said)
    assert any("preparing the data again" in line for line in said)
    assert path.read_bytes() != bytes(content)


def test_no_training_data_is_told_before_anything_is_read(files):
    with pytest.raises(InputError, match=r"the recipe has no training data; add a \[\[data.train\]\]"):
        prepared(recipe(TASK, files, data={"train": []}))


def test_files_are_read_in_their_order_whatever_the_threads_and_sounds_have_a_length_each(tmp_path):
    write_sounds(tmp_path / "train/high", "high", 71)
    write_sounds(tmp_path / "train/low", "low", 3)
    settings = recipe("audio_classification", tmp_path)
    found = list(read_files(settings.data.train[0], settings, DropReport(), skip=False))
    assert [file.path.name for file, _, _ in found] == [
        *(f"{i:02}.wav" for i in range(71)),
        *(f"0{i}.wav" for i in range(3)),
    ]
    assert all(content == file.path.read_bytes() for file, content, _ in found)
    samples = [(len(content) - 44) // 2 for _, content, _ in found]
    assert [tokens for _, _, tokens in found] == [-(-(count // 20) // 2) for count in samples]


def test_reading_a_few_files_leaves_no_thread_behind(files):
    before = threading.active_count()
    reader = read_files(recipe(TASK, files).data.train[0], recipe(TASK, files), DropReport(), skip=False)
    next(reader)
    reader.close()
    assert threading.active_count() == before
