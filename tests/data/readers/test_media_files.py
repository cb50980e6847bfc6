"""Files and their classes: of folders and of tables, in an order that is always the same; and what is refused."""

import gzip
import json
import os
from pathlib import Path

import pytest

from heedful.config.schema import CorpusConfig, DataConfig
from heedful.data.readers.drop_report import DropReport
from heedful.data.readers.media_files import (
    MediaFile,
    files_below,
    media_files,
    media_labels,
    other_files,
    read_content,
)
from heedful.errors import InputError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return folder


def settings(folder: Path, modality: str = "image") -> DataConfig:
    return DataConfig(root=str(folder), modality=modality)


def found(folder: Path, modality: str = "image", **corpus: object) -> list[tuple[str, str]]:
    files = media_files(CorpusConfig(**{"source": "all", **corpus}), settings(folder, modality))
    return [(file.path.relative_to(folder).as_posix(), file.target) for file in files]


def test_each_folder_is_a_class_and_files_are_in_the_order_of_classes_and_names(tmp_path):
    touch(tmp_path / "all", "dog/2.png", "cat/b/1.jpg", "cat/a.webp", "dog/10.bmp", "cat/c.png")
    assert found(tmp_path) == [
        ("all/cat/a.webp", "cat"),
        ("all/cat/b/1.jpg", "cat"),
        ("all/cat/c.png", "cat"),
        ("all/dog/10.bmp", "dog"),
        ("all/dog/2.png", "dog"),
    ]


def test_a_class_whose_name_is_no_text_is_told(tmp_path):
    (touch(tmp_path / "all", "cat/a.png", "cafe/b.png") / "cafe").rename(tmp_path / "all" / os.fsdecode(b"caf\xe9"))
    with pytest.raises(InputError, match=r"'caf.udce9' is a class, but its name has bytes that are not UTF-8"):
        found(tmp_path)


def test_classes_that_are_numbers_are_in_the_order_of_numbers(tmp_path):
    touch(tmp_path / "all", "10/a.png", "2/a.png", "1/a.png")
    assert [label for _, label in found(tmp_path)] == ["1", "2", "10"]
    data = DataConfig(root=str(tmp_path), modality="image", train=(CorpusConfig(source="all"),))
    assert media_labels(data) == ("1", "2", "10")


def test_hidden_files_other_files_and_files_beside_the_classes_are_left_out(tmp_path):
    hidden = [".DS_Store", "cat/._a.png", "cat/.checkpoints/a.png", ".git/a.png", "__MACOSX/cat/._a.png"]
    touch(tmp_path / "all", *hidden, "cat/a.png", "cat/notes.txt", "cat/a.wav", "cat/png", "readme.png")
    (tmp_path / "all/cat/folder.png").mkdir()
    assert found(tmp_path) == [("all/cat/a.png", "cat")]
    assert found(tmp_path, "audio") == [("all/cat/a.wav", "cat")]


def test_a_hidden_folder_above_is_nobody_s_business(tmp_path):
    touch(tmp_path / ".cache/all", "cat/a.png")
    assert found(tmp_path / ".cache") == [("all/cat/a.png", "cat")]


def test_endings_may_be_in_capitals(tmp_path):
    touch(tmp_path / "all", "cat/IMG_1.JPG", "cat/IMG_2.Png", "cat/A.WAV")
    assert found(tmp_path) == [("all/cat/IMG_1.JPG", "cat"), ("all/cat/IMG_2.Png", "cat")]
    assert found(tmp_path, "audio") == [("all/cat/A.WAV", "cat")]


def test_parts_that_meet_share_nothing_and_leave_nothing_out_in_any_class(tmp_path):
    touch(tmp_path / "all", *(f"cat/{i:02}.png" for i in range(13)), *(f"dog/{i:02}.png" for i in range(7)))
    parts = [found(tmp_path, part=part) for part in ((0.0, 0.6), (0.6, 0.8), (0.8, 1.0))]
    assert [[label for _, label in part].count("cat") for part in parts] == [7, 3, 3]
    assert [[label for _, label in part].count("dog") for part in parts] == [4, 1, 2]
    assert sorted(file for part in parts for file in part) == sorted(found(tmp_path))


def test_a_part_without_a_file_of_some_class_is_refused_with_the_class(tmp_path):
    touch(tmp_path / "all", *(f"cat/{i}.png" for i in range(13)), "dog/1.png")
    with pytest.raises(InputError, match=r"all: part \(0.0, 0.9\) contains none of its 1 files of the class 'dog'"):
        found(tmp_path, part=(0.0, 0.9))


ROWS = [("pictures/a.png", " cat "), ("../all/b.png", "dog"), ("c c.png", "cat")]
TABLES = {
    "list.tsv": "".join(f"{file}\t{label}\n" for file, label in [("source", "target"), *ROWS]),
    "list.csv": "".join(f'"{file}",{label}\n' for file, label in [("source", "target"), *ROWS]),
    "list.jsonl": "".join(f"{json.dumps({'source': file, 'target': label})}\n" for file, label in ROWS),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_names_files_beside_it_and_their_classes_in_its_order(name, packed, tmp_path):
    (tmp_path / "all").mkdir()
    content = TABLES[name].encode()
    path = tmp_path / "all" / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    corpus = CorpusConfig(source=f"all/{path.name}")
    files = list(media_files(corpus, settings(tmp_path)))
    first = 1 if name.endswith("jsonl") else 2
    assert files == [
        MediaFile(tmp_path / "all/pictures/a.png", "cat", first),
        MediaFile(tmp_path / "all/../all/b.png", "dog", first + 1),
        MediaFile(tmp_path / "all/c c.png", "cat", first + 2),
    ]
    assert files[1].place(corpus) == f"all/{path.name}, line {first + 1}: {files[1].path}"


def test_columns_of_a_table_may_have_other_names_and_part_is_of_its_rows(tmp_path):
    (tmp_path / "clips.tsv").write_text("id\tpath\tsentence\n" + "".join(f"{i}\t{i}.mp3\tx{i}\n" for i in range(11)))
    fields = {"source": "clips.tsv", "source_field": "path", "target_field": "sentence"}
    assert found(tmp_path, "audio", **fields, part=(0.5, 0.7)) == [("5.mp3", "x5"), ("6.mp3", "x6")]


def test_rows_without_a_class_are_left_out_with_a_count(tmp_path):
    (tmp_path / "list.tsv").write_text("source\ttarget\na.png\tcat\nb.png\t \nc.png\tdog\n")
    drops = DropReport()
    data = DataConfig(root=str(tmp_path), modality="image")
    files = media_files(CorpusConfig(source="list.tsv"), data, drops)
    assert [(file.path.name, file.target) for file in files] == [("a.png", "cat"), ("c.png", "dog")]
    assert drops.rows() == [("empty label", 1, "list.tsv, line 3")]


def test_an_absolute_name_in_a_table_is_taken_as_it_is(tmp_path):
    (tmp_path / "list.tsv").write_text(f"source\ttarget\n{tmp_path}/elsewhere/a.png\tcat\n")
    assert found(tmp_path, source="list.tsv") == [("elsewhere/a.png", "cat")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("list.tsv", "source\ttarget\na.png\n", r"list.tsv, line 2: .*"),
        ("list.jsonl", '{"source": "a.png"}\n', r"list.jsonl, line 1: .*target"),
        ("list.zip", "", r"list.zip: images come from a folder .* or from one table \(.tsv, .csv, .jsonl, .txt\)"),
        (
            "all/cat.png",
            "",
            r"all: contains no folders with images \(.png, .jpg.*\); put the images of each class into",
        ),
        ("all/cat/a.wav", "", r"all: contains no folders with images"),
        ("other", "", r"all: no such folder or table; correct the name, or give --data FOLDER"),
    ],
)
def test_what_is_no_folder_of_classes_and_no_table_is_refused(name, content, message, tmp_path):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        found(tmp_path, source=name if name.startswith("list") else "all")


def test_two_files_line_by_line_are_refused(tmp_path):
    touch(tmp_path, "list.tsv", "labels.tsv")
    with pytest.raises(InputError, match="images come from a folder with a subfolder for each class"):
        found(tmp_path, source="list.tsv", target="labels.tsv")


def test_files_below_a_folder_are_those_of_all_folders_in_it(tmp_path):
    touch(tmp_path, "b.png", "a/c.gif", "a/d/e.PNG", "a/.f.png", "g.txt")
    names = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path, settings(tmp_path))]
    assert names == ["a/c.gif", "a/d/e.PNG", "b.png"]


def test_the_bytes_of_a_file_are_read_or_its_place_is_told(tmp_path):
    touch(tmp_path, "a.png")
    corpus = CorpusConfig(source="list.tsv")
    assert read_content(MediaFile(tmp_path / "a.png", "cat", 3), corpus) == b"a.png"
    with pytest.raises(InputError, match=r"list.tsv, line 7: .*b.png: no such file"):
        read_content(MediaFile(tmp_path / "b.png", "cat", 7), corpus)
    (tmp_path / "c.png").touch()
    with pytest.raises(InputError, match=r"^/.*c.png: the file is empty; remove it, or save it again"):
        read_content(MediaFile(tmp_path / "c.png", "cat", None), corpus)


def with_train(folder: Path, *sources: str) -> DataConfig:
    corpora = tuple(CorpusConfig(source=source) for source in sources)
    return DataConfig(root=str(folder), modality="image", train=corpora)


def test_classes_are_those_of_all_training_files_unless_they_are_named(tmp_path):
    touch(tmp_path, "one/cat/a.png", "one/empty/a.txt", "two/dog/a.png", "two/cat/a.png")
    assert media_labels(with_train(tmp_path, "one", "two")) == ("cat", "dog")
    named = DataConfig(labels=("x", "y"), modality="image")
    assert media_labels(named) == ("x", "y")


def test_one_class_or_more_than_a_thousand_are_refused(tmp_path):
    touch(tmp_path / "one", "cat/a.png")
    with pytest.raises(InputError, match=r"one: classification needs at least two classes, not \['cat'\]"):
        media_labels(with_train(tmp_path, "one"))
    rows = "".join(f"{number}.png\tname {number}\n" for number in range(1001))
    (tmp_path / "list.tsv").write_text("source\ttarget\n" + rows)
    with pytest.raises(InputError, match=r"list.tsv, line 1002: .*1000.png: more than 1,000 distinct labels"):
        media_labels(with_train(tmp_path, "list.tsv"))


@pytest.mark.parametrize(
    ("modality", "own"), [("image", ["a.png", "b.heic"]), ("audio", ["a.WAV", "b.m4a"]), ("video", ["a.mov"])]
)
def test_files_of_other_kinds_are_counted_by_kind(modality, own, tmp_path):
    (tmp_path / "below").mkdir()
    for name in own:
        (tmp_path / "below" / name).write_bytes(b"x")
    assert other_files(tmp_path, modality) == ""
    for name in ("a.svg", "b.SVG", "below/c.pdf", "README", ".hidden.psd"):
        (tmp_path / name).write_bytes(b"x")
    said = f"{tmp_path}: 4 files of other kinds are left out: 2 .svg, "
    assert other_files(tmp_path, modality).startswith(said)
    kinds = other_files(tmp_path, modality).removeprefix(said).split(", ")
    assert sorted(kinds) == ["1 .pdf", "1 without an extension"]
