"""The laboratory: verdicts follow from intervals, experiments run, and pages are what their texts and results say."""

import importlib
import shutil
import sys

import pytest
import report
from report import DOCS, FOLDERS, FRAME, GALLERIES, ROOT, arguments, check, experiments, page_name, text, verdict

OUTCOMES = {True: {"least": 0.0}, False: {"most": 0.0}, None: {"least": 1.0}}  # bounds for the values 0.9, 1 and 1.1


def test_an_interval_is_students():
    prediction = check("time", [1.0, 2.0, 3.0])
    assert (prediction.low, prediction.high) == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))


def test_a_single_value_is_an_interval_without_width():
    prediction = check("time", [2.0], least=2.0)
    assert (prediction.low, prediction.mean, prediction.high, prediction.holds) == (2.0, 2.0, 2.0, True)


@pytest.mark.parametrize(
    ("values", "bounds", "holds"),
    [
        ([0.90, 0.91, 0.92], {"least": 0.8}, True),
        ([0.90, 0.91, 0.92], {"most": 0.8}, False),
        ([0.90, 0.91, 0.92], {"least": 0.8, "most": 1.0}, True),
        ([0.90, 0.91, 0.92], {"least": 0.95, "most": 1.0}, False),
        ([0.75, 0.85, 0.95], {"least": 0.8}, None),
    ],
)
def test_a_prediction_holds_only_if_its_whole_interval_is_within_its_bounds(values, bounds, holds):
    assert check("time", values, **bounds).holds is holds


@pytest.mark.parametrize(
    ("outcomes", "key"),
    [
        ((True, True), "holds"),
        ((True, False), "holds_with_limits"),
        ((True, None), "holds_with_limits"),
        ((False, None), "does_not_hold"),
        ((None, None), "undecided"),
    ],
)
def test_a_verdict_follows_from_the_predictions(outcomes, key):
    assert verdict([check("time", [0.9, 1.0, 1.1], **OUTCOMES[outcome]) for outcome in outcomes]) == key


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "1"], "--seeds 1: an interval needs from 2 to 10"),
        (["--seeds", "11"], "--seeds 11: an interval needs from 2 to 10"),
        (["--quick"], "pass a folder with --out"),
    ],
)
def test_options_that_would_spoil_a_page_are_refused_at_once(options, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script", *options])
    with pytest.raises(SystemExit):
        arguments("An experiment.", 3)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", experiments())
def test_both_languages_have_the_same_keys(name):
    english, chinese = text(name)["en"], text(name)["zh"]
    assert english.keys() == chinese.keys()
    assert english["quantities"].keys() == chinese["quantities"].keys()


def test_both_languages_have_the_same_frame():
    assert FRAME["en"].keys() == FRAME["zh"].keys()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", experiments())
def test_an_experiment_writes_its_pages_its_image_and_its_results(name, tmp_path, monkeypatch):
    options = ["--quick", "--seeds", "2", "--threads", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [name, *options])
    importlib.import_module(name).main()
    page = page_name(name)
    assert (tmp_path / f"laboratory/{page}.svg").read_text().startswith("<?xml")
    quantities = [(prediction.quantity, prediction.case) for prediction in report.results(name, tmp_path)[1]]
    assert quantities == [(prediction.quantity, prediction.case) for prediction in report.results(name, DOCS)[1]]
    for folder in FOLDERS.values():
        content = (tmp_path / folder / f"{page}.md").read_text(encoding="utf-8")
        assert content.startswith("# ")
        assert f"python laboratory/{name}.py --threads 1" in content
        assert "{" not in content


@pytest.mark.parametrize("name", experiments())
def test_a_page_is_that_of_its_text_and_its_stored_results(name, tmp_path):
    (tmp_path / "laboratory").mkdir()
    shutil.copy(DOCS / f"laboratory/{page_name(name)}.jsonl", tmp_path / "laboratory")
    report.write_pages(name, tmp_path)
    for folder in FOLDERS.values():
        file = f"{folder}/{page_name(name)}.md"
        assert (DOCS / file).read_text(encoding="utf-8") == (tmp_path / file).read_text(encoding="utf-8")


def test_the_galleries_show_every_experiment(tmp_path):
    report.write_galleries(tmp_path)
    for file in GALLERIES.values():
        content = (tmp_path / file).read_text(encoding="utf-8")
        assert (ROOT / "laboratory" / file).read_text(encoding="utf-8") == content
        assert all(f"/{page_name(name)}.md" in content for name in experiments())
