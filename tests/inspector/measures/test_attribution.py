"""The parts of a logit sum to it, and each is what the logit loses with it while all scales are held."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
import torch
from torch import nn

import subjects
from heedful.architectures import EncoderDecoder, LanguageModel, MaskedLanguageModel
from heedful.config.schema import DecodeConfig, GenerateConfig
from heedful.errors import InputError
from heedful.inspector.capture.forward_inputs import reading
from heedful.inspector.capture.recorder import Head, recording, switched_off
from heedful.inspector.capture.taps import taps
from heedful.inspector.capture.trace import trace, traced
from heedful.inspector.measures.logits import attribute
from heedful.predictors.filler import Filler
from heedful.predictors.generator import Generator
from heedful.predictors.translator import Translator
from subjects import GERMAN, SHAPE, TEXT, TOKENIZER

SHAPES = {
    "post": replace(SHAPE, norm="post"),
    "pre": replace(SHAPE, norm="pre"),
    "rms": replace(SHAPE, norm="pre", normalization="rms", positions="rotary", activation="swiglu", d_k=6),
    "rms post": replace(SHAPE, norm="post", normalization="rms"),
    "bare": replace(SHAPE, norm="pre", bias=False, attention_bias=False, positions="none"),
    "no norms": replace(SHAPE, norm="none", scale_scores=False, activation="identity"),
    "deepseek's": replace(SHAPE, norm="pre", positions="rotary", attention="latent", d_rope=4, feed_forward="experts"),
    "window": replace(SHAPE, norm="pre", positions="alibi", window=3),
    "linear": replace(SHAPE, norm="pre", attention="linear"),
    "bert's": replace(SHAPE, norm="post", embedding_norm=True, output_bias=True, activation="gelu", d_v=5),
}


def translator(shape):
    pair = subjects.translator().tokenizers
    return Translator(EncoderDecoder(shape, len(pair.source), len(pair.target)), pair, DecodeConfig(beam=1))


def generator(shape):
    return Generator(LanguageModel(replace(shape, family="decoder"), len(TOKENIZER)), TOKENIZER, GenerateConfig())


def filler(shape):
    shape = replace(shape, family="encoder", segments=2)
    return Filler(MaskedLanguageModel(shape, len(TOKENIZER), pairs=True), TOKENIZER, 31)


FAMILIES = {"translator": translator, "gpt": generator, "bert": filler}


EACH = list(
    zip(cycle(FAMILIES), SHAPES, strict=False)
)  # every shape in one family, every family in three shapes or more


@pytest.fixture(params=[(family, shape) for family in FAMILIES for shape in SHAPES], ids=" ".join)
def subject(request):
    family, shape = request.param
    torch.manual_seed(3)
    made = FAMILIES[family](SHAPES[shape])
    with torch.no_grad():
        for parameter in made.model.parameters():  # biases begin with zeros, norms with ones: neither would be seen
            parameter.add_((0.05 if shape == "no norms" else 0.2) * torch.randn_like(parameter))  # else numbers explode
    return made


def named(found):
    return {(part.source, part.kind, part.head): part.value for part in found.parts}


def test_the_parts_sum_to_the_logit(subject):
    seen = trace(subject, TEXT, GERMAN)
    logits = seen["logits"].values
    for place, token in ((0, 5), (4, 11), (len(logits) - 1, 2)):
        found = attribute(subject.model, seen, place, token)
        assert found.logit == logits[place, token]
        assert sum(part.value for part in found.parts) == pytest.approx(found.logit, abs=2e-5)
        assert abs(found.difference) < 2e-5
        assert len(named(found)) == len(found.parts)


@pytest.mark.parametrize("subject", EACH, ids=" ".join, indirect=True)
def test_they_sum_to_it_where_a_head_is_switched_off(subject):
    block = f"{subject.model.named_stacks()[-1].name}.1.self"
    for way in ("silent", "even"):
        seen = traced(reading(subject, TEXT, GERMAN), edits=switched_off([Head(block, 1)], way))
        found = attribute(subject.model, seen, 3, 7)
        assert abs(found.difference) < 2e-5
        assert way == "even" or named(found)[block, "head", 1] == 0


@pytest.mark.parametrize("subject", EACH, ids=" ".join, indirect=True)
@torch.no_grad()
def test_a_part_is_what_the_logit_loses_if_nothing_else_changes(subject):
    """The model itself runs without the part; outputs of sublayers, scales and gates stay those of the whole pass."""
    place, token, model = 4, 11, subject.model.eval()
    seen = trace(subject, TEXT, GERMAN)
    run = reading(subject, TEXT, GERMAN).run
    side = model.named_stacks()[-1]
    there = taps(model)

    def without(name, vector):
        def edit(x):
            fixed = torch.from_numpy(seen[name].values)[None].clone()
            fixed[0, place] -= vector
            return fixed

        held = [tap for tap in there if tap.startswith(f"{side.name}.") and tap.endswith(".out")]
        edits = {tap: lambda _, tap=tap: torch.from_numpy(seen[tap].values)[None] for tap in held}
        with recording(model, edits=edits | {name: edit}):
            return float(seen["logits"].values[place, token] - run()[0, place, token])

    parts = named(attribute(model, seen, place, token))
    undo = hold_scales(model, run)
    for name in (f"{side.name}.0.self", f"{side.name}.2.cross", f"{side.name}.1.ffn"):
        if f"{name}.out" not in there:
            continue
        sublayer: Any = there[f"{name}.out"].module
        if name.endswith("ffn"):
            vector = torch.from_numpy(seen[f"{name}.out"].values[place])
            if f"{name}.h" in seen:
                vector = torch.from_numpy(seen[f"{name}.h"].values[place]) @ sublayer.down.weight.T
            expected = {(name, "hidden", None): vector}
        else:
            z = torch.from_numpy(seen[f"{name}.z"].values[:, place])
            weights = sublayer.out.weight.unflatten(1, (sublayer.heads, -1))
            expected = {(name, "head", head): weights[:, head] @ z[head] for head in range(sublayer.heads)}
        for part, vector in expected.items():
            assert without(f"{name}.out", vector) == pytest.approx(parts[part], abs=5e-5)
    for kind, tap in (("token", "tok"), ("position", "pos")):
        vector = torch.from_numpy(seen[f"{side.sequence}.{tap}"].values[place])
        lost = without(f"{side.sequence}.tok", vector)
        assert lost == pytest.approx(parts[side.sequence, kind, None], abs=5e-5)
    for remove in undo:
        remove()


def hold_scales(model, run):
    """Let norms and the GELU of BERT's head keep the scales and gates of this run."""
    undo = []
    for norm in [module for module in model.modules() if isinstance(module, nn.LayerNorm | nn.RMSNorm)]:
        scales = []

        def held(norm, args, _, scales=scales):
            x = args[0] - args[0].mean(-1, keepdim=True) if isinstance(norm, nn.LayerNorm) else args[0]
            if not scales:
                scales.append((x.square().mean(-1, keepdim=True) + norm.eps).sqrt())
            bias = getattr(norm, "bias", None)
            return x / scales[0] * norm.weight + (0 if bias is None else bias)

        undo.append(norm.register_forward_hook(held).remove)
    if isinstance(model, MaskedLanguageModel):
        gates = []

        def gated(transform, args, _):
            x = transform.dense(args[0])
            if not gates:
                gates.append(0.5 * (1 + torch.erf(x / 2**0.5)))
            return transform.norm(x * gates[0])

        undo.append(model.transform.register_forward_hook(gated).remove)
    run()
    return undo


def test_without_residual_connections_a_logit_has_no_parts():
    subject = generator(replace(SHAPES["pre"], residual=False))
    with pytest.raises(InputError, match=r"model\.residual = false: without residual connections"):
        attribute(subject.model, trace(subject, TEXT), 3, 7)


def test_every_bias_is_a_part_of_its_own():
    torch.manual_seed(3)
    subject = filler(SHAPES["bert's"])
    found = named(attribute(subject.model, trace(subject, TEXT), 2, 5))
    assert {(source, kind) for source, kind, _ in found if kind in ("bias", "norm")} == {
        ("src", "norm"),
        *((f"enc.{layer}.{short}", kind) for layer in (0, 1) for short in ("self", "ffn") for kind in ("bias", "norm")),
        ("transform", "bias"),
        ("transform", "norm"),
        ("output", "bias"),
    }
    assert [key for key in found if key[2] is not None] == [
        (f"enc.{layer}.self", "head", head) for layer in (0, 1) for head in (0, 1)
    ]


def test_the_difference_of_two_tokens_does_not_know_what_all_logits_share():
    torch.manual_seed(3)
    subject = generator(SHAPES["pre"])
    seen = trace(subject, TEXT, GERMAN)
    before = [named(attribute(subject.model, seen, 3, token)) for token in (5, 7)]
    with torch.no_grad():
        subject.model.output.weight += torch.randn(14)
    after = [named(attribute(subject.model, seen, 3, token)) for token in (5, 7)]
    for part, value in before[0].items():
        assert after[0][part] - after[1][part] == pytest.approx(value - before[1][part], abs=1e-5)


@pytest.mark.parametrize(("place", "token"), [(-1, 3), (999, 3), (2, -1), (2, 1009)])
def test_what_is_not_there_is_refused_by_name(place, token):
    subject = subjects.generator()
    wrong = "position" if place != 2 else "token"
    with pytest.raises(InputError, match=rf"{wrong} -?\d+: must be from 0 to \d+"):
        attribute(subject.model, trace(subject, TEXT), place, token)


def test_what_has_no_exact_parts_is_refused():
    subject = subjects.classifier()
    with pytest.raises(InputError, match="a TextClassifier does not predict tokens"):
        attribute(subject.reader.model, trace(subject, TEXT), 0, 0)


def test_a_trace_that_is_not_whole_is_refused_by_name():
    subject = subjects.generator()
    with pytest.raises(KeyError, match=r"dec.2.ffn.resid is not in this trace"):
        attribute(subject.model, trace(subject, TEXT, keep=["logits"]), 0, 0)
