"""Curves come from the log of a run as it is, finished or not."""

import json

import pytest

from heedful.tools.compare.charts import read_curves


def write(path, *records, tail=""):
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + tail)


def test_minutes_lie_between_the_records_of_the_clock(tmp_path):
    write(tmp_path / "log.jsonl", {"update": 10, "loss": 3.0}, {"update": 15, "valid_loss": 2.5, "valid_bleu": None})
    write(
        tmp_path / "timings.jsonl",
        {"update": 10, "tokens_per_second": 100, "seconds": 60.0},
        {"update": 20, "tokens_per_second": 400, "seconds": 180.0},
    )
    curves = read_curves(tmp_path, 7.0)
    assert curves.against("minutes", "loss") == [(1.0, 3.0)]
    assert curves.against("minutes", "valid_loss") == [(2.0, 2.5)]
    assert curves.against("FLOPs", "loss") == [(70.0, 3.0)]
    assert curves.against("updates", "valid_bleu") == []
    assert curves.tokens_per_second == pytest.approx((100 * 60 + 400 * 120) / 180)


def test_a_run_without_a_clock_has_no_minutes(tmp_path):
    write(tmp_path / "log.jsonl", {"update": 10, "loss": 3.0}, tail='{"upda')
    write(tmp_path / "timings.jsonl", {"update": 10, "tokens_per_second": 100, "time": 7})
    curves = read_curves(tmp_path, None)
    assert curves.against("updates", "loss") == [(10, 3.0)]
    assert curves.against("minutes", "loss") == curves.against("FLOPs", "loss") == []
    assert curves.tokens_per_second is None


def test_a_model_without_its_run_has_no_curves(tmp_path):
    assert read_curves(tmp_path, 1.0).values == {}
