"""Training from Python: from a file, a recipe or plain values, into a model that is ready for use."""

import json
import signal
import threading
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

import heedful
from heedful.config.load import recipe_to_dict, to_toml
from heedful.errors import InputError
from heedful.training.in_process import as_recipe
from interrupted import stop_after
from reversal import SETTINGS

QUIET = Console(quiet=True)


def settings(text: Path) -> dict[str, Any]:
    """The toy task without averaging."""
    values: dict[str, Any] = deepcopy(SETTINGS) | {"name": "toy"}
    values["data"]["root"] = str(text)
    values["train"]["average_last"] = 1
    return values


@pytest.fixture
def ctrl_c():
    """Ctrl-C does what it usually does, even where the tests run in the background and were told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_two_updates_make_a_model_that_is_used(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    result = heedful.train(settings(text), set={"train.max_updates": 2, "train": {"log_every": 1, "threads": 2}})
    assert (result.folder, result.update) == (Path("runs/toy"), 2)
    assert {"bleu", "loss"} <= result.scores.keys()
    assert result.scores == {
        k: v for k, v in json.loads(Path("runs/toy/result.json").read_text()).items() if k != "update"
    }
    assert [line["update"] for line in result.log if "norm" in line] == [1, 2]
    assert isinstance(result.predictor.translate("w1 w2"), str)
    assert result.predictor is result.predictor
    assert repr(result.predictor).startswith("Translator(task='translation', family='encoder_decoder'")
    assert heedful.load(result.folder).translate("w1 w2") == result.predictor.translate("w1 w2")
    assert torch.get_num_threads() == threads


def test_a_file_a_recipe_and_plain_values_are_one_recipe(text, tmp_path):
    changes = {"train": {"seed": 7}, "data.train.0.weight": 2.0}
    values = as_recipe(settings(text), changes)
    (tmp_path / "config.toml").write_text(to_toml(recipe_to_dict(as_recipe(settings(text)))), encoding="utf-8")
    assert as_recipe(tmp_path, changes) == as_recipe(as_recipe(settings(text)), changes) == values
    assert (values.train.seed, values.train.max_updates, values.data.train[0].weight) == (7, 19, 2.0)
    assert as_recipe(settings(text), {"name": "x"}, root=tmp_path).data.root == str(tmp_path)
    assert as_recipe(values, root=Path("here")).data.root == str(Path("here").absolute())
    paths = {"train": [{"source": Path("a.src"), "target": Path("a.tgt")}]}
    assert as_recipe({"preset": "tiny", "data": paths}).data.train[0].source == "a.src"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"train.max_update": 2},
            'set train.max_update = 2: unknown key train.max_update; did you mean "train.max_updates"',
        ),
        ({"train": {"seed": -1}}, "set train.seed = -1: train.seed must be at least 0, but is -1"),
        (
            {"data.train.5.weight": 1.0},
            "set data.train.5.weight = 1.0: 5 is not an index of a list of length 1; use 1 to append to it",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, words, text, tmp_path):
    with pytest.raises(InputError) as caught:
        heedful.train(settings(text), tmp_path / "run", set=changes)
    assert words in str(caught.value)
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="no such recipe"):
        heedful.train(tmp_path / "nowhere")


def test_ctrl_c_saves_before_it_interrupts_and_the_same_call_goes_on(text, tmp_path, monkeypatch, ctrl_c):
    told = StringIO()
    with monkeypatch.context() as patch:
        stop_after(3, patch, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            heedful.train(settings(text), tmp_path / "run", console=Console(file=told, width=200))
    assert "stopped and saved after update 3; the same call resumes the run" in told.getvalue()
    assert heedful.train(settings(text), tmp_path / "run", set={"train.max_updates": 4}, console=QUIET).update == 4


def test_progress_is_told_unless_the_console_is_quiet(text, tmp_path, capsys):
    short = {"train.max_updates": 3, "train.log_every": 1}
    heedful.train(settings(text), tmp_path / "told", set=short)
    out, err = capsys.readouterr()
    assert out == ""
    assert "update 3: loss" in err
    heedful.train(settings(text), tmp_path / "quiet", set=short, console=QUIET)
    assert capsys.readouterr() == ("", "")


def test_a_model_trains_in_another_thread_too(text, tmp_path):
    results = []
    changes = {"train.max_updates": 2}
    call = threading.Thread(
        target=lambda: results.append(heedful.train(settings(text), tmp_path / "run", set=changes, console=QUIET))
    )
    call.start()
    call.join()
    assert results[0].update == 2
