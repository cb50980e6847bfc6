import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.checkpoint import claim
from heedful.errors import InputError
from heedful.tools.runs import find_runs, summary
from heedful.training.logger import logged_scores, read_result


def test_runs_are_found_below_a_folder_and_in_it(runs: Path) -> None:
    assert list(find_runs(runs.parent)) == [runs / "first", runs / "second"]
    assert list(find_runs(runs / "second")) == [runs / "second"]


def test_a_folder_that_is_not_there_is_refused_with_one_that_holds_runs(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    with pytest.raises(InputError, match=f"missing: no such folder; give one that contains runs, such as {runs.name}$"):
        list(find_runs(Path("missing")))
    (tmp_path / "bare").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path / "bare")
    with pytest.raises(InputError, match=r"missing: no such folder; give one that contains runs$"):
        list(find_runs(Path("missing")))


def test_a_finished_run_has_the_scores_of_its_model(runs: Path) -> None:
    found = summary(runs / "first")
    assert (found.state, found.update) == ("finished", 5)
    assert {"update": 5, **found.scores} == read_result(runs / "first")
    assert found.bytes > (runs / "first/model/model.safetensors").stat().st_size


def test_an_interrupted_run_has_its_last_validation(interrupted: Path) -> None:
    found = summary(interrupted)
    assert (found.state, found.update) == ("interrupted", 5)
    assert found.scores == logged_scores(interrupted, 4)


def test_a_run_that_is_trained_is_running(runs: Path) -> None:
    with claim(runs / "first"):
        assert summary(runs / "first").state == "running"
    assert summary(runs / "first").state == "finished"


def test_a_run_without_some_bytes_is_damaged(runs: Path) -> None:
    path = runs / "first/checkpoints/step-00000004/model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert summary(runs / "first").state == "damaged"


def test_files_that_a_training_removes_meanwhile_are_no_error(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = os.walk

    def with_one_that_is_gone(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for place, folders, names in walk(folder):
            yield place, folders, [*names, "gone"]

    (runs / "first" / "circle").symlink_to("circle")
    before = summary(runs / "first")
    monkeypatch.setattr(os, "walk", with_one_that_is_gone)
    assert summary(runs / "first") == before
