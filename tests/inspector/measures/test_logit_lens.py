"""The lens shows what the model's own last layers make of each block's states."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from heedful.errors import InputError
from heedful.inspector.capture.trace import trace
from heedful.inspector.measures.logits import lens
from subjects import TEXT, classifier, filler, generator, pre_norm, translator

FAMILIES = {"translator": translator, "gpt": generator, "pre-norm gpt": pre_norm, "bert": filler}


@pytest.fixture(params=FAMILIES)
def looked(request):
    subject = FAMILIES[request.param]()
    seen = trace(subject, TEXT)
    return subject.model, seen, lens(subject.model, seen, 7)


def test_the_last_block_says_what_the_model_says(looked):
    _, seen, found = looked
    log_probs = torch.from_numpy(seen["logits"].values).log_softmax(-1)
    values, tokens = log_probs.topk(7)
    assert_close(torch.from_numpy(found.log_probs[-1]), values, atol=1e-5, rtol=0)
    assert np.array_equal(found.tokens[-1, :, 0], tokens[:, 0])
    assert not found.rank[-1].any()


@torch.no_grad()
def test_a_model_cut_off_after_its_first_block_says_what_the_lens_shows(looked):
    model, seen, found = looked
    stack = model.decoder if hasattr(model, "decoder") else model.backbone.stack
    blocks = stack.blocks
    stack.blocks = blocks[:1]
    tokens = torch.tensor([seen.lines["tgt" if "tgt" in seen.lines else "src"].read.ids])
    padding_mask = torch.ones_like(tokens).bool()
    if hasattr(model, "decoder"):
        source = torch.tensor([seen.lines["src"].read.ids])
        logits = model.eval()(source, torch.ones_like(source).bool(), tokens, padding_mask)
    elif hasattr(model, "transform"):
        logits = model.eval()(tokens, padding_mask, torch.zeros_like(tokens))
    else:
        logits = model.eval()(tokens, padding_mask)
    stack.blocks = blocks
    assert_close(torch.from_numpy(found.log_probs[0]), logits[0].log_softmax(-1).topk(7).values, atol=1e-5, rtol=0)


def test_entropy_and_rank_are_those_of_the_whole_distribution(looked):
    model, seen, _ = looked
    vocabulary = seen["logits"].values.shape[1]
    found = lens(model, seen, vocabulary)
    assert_close(found.entropy, -(np.exp(found.log_probs) * found.log_probs).sum(-1), atol=1e-4, rtol=1e-4)
    final = found.tokens[-1, :, 0]
    places = (found.tokens == final[None, :, None]).argmax(-1)
    assert np.array_equal(found.rank, places)
    assert np.array_equal(found.last_log_probs, np.take_along_axis(found.log_probs, places[..., None], -1)[..., 0])


def test_what_says_no_tokens_has_no_lens():
    subject = classifier()
    with pytest.raises(InputError, match="a TextClassifier does not predict tokens"):
        lens(subject.reader.model, trace(subject, TEXT))


def test_a_trace_without_the_stream_is_refused_by_name():
    subject = generator()
    with pytest.raises(KeyError, match=r"dec.0.ffn.resid is not in this trace"):
        lens(subject.model, trace(subject, TEXT, keep=["logits"]))
