import json
import shutil
from pathlib import Path

import pytest

from heedful.checkpoint import Checkpoints, claim
from heedful.errors import InputError
from heedful.tools.runs import needless, prune, summary
from heedful.training.logger import logged_scores, read_result
from interrupted import train
from reversal import fingerprint, recipe


def steps(run: Path) -> list[int]:
    return Checkpoints(run, 7).steps()


def test_of_a_finished_run_the_newest_and_the_best_stay(runs: Path) -> None:
    run = runs / "first"
    Checkpoints(run, 7).mark_best(2, "loss", 0.3)
    assert steps(run) == [1, 2, 3, 4, 5]
    removed = prune(run)
    assert steps(run) == [2, 5]
    assert [path.name for path in removed] == ["step-00000001", "step-00000003", "step-00000004"]
    assert prune(run) == []


def test_an_interrupted_run_keeps_what_its_end_averages(interrupted: Path, finished_runs: Path) -> None:
    prune(interrupted)
    assert steps(interrupted)[-2:] == [4, 5]
    text = finished_runs.parent / "text"
    train(recipe(text, train={"max_updates": 5, "save_every": 1, "validate_every": 2, "keep_last": 7}), interrupted)
    assert fingerprint(interrupted) == fingerprint(finished_runs / "first")


def test_a_run_that_goes_on_after_its_end_is_not_finished(runs: Path) -> None:
    run = runs / "first"
    (run / "result.json").write_text(json.dumps(read_result(run) | {"update": 3}))
    assert (summary(run).state, summary(run).update) == ("interrupted", 5)
    assert summary(run).scores == logged_scores(run, 4)
    Checkpoints(run, 7).mark_best(2, "loss", 0.3)
    prune(run)
    assert {2, 4, 5} <= set(steps(run))


def test_the_newest_intact_one_stays_where_newer_ones_are_damaged(interrupted: Path) -> None:
    (interrupted / "checkpoints/step-00000005/state.json").unlink()
    prune(interrupted)
    assert {3, 4} <= set(steps(interrupted))
    assert 5 not in steps(interrupted)


def test_what_was_put_aside_and_left_over_goes(runs: Path) -> None:
    folder = runs / "first/checkpoints"
    shutil.copytree(folder / "step-00000003", folder / "step-00000003.bad")
    shutil.copytree(folder / "step-00000003", folder / ".tmp-step-00000006")
    prune(runs / "first")
    assert not {"step-00000003.bad", ".tmp-step-00000006"} & {path.name for path in folder.iterdir()}


def test_a_run_that_is_trained_is_refused(runs: Path) -> None:
    with claim(runs / "first"), pytest.raises(InputError, match="is still being trained"):
        prune(runs / "first")


def test_without_an_intact_checkpoint_nothing_goes(runs: Path) -> None:
    for path in (runs / "first/checkpoints").glob("step-*"):
        (path / "manifest.json").unlink()
    with pytest.raises(InputError, match="has no intact checkpoint"):
        needless(runs / "first")
