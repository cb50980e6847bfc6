"""What is recorded is what the model does, edits act where they say, and afterwards nothing is left of either."""

from functools import partial
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from heedful.architectures import EncoderDecoder, LanguageModel, MaskedLanguageModel
from heedful.config.schema import ModelConfig
from heedful.errors import InputError
from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.taps import taps
from heedful.nn.attention import Attention, attend
from heedful.nn.linear_attention import LinearAttention

HEADS = 6
SHAPE = partial(ModelConfig, d_model=42, d_ff=23, heads=HEADS, encoder_layers=2, decoder_layers=3, d_k=10, d_v=7)
SOURCE = torch.arange(4, 11)[None]
TARGET = torch.arange(5, 10)[None]


def everything(ids):
    return torch.ones_like(ids, dtype=torch.bool)


def translator(**settings):
    torch.manual_seed(1)
    model = EncoderDecoder(SHAPE(tie="none", **settings), 13, 17).eval()
    return model, lambda: model(SOURCE, everything(SOURCE), TARGET, everything(TARGET))


def gpt(**settings):
    torch.manual_seed(1)
    model = LanguageModel(SHAPE(family="decoder", **settings), 17).eval()
    return model, lambda: model(TARGET, everything(TARGET))


def bert(**settings):
    torch.manual_seed(1)
    model = MaskedLanguageModel(SHAPE(family="encoder", segments=2, **settings), 17, pairs=False).eval()
    return model, lambda: model(SOURCE, everything(SOURCE), SOURCE % 2)


FAMILIES = [translator, gpt, bert]
KINDS = [
    {},
    {"norm": "pre", "positions": "rotary", "kv_heads": 2},
    {"norm": "pre", "normalization": "rms", "positions": "alibi", "activation": "swiglu"},
    {"positions": "relative", "embedding_norm": True, "kv_heads": 3},
    {"positions": "learned", "attention_bias": False},
    {"norm": "pre", "positions": "rotary", "attention": "latent", "d_rope": 4, "feed_forward": "experts"},
    {"positions": "rotary", "window": 2},
    {"norm": "pre", "attention": "linear", "kv_heads": 2},
]


@pytest.fixture(params=KINDS, ids=lambda kind: " ".join(f"{key}={value}" for key, value in kind.items()) or "plain")
def kind(request):
    return request.param


@pytest.fixture(params=FAMILIES)
def ready(request, kind):
    return request.param(**kind)


@torch.no_grad()
def test_every_tap_keeps_a_tensor_and_the_output_stays_the_same(ready):
    model, run = ready
    expected = run()
    with recording(model, ["*"]) as found:
        output = run()
    assert_close(output, expected, atol=2e-6, rtol=0)
    assert set(found) == set(taps(model))
    assert torch.equal(found["logits"], output)


@torch.no_grad()
def test_outside_attention_recording_changes_no_bit(ready):
    model, run = ready
    expected = run()
    inside = [name for name in taps(model) if name.endswith((".h", ".gate"))]
    with recording(model, ["*.resid", "*.out", "*.norm", *inside, "*.in"]) as found:
        assert torch.equal(run(), expected)
    assert found


@torch.no_grad()
def test_attention_is_the_formula_of_what_is_recorded(ready):
    model, run = ready
    with recording(model, ["*"]) as found:
        run()
    names = [name.removesuffix(".attn") for name in found if name.endswith(".attn")]
    assert names
    for name in names:
        q, k, v, score, bias, attn, z, out = (
            found[f"{name}.{x}"][0].double() for x in ("q", "k", "v", "score", "bias", "attn", "z", "out")
        )
        shared = HEADS // len(k)
        for head in range(HEADS):
            key, value = k[head // shared], v[head // shared]
            expected = torch.stack([(key * row).sum(1) / len(row) ** 0.5 for row in q[head]])
            if isinstance(taps(model)[f"{name}.attn"].module, LinearAttention):
                expected = torch.stack([(key * row).sum(1).log() for row in q[head]])
            assert_close(score[head], expected, atol=1e-6, rtol=1e-5)
            weights = torch.softmax(expected + bias[head % len(bias)], dim=-1)
            assert_close(attn[head], weights, atol=1e-6, rtol=1e-5)
            assert_close(z[head], weights @ value, atol=1e-6, rtol=1e-5)
        layer: Any = taps(model)[f"{name}.out"].module.get_submodule("out")
        projected = torch.nn.functional.linear(z.transpose(0, 1).flatten(1).float(), layer.weight, layer.bias)
        assert_close(out.float(), projected, atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_a_mixture_of_experts_keeps_the_weight_of_each_expert_for_each_token():
    model, run = translator(feed_forward="experts", experts=7, experts_per_token=3)
    with recording(model, ["*.ffn.gate"]) as found:
        run()
    assert [axis.name for axis in taps(model)["enc.0.ffn.gate"].axes] == ["token", "expert"]
    for gates in found.values():
        assert ((gates > 0).sum(-1) == 3).all()
        assert_close(gates.sum(-1), torch.ones(gates.shape[:2]))

    def only_the_first(gates):
        return torch.zeros_like(gates).index_fill(-1, torch.tensor([0]), 1.0)

    network = model.get_submodule("encoder.blocks.0.feed_forward.experts.0")
    with recording(model, ["enc.0.ffn.norm", "enc.0.ffn.in", "enc.0.ffn.out"], {"*.ffn.gate": only_the_first}) as found:
        run()
    assert_close(found["enc.0.ffn.out"], network(found["enc.0.ffn.in"]))


@torch.no_grad()
def test_the_stream_is_the_sum_of_what_sublayers_add(ready):
    model, run = ready
    with recording(model, ["*"]) as found:
        run()
    pre = "PreNorm" in str(model)
    before = {name.split(".")[0]: found[name] for name in found if name.endswith(".in") and name.count(".") == 1}
    stream = {"enc": before.get("src"), "dec": before.get("tgt")}
    for name in [name.removesuffix(".resid") for name in found if name.endswith(".resid")]:
        side = name.split(".")[0]
        assert torch.equal(found[f"{name}.in"], stream[side])
        total = found[f"{name}.in"] + found[f"{name}.out"]
        norm = taps(model)[f"{name}.norm"].module
        assert_close(found[f"{name}.resid"], total if pre else norm(total))
        assert_close(found[f"{name}.norm"], norm(found[f"{name}.in"] if pre else total))
        stream[side] = found[f"{name}.resid"]
    for side in {name.split(".")[0] for name in found if name.endswith(".resid")}:
        assert_close(found[f"{side}.norm"], taps(model)[f"{side}.norm"].module(stream[side]))


@torch.no_grad()
def test_an_edit_that_changes_nothing_changes_nothing(ready):
    model, run = ready
    expected = run()
    with recording(model, edits={"*": lambda x: x}):
        assert_close(run(), expected, atol=2e-6, rtol=0)


@torch.no_grad()
def test_a_head_that_is_switched_off_adds_nothing(ready):
    model, run = ready
    name = next(name for name in taps(model) if name.endswith(".self.z"))
    layer: Any = taps(model)[name].module

    def zero(z):
        z = z.clone()
        z[:, 4] = 0
        return z

    with recording(model, [name, name.replace(".z", ".out")], {name: zero}) as found:
        edited = run()
    weight = layer.out.weight.clone()
    layer.out.weight[:, 4 * 7 : 5 * 7] = 0
    with recording(model, [name.replace(".z", ".out")]) as direct:
        expected = run()
    layer.out.weight.copy_(weight)
    assert not found[name][:, 4].any()
    assert_close(found[name.replace(".z", ".out")], direct[name.replace(".z", ".out")], atol=1e-6, rtol=1e-5)
    assert_close(edited, expected, atol=2e-6, rtol=1e-5)
    assert not torch.equal(edited, run())


@torch.no_grad()
def test_edits_act_on_every_step_of_a_search():
    model, run = translator(norm="pre", positions="rotary")
    edits = {"dec.1.self.z": lambda z: z * 0, "dec.2.cross.attn": torch.ones_like, "dec.0.ffn.h": torch.neg}
    with recording(model, edits=edits):
        expected = run()
        state = model.start(SOURCE, everything(SOURCE))
        stepped = torch.stack([state.step(token) for token in TARGET[0, :, None]], dim=1)
    assert_close(stepped, expected, atol=1e-5, rtol=1e-5)
    assert (stepped - run()).abs().max() > 1e-2


@torch.no_grad()
def test_edits_hold_in_a_recording_within(ready):
    model, run = ready
    edits = {"*.self.attn": torch.ones_like, "*.self.z": lambda z: z * 2}
    with recording(model, ["*"], edits) as outer:
        expected = run()
        with recording(model, ["*"], {"*.self.v": torch.neg}) as inner:
            assert not torch.equal(run(), expected)
        assert all(torch.equal(inner[name], torch.ones_like(inner[name])) for name in inner if ".self.attn" in name)
        assert torch.equal(run(), expected)
    first = next(name for name in outer if name.endswith(".self.z"))
    assert_close(inner[first], -outer[first])


def fail_while_recording(model):
    with recording(model, ["*"]):
        raise ZeroDivisionError


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_left_on_the_model_even_after_an_error(family):
    model, _ = family()
    attentions = [module for module in model.modules() if isinstance(module, Attention)]
    attentions[1].attention_fn = special = partial(attend)
    with pytest.raises(ZeroDivisionError):
        fail_while_recording(model)
    assert [layer.attention_fn for layer in attentions] == [attend, special, *[attend] * (len(attentions) - 2)]
    for module in model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


@pytest.mark.parametrize("pattern", ["dec.3.cross.attn", "enc.*.cross.z", "score", ""])
def test_a_tap_that_is_not_there_is_refused_with_those_that_are(pattern):
    model, _ = translator()
    with pytest.raises(InputError, match=r"the tensor .*dec.2.cross.attn"), recording(model, [pattern]):
        pass
