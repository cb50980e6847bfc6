import json

import pytest

from heedful.config.schema import OptimizerConfig, Recipe, TrainConfig
from heedful.training.learning_rate import learning_rate, rate_line
from heedful.training.logger import LOG
from heedful.training.trainer_state import TrainerState, last_update, note_time
from interrupted import train
from reversal import recipe


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("limits", [{"max_updates": 6}, {"max_updates": 1000, "max_epochs": 2}])
def test_the_rate_reaches_its_end_with_the_limit_that_comes_first(schedule, limits, text, tmp_path):
    settings = recipe(
        text,
        optimizer={"schedule": schedule, "lr": 0.01, "warmup": 2, "min_lr": 0.001},
        train=limits | {"log_every": 1, "validate_decoding": False},
    )
    train(settings, tmp_path / "run")
    rates = [
        record["lr"] for record in map(json.loads, (tmp_path / "run" / LOG).read_text().splitlines()) if "lr" in record
    ]
    assert rates[1] == max(rates) == 0.01
    assert rates[-1] == pytest.approx(0.001)


def test_the_rate_follows_the_share_of_the_minutes_that_has_passed():
    train, optimizer = TrainConfig(max_minutes=1), OptimizerConfig(schedule="linear", lr=0.01, warmup=0)
    state, rates = TrainerState(), []
    while state.seconds < 60:
        rates.append(learning_rate(optimizer, state.update + 1, last_update(train, state, 1000), 8))
        state.update += 1
        state.seconds += 3.0
        note_time(state, train)
    assert len(rates) == 20
    assert rates[10] == pytest.approx(0.005)
    assert rates[-1] == pytest.approx(0.0005)


def test_the_rate_of_each_update_can_be_repeated_from_a_later_state():
    train = TrainConfig(max_minutes=1)
    state, ends = TrainerState(), []
    for seconds in (5.0, 1.0, 7.0, 2.0):
        ends.append(last_update(train, state, 1000))
        state.update += 1
        state.seconds += seconds
        note_time(state, train)
    again = [last_update(train, TrainerState(update=update, shares=state.shares), 1000) for update in range(4)]
    assert again == ends


def test_a_run_of_an_older_version_keeps_its_schedule():
    values = {"update": 5, "epoch": 1, "window": {"losses": [], "nlls": [], "counts": []}}
    assert last_update(TrainConfig(max_epochs=2), TrainerState.from_json(values), 10) == TrainConfig.max_updates


@pytest.mark.parametrize("limits", [{"max_epochs": 3}, {"max_minutes": 5.0}, {}])
def test_where_the_rate_ends_is_said_for_every_limit(limits):
    optimizer = OptimizerConfig(schedule="linear", lr=0.01, min_lr=0.001, warmup=0)
    line = rate_line(Recipe(optimizer=optimizer, train=TrainConfig(**limits)))
    assert "linear schedule from 0.01 to 0.001 at" in line
    assert ("epoch 3" in line) == ("max_epochs" in limits)
    assert ("5 minutes" in line) == ("max_minutes" in limits)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize(("limits", "updates"), [({"max_updates": 2}, None), ({"max_epochs": 1}, 2)])
def test_a_run_that_ends_during_the_warm_up_names_the_rate_that_it_reaches(schedule, limits, updates):
    optimizer = OptimizerConfig(schedule=schedule, lr=0.008, warmup=40)
    line = rate_line(Recipe(optimizer=optimizer, train=TrainConfig(**limits)), updates)
    assert f"{schedule} schedule, still warming up at the last update: 0.0004 of 0.008 at" in line
    assert " to 0 " not in line


def test_one_minute_is_written_in_the_singular():
    optimizer = OptimizerConfig(schedule="linear", lr=0.01, warmup=0)
    line = rate_line(Recipe(optimizer=optimizer, train=TrainConfig(max_minutes=1.0)))
    assert "1 minute" in line
    assert "minutes" not in line
