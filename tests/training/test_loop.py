import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from math import inf
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from rich.console import Console

from heedful.checkpoint import load_model
from heedful.config.schema import Recipe
from heedful.errors import InputError, RunError
from heedful.machine.device import PrecisionChoice
from heedful.progress import ProgressReporter
from heedful.training import loop
from heedful.training.logger import LOG, RESULT, TIMINGS
from heedful.training.trainer import Trainer
from heedful.training.training_step import TrainingStep
from interrupted import begin, stop_after, train
from reversal import fingerprint, recipe, write_pairs
from toy_model import TOY_MODEL

VARIANTS = {
    "plain": {},
    "accumulated": {"train": {"accumulate": 3}},
    "bfloat16": {"train": {"precision": "bfloat16"}},
    "autocast": {"train": {"precision": "autocast"}},
    "orthogonal": {"optimizer": {"name": "muon", "weight_decay": 0.1}},
    "clipped": {"optimizer": {"clip_norm": 0.5, "schedule": "noam", "lr": 1.0}},
    "dropouts": {"model": {"attention_dropout": 0.1, "activation_dropout": 0.2, "norm": "pre"}},
    "frozen": {"train": {"freeze": ["encoder.blocks.0", "decoder.blocks"], "precision": "bfloat16"}},
    "subwords": {"tokenizer": {"kind": "bpe", "vocab_size": 41, "dropout": 0.3}},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_that_is_interrupted_three_times_equals_a_whole_run_bit_for_bit(variant, text, tmp_path, monkeypatch):
    settings = recipe(text, **VARIANTS[variant])
    assert train(settings, tmp_path / "whole") == loop.Outcome(19, 0)
    for update in (4, 5, 13):
        with monkeypatch.context() as patch:
            stop_after(update, patch)
            assert train(settings, tmp_path / "parts") == loop.Outcome(update, 143)
    assert train(settings, tmp_path / "parts") == loop.Outcome(19, 0)
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def test_a_finished_run_is_left_as_it_is(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    before = fingerprint(tmp_path / "run")
    assert train(recipe(text), tmp_path / "run") == loop.Outcome(19, 0)
    assert fingerprint(tmp_path / "run") == before


def test_more_updates_continue_a_finished_run_as_if_it_had_been_planned(text, tmp_path):
    train(recipe(text), tmp_path / "extended")
    train(recipe(text, train={"max_updates": 31}), tmp_path / "extended")
    train(recipe(text, train={"max_updates": 31}), tmp_path / "whole")
    assert fingerprint(tmp_path / "extended")[0] == fingerprint(tmp_path / "whole")[0]


def test_a_run_killed_at_two_random_moments_equals_a_whole_run_bit_for_bit(text, tmp_path):
    settings = recipe(text, train={"max_updates": 199, "validate_every": 29, "save_every": 7, "log_every": 1})

    def end(begun: BaseProcess) -> int | None:
        begun.join()
        return begun.exitcode

    assert end(begin(settings, tmp_path / "whole")) == 0
    kills, rng = 0, random.Random(3)
    while kills < 2:
        begun = begin(settings, tmp_path / "parts")
        goal = logged(tmp_path / "parts") + rng.randint(1, 60)
        while logged(tmp_path / "parts") < goal and begun.is_alive():
            time.sleep(rng.random() / 100)
        begun.kill()
        kills += end(begun) == -signal.SIGKILL
    assert end(begin(settings, tmp_path / "parts")) == 0
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def logged(folder: Path) -> int:
    try:
        return len((folder / LOG).read_bytes().splitlines())
    except FileNotFoundError:
        return 0


CHILD = """
import sys
from pathlib import Path
from rich.console import Console
from heedful.config.load import load_recipe
from heedful.training.loop import train
train(load_recipe(sys.argv[1]), Path(sys.argv[2]), Console(stderr=True, quiet=True))
"""

TOML = """
[data]
root = "{root}"
train = [{{source = "train.src", target = "train.tgt"}}]
valid = {{source = "valid.src", target = "valid.tgt"}}
filters = {{max_tokens = 61}}
[tokenizer]
kind = "word"
vocab_size = 29
byte_fallback = false
pretokenized = true
{TOY_MODEL}[decode]
max_extra = 3
[train]
max_updates = 19
batch_tokens = 61
validate_every = 29
save_every = 7
log_every = 1
threads = 1
precision = "float32"
device = "cpu"
"""


@pytest.mark.slow
def test_another_process_with_the_same_recipe_computes_the_same(text, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(TOML.format(root=text, TOY_MODEL=TOY_MODEL), encoding="utf-8")
    for name, seed in (("first", "1"), ("second", "2")):
        command = [sys.executable, "-c", CHILD, str(config), str(tmp_path / name)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
    assert fingerprint(tmp_path / "first") == fingerprint(tmp_path / "second")


def test_the_log_has_each_update_once_and_no_times(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    losses = [record["update"] for record in records if "loss" in record]
    assert losses == [3, 6, 9, 12, 15, 18]
    assert [record["update"] for record in records if "valid_bleu" in record] == [7, 14]
    assert {"update", "loss", "perplexity", "lr", "norm"} == set(records[0])


def test_training_stops_when_validation_no_longer_improves(text, tmp_path):
    settings = recipe(text, optimizer={"lr": 1e-12}, train={"patience": 2, "validate_every": 3, "best": "bleu"})
    assert "stopped early after update 9: no improvement in the last 2 validations" in told_by(
        settings, tmp_path / "run"
    )
    assert newest(tmp_path / "run").name == "step-00000009"


def test_training_stops_after_the_last_epoch_and_knows_when_that_will_be(text, tmp_path, monkeypatch):
    expected, take = [], Trainer.update
    monkeypatch.setattr(Trainer, "update", lambda self: (expected.append(loop.expected_updates(self)), take(self)))
    settings = recipe(text, train={"max_epochs": 2, "max_updates": 1000, "accumulate": 4})
    assert {train(settings, tmp_path / "run").update} == set(expected)
    state = json.loads(newest(tmp_path / "run").joinpath("state.json").read_text())
    assert (state["progress"]["epoch"], state["progress"]["batch"]) == (2, 0)


def test_training_stops_when_its_minutes_are_spent_and_goes_on_with_more(text, tmp_path):
    train(recipe(text), tmp_path / "whole")
    hurried = recipe(text, train={"max_minutes": 1e-9})
    assert [train(hurried, tmp_path / "run").update for _ in range(2)] == [1, 1]
    state = json.loads(newest(tmp_path / "run").joinpath("state.json").read_text())
    assert state["progress"]["seconds"] > 0
    assert train(recipe(text, train={"max_minutes": 60.0}), tmp_path / "run").update == 19
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


def test_the_time_left_ends_with_the_minutes_of_the_run(text, tmp_path, monkeypatch):
    limits = []
    monkeypatch.setattr(ProgressReporter, "end_within", lambda _, seconds: limits.append(seconds))
    train(recipe(text, train={"max_minutes": 60.0}), tmp_path / "run")
    assert 0 < limits[-1] < limits[0] < 3600
    limits.clear()
    train(recipe(text), tmp_path / "unlimited")
    assert set(limits) == {inf}


def test_the_timings_tell_the_training_time_so_far(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / TIMINGS).read_text().splitlines()]
    seconds = [record["seconds"] for record in records]
    assert len(seconds) == 6
    assert seconds[0] > 0
    assert seconds == sorted(seconds)


def test_several_runs_can_share_their_prepared_data(text, tmp_path):
    train(recipe(text), tmp_path / "own")
    shared = tmp_path / "shared"
    for name in ("one", "other"):
        loop.train(recipe(text), tmp_path / name, Console(quiet=True), shared)
        assert not (tmp_path / name / "data").exists()
        assert fingerprint(tmp_path / name) == fingerprint(tmp_path / "own")


def result(folder: Path) -> dict[str, float]:
    return json.loads((folder / RESULT).read_text())


def newest(folder: Path) -> Path:
    return max((folder / "checkpoints").glob("step-*"))


def test_other_settings_or_other_text_cannot_go_on_with_a_run(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    before = fingerprint(tmp_path / "run")
    with pytest.raises(InputError, match=r"model.dropout is 0.3, but the run was started with 0.1"):
        train(recipe(text, model={"dropout": 0.3}), tmp_path / "run")
    write_pairs(text, "train", 101, seed=5)
    with pytest.raises(InputError, match="data has changed"):
        train(recipe(text, train={"max_updates": 31}), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == before


def test_a_gradient_that_is_not_finite_is_left_out_and_many_end_the_run(text, tmp_path, monkeypatch):
    from heedful.tasks.parts import sequence_to_sequence

    honest, calls = sequence_to_sequence.loss, []

    def loss(model, batch, smoothing):
        calls.append(model)
        result = honest(model, batch, smoothing)
        poisoned = len(calls) in (5, 6) or len(calls) > 31  # the first call tries the largest batch
        return type(result)(result.sum * float("nan"), result.nll, result.count) if poisoned else result

    monkeypatch.setattr(sequence_to_sequence, "loss", loss)
    settings = recipe(text, train={"max_updates": 100, "validate_every": 1000, "save_every": 8})
    with pytest.raises(RunError, match=r"no finite gradient in the last 10 updates, up to 40: the run has diverged"):
        train(settings, tmp_path / "run")
    state = json.loads(newest(tmp_path / "run").joinpath("state.json").read_text())["progress"]
    assert (state["update"], state["skipped"]) == (40, 12) or (state["update"], state["skipped"]) == (32, 4)
    loaded = load_model(newest(tmp_path / "run"))
    assert all(parameter.isfinite().all() for parameter in loaded.model.parameters())


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
    ids=["gpu", "cpu", "python"],
)
def test_too_little_memory_names_the_batches_and_the_remedy_and_the_run_goes_on(error, text, tmp_path, monkeypatch):
    settings = recipe(text, train={"accumulate": 2})
    train(settings, tmp_path / "whole")
    honest = TrainingStep.backward

    def backward(self, batch, key, counts):
        if key == (13, 1):
            raise error
        return honest(self, batch, key, counts)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingStep, "backward", backward)
        with pytest.raises(RunError, match=r"memory .* update 13, with batches of \d+ and \d+ examples") as told:
            train(settings, tmp_path / "run")
        assert "--set train.batch_tokens=30 --set train.accumulate=4" in str(told.value)
    train(settings, tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


def test_another_error_of_torch_stays_what_it_is(text, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(TrainingStep, "backward", fail)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train(recipe(text), tmp_path / "run")


def test_a_run_without_validation_data_ends_with_its_last_weights(text, tmp_path):
    settings = recipe(text, data={"valid": None}, train={"average_last": 1})
    train(settings, tmp_path / "run")
    final = load_model(tmp_path / "run" / "model").model.state_dict()
    last = load_model(newest(tmp_path / "run")).model.state_dict()
    assert all(torch.equal(final[name], last[name]) for name in final)


CURVE = """
3.918 4.226 4.015 3.696 3.700 3.467 3.256 3.224 3.319 3.192
3.322 2.874 3.126 3.234 3.196 3.211 3.175 3.111 3.207
"""


def test_the_first_losses_of_a_run_are_the_golden_ones(text, tmp_path):
    train(recipe(text, train={"log_every": 1}), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    losses = [record["loss"] for record in records if "loss" in record]
    assert losses == pytest.approx([float(loss) for loss in CURVE.split()], abs=2e-3)


@pytest.mark.slow
def test_a_small_model_learns_to_reverse_words(text, tmp_path):
    write_pairs(text, "train", 5003, seed=1)
    shape = {"d_model": 64, "d_ff": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}
    settings = recipe(
        text,
        model={**shape, "positions": "rotary", "norm": "pre", "dropout": 0.0},
        optimizer={"name": "muon", "lr": 0.02, "warmup": 50, "schedule": "linear"},
        train={"max_updates": 350, "batch_tokens": 1031, "validate_every": 350, "save_every": 350, "average_last": 1},
    )
    train(settings, tmp_path / "run")
    assert result(tmp_path / "run")["bleu"] > 95


def told_by(settings: Recipe, folder: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    loop.train(settings, folder, console)
    return console.file.getvalue()


def test_the_name_of_a_file_with_brackets_is_printed_whole_on_one_line(text, tmp_path):
    for ending in ("src", "tgt"):
        (text / f"train.{ending}").rename(text / f"{'long name ' * 9}[red].{ending}")
    files = {"source": f"{'long name ' * 9}[red].src", "target": f"{'long name ' * 9}[red].tgt"}
    settings = recipe(text, data={"train": [files]}, train={"max_updates": 2})
    console = Console(file=io.StringIO(), width=40)
    loop.train(settings, tmp_path / "run", console)
    assert f"{'long name ' * 9}[red].src: 96 pairs, 5 dropped: 5 for duplication" in console.file.getvalue()


def test_a_run_in_float32_waits_for_no_measurement(text, monkeypatch):
    monkeypatch.setattr(loop, "choose_precision", lambda _: pytest.fail("this takes half a second"))
    assert loop.decided_settings(recipe(text), None, print)["precision"] == "float32"


def test_the_precision_is_chosen_for_the_machine_told_and_kept_by_a_run_that_goes_on(text, tmp_path, monkeypatch):
    settings = recipe(text, train={"precision": "auto"})
    monkeypatch.setattr(loop, "choose_precision", lambda _: PrecisionChoice("bfloat16", "a fast processor"))
    with monkeypatch.context() as patch:
        stop_after(8, patch)
        assert "precision: bfloat16 (a fast processor)" in told_by(settings, tmp_path / "parts")
    monkeypatch.setattr(loop, "choose_precision", lambda _: PrecisionChoice("float32", "another processor"))
    report = told_by(settings, tmp_path / "parts")
    assert "precision: bfloat16, which is slow on this machine (another processor)" in report
    assert load_model(tmp_path / "parts").recipe.train.precision == "bfloat16"
    train(recipe(text, train={"precision": "bfloat16"}), tmp_path / "whole")
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")
