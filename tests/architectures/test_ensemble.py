"""Ensembles: the probability of a token is the mean of its probabilities under the models, whatever the search."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from children import ids, ones
from every_architecture import (
    ENCODER_DECODERS,
    LANGUAGE_MODELS,
    encoder_decoder,
    generator,
    language_model,
    translator,
)
from heedful.architectures.backbone import model_class
from heedful.architectures.ensemble import ensemble
from heedful.losses import label_cross_entropy, output_cross_entropy
from heedful.nn.masks import AttentionMask
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from heedful.search.source_to_target import score_rows
from heedful.text.tokenizer import EOS

TEXTS = ["the old dog", "two women read a book .", "", "dog dog dog the station the old dog sees a book", "book"]
translators = pytest.mark.parametrize("names", list(pairwise(ENCODER_DECODERS)), ids=" and ".join)
generators = pytest.mark.parametrize("names", list(pairwise(LANGUAGE_MODELS)), ids=" and ".join)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def translators_together(names: tuple[str, ...]) -> Translator:
    first, *others = map(translator, names)
    return Translator(ensemble([first.model, *(each.model for each in others)]), first.tokenizers, first.config)


def generators_together(names: tuple[str, ...]) -> Generator:
    first, *others = map(generator, names)
    return Generator(ensemble([first.model, *(each.model for each in others)]), first.tokenizer, first.config)


def mean(models: list[Any], *inputs: torch.Tensor) -> torch.Tensor:
    return torch.stack([model(*inputs).softmax(-1) for model in models]).mean(0)


@translators
def test_the_probability_of_a_target_token_is_the_mean_of_those_of_the_models(names):
    models = [encoder_decoder(name) for name in names]
    source, target = ids(3, 7), ids(3, 5)
    inputs = source, ones(source), target, ones(target)
    assert_close(ensemble(models)(*inputs).exp(), mean(models, *inputs))


@generators
def test_the_probability_of_the_next_token_is_the_mean_of_those_of_the_models(names):
    models, tokens = [language_model(name) for name in names], ids(3, 7)
    assert_close(ensemble(models)(tokens, ones(tokens)).exp(), mean(models, tokens, ones(tokens)))


@translators
def test_an_ensemble_that_decodes_token_by_token_computes_what_it_computes_at_once(names):
    together, source, target = ensemble([encoder_decoder(name) for name in names]), ids(3, 7), ids(3, 5)
    rows = torch.tensor([2, 0, 0, 1])
    state = together.start(source, ones(source))
    state.select(rows)
    steps = torch.stack([state.step(tokens) for tokens in target[rows].T], dim=1)
    assert_close(steps, together(source, ones(source), target, ones(target))[rows], atol=1e-5, rtol=1e-5)


@translators
@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation_does_not_depend_on_the_other_lines_and_its_score_is_that_of_its_tokens(names, beam):
    together = translators_together(names)
    translations = list(together.translate_lines(TEXTS, beam=beam))
    assert [str(each) for each in translations] == [together.translate(text, beam=beam) for text in TEXTS]
    hypotheses = [alternative.hypothesis for each in translations for alternative in each.alternatives[:1]]
    sources = [[*together.tokenizer.encode(text), EOS] for text in TEXTS if text]
    # An output that was cut at its limit has no score for <eos>.
    targets = [[*hypothesis.tokens, EOS][: len(hypothesis.token_scores)] for hypothesis in hypotheses]
    scores = score_rows(together.model, sources, targets, 100)
    for hypothesis, row in zip(hypotheses, scores, strict=True):
        assert list(hypothesis.token_scores) == pytest.approx(row, abs=1e-4)


@generators
def test_a_continuation_does_not_depend_on_the_other_prompts(names):
    together = generators_together(names)
    continuations = [str(each) for each in together.generate(TEXTS)]
    assert continuations == [str(together.generate(text)) for text in TEXTS]


@pytest.mark.parametrize("name", ["transformer", "lstm with input feeding"])
def test_equal_models_write_what_one_of_them_writes(name):
    assert translators_together((name, name, name)).translate(TEXTS) == translator(name).translate(TEXTS)


def test_an_ensemble_reads_as_far_as_the_model_that_reads_least():
    configs = [replace(ENCODER_DECODERS["transformer"], positions="learned", max_positions=size) for size in (40, 30)]
    models = [model_class(config)(config, 20, 20) for config in configs]
    together: Any = ensemble([*models, encoder_decoder("lstm with general attention")])
    assert (together.max_positions(), together.max_target_positions()) == (30, 30)
    unlimited: Any = ensemble([encoder_decoder("lstm with general attention")] * 2)
    assert unlimited.max_positions() is None


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_an_ensemble_is_the_cross_entropy_of_its_probabilities(smoothing, monkeypatch):
    monkeypatch.setattr("heedful.losses.HALF_ROWS", 4)  # several blocks
    models, tokens = [language_model("gru"), language_model("elman")], ids(3, 6)
    together: Any = ensemble(models)
    hidden = together.hidden(tokens, AttentionMask(ones(tokens), 6, causal=True)).flatten(0, 1)
    targets = ids(3, 6).flatten()
    loss = output_cross_entropy(hidden, together.output, targets, smoothing)
    reference = label_cross_entropy(mean(models, tokens, ones(tokens)).log().flatten(0, 1), targets, smoothing)
    assert_close([loss.sum, loss.nll], [reference.sum, reference.nll], atol=1e-4, rtol=1e-5)
    assert loss.count == 18
