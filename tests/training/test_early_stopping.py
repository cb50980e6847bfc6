import math

import pytest

from heedful.training.early_stopping import best_of, note_validation, silence_line, stops_early
from heedful.training.trainer_state import TrainerState


def after(validations, name="accuracy"):
    """The state after validations of a score and a loss, ten updates apart."""
    state = TrainerState()
    for value, loss in validations:
        state.update += 10
        note_validation(state, {"accuracy": value, "loss": loss}, name)
    return state


@pytest.mark.parametrize("value", [0.0, 0.83, math.nan])
def test_equal_scores_are_decided_by_the_loss(value):
    state = after([(value, 4.0), (value, 2.0), (value, 3.0)])
    assert best_of(state, "accuracy").step == 20


@pytest.mark.parametrize("value", [0.0, 0.83, math.nan])
def test_patience_does_not_count_validations_in_which_the_loss_falls(value):
    falling = [(value, 4.0 - 0.1 * number) for number in range(9)]
    assert not stops_early(after(falling), patience=2)
    assert stops_early(after([*falling, (value, 4.0), (value, 4.0)]), patience=2)


def test_a_better_score_wins_over_a_lower_loss():
    state = after([(0.5, 3.0), (0.6, 4.0), (0.5, 2.0)])
    assert (best_of(state, "accuracy").step, state.worse) == (20, 0)


def test_a_finite_score_is_better_than_none():
    assert best_of(after([(math.nan, 1.0), (0.1, 2.0)]), "accuracy").step == 20


def test_without_a_finite_number_nothing_is_the_best():
    assert best_of(after([(math.nan, math.nan)]), "accuracy") is None


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ([0.0, 0.0, 0.0], "accuracy was 0 in the last 3"),
        ([0.2, 0.83, 0.83, 0.83], "accuracy was 0.83"),
        ([math.nan], "not a number"),
        ([0.0, 0.0], None),
        ([0.1, 0.2, 0.1], None),
    ],
)
def test_a_score_that_says_nothing_is_reported_with_a_remedy(values, part):
    line = silence_line(after([(value, 1.0) for value in values]), {"accuracy": values[-1], "loss": 1.0}, "accuracy")
    if part is None:
        assert line is None
    else:
        assert line is not None
        assert part in line
        assert 'train.best = "loss"' in line


def test_a_resumed_run_remembers_the_losses():
    state = after([(0.0, 4.0), (0.0, 3.0)])
    assert TrainerState.from_json(state.to_json()) == state
