"""The laboratory: verdicts follow from intervals, and each experiment writes its page in both languages."""

import importlib
import sys
import tomllib

import pytest
from findings import TEXTS, Check, arguments, verdict

SCRIPTS = sorted(path.stem for path in TEXTS.glob("*.toml") if path.stem != "frame")


def check(*values: float, **bounds: float) -> Check:
    return Check("time", values, **bounds)


def test_an_interval_is_students():
    assert check(1.0, 2.0, 3.0).interval == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))


def test_a_check_holds_only_if_its_whole_interval_does():
    assert check(0.90, 0.91, 0.92, least=0.8).holds is True
    assert check(0.90, 0.91, 0.92, most=0.8).holds is False
    assert check(0.70, 0.80, 0.90, least=0.8).holds is None


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ((True, True), "holds"),
        ((True, False), "holds_with_limits"),
        ((True, None), "holds_with_limits"),
        ((False, None), "does_not_hold"),
        ((None, None), "is_undecided"),
    ],
)
def test_a_verdict_follows_from_the_checks(held, said):
    bounds = {True: {"least": 0.0}, False: {"most": 0.0}, None: {"least": 1.0}}
    assert verdict([check(0.9, 1.0, 1.1, **bounds[one]) for one in held]) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--seeds", "1"], "--seeds 1: an interval needs from 2 to 10"),
        (["--seeds", "11"], "--seeds 11: an interval needs from 2 to 10"),
        (["--quick"], "give the folder of a trial as --out"),
    ],
)
def test_options_that_would_spoil_a_page_are_refused_at_once(given, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script", *given])
    with pytest.raises(SystemExit):
        arguments("An experiment.", 3)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("script", SCRIPTS)
def test_both_languages_say_the_same_things(script):
    texts = tomllib.loads((TEXTS / f"{script}.toml").read_text(encoding="utf-8"))
    assert texts["en"].keys() == texts["zh"].keys()
    assert texts["en"]["measured"].keys() == texts["zh"]["measured"].keys()


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_experiment_writes_its_page_and_its_picture(script, tmp_path, monkeypatch):
    options = ["--quick", "--seeds", "2", "--threads", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [script, *options])
    importlib.import_module(script).main()
    name = script.replace("_", "-")
    assert (tmp_path / f"laboratory/{name}.svg").read_text().startswith("<?xml")
    for page in (tmp_path / f"laboratory/{name}.md", tmp_path / f"zh/{name}.md"):
        text = page.read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert f"python laboratory/{script}.py" in text
        assert "{" not in text
