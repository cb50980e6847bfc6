"""`heedful train --processes`: a run of several processes is that of one to the last bit, also if it is stopped."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from invocation import invoke

import heedful
from heedful.config.load import recipe_to_dict, to_toml
from heedful.errors import InputError
from heedful.training import loop
from heedful.training.logger import LOG
from interrupted import stop_after, train
from reversal import fingerprint, recipe, write_pairs
from toy_vectors import toy_recipe

SOURCE = str(Path(heedful.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write_pairs(folder, "train", 101, seed=1)
    write_pairs(folder, "valid", 11, seed=2)
    return folder


@pytest.fixture(scope="module")
def settings(text):
    found = recipe(
        text,
        train={"accumulate": 2, "max_updates": 101, "validate_every": 37, "save_every": 29},
        model={"dropout": 0.1},
    )
    (text / "config.toml").write_text(to_toml(recipe_to_dict(found)))
    return found


@pytest.fixture(scope="module")
def whole(settings, text):
    assert train(settings, text / "whole") == loop.Outcome(101, 0)
    return fingerprint(text / "whole")


def start(text: Path, folder: Path, processes: int) -> subprocess.Popen[str]:
    options = ["--out", str(folder), "--processes", str(processes)]
    command = [sys.executable, "-m", "heedful", "train", str(text), *options]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


def wait_for_updates(folder: Path, begun: subprocess.Popen[str]) -> None:
    while not ((folder / LOG).is_file() and (folder / LOG).read_text()) and begun.poll() is None:
        time.sleep(0.01)


def test_a_run_goes_from_one_process_to_two_and_back_bit_for_bit(settings, text, whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(1, patch)
        assert train(settings, tmp_path / "parts") == loop.Outcome(1, 143)
    begun = start(text, tmp_path / "parts", 2)
    wait_for_updates(tmp_path / "parts", begun)
    begun.send_signal(signal.SIGTERM)
    _, said = begun.communicate()
    assert begun.returncode == 143, said
    assert said.count("stopped and saved after update") == 1
    assert train(settings, tmp_path / "parts") == loop.Outcome(101, 0)
    assert fingerprint(tmp_path / "parts") == whole


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["launcher", "second process", "all of them"])
def test_a_signal_to_any_process_ends_all_after_the_same_update_saved(settings, text, whole, whom, tmp_path):
    begun = start(text, tmp_path / "parts", 2)
    wait_for_updates(tmp_path / "parts", begun)
    second = second_of(begun.pid)
    for process in {"launcher": [begun.pid], "second process": [second], "all of them": [begun.pid, second]}[whom]:
        os.kill(process, signal.SIGTERM)
    _, said = begun.communicate(timeout=120)
    assert begun.returncode == 143, said
    [update] = re.findall(r"stopped and saved after update (\d+)", said)
    newest = max((tmp_path / "parts" / "checkpoints").glob("step-*"))
    assert newest.name == f"step-{int(update):08d}"
    assert "Traceback" not in said
    assert train(settings, tmp_path / "parts") == loop.Outcome(101, 0)
    assert fingerprint(tmp_path / "parts") == whole


@pytest.mark.slow
def test_two_processes_train_word_vectors_bit_for_bit_as_one(tmp_path):
    settings = toy_recipe(tmp_path, train={"accumulate": 2, "max_updates": 23, "threads": 1})
    (tmp_path / "config.toml").write_text(to_toml(recipe_to_dict(settings)))
    assert train(settings, tmp_path / "whole") == loop.Outcome(23, 0)
    begun = start(tmp_path, tmp_path / "parts", 2)
    _, said = begun.communicate()
    assert begun.returncode == 0, said
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


@pytest.mark.slow
def test_a_process_that_dies_ends_all_with_its_exit_code_and_the_run_goes_on(settings, text, whole, tmp_path):
    begun = start(text, tmp_path / "parts", 2)
    wait_for_updates(tmp_path / "parts", begun)
    os.kill(second_of(begun.pid), signal.SIGKILL)
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == 137, said
    assert "Traceback" not in said
    assert train(settings, tmp_path / "parts") == loop.Outcome(101, 0)
    assert fingerprint(tmp_path / "parts") == whole


def second_of(launcher: int) -> int:
    """The second of the processes that a command has started."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    [found] = [pid for pid in children if b"\0RANK=1\0" in Path(f"/proc/{pid}/environ").read_bytes()]
    return int(found)


@pytest.mark.usefixtures("settings")
def test_more_processes_than_batches_of_an_update_are_refused_with_the_remedy(text, tmp_path):
    with pytest.raises(InputError, match=r"--set train\.accumulate=4 --set train\.batch_tokens=30"):
        invoke("train", text, "--out", tmp_path / "run", "--processes", "4")
