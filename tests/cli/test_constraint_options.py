"""Constraints of `heedful translate`: options, glossaries, and rows of a table."""

import json
from functools import partial
from pathlib import Path

import pytest
from invocation import invoke

from engine_models import write_random_model
from heedful.errors import InputError

run = partial(invoke, "translate")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained translator from English to German, whose outputs end at many lengths."""
    data = {"max_length": 24, "filters": {"max_tokens": 24}, "source_language": "en", "target_language": "de"}
    shape = {"encoder_layers": 1, "decoder_layers": 1, "tie": "none", "output_bias": True}
    folder = tmp_path_factory.mktemp("constraints") / "model"
    return write_random_model(folder, "translation", shape, 12.0, data=data, decode={"max_extra": 9, "beam": 2})


def outputs(*arguments: object, stdin: str = "") -> list[str]:
    return run(*arguments, stdin=stdin).stdout.removesuffix("\n").split("\n")


def test_options_constrain_every_line(model):
    lines = outputs("--model", model, "--prefix", "one", "--term", "two|three", "--forbid", "four", stdin="five\nsix\n")
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("one")
        assert {"two", "three"} & set(line.split())
        assert "four" not in line.split()


def test_terms_of_a_glossary_apply_to_the_lines_that_contain_them(model, tmp_path):
    (tmp_path / "terms.tsv").write_text("one\televen|twelve\ntwo three\tten\nthree\tnine\nfour\t\u0416\u0416\n")
    result = run("--model", model, "--glossary", tmp_path / "terms.tsv", "--json", stdin="ONE five\ntwo three\nsix\n")
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert {"eleven", "twelve"} & set(first["translations"][0]["text"].split())
    assert first["glossary"] == [{"source": "one", "target": ["eleven", "twelve"], "applied": True}]
    assert "ten" in second["translations"][0]["text"].split()
    assert [each["source"] for each in second["glossary"]] == ["two three"]
    assert third["glossary"] == []
    assert "glossary: 2 terms applied in 3 lines" in result.stderr


def test_terms_that_cannot_be_applied_are_reported_and_left_out(model, tmp_path):
    (tmp_path / "terms.csv").write_text("one,two\nthree,four\n")
    result = run("--model", model, "--glossary", tmp_path / "terms.csv", "--forbid", "two", stdin="one three\n")
    assert "four" in result.stdout.split()
    assert "glossary: 1 term applied in 1 line" in result.stderr
    assert "1 term could not be applied ('one' in line 1: the term 'two' contains something forbidden" in result.stderr


def test_a_term_that_the_search_cannot_write_is_left_out_and_reported(model, tmp_path):
    (tmp_path / "terms.tsv").write_text("one\ttwo four\nthree\tfour two\n")
    # Each term is possible, but together they repeat a word.
    command = partial(run, "--model", model, "--no-repeat-ngram", 1)
    result = command("--glossary", tmp_path / "terms.tsv", "--json", stdin="five\none three\n")
    _, second = map(json.loads, result.stdout.splitlines())
    assert [each["applied"] for each in second["glossary"]] == [True, False]
    assert "two four" in second["translations"][0]["text"]
    assert "glossary: 1 term applied in 2 lines" in result.stderr
    assert "1 term could not be applied ('three' in line 2: the search found no output with it)" in result.stderr


def test_the_line_whose_constraints_are_not_met_is_named_with_them(model, tmp_path):
    table = tmp_path / "rows.jsonl"
    table.write_text('{"en": "one"}\n{"en": "one two", "terms": ["two four", "four two"]}\n')
    words = r"line 2: the search found no output .*the term 'two four', the term 'four two'"
    with pytest.raises(InputError, match=words):
        run("--model", model, "--no-repeat-ngram", 1, "--input", table, "--row-constraints")


def test_rows_have_constraints_only_if_that_is_wanted(model, tmp_path):
    rows = [{"en": "one", "prefix": "ten", "terms": ["two", ["six", "seven"]]}, {"en": "one", "forbidden": ["two"]}]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    first, second = outputs("--model", model, "--input", table, "--row-constraints")
    assert first.startswith("ten")
    assert "two" in first.split()
    assert "two" not in second.split()
    assert outputs("--model", model, "--input", table)[0] == outputs("--model", model, "one")[0]
    table.write_text('{"en": "one", "terms": [[]]}\n')
    with pytest.raises(InputError, match="line 1: constraints: a term has no alternatives"):
        run("--model", model, "--input", table, "--row-constraints")
    with pytest.raises(InputError, match="--row-constraints reads keys of the rows"):
        run("--model", model, "--row-constraints", "one")


def test_a_folder_is_translated_with_constraints_and_resumed_only_with_the_same(model, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\ntwo three\n")
    (tmp_path / "terms.tsv").write_text("one\tnine\n")
    job = partial(run, "--model", model, "--input", tmp_path / "in", "--output", tmp_path / "out", "--term", "ten")
    assert "glossary: 1 term applied in 2 lines" in job("--glossary", tmp_path / "terms.tsv").stderr
    lines = (tmp_path / "out" / "a.txt").read_text().splitlines()
    assert "nine" in lines[0].split()
    assert all("ten" in line.split() for line in lines)
    assert job("--glossary", tmp_path / "terms.tsv").exit_code == 0
    with pytest.raises(InputError, match="the job has glossary = "):
        job()


def test_write_takes_constraints_but_no_glossary(model):
    help = invoke("write", "--help").stdout
    assert "--prefix" in help
    assert "--glossary" not in help
