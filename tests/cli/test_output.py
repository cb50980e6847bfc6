"""Nothing that is read is overwritten, and what is finished when Ctrl-C comes is kept."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from invocation import invoke

from engine_models import write_random_model
from heedful.cli.output import check_output, writing_results
from heedful.errors import InputError, Interrupted

PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from heedful.cli import main; main()"
)


@pytest.mark.parametrize(
    ("command", "task"),
    {
        "translate": "translation",
        "generate": "language_model",
        "fill": "masked_lm",
        "predict": "classification",
        "encode": "masked_lm",
    }.items(),
)
def test_no_command_writes_over_its_input(tmp_path, command, task):
    family = {} if task in ("translation", "language_model") else {"family": "encoder"}
    labels = ["bad", "good"] if task == "classification" else []
    model = write_random_model(tmp_path / "model", task, family, data={"labels": labels})
    text = tmp_path / "text.jsonl"
    text.write_text("precious\n")
    with pytest.raises(InputError, match="would be overwritten; choose another file"):
        invoke(command, "--model", model, "--input", text, "--output", text)
    assert text.read_text() == "precious\n"


def test_search_writes_over_none_of_its_files(tmp_path):
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("precious\n")
    other.write_text("precious too\n")
    for options in (["--output", text], ["--index", text], ["--output", other], ["--index", other]):
        with pytest.raises(InputError, match="would be overwritten"):
            invoke("search", "--model", "nowhere", "--corpus", text, "--input", other, *options)


def test_evaluate_writes_over_none_of_its_files(tmp_path):
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("Two dogs.\n")
    other.write_text("Zwei Hunde.\n")
    for output in (text, other):
        with pytest.raises(InputError, match="would be overwritten"):
            invoke("evaluate", "en-de", "--source", text, "--reference", other, "--output", output, "--force")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_is_known_by_its_other_names(tmp_path, link):
    (tmp_path / "text").write_text("precious\n")
    link(tmp_path / "text", tmp_path / "alias")
    with pytest.raises(InputError, match=r"--output \S+alias is also the input and would be overwritten"):
        check_output(tmp_path / "alias", None, tmp_path / "text")


def test_other_outputs_are_free(tmp_path):
    write_some(tmp_path / "old", 1, 1, whole=True)
    check_output(None, tmp_path / "text")
    check_output(tmp_path / "old", tmp_path / "text", None)
    check_output(tmp_path / "new", tmp_path / "old")


def half_a_result() -> Iterator[str]:
    yield "half of the"
    raise KeyboardInterrupt


def write_some(path: Path | None, count: int, each: int, whole: bool = False) -> None:
    with writing_results(path, Path("source"), each) as results:
        for number in range(count):
            results.write(f"result {number}")
        if not whole:
            results.write_parts(half_a_result())


def interrupt(path: Path | None, count: int, each: int = 1) -> str:
    """What is said when Ctrl-C comes after so many results, in the middle of another one."""
    with pytest.raises(Interrupted) as caught:
        write_some(path, count, each)
    assert caught.value.exit_code == 130
    return str(caught.value)


def test_finished_results_are_kept_under_another_name(tmp_path):
    out = tmp_path / "out"
    out.write_text("of an earlier run")
    message = interrupt(out, 3)
    assert f"{out}.part contains the results of the first 3 lines, and {out} is unchanged" in message
    assert "the rest of source, from line 4 on" in message
    assert out.read_text() == "of an earlier run"
    assert (tmp_path / "out.part").read_text() == "result 0\nresult 1\nresult 2\n"
    assert len([*tmp_path.iterdir()]) == 2


def test_a_line_with_some_of_its_results_is_not_finished(tmp_path):
    assert "of the first 2 lines" in interrupt(tmp_path / "out", 8, each=3)
    assert (tmp_path / "out.part").read_text().count("\n") == 6


def test_a_finished_part_is_never_replaced(tmp_path):
    interrupt(tmp_path / "out", 3)
    assert f"{tmp_path / 'out.part2'} contains" in interrupt(tmp_path / "out", 5)
    assert (tmp_path / "out.part").read_text().count("\n") == 3
    assert (tmp_path / "out.part2").read_text().count("\n") == 5


def test_where_nothing_is_finished_nothing_is_left(tmp_path):
    assert "nothing was written" in interrupt(tmp_path / "out", 0)
    assert [*tmp_path.iterdir()] == []


def test_a_pipe_gets_each_result_and_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert "the first 3 lines are done; to continue, run the command on the rest" in interrupt(pipe, 3)
    assert os.read(reader, 1000) == b"result 0\nresult 1\nresult 2\nhalf of the"
    os.close(reader)
    assert [*tmp_path.iterdir()] == [pipe]
    assert pipe.is_fifo()


def test_standard_output_by_its_name_goes_on_where_it_is(tmp_path):
    out = tmp_path / "out"
    script = "from pathlib import Path; from heedful.cli.output import writing_results as writing\n"
    script += "print('before', flush=True)\nwith writing(Path('/dev/stdout'), None) as results: results.write('result')"
    with out.open("wb") as stream:
        subprocess.run([sys.executable, "-c", script + "\nprint('after')"], stdout=stream, check=True)
    assert out.read_text() == "before\nresult\nafter\n"
    assert [*tmp_path.iterdir()] == [out]


def test_a_link_keeps_leading_to_its_file(tmp_path):
    (tmp_path / "folder").mkdir()
    link, file = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(file)
    for text in ("first", "second"):
        with writing_results(link, None) as results:
            results.write(text)
        assert link.is_symlink()
        assert file.read_text() == f"{text}\n"
    assert f"{file}.part contains the results of the first 3 lines" in interrupt(link, 3)


def test_standard_output_has_what_was_written(capfdbinary):
    assert "the first 3 lines are done; to continue, run the command on the rest" in interrupt(None, 3)


def test_control_c_keeps_the_finished_translations(tmp_path):
    """A window of 1,024 lines is translated, and the command waits for the next one."""
    out, hidden = tmp_path / "out", tmp_path / ".tmp-out"
    command = [sys.executable, "-c", PROGRAM, "translate", "--beam", "1", "--output", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdin.write(b"\n" * 1023 + b"Two dogs.\n")
        running.stdin.flush()
        for _ in range(6000):
            if running.poll() is not None or (hidden.exists() and hidden.read_bytes().count(b"\n") == 1024):
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate()
    assert running.returncode == 130
    assert told.decode().splitlines()[-1].startswith("heedful: interrupted;")
    assert b"first 1,024 lines" in told
    assert b"Traceback" not in told
    assert (tmp_path / "out.part").read_bytes().count(b"\n") == 1024
    assert not out.exists()
