import errno
import io
import json
import math
import os
import re
from itertools import chain, repeat

import pytest
from rich.console import Console

from heedful.errors import InputError, RunError
from heedful.progress import ProgressReporter
from heedful.training.logger import LOG, RESULT, RunLogger, logged_scores, read_result, tensorboard


def logger(folder, update=0, terminal=False):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=120)
    return RunLogger(folder, update, 100, None, console), screen


def updates(folder):
    return [json.loads(line)["update"] for line in (folder / LOG).read_text().splitlines()]


def test_a_resumed_journal_forgets_what_came_after(tmp_path):
    with logger(tmp_path)[0] as first:
        for update in (10, 20, 30):
            first.record(update, {"loss": 1.0})
    with logger(tmp_path, 20)[0] as second:
        second.record(30, {"loss": 2.0})
    assert updates(tmp_path) == [10, 20, 30]
    assert '"loss": 2.0' in (tmp_path / LOG).read_text()


def test_a_line_that_a_kill_cut_off_is_forgotten(tmp_path):
    (tmp_path / LOG).write_text('{"update": 10, "loss": 1.0}\n{"update": 20, "lo')
    with logger(tmp_path, 20)[0]:
        pass
    assert updates(tmp_path) == [10]


def test_floats_are_logged_to_the_last_bit(tmp_path):
    with logger(tmp_path)[0] as opened:
        opened.record(1, {"loss": 0.1 + 0.2})
    assert json.loads((tmp_path / LOG).read_text())["loss"] == 0.1 + 0.2


def test_without_a_terminal_progress_is_plain_lines(tmp_path):
    opened, screen = logger(tmp_path)
    with opened:
        opened.advance(500)
        opened.record(1, {"loss": 1.5, "lr": 0.001})
        opened.record_validation(1, {"loss": 1.25, "perplexity": 3.5, "bleu": 20.5})
        opened.conclude(1, {"loss": 1.0, "perplexity": 3.0})
    lines = screen.getvalue().splitlines()
    assert lines[0].startswith("update 1: loss 1.5, lr 0.001, ")
    assert lines[0].endswith(" tokens/s")
    assert lines[1] == "update 1: valid_loss 1.25, valid_perplexity 3.5, valid_bleu 20.5"
    assert read_result(tmp_path) == {"update": 1, "loss": 1.0, "perplexity": 3.0}


def disk_of(path, size):
    """A file on a disk that has room for so many bytes, and for all once `room` is set."""

    class Full(io.FileIO):
        room = size

        def write(self, data):
            if self.tell() + 1 > self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(bytes(data)[: self.room - self.tell()])

    return Full(path, "ab")


def test_lines_that_a_full_disk_refuses_are_written_when_there_is_room(tmp_path):
    opened, screen = logger(tmp_path)
    with opened:
        opened.record(10, {"loss": 1.0})
        opened.log.file.close()
        opened.log.file = disk = disk_of(tmp_path / LOG, (tmp_path / LOG).stat().st_size + 13)
        for update in (20, 30):
            opened.record(update, {"loss": 1.0})
        disk.room = 10**6
        opened.record(40, {"loss": 1.0})
    assert updates(tmp_path) == [10, 20, 30, 40]
    assert screen.getvalue().count("NOT LOGGED") == 1
    assert "log.jsonl (No space left on device); training continues" in screen.getvalue()


def test_a_disk_that_is_full_to_the_end_is_told_of_and_no_traceback(tmp_path):
    opened, screen = logger(tmp_path)
    with opened:
        for lines in (opened.log, opened.timings):
            lines.file.close()
            lines.file = disk_of(lines.path, 7)
        opened.record(10, {"loss": 1.0})
        opened.record_validation(10, {"loss": 1.0})
    assert "log.jsonl lacks its last 2 lines (No space left on device)" in screen.getvalue()
    assert "timings.jsonl lacks its last 1 line (" in screen.getvalue()


class FullBoard:
    def add_scalar(self, tag, scalar_value, global_step):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        pass


class FullAtTheEnd:
    def add_scalar(self, tag, scalar_value, global_step):
        pass

    def close(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("board", [FullBoard(), FullAtTheEnd()])
def test_curves_that_cannot_be_written_are_told_of_once(board, tmp_path):
    opened, screen = logger(tmp_path)
    opened.board = board
    with opened:
        opened.record(10, {"loss": 1.0, "lr": 0.1})
    assert screen.getvalue().count("TENSORBOARD STOPPED") == 1


def test_a_result_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path):
    opened, _ = logger(tmp_path)
    (tmp_path / RESULT).mkdir()
    with opened, pytest.raises(RunError, match=r"cannot write .*result.json.*the same command resumes"):
        opened.conclude(1, {})


def test_a_log_that_cannot_be_opened_is_an_error_with_a_remedy(tmp_path):
    (tmp_path / LOG).mkdir()
    with pytest.raises(RunError, match=r"cannot write .*log.jsonl"):
        logger(tmp_path)


def test_the_scores_of_a_validation_are_read_from_the_log_to_the_last_bit(tmp_path):
    scores = {"loss": 0.1 + 0.2, "bleu": math.nan}
    with logger(tmp_path)[0] as opened:
        opened.record(20, {"loss": 1.0, "norm": math.inf})
        opened.record_validation(20, scores)
        opened.record(30, {"loss": 1.0})
    assert logged_scores(tmp_path, 20) == pytest.approx(scores, rel=0, abs=0, nan_ok=True)
    assert logged_scores(tmp_path, 30) is None
    assert "NaN" not in (tmp_path / LOG).read_text()
    assert "Infinity" not in (tmp_path / LOG).read_text()


def test_on_a_terminal_a_bar_shows_updates_speed_time_left_and_loss(tmp_path):
    opened, screen = logger(tmp_path, update=39, terminal=True)
    with opened:
        opened.record(39, {"loss": 1.5})
        opened.advance(500)
    shown = screen.getvalue()
    assert re.search(r"40 of 100 updates, [\d,.]+ updates/s, \d+ s left, [\d,]+ tokens/s, loss 1.5", shown)


@pytest.mark.parametrize("width", [80, 100])
def test_a_narrow_terminal_shows_speed_and_time_left_and_cuts_the_values_off(tmp_path, width):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width)
    opened = RunLogger(tmp_path, 1199, 20_000, None, console)
    clock = chain([0.0], repeat(2.0)).__next__
    opened.reporter = ProgressReporter("training", "updates", 20_000, 1199, say=str, clock=clock)
    with opened:
        opened.record(1199, {"loss": 5.4321, "perplexity": 228.1, "lr": 0.0005123, "norm": 1.234})
        opened.advance(500)
        opened.bar.refresh()
    assert "1,200 of 20,000 updates, 0.5 updates/s, 10.4 h left, " in screen.getvalue()


def test_curves_go_to_tensorboard(tmp_path):
    board = tensorboard(tmp_path, 0)
    console = Console(file=io.StringIO())
    with RunLogger(tmp_path, 0, 10, board, console) as opened:
        opened.record(1, {"loss": 1.5})
    assert list((tmp_path / "tensorboard").glob("events.*"))


def test_a_missing_tensorboard_is_an_error_with_a_remedy(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'heedful\[log\]'"):
        tensorboard(tmp_path, 0)


def test_a_run_says_how_far_it_is_and_how_fast_in_between(tmp_path):
    opened, screen = logger(tmp_path, update=40)
    with opened:
        opened.say_progress(str(opened.reporter))
        opened.advance(500)
        opened.say_progress(str(opened.reporter))
    lines = screen.getvalue().splitlines()
    assert lines[0].startswith("training: 40 of 100 updates, 0 s so far")
    assert re.fullmatch(r"training: 41 of 100 updates, [\d,.]+ updates/s, \d+ s left, [\d,]+ tokens/s", lines[1])
