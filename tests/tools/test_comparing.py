from pathlib import Path

from heedful.tools.runs import Difference, results, setting_differences, settings_of


def test_the_settings_that_differ_are_listed(runs: Path) -> None:
    assert setting_differences(runs / "first", runs / "second") == [
        Difference("optimizer.lr", 0.01, 0.02),
        Difference("train.max_updates", 5, 3),
    ]
    assert setting_differences(runs / "first", runs / "first") == []


def test_a_list_of_tables_has_a_row_for_each_of_their_settings(runs: Path) -> None:
    settings = dict(settings_of(runs / "first"))
    assert "data.train" not in settings
    assert "data.train.0.source" in settings


def test_results_stand_side_by_side(runs: Path) -> None:
    found = results(runs / "first", runs / "second")
    assert found[:2] == [Difference("state", "finished", "finished"), Difference("update", 5, 3)]
    assert any(one.name == "loss" and one.first != one.second for one in found)
