"""`heedful generate`: what follows each prompt, as text, as JSON or as it is said, and one message for each mistake."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from invocation import invoke
from torch import nn

import heedful
from heedful.architectures import LanguageModel, weights
from heedful.checkpoint import load_model, write_model
from heedful.cli.generate import generate
from heedful.config.schema import DataConfig, GenerateConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.predictors.generator import GenerationRequest, Generator
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

WORDS = [f"w{number}" for number in range(23)]
GENERATE = GenerateConfig(max_tokens=7, top_k=11, seed=5)

run = partial(invoke, "generate")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says anything, and reads 13 tokens."""
    torch.manual_seed(1)
    config = ModelConfig(family="decoder", d_model=14, d_ff=19, heads=2, decoder_layers=1, tie="none")
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", byte_fallback=False, pretokenized=True))
    network = LanguageModel(config, len(tokenizer))
    nn.init.normal_(network.output.weight, std=0.5)
    recipe = Recipe(task="language_model", model=config, data=DataConfig(max_length=13), generate=GENERATE)
    folder = tmp_path_factory.mktemp("generate") / "model"
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(network))
    return folder


@pytest.fixture(scope="module")
def generator(model: Path) -> Generator:
    return load_model(model).use_as(Generator)


def answer(generator: Generator, prompt: str, **settings: object) -> str:
    return generator.generate([GenerationRequest(prompt, replace(GENERATE, **settings))])[0].text


@pytest.mark.parametrize("prompts", [["w3 w5"], ["w3 w5", "", "w11"]], ids=["one", "several"])
def test_what_follows_each_prompt_is_written(model, generator, prompts):
    result = run("--model", model, *prompts)
    assert result.stdout == "".join(f"{answer(generator, prompt)}\n" for prompt in prompts)
    assert result.stderr == ""


@pytest.mark.parametrize("place", ["stdin", "file"])
def test_a_line_is_a_prompt(tmp_path, model, generator, place):
    prompts = ["w3", "", "w5 w7"]
    file = tmp_path / "prompts"
    file.write_text("\n".join(prompts))
    result = (
        run("--model", model, stdin=file.read_bytes()) if place == "stdin" else run("--model", model, "--input", file)
    )
    assert result.stdout == "".join(f"{answer(generator, prompt)}\n" for prompt in prompts)


def test_samples_count_their_seeds_up(model, generator):
    result = run("--model", model, "w3", "w5", "--samples", 3, "--seed", 17)
    expected = [answer(generator, prompt, seed=seed) for prompt in ("w3", "w5") for seed in (17, 18, 19)]
    assert result.stdout.splitlines() == expected
    assert len(set(expected)) == 6


def test_json_tells_pieces_scores_reason_and_seed(model, generator):
    found = [json.loads(line) for line in run("--model", model, "--json", "--samples", 11, "w3").stdout.splitlines()]
    assert [entry["seed"] for entry in found] == [*range(5, 16)]
    assert {entry["reason"] for entry in found} == {"eos", "length"}
    for entry in found:
        assert list(entry) == ["prompt", "text", "pieces", "token_scores", "reason", "seed"]
        assert entry["prompt"] == "w3"
        assert len(entry["pieces"]) == len(entry["token_scores"])
        assert (entry["pieces"][-1] == "<eos>") == (entry["reason"] == "eos")
        assert entry["text"] == answer(generator, "w3", seed=entry["seed"])


def test_each_line_of_a_file_gets_one_line(tmp_path, generator, monkeypatch):
    """The model says line feeds, carriage returns and backslashes; what it said can be had back."""
    said = ["one\ntwo", "a\\nb", "c\r\nd", ""]
    prompts = [f"w{number}" for number in range(4)]

    def generate_lines(*_: object) -> Iterator[SimpleNamespace]:
        return (SimpleNamespace(text=text, reason="length") for text in said)

    monkeypatch.setattr(Generator, "generate_lines", generate_lines)
    monkeypatch.setattr("heedful.cli.generate.load_generator", lambda *_: generator)
    (tmp_path / "prompts").write_text("\n".join(prompts))
    lines = run("--model", "any", "--input", tmp_path / "prompts").stdout.split("\n")
    assert lines == [r"one\ntwo", r"a\\nb", r"c\r\nd", "", ""]
    assert [line.encode().decode("unicode_escape") for line in lines[:4]] == said
    assert run("--model", "any", *prompts).stdout_bytes == "".join(f"{text}\n" for text in said).encode()


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["plain", "json"])
def test_every_answer_is_counted(tmp_path, model, reporters, options):
    (tmp_path / "prompts").write_text("w3\n\nw5 w7\n")
    run("--model", model, "--input", tmp_path / "prompts", "--samples", 5, *options)
    [reporter] = reporters
    assert (reporter.work, reporter.unit, reporter.total, reporter.done) == ("generating", "answers", 15, 15)


def test_of_a_single_answer_the_tokens_are_counted(model, reporters):
    run("--model", model, "w3", "--max-tokens", 5, "--stop", "never")
    [reporter] = reporters
    assert (reporter.unit, reporter.total) == ("tokens", 5)
    assert 0 < reporter.done <= 5


OPTIONS = {
    "max_tokens": 3,
    "min_tokens": 7,
    "repetition_penalty": 9.5,
    "frequency_penalty": 5.5,
    "presence_penalty": 7.5,
    "no_repeat_ngram": 1,
    "temperature": 0.0,
    "top_k": 2,
    "top_p": 0.2,
    "min_p": 0.7,
    "typical": 0.2,
    "seed": 29,
}


@pytest.mark.parametrize(("name", "value"), OPTIONS.items(), ids=OPTIONS)
def test_an_option_changes_how_the_model_generates(model, generator, name, value):
    prompts = ["w3 w5 w3", "w7 w11", "", "w13"]
    found = run("--model", model, f"--{name.replace('_', '-')}", value, *prompts).stdout.splitlines()
    assert found == [answer(generator, prompt, **{name: value}) for prompt in prompts]
    assert found != [answer(generator, prompt) for prompt in prompts]


def test_every_setting_has_an_option():
    assert set(GenerateConfig.__dataclass_fields__) <= set(generate.__annotations__)
    assert set(OPTIONS) | {"ignore_eos", "stop", "batch_tokens"} == set(GenerateConfig.__dataclass_fields__)


def test_an_answer_without_eos_has_max_tokens(model):
    answers = run("--model", model, "--ignore-eos", "--json", "w3", "w5", "", "--samples", 11).stdout.splitlines()
    assert {(json.loads(line)["reason"], len(json.loads(line)["pieces"])) for line in answers} == {("length", 7)}


def test_stop_strings_end_an_answer(model, generator):
    words = answer(generator, "w3").split()
    result = run("--model", model, "w3", "--stop", "nothing", "--stop", words[2])
    assert result.stdout.split() == words[:2]


def test_the_size_of_batches_does_not_matter(model):
    prompts = ["w3 w5 w7", "", "w11", "w13 w17"]
    assert run("--model", model, *prompts, "--batch-tokens", 1).stdout == run("--model", model, *prompts).stdout


def test_no_progress_cuts_into_an_answer_that_appears_at_the_terminal(model, reporters, monkeypatch):
    monkeypatch.setattr("heedful.cli.generate.shows_bar", lambda output: output is not None)
    run("--model", model, "w3")
    assert reporters == []
    run("--model", model, "w3", "w5")
    assert len(reporters) == 1


def test_a_single_answer_appears_as_it_is_said(model, generator, monkeypatch):
    monkeypatch.setattr(Generator, "generate", None)
    parts = list(heedful.load(model, "cpu").stream(GenerationRequest("w3", GENERATE)))
    assert run("--model", model, "w3").stdout == "".join(parts) + "\n"
    assert len(parts) > 1


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["plain", "json"])
def test_each_line_typed_at_a_terminal_is_answered(model, generator, monkeypatch, options):
    for module in ("answering", "inputs"):
        monkeypatch.setattr(f"heedful.cli.{module}.is_typed", lambda *_: True)
    result = run("--model", model, *options, stdin="w3\nw5 w7\n")
    found = [json.loads(line)["text"] if options else line for line in result.stdout.splitlines()]
    assert found == [answer(generator, prompt) for prompt in ("w3", "w5 w7")]
    assert result.stderr == "Type one line at a time; Ctrl-D ends the input.\n"


def test_a_prompt_that_is_not_read_as_a_whole_is_told(model):
    result = run("--model", model, "w3", " ".join(WORDS[:13]), " ".join(WORDS[:14]))
    assert len(result.stdout.splitlines()) == 3
    assert result.stderr == "heedful: prompt 3: longer than the 13 tokens that the model reads; only its end is read\n"


def test_what_is_unknown_in_a_prompt_is_told(model):
    result = run("--model", model, "w3 wolf w5 cub wolf", "w7")
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "heedful: prompt 1: not in the model's vocabulary, so read as <unk>: wolf cub\n"


def test_an_output_file_holds_what_standard_output_would(tmp_path, model):
    printed = run("--model", model, "w3 w5", "w7")
    written = run("--model", model, "w3 w5", "w7", "--output", tmp_path / "out")
    assert written.stdout == ""
    assert (tmp_path / "out").read_bytes() == printed.stdout.encode()


MISTAKES = {
    "prompts and a file": (("w3", "--input", "file"), "use only one of them"),
    "no such file": (("--input", "nowhere"), "nowhere: no such file"),
    "no such folder": (("w3", "--output", "no/where"), "an existing folder"),
    "no tokens": (("w3", "--max-tokens", 0), "--max-tokens must be at least 1"),
    "below absolute zero": (("w3", "--temperature", -1), "--temperature must be at least 0"),
    "no mass": (("w3", "--top-p", 0), "--top-p must be more than 0"),
    "an empty stop string": (("w3", "--stop", ""), "stop contains an empty text"),
    "half a character": (("w3 \udcff",), "surrogate"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_message(tmp_path, monkeypatch, model, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        run("--model", model, *arguments)


def test_a_translator_is_sent_to_its_command():
    with pytest.raises(InputError, match="is a translation model; use it with `heedful translate`"):
        run("--model", "en-de", "A dog runs.")


@pytest.mark.parametrize("form", [(), ("--json",), ("--samples", "1")])
@pytest.mark.parametrize("prompts", [["w3"], ["w3", "w5", "w7"]])
def test_answers_that_end_before_the_length_that_was_asked_for_are_told_of(model, generator, prompts, form):
    length = next(n for n in range(8, 200) if any(ends_early(generator, prompt, n) for prompt in prompts))
    ended = [prompt for prompt in prompts if ends_early(generator, prompt, length)]
    told = run("--model", model, *prompts, "--max-tokens", length, *form).stderr
    which = "the answer ends" if len(prompts) == 1 else f"{len(ended)} of 3 answers end{'s' * (len(ended) == 1)}"
    assert f"heedful: {which} after " in told
    assert f" of {length} tokens (--max-tokens), because the model generated <eos>; --ignore-eos or" in told


@cache
def ends_early(generator: Generator, prompt: str, length: int) -> bool:
    (found,) = generator.generate([GenerationRequest(prompt, replace(GENERATE, max_tokens=length))])
    return found.reason == "eos"


def test_nothing_is_told_of_the_length_where_none_was_asked_for_or_it_was_reached(model):
    assert run("--model", model, *WORDS).stderr == ""
    assert run("--model", model, *WORDS, "--max-tokens", 30, "--ignore-eos").stderr == ""
