"""The plan of a job: what is in it, and what does not fit it any more."""

import re

import pytest
from shouting import LINES, SETTINGS, open_shouting, write_input

from heedful.errors import InputError
from heedful.jobs import WINDOW, open_job
from heedful.jobs.plan import make_plan, plan_text, read_plan


def test_a_plan_is_read_as_it_was_written(tmp_path):
    counted = []
    plan = make_plan(write_input(tmp_path), SETTINGS, WINDOW, counted.append)
    (tmp_path / "plan.json").write_bytes(plan_text(plan))
    assert read_plan(tmp_path / "plan.json") == plan
    assert [shard.lines for shard in plan.files["long.txt"].shards] == [WINDOW, WINDOW, 313]
    assert plan.lines == sum(counted) == sum(map(len, LINES.values()))


@pytest.mark.parametrize("byte", [0, 40, -3])
def test_a_damaged_plan_is_refused(tmp_path, byte):
    write_input(tmp_path)
    open_shouting(tmp_path)
    file = tmp_path / "out" / ".job" / "plan.json"
    data = bytearray(file.read_bytes())
    data[byte] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"plan\.json: damaged"):
        open_shouting(tmp_path)


@pytest.mark.parametrize("size", [0, -WINDOW, WINDOW + 1])
def test_a_shard_is_a_number_of_windows(tmp_path, size):
    write_input(tmp_path)
    with pytest.raises(InputError, match=r"must be a multiple of 1,024"):
        open_shouting(tmp_path, size)
    assert not (tmp_path / "out").exists()


def test_other_settings_are_refused_by_name(tmp_path):
    source = write_input(tmp_path)
    open_shouting(tmp_path)
    with pytest.raises(InputError, match="out: the job was started with another model; give the same"):
        open_job(source, tmp_path / "out", SETTINGS | {"model": "other"}, WINDOW)
    for key, value in {"beam": 4, "alpha": 0.6000001, "new": True}.items():
        with pytest.raises(
            InputError, match=re.escape(f"{key} = {SETTINGS.get(key)}, but this command has {key} = {value}")
        ):
            open_job(source, tmp_path / "out", SETTINGS | {key: value}, WINDOW)
    with pytest.raises(InputError, match="shard_lines = 1024, but this command has shard_lines = 2048"):
        open_shouting(tmp_path, 2 * WINDOW)


def test_input_that_has_another_size_or_name_is_refused(tmp_path):
    source = write_input(tmp_path)
    open_shouting(tmp_path)
    (source / "more.txt").write_text("x\n")
    with pytest.raises(InputError, match=r"more\.txt: is new, so the input has changed"):
        open_shouting(tmp_path)
    (source / "more.txt").unlink()
    (source / "empty.txt").write_text("x\n")
    with pytest.raises(InputError, match=r"empty\.txt: has 2 bytes instead of 0"):
        open_shouting(tmp_path)
    (source / "empty.txt").unlink()
    with pytest.raises(InputError, match=r"empty\.txt: is missing"):
        open_shouting(tmp_path)


def test_folders_that_cannot_be_used_are_refused_before_anything_is_made(tmp_path):
    source = write_input(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    for output, message in {
        source: "is the input folder",
        source / "out": "is in the input folder",
        tmp_path / "full": "contains other files",
        tmp_path / "full" / "letter.txt": "is a file, but the input is a folder; give a new folder",
        tmp_path / "no" / "where": "does not exist; create it",
    }.items():
        with pytest.raises(InputError, match=message):
            open_job(source, output, SETTINGS, WINDOW)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
        ["in", "full", "letter.txt", ".hidden", "long.txt", "windows.txt", "packed.txt.gz", "empty.txt"]
    )


def test_input_that_no_job_can_be_made_of_is_refused(tmp_path):
    source = tmp_path / "in"
    with pytest.raises(InputError, match="no such folder"):
        open_shouting(tmp_path)
    source.mkdir()
    with pytest.raises(InputError, match="contains no files"):
        open_shouting(tmp_path)
    (source / "a.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match=r"a\.txt, line 2, byte 1: 0xFF is not valid UTF-8"):
        open_shouting(tmp_path)
    (source / "a.txt.gz").write_bytes(b"")
    with pytest.raises(InputError, match="their results would have the same name"):
        open_shouting(tmp_path)
    (source / "a.txt.gz").unlink()
    (source / "below").mkdir()
    with pytest.raises(InputError, match="below: not a file"):
        open_shouting(tmp_path)
    assert not (tmp_path / "out").exists()
