"""Long work says in time how far it is, how fast it goes and how long it will take."""

import io
import sys
import threading
import time

import pytest

from heedful.progress import LINES, ProgressReporter, show_progress


class Clock:
    """Time that passes when it is told to."""

    now = 1009.0

    def __call__(self) -> float:
        return self.now


def reporter_at(clock: Clock, total: int | None = None, unit: str = "lines") -> ProgressReporter:
    return ProgressReporter("translating", unit, total, say=str, clock=clock)


def test_the_first_sentence_comes_within_ten_seconds_and_the_others_within_thirty():
    first, every = LINES
    assert 2 * first <= 10
    assert every <= 30


def test_a_sentence_tells_work_count_speed_and_what_is_left():
    clock = Clock()
    reporter = reporter_at(clock, total=5003)
    clock.now += 3
    reporter.advance(900)
    assert str(reporter) == "translating: 900 of 5,003 lines, 300 lines/s, 14 s left"


def test_the_time_left_is_at_most_what_a_limit_leaves():
    clock = Clock()
    reporter = reporter_at(clock, total=5003)
    clock.now += 3
    reporter.advance(900)
    reporter.end_within(9)
    clock.now += 2
    assert str(reporter).endswith(" 7 s left")
    reporter.end_within(999)
    assert str(reporter).endswith(" 12 s left")


def test_the_time_left_goes_on_while_a_long_step_lasts():
    clock = Clock()
    reporter = reporter_at(clock, total=50)
    clock.now += 10
    reporter.advance(20)
    clock.now += 7
    assert str(reporter) == "translating: 20 of 50 lines, 2 lines/s, 8 s left"
    clock.now += 100
    assert str(reporter) == "translating: 20 of 50 lines, 0.19 lines/s, 3 min left"


def test_a_few_quick_items_before_a_long_wait_promise_no_speed():
    clock = Clock()
    reporter = reporter_at(clock, total=23)
    clock.now += 0.0127
    reporter.advance(2)  # blank lines, which are done at once
    clock.now += 5
    assert str(reporter) == "translating: 2 of 23 lines, 0.4 lines/s, 52 s left"
    clock.now += 5
    assert "0.2 lines/s" in str(reporter)


def test_without_a_total_the_time_so_far_is_told():
    clock = Clock()
    reporter = reporter_at(clock)
    clock.now += 7
    assert str(reporter) == "translating: 7 s so far"
    reporter.advance(3)
    assert str(reporter) == "translating: 3 lines, 0.43 lines/s, 7 s so far"


def test_before_the_first_item_no_speed_is_made_up():
    clock = Clock()
    reporter = reporter_at(clock, total=13)
    clock.now += 5
    assert str(reporter) == "translating: 0 of 13 lines, 5 s so far"


def test_what_comes_after_the_last_item_is_told_too():
    clock = Clock()
    reporter = reporter_at(clock, total=3)
    clock.now += 2
    assert list(reporter.over("abc")) == ["a", "b", "c"]
    clock.now += 31
    assert str(reporter) == "translating: 3 of 3 lines, 1.5 lines/s, nearly finished, 33 s so far"


def test_an_item_is_done_when_the_next_one_is_asked_for():
    reporter = reporter_at(Clock(), total=3)
    items = reporter.over("abc")
    next(items)
    assert reporter.done == 0
    next(items)
    assert reporter.done == 1


def test_a_slow_beginning_is_soon_forgotten():
    clock = Clock()
    reporter = reporter_at(clock, total=1000)
    clock.now += 20  # while a library wakes up
    reporter.advance()
    for _ in range(99):
        clock.now += 1
        reporter.advance()
    assert reporter.figures == "100 of 1,000 lines, 0.99 lines/s, 15 min left"


def test_pauses_that_come_again_and_again_are_counted_in():
    clock = Clock()
    reporter = reporter_at(clock, total=1000)
    for number in range(600):
        clock.now += 1 + 49 * (number % 50 == 49)  # a validation after every fiftieth
        reporter.advance()
    clock.now += 1
    reporter.advance()
    assert 0.45 < float(reporter.figures.split(", ")[1].removesuffix(" lines/s")) < 0.55


def test_the_parts_of_a_work_are_counted_one_after_another():
    clock = Clock()
    reporter = ProgressReporter("evaluating", say=str, clock=clock)
    clock.now += 3
    assert str(reporter) == "evaluating: 3 s so far"
    for _ in reporter.part("batches", [5, 7]):
        assert (reporter.unit, reporter.total) == ("batches", 2)
        clock.now += 1
    assert str(reporter) == "evaluating: 2 of 2 batches, 1 batch/s, nearly finished, 5 s so far"
    reporter.begin("texts", 10)
    assert str(reporter) == "evaluating: 0 of 10 texts, 5 s so far"
    clock.now += 2
    reporter.advance(4)
    assert str(reporter) == "evaluating: 4 of 10 texts, 2 texts/s, 3 s left"


def test_one_is_told_in_the_singular():
    reporter = reporter_at(Clock(), total=1)
    assert str(reporter) == "translating: 0 of 1 line, 0 s so far"
    alone = reporter_at(Clock())
    alone.advance()
    assert str(alone).startswith("translating: 1 line, ")


def test_sentences_come_by_themselves_until_the_work_ends():
    said: list[str] = []
    enough = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        if len(said) == 3:
            enough.set()

    before = threading.active_count()
    with ProgressReporter("exporting", say=say, pace=(0.001, 0.001)):
        assert enough.wait(60)
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    assert all(sentence.startswith("exporting: ") for sentence in said)


def test_a_listener_that_is_gone_does_not_end_the_work():
    gone = threading.Event()

    def say(_: str) -> None:
        gone.set()
        raise BrokenPipeError

    with ProgressReporter("exporting", say=say, pace=(0.001, 0.001)):
        assert gone.wait(60)


def test_lines_are_written_where_standard_error_is_no_terminal(monkeypatch):
    monkeypatch.setattr("heedful.progress.LINES", (0.001, 0.001))
    written = threading.Event()

    class Heard(io.StringIO):
        def flush(self) -> None:
            written.set()

    monkeypatch.setattr(sys, "stderr", Heard())
    with show_progress("translating [bold]", "lines", 7):
        assert written.wait(60)
    assert sys.stderr.getvalue().startswith("translating [bold]: 0 of 7 lines, 0 s so far\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with show_progress("translating [bold]", "lines", 7) as reporter:
        reporter.advance(3)
    shown = sys.stderr.getvalue()
    assert "translating [bold]" in shown
    assert shown.endswith("\x1b[2K")  # the line is cleared


@pytest.mark.parametrize("columns", [80, 100, 200])
@pytest.mark.parametrize("work", ["translating", f"evaluating runs/{'long' * 31}", "编码 " + "语料" * 31])
def test_a_bar_of_any_width_shows_speed_and_time_left(monkeypatch, columns, work):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("heedful.progress.BAR", (0.001, 0.001))
    monkeypatch.setattr("heedful.progress.duration", lambda _: "12 min")  # whatever the clock says
    monkeypatch.setattr("heedful.progress.speed", lambda _: "12,345")
    monkeypatch.setattr(sys, "stderr", Terminal())
    whole = "1,200,000 of 5,000,000 lines, 12,345 lines/s, 12 min left"
    with show_progress(work, "lines", 5_000_000) as reporter:
        reporter.advance(1_200_000)
        for _ in range(600):
            if whole in sys.stderr.getvalue():
                break
            time.sleep(0.1)
    assert whole in sys.stderr.getvalue()
    assert work[:2] in sys.stderr.getvalue()


def test_work_without_standard_error_goes_on(monkeypatch):
    monkeypatch.setattr("heedful.progress.LINES", (0.0, 0.001))
    monkeypatch.setattr(sys, "stderr", None)
    with show_progress("translating", bar=False) as reporter:
        reporter.advance()
    assert reporter.done == 1
