"""`heedful translate`: line for line, whatever the lines are, and one message for each mistake."""

import gzip
import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from invocation import invoke
from speechless import make_speechless

from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import load_model, write_model
from heedful.cli.commands import TABLE, Commands
from heedful.config.schema import DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.predictors.translator import Translator
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(53)]
DECODE = DecodeConfig(beam=2, max_extra=3)

run = partial(invoke, "translate", "--no-literals")  # what the model itself writes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows nothing, and has positions for 300 tokens."""
    torch.manual_seed(1)
    config = ModelConfig(
        d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1, positions="learned", max_positions=300
    )
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
    folder = tmp_path_factory.mktemp("translate") / "model"
    network = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    write_model(folder, Recipe(model=config, decode=DECODE), TokenizerPair(tokenizer, tokenizer), weights(network))
    return folder


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return load_model(model).use_as(Translator)


def without_cuts(told):
    """What is reported, but for outputs that a model which knows nothing never ends."""
    return "".join(line for line in told.splitlines(keepends=True) if "cut at the length limit" not in line)


def test_sentences_are_translated(model, translator):
    sentences = ["w3 w5 w7", "", "w11"]
    result = run(*sentences, "--model", model)
    assert result.stdout == "".join(f"{line}\n" for line in translator.translate(sentences))
    assert without_cuts(result.stderr) == ""


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("place", ["stdin", "plain", "gz"])
def test_a_line_in_is_a_line_out(tmp_path, model, translator, end, place):
    lines = ["w3", "", "w5\u2028w7", "w11\x0cw13\x85", "  ", "w17\rw19", "w23"]
    data = end.join(line.encode() for line in lines)
    file = tmp_path / ("text.gz" if place == "gz" else "text")
    file.write_bytes(gzip.compress(data) if place == "gz" else data)
    result = run("--model", model, stdin=data) if place == "stdin" else run("--model", model, "--input", file)
    assert result.stdout.split("\n") == [*translator.translate(lines), ""]


def test_an_output_file_holds_what_standard_output_would(tmp_path, model):
    out = tmp_path / "out"
    out.write_text("of an earlier run")
    printed = run("w3 w5", "w7", "--model", model)
    written = run("w3 w5", "w7", "--model", model, "--output", out, "--force")
    assert written.stdout == ""
    assert out.read_bytes() == printed.stdout.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_output_file_is_untouched_if_something_fails(tmp_path, model):
    out = tmp_path / "out"
    out.write_text("of an earlier run")
    with pytest.raises(InputError, match="standard input, line 3, byte 2"):
        run("--model", model, "--output", out, "--force", stdin=b"w3\nw5\nw\xff\n")
    assert out.read_text() == "of an earlier run"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_json_tells_all_alternatives_with_pieces_and_scores(model):
    arguments = ("--model", model, "--json", "--beam", 3, "--n-best", 3, "--penalty", "average", "--alpha", 0.5)
    first, blank = (json.loads(line) for line in run("w3 w5", " ", *arguments).stdout.splitlines())
    assert blank == {"translations": [], "truncated": False}
    assert first["truncated"] is False
    assert len({tuple(t["pieces"]) for t in first["translations"]}) == 3
    scores = [t["score"] for t in first["translations"]]
    assert scores == sorted(scores, reverse=True)
    for found in first["translations"]:
        assert list(found) == ["text", "score", "pieces", "token_scores", "complete"]
        assert found["score"] == pytest.approx(sum(found["token_scores"]) / len(found["token_scores"]) ** 0.5)
        assert len(found["pieces"]) == len(found["token_scores"])
        assert found["complete"] == (found["pieces"][-1] == "<eos>")
        assert found["text"].split() == [piece.strip("▁") for piece in found["pieces"] if piece != "<eos>"]


def test_options_change_the_search_of_the_model(model):
    expected = load_model(model).use_as(Translator).with_options(beam=1, penalty="average", alpha=1.0)
    found = json.loads(
        run("w3 w5", "--model", model, "--json", "--beam", 1, "--penalty", "average", "--alpha", 1).stdout
    )
    (alternative,) = next(expected.translate_lines(["w3 w5"])).alternatives
    assert found["translations"][0]["score"] == pytest.approx(alternative.hypothesis.score, abs=1e-5)
    assert found["translations"][0]["token_scores"] == pytest.approx(alternative.hypothesis.token_scores, abs=1e-5)


def test_lines_that_are_too_long_are_translated_in_part_and_counted(model):
    result = run("w3", " ".join(["w5"] * 300), "w7", " ".join(["w5"] * 500), "--model", model, "--beam", 1)
    assert len(result.stdout.splitlines()) == 4
    assert without_cuts(result.stderr) == (
        "heedful: 2 of 4 lines were truncated (first: line 2): only the first 299 tokens of a line are translated; "
        "split long lines into sentences\n"
    )


def test_translations_that_are_empty_are_counted_and_explained(model, tmp_path):
    mute = make_speechless(model, tmp_path / "mute")
    result = run("w3", "", "w5 w7", "--model", mute)
    assert result.stdout == "\n\n\n"
    assert result.stderr == (
        f"heedful: {mute}: 2 of 2 translations were empty; a model that was not trained long enough "
        "may generate nothing\n"
    )


def test_the_size_of_batches_does_not_matter(model):
    sentences = [" ".join(WORDS[:n]) for n in (5, 1, 7, 3)]
    assert run(*sentences, "--model", model, "--batch-tokens", 7).stdout == run(*sentences, "--model", model).stdout


def test_every_line_is_counted(tmp_path, model, reporters):
    file = tmp_path / "text"
    file.write_text("w3\n\nw5 w7\n w11")
    run("--model", model, "--input", file)
    [reporter] = reporters
    assert (reporter.work, reporter.unit, reporter.total, reporter.done) == ("translating", "lines", 4, 4)


def test_a_text_that_the_vocabulary_does_not_know_is_told_once(model):
    known, foreign = "w3 w5 w7 w11", "\u0441\u043e\u0431\u0430\u043a\u0430 \u0431\u0435\u0436\u0438\u0442"
    assert without_cuts(run(known, "cub w5 w3 w7", "--model", model).stderr) == ""
    told = without_cuts(run(*[foreign] * 31, "--model", model).stderr)
    assert told.startswith("heedful: 100% of the text is not in the model's vocabulary")
    assert told.count("heedful") == 1
    assert run(foreign, "--model", model).stderr.startswith("heedful: 100% of the text")


MISTAKES = {
    "text and a file": (("w3", "--input", "file"), InputError, "use only one of them"),
    "no such file": (("--input", "nowhere"), InputError, "nowhere: no such file"),
    "a folder as a file": (("--input", "."), InputError, "is a folder"),
    "no such folder": (("w3", "--output", "no/where"), InputError, "an existing folder"),
    "a folder to write": (("w3", "--output", "."), InputError, "give a file"),
    "n-best as plain text": (("w3", "--n-best", 2), InputError, "add --json"),
    "more alternatives than the beam": (("w3", "--json", "--n-best", 7), InputError, "option: n_best = 7"),
    "a beam beyond the vocabulary": (("w3", "--beam", 59), InputError, "more than the 57 tokens of the vocabulary"),
    "a beam beyond all bounds": (("w3", "--beam", 100_000), InputError, "must be at most 1,000"),
    "no beam": (("w3", "--beam", 0), InputError, "^--beam must be at least 1, but is 0$"),
    "a beam in words": (("w3", "--beam", "two"), InputError, '^--beam must be a whole number, but is "two"$'),
    "a penalty in words": (("w3", "--alpha", "big"), InputError, '^--alpha must be a number, but is "big"$'),
    "not a number": (("w3", "--alpha", "nan"), InputError, "^--alpha must be from 0 to 10, but is nan$"),
    "a negative penalty": (("w3", "--alpha", -1), InputError, "--alpha must be at least 0"),
    "an unknown penalty": (("w3", "--penalty", "avarage"), InputError, "average"),
    "an unknown device": (("w3", "--device", "abacus"), InputError, "abacus"),
    "half a character": (("w3 \udcff",), InputError, "surrogate"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_message(tmp_path, monkeypatch, model, arguments, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        run(*arguments, "--model", model)


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match="no-such-model"):
        run("w3", "--model", "no-such-model")


def command(model: Path, redirections: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    program = "from heedful.cli import main; main()"
    line = f'exec "$0" -c "{program}" translate --model "$1" {redirections}'
    return subprocess.run(["sh", "-c", line, sys.executable, str(model)], input=stdin, capture_output=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_message(model):
    result = command(model, "> /dev/full", b"w3\n")
    assert (result.returncode, result.stderr.splitlines()) == (
        RunError.exit_code,
        [b"heedful: cannot write to standard output: No space left on device"],
    )


def test_a_reader_that_has_seen_enough_ends_it_quietly(model):
    result = command(model, "| head -n 1", b"w3\n" * 1500)
    assert (result.returncode, result.stderr, len(result.stdout.splitlines())) == (0, b"", 1)


def test_closed_standard_input_is_one_message(model):
    result = command(model, "<&-", b"")
    assert result.returncode == InputError.exit_code
    assert result.stderr == b"heedful: standard input is closed; give texts or --input\n"


def test_literals_stay_unless_they_are_switched_off(model, translator):
    line = "* w3 w5 w7 {name} \U0001f600"
    stays = invoke("translate", line, "--model", model).stdout
    assert stays.startswith("* ")
    assert "{name}" in stays
    assert stays.endswith(" \U0001f600\n")
    assert invoke("translate", line, "--model", model, "--no-literals").stdout == f"{translator.translate(line)}\n"
    [found] = translator.translate_lines([line])
    written = json.loads(invoke("translate", line, "--model", model, "--json").stdout)
    assert written["translations"][0]["text"] == found.text


def test_write_describes_texts_instead_of_translations_and_needs_a_model():
    commands = Commands(TABLE)
    ours, theirs = ({each.name: each for each in commands[name].params} for name in ("write", "translate"))
    assert theirs.keys() - ours.keys() == {"literals", "alignments", "glossary", "in_place"}
    assert not [name for name, each in ours.items() if re.search(r"sentence|en-de|\b[Tt]ranslates?\b", each.help)]
    result = invoke("write", "Tell me a story.")
    assert result.exit_code
    assert "Missing option '--model'" in result.stderr


def test_models_of_other_tasks_write_what_they_write(tmp_path, model, translator):
    loaded = load_model(model)
    recipe = replace(loaded.recipe, task="text_to_text")
    write_model(tmp_path / "model", recipe, loaded.tokenizers, weights(loaded.model))
    line = "* w3 w5 w7 {name}"
    assert invoke("write", line, "--model", tmp_path / "model").stdout == f"{translator.translate(line)}\n"
