"""The corpus of shapes as a whole: parts that share no caption, and tables that name what they are about."""

import hashlib
import json
import os
import subprocess
import sys

from heedful.corpora.shapes import caption, scene, split
from heedful.corpora.shapes.captions import boxes
from heedful.corpora.shapes.corpus import corpus_files


def captions(scenes):
    return [caption("en", one).text for one in scenes]


def test_a_scene_depends_on_its_number_alone():
    assert scene(3, 11) == scene(3, 11)
    assert scene(3, 11) != scene(4, 11)
    assert scene(3, 11) != scene(3, 12)


def test_another_process_with_another_hash_seed_draws_the_same():
    code = (
        "from heedful.corpora.shapes import scene, caption; print([(s.objects[0].box, caption('zh', s)) for s in {}])"
    )
    drawn = [scene(17, index) for index in range(53)]
    there = subprocess.run(
        [sys.executable, "-c", code.format("[scene(17, index) for index in range(53)]")],
        env={**os.environ, "PYTHONHASHSEED": "31", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    )
    assert there.stdout.decode().rstrip("\r\n") == str([(one.objects[0].box, caption("zh", one)) for one in drawn])


def test_parts_have_the_sizes_asked_for_and_share_no_caption():
    parts = split(train=2003, valid=37, test=41, seed=1)
    assert {part: len(scenes) for part, scenes in parts.items()} == {"train": 2003, "valid": 37, "test": 41}
    assert len(set(captions([one for scenes in parts.values() for one in scenes]))) == 2081


def test_what_one_corpus_trains_on_no_other_corpus_holds_out():
    """Captions of one object are drawn with every seed, so that chance alone would not keep the parts apart."""
    trained = set(captions(split(train=2003, valid=0, test=0, seed=1)["train"]))
    other = split(train=503, valid=101, test=101, seed=2)
    assert trained & set(captions(other["train"]))
    assert not trained & set(captions([*other["valid"], *other["test"]]))


def test_a_larger_corpus_begins_with_the_smaller_one():
    small, large = split(train=53, valid=3, test=5, seed=7), split(train=211, valid=13, test=5, seed=7)
    assert all(large[part][: len(small[part])] == small[part] for part in small)


def test_each_scene_that_is_added_is_counted():
    counts = []
    split(train=23, valid=3, test=5, seed=1, done=counts.append)
    assert sum(counts) == 31


def test_a_table_has_a_row_for_each_picture_with_captions_and_boxes():
    parts = split(train=17, valid=3, test=2, seed=1)
    files = corpus_files(parts)
    assert len(files) == 22 + 3
    rows = [json.loads(line) for line in files["train.jsonl"]().decode().splitlines()]
    assert [row["picture"] for row in rows] == [f"pictures/train-{number:06}.png" for number in range(1, 18)]
    for row, one in zip(rows, parts["train"], strict=True):
        assert list(row) == ["picture", "en", "de", "zh", "boxes"]
        for language in ("en", "de", "zh"):
            told = caption(language, one)
            assert row[language] == told.text
            assert row["boxes"][language] == boxes(told, one)


def test_a_table_comes_after_all_that_it_names():
    names = list(corpus_files(split(train=5, valid=3, test=2, seed=1), lambda _: b"sound"))
    for part in ("train", "valid", "test"):
        own = [name for name in names if part in name]
        assert own[-1] == f"{part}.jsonl"
        assert len(own) == 2 * {"train": 5, "valid": 3, "test": 2}[part] + 1


def test_a_spoken_corpus_names_its_sounds():
    files = corpus_files(split(train=5, valid=3, test=2, seed=1), lambda one: captions([one])[0].encode())
    row = json.loads(files["test.jsonl"]().splitlines()[1])
    assert row["sound"] == "sounds/test-000002.wav"
    assert files[row["sound"]]().decode() == row["en"]


def test_the_tables_of_a_seed_never_change():
    """A change of the layout or the captions changes every corpus: it should be meant."""
    table = corpus_files(split(train=101, valid=1, test=1, seed=2))["train.jsonl"]()
    assert hashlib.sha256(table).hexdigest() == "6fea9bf9eca085f485918376dd649548f6190fc0210f627fcc6eea822c3f10c4"
