"""CTranslate2 as the engine of language models: greedy outputs and scores as with torch, which is not imported."""

import json
import logging
from typing import Any

import pytest
import torch

import heedful
from engine_models import LINES, WORDS, run_without_torch, write_random_model
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.convert.engine import open_predictor
from heedful.errors import InputError, RunError
from heedful.predictors.ctranslate2_generator import CTranslate2Generator
from heedful.predictors.generator import GenerationRequest
from heedful.storage.complete_folder import ENGINES

pytest.importorskip("ctranslate2")

CONTEXT = 16
PROMPTS = [*LINES, "", " ".join(WORDS * 2)]  # the last one is longer than the context
SHAPES = {
    "of the paper": {},
    "learned positions": {"norm": "pre", "positions": "learned", "max_positions": CONTEXT},
    "Llama": {"norm": "pre", "positions": "rotary", "normalization": "rms", "activation": "swiglu", "kv_heads": 2},
    "ALiBi": {"positions": "alibi"},
}
GENERATIONS = {
    "within the context": {"max_tokens": 6},
    "beyond the context": {"max_tokens": 40},
    "at least some tokens": {"max_tokens": 12, "min_tokens": 5},
    "no end": {"max_tokens": 20, "ignore_eos": True},
    "stop strings": {"max_tokens": 30, "stop": ["three", "x", "e"]},
    "a token": {"max_tokens": 1},
    "one by one": {"max_tokens": 8, "batch_tokens": 1},
    "the best of one": {"max_tokens": 8, "temperature": 0.7, "top_k": 1},
    "filters that greedy decoding ignores": {"max_tokens": 8, "top_p": 0.5, "min_p": 0.1, "typical": 0.9, "seed": 3},
}


def write_generator(folder, **settings):
    model = {"family": "decoder", "decoder_layers": 2, "output_bias": True, **settings}
    return write_random_model(folder, "language_model", model, 4.0, data={"max_length": CONTEXT})


@pytest.fixture(scope="module", params=SHAPES)
def generators(request, tmp_path_factory):
    folder = write_generator(tmp_path_factory.mktemp("model") / "m", **SHAPES[request.param])
    return heedful.load(folder, engine="torch"), heedful.load(folder, engine="ctranslate2")


def check_equal(ours, theirs):
    for here, there in zip(ours, theirs, strict=True):
        assert (there.text, there.tokens, there.reason) == (here.text, here.tokens, here.reason)
        assert list(there.token_scores) == pytest.approx(here.token_scores, abs=1e-4)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("options", GENERATIONS)
def test_continuations_are_those_of_torch(generators, options):
    counts = []
    settings = {"temperature": 0.0, **GENERATIONS[options]}
    ours, theirs = (list(each.generate_lines(PROMPTS, done=counts.append, **settings)) for each in generators)
    check_equal(ours, theirs)
    assert sum(counts) == 2 * len(PROMPTS)


def test_requests_with_different_settings_are_answered_together(generators):
    config = generators[0].with_options(temperature=0.0, max_tokens=9).config
    options = [{}, {"min_tokens": 4}, {"ignore_eos": True}, {"max_tokens": 2}, {"stop": ["e"]}]
    changed = [type(config)(**{**vars(config), **each}) for each in options]
    requests = [GenerationRequest(prompt, each) for prompt in PROMPTS[:5] for each in changed]
    check_equal(*(each.generate(requests) for each in generators))


def test_a_stream_has_the_parts_of_that_of_torch_and_may_be_left(generators):
    options = {"temperature": 0.0, "max_tokens": 30}
    ours, theirs = (list(each.stream(LINES[3], **options)) for each in generators)
    assert theirs == ours
    stream = generators[1].stream(LINES[3], **options, ignore_eos=True)
    next(stream)
    stream.close()


def test_scores_of_texts_are_those_of_torch(generators):
    ours, theirs = (each.score(PROMPTS, end=True) for each in generators)
    for here, there in zip(ours, theirs, strict=True):
        assert there.pieces == here.pieces
        assert there.log_probs == pytest.approx(here.log_probs, abs=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_generator(tmp_path_factory.mktemp("model") / "m")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"temperature": 0.5}, r"generate\.temperature = 0\.5: must be 0"),
        ({"repetition_penalty": 1.2}, r"generate\.repetition_penalty = 1\.2: must be 1"),
        ({"presence_penalty": 1.0}, r"generate\.presence_penalty = 1: must be 0"),
        ({"no_repeat_ngram": 2}, r"generate\.no_repeat_ngram = 2: must be left out"),
    ],
)
def test_what_ctranslate2_does_not_compute_is_refused_or_left_to_torch(options, problem, folder, caplog):
    options = {"temperature": 0.0, **options}
    with pytest.raises(InputError, match=problem):
        open_predictor(CTranslate2Generator, folder, "ctranslate2", options=options)
    with caplog.at_level(logging.INFO):
        assert open_predictor(CTranslate2Generator, folder, "auto", options=options) is None
    assert "using torch, because CTranslate2 does not support: generate." in caplog.text
    generator = heedful.load(folder, engine="ctranslate2")  # which may only score texts
    with pytest.raises(InputError, match=problem):
        generator.generate("one", **options)
    with pytest.raises(InputError, match=problem):
        generator.stream("one", **options)
    assert generator.score("one two").tokens


def test_a_model_whose_recipe_samples_is_loaded_with_torch_by_auto(folder):
    assert not isinstance(heedful.load(folder, engine="auto"), CTranslate2Generator)
    with pytest.raises(InputError, match='is a language model; load it with task="language_model"'):
        heedful.load(folder, engine="ctranslate2", task="translation")


def test_relative_positions_are_left_to_torch(tmp_path):
    model = write_generator(tmp_path / "m", positions="relative")
    with pytest.raises(InputError, match=r'model\.positions = "relative": must have a different'):
        heedful.load(model, engine="ctranslate2")
    assert not (model / ENGINES).exists()


def test_weights_that_are_not_numbers_are_the_error_of_torch(tmp_path, folder):
    loaded: Any = heedful.load(folder, engine="torch")
    with torch.no_grad():
        loaded.model.output.weight[7] = torch.nan
    write_model(tmp_path / "nan", loaded.recipe, loaded.tokenizers, weights(loaded.model))
    with pytest.raises(InputError, match=r"embedding\.weight: must be finite"):
        heedful.load(tmp_path / "nan", engine="ctranslate2")
    with pytest.raises(RunError, match="not a number"):
        heedful.load(tmp_path / "nan", engine="auto").score("one two")


def test_the_command_imports_no_torch_for_greedy_decoding(folder):
    options = ("--temperature", "0", "--max-tokens", "5")
    ours = heedful.load(folder).generate(["one two", "three"], temperature=0.0, max_tokens=5)
    answers = run_without_torch("generate", "--model", folder, *options, "--json", lines="one two\nthree\n")
    for line, expected in zip(map(json.loads, answers), ours, strict=True):
        assert (line["text"], line["reason"]) == (expected.text, expected.reason)
        assert line["token_scores"] == pytest.approx(expected.token_scores, abs=1e-4)
