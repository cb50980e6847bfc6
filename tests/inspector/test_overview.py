"""What the page is told first agrees with the tensors."""

import json
from dataclasses import replace

import numpy as np
import pytest

import subjects
from heedful.architectures import LanguageModel
from heedful.config.schema import GenerateConfig
from heedful.inspector.capture.trace import trace
from heedful.inspector.look import Question, look
from heedful.inspector.measures.logits import lens
from heedful.inspector.overview import lens_json, overview, stream
from heedful.predictors.generator import Generator
from subjects import GERMAN, SHAPE, TEXT, TOKENIZER

FAMILIES = {"translator": subjects.translator, "gpt": subjects.generator, "bert": subjects.filler}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_stream_has_the_length_of_everything_that_runs_through_it(family):
    subject = FAMILIES[family]()
    seen = trace(subject, TEXT, GERMAN)
    found = stream(seen, subject.model)
    assert list(found) == [name.removesuffix(".resid") for name in seen if name.endswith(".resid")]
    for sublayer, flow in found.items():
        for kind, tap in {"before": "in", "added": "out", "after": "resid", "normalised": "norm"}.items():
            lengths = np.sqrt((seen[f"{sublayer}.{tap}"].values ** 2).sum(-1))
            np.testing.assert_allclose(flow[kind], lengths, rtol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_mean_and_deviation_are_those_that_the_norm_takes_away(norm):
    """At the beginning a norm has weight 1 and bias 0: mean + deviation x what leaves it is what entered it."""
    shape = replace(SHAPE, family="decoder", norm=norm, norm_eps=1e-12)
    subject = Generator(LanguageModel(shape, len(TOKENIZER)), TOKENIZER, GenerateConfig())
    seen = trace(subject, TEXT, GERMAN)
    for sublayer, flow in stream(seen, subject.model).items():
        stream_in, added, normalised = (seen[f"{sublayer}.{tap}"].values for tap in ("in", "out", "norm"))
        entered = stream_in + added if norm == "post" else stream_in
        mean, deviation = (np.array(flow[kind])[:, None] for kind in ("mean", "deviation"))
        np.testing.assert_allclose(mean + deviation * normalised, entered, atol=1e-5)


def test_the_lens_names_every_token_that_it_shows():
    subject = subjects.translator()
    seen = lens(subject.model, trace(subject, TEXT, GERMAN), 5)
    found = lens_json(seen, subject.tokenizers.target)
    assert set(found["pieces"]) == {str(token) for token in seen.tokens.flatten()}
    for token, piece in found["pieces"].items():
        assert [piece] == subject.tokenizers.target.pieces([int(token)])
    for kind in ("log_probs", "entropy", "rank", "last_log_probs"):
        assert np.array_equal(np.array(found[kind], dtype=np.float32), getattr(seen, kind))


@pytest.mark.parametrize("target", ["", " ", GERMAN])
@pytest.mark.parametrize("text", ["two", "the <mask>", TEXT])
@pytest.mark.parametrize("family", [*FAMILIES, "classes"])
def test_whatever_is_seen_can_be_told(family, text, target):
    """However short a text is, and even if nothing was written: JSON has no NaN and no infinity."""
    subject = (FAMILIES | {"classes": subjects.classifier})[family]()
    for question in (Question(text=text), Question(text=text, target=target)):
        told = json.loads(json.dumps(overview(look(subject, question)), allow_nan=False))
        assert all(told[part] for part in ("lines", "heads", "stream"))
