"""A job over a folder: the same lines in the same places, however it is cut, shared, stopped and disturbed."""

import shutil
from pathlib import Path

import pytest
from shouting import EXPECTED, LINES, open_shouting, results, shout, write_input

from heedful.errors import InputError, RunError
from heedful.jobs import WINDOW, FolderJob, Worker, folder_job
from heedful.progress import silent
from heedful.storage.disk import DISK


def finish(job: FolderJob) -> int:
    """Work on a job to its end; return the number of lines that were counted."""
    progress = silent("shouting", "lines", job.plan.lines)
    Worker(job, progress).run(shout)
    return progress.done


@pytest.mark.parametrize("size", [WINDOW, 3 * WINDOW])
def test_each_line_has_its_result_in_its_place(tmp_path, size):
    write_input(tmp_path)
    assert finish(open_shouting(tmp_path, size)) == sum(map(len, LINES.values()))
    assert results(tmp_path) == EXPECTED
    assert sorted(path.name for path in (tmp_path / "out" / ".job").rglob("*")) == ["parts", "plan.json"]


def test_a_finished_job_is_left_as_it_is(tmp_path):
    write_input(tmp_path)
    finish(open_shouting(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    finish(open_shouting(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_a_stop_at_any_line_loses_at_most_a_shard(tmp_path):
    write_input(tmp_path)
    computed = []

    def stop_after(count):
        def compute(lines, done):
            for line in lines:
                if len(computed) == count:
                    raise KeyboardInterrupt
                computed.append(line)
                yield line.upper()

        return compute

    for count in (0, 500, 1500, 2800, 3300):
        with pytest.raises(KeyboardInterrupt):
            Worker(open_shouting(tmp_path), silent("")).run(stop_after(count))
        assert not list((tmp_path / "out").rglob("*.claim"))
        assert not list((tmp_path / "out").rglob(".tmp-*"))
    finish(open_shouting(tmp_path))
    assert results(tmp_path) == EXPECTED
    assert len(computed) <= 3300


def test_workers_share_the_shards_and_each_counts_all_lines(tmp_path):
    write_input(tmp_path)
    jobs = [open_shouting(tmp_path) for _ in range(2)]
    computed = []
    for first, second in (jobs, jobs[::-1]):
        for shard in first.missing("long.txt")[:1]:

            def compute(lines, done, second=second, shard=shard):
                assert not second.compute(shard, shout)
                computed.append(shard)
                return shout(lines, done)

            assert first.compute(shard, compute)
    assert len(computed) == 2
    assert finish(jobs[0]) == sum(map(len, LINES.values())) - 2 * WINDOW
    assert results(tmp_path) == EXPECTED


def test_a_worker_that_was_too_slow_changes_nothing(tmp_path):
    write_input(tmp_path)
    slow = open_shouting(tmp_path)
    shard = slow.missing("long.txt")[1]

    def compute(lines, done):
        for claim in (tmp_path / "out").rglob("*.claim"):
            claim.unlink()  # as if it had expired
        finish(open_shouting(tmp_path))
        return ["wrong"] * len(list(lines))

    slow.compute(shard, compute)
    finish(slow)
    assert results(tmp_path) == EXPECTED
    assert sorted(path.name for path in (tmp_path / "out" / ".job").rglob("*")) == ["parts", "plan.json"]


@pytest.mark.parametrize("found", [["a"] * 1023, ["a"] * 1025, ["a\nb", *["a"] * 1022]])
def test_results_that_are_not_one_a_line_are_never_written(tmp_path, found):
    write_input(tmp_path)
    job = open_shouting(tmp_path)
    with pytest.raises(RunError, match=r"long\.txt, lines 1 to 1,024: has .* results in"):
        job.compute(job.missing("long.txt")[0], lambda _lines, _done: found)
    assert len(job.missing("long.txt")) == 3


@pytest.mark.parametrize("change", ["text of a shard", "text of a finished shard"])
def test_text_that_changes_while_the_job_runs_is_noticed(tmp_path, change):
    source = write_input(tmp_path)
    job = open_shouting(tmp_path)
    first = job.missing("long.txt")[0]
    job.compute(first, shout)
    text = (source / "long.txt").read_bytes()
    old, new = (b"line 1100\r", b"line 110O\r") if change == "text of a shard" else (b"line 7\r", b"line T\r")
    assert old in text
    (source / "long.txt").write_bytes(text.replace(old, new))
    with pytest.raises(InputError, match=r"long\.txt.*so the input has changed since the job started"):
        finish(open_shouting(tmp_path))
    assert not (tmp_path / "out" / "long.txt").exists()
    (source / "long.txt").write_bytes(text)
    finish(open_shouting(tmp_path))
    assert results(tmp_path) == EXPECTED


@pytest.mark.parametrize("damage", ["bit", "cut", "empty"])
def test_a_damaged_part_is_computed_again(tmp_path, damage, caplog):
    write_input(tmp_path)
    job = open_shouting(tmp_path)
    shard = job.missing("long.txt")[1]
    job.compute(shard, shout)
    [part] = (tmp_path / "out" / ".job" / "parts" / "long.txt").iterdir()
    data = bytearray(part.read_bytes())
    data[500] ^= 1
    part.write_bytes({"bit": bytes(data), "cut": bytes(data[:700]), "empty": b""}[damage])
    finish(open_shouting(tmp_path))
    assert results(tmp_path) == EXPECTED
    assert "long.txt, lines 1,025 to 2,048: its results are damaged" in caplog.text


def test_a_full_disk_is_one_message_and_nothing_is_lost(tmp_path, monkeypatch):
    write_input(tmp_path)
    left = 6

    def flush(path: Path) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")

    job = open_shouting(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(DISK, "flush", flush)
        with pytest.raises(RunError, match=r"No space left on device.*finished results are kept"):
            finish(job)
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name != "plan.json"]
    assert kept
    assert not [path for path in kept if path.name.startswith(".tmp-") or path.name.endswith(".claim")]
    finish(open_shouting(tmp_path))
    assert results(tmp_path) == EXPECTED


def test_of_two_that_begin_at_once_one_makes_the_plan(tmp_path, monkeypatch):
    source = write_input(tmp_path)
    make = folder_job.make_plan

    def late(*arguments):
        plan = make(*arguments)
        monkeypatch.setattr(folder_job, "make_plan", make)
        shutil.copytree(source, tmp_path / "copy")
        open_shouting(tmp_path, 2 * WINDOW)
        return plan

    monkeypatch.setattr(folder_job, "make_plan", late)
    with pytest.raises(InputError, match="shard_lines = 2048, but this command has shard_lines = 1024"):
        open_shouting(tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".job"]
    finish(open_shouting(tmp_path, 2 * WINDOW))
    assert results(tmp_path) == EXPECTED
