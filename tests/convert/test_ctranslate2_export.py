"""Models written for CTranslate2 compute there what they compute here."""

import json
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from engine_models import write_random_model
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import recipe_from_dict
from heedful.convert import Model
from heedful.convert.ctranslate2 import read_specification
from heedful.convert.ctranslate2_export import PRECISIONS, compare_outputs, write
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.tokenizer import BOS, EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

ctranslate2 = pytest.importorskip("ctranslate2")

LINES = ["one two three four five", "six seven eight nine ten", "eleven twelve thirteen one six", "two four six"] * 5
TINY = {"d_model": 24, "d_ff": 20, "heads": 4, "encoder_layers": 2, "decoder_layers": 3, "max_positions": 512}
SHAPES = {
    "of the paper": {},
    "of init": {"norm": "pre", "positions": "rotary"},
    "learned positions": {"positions": "learned"},
    "relative positions": {"positions": "relative"},
    "no positions": {"positions": "none"},
    "grouped heads": {"norm": "pre", "kv_heads": 2},
    "one key head": {"kv_heads": 1, "positions": "rotary"},
    "own head size": {"d_k": 10, "positions": "rotary"},
    "gelu": {"activation": "gelu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "quick_gelu": {"activation": "quick_gelu"},
    "silu": {"activation": "silu"},
    "Llama": {"norm": "pre", "positions": "rotary", "normalization": "rms", "activation": "swiglu", "bias": False},
    "T5": {"norm": "pre", "positions": "relative", "normalization": "rms", "bias": False, "scale_embeddings": False},
    "BART": {"positions": "learned", "embedding_norm": True, "activation": "gelu", "norm_eps": 1e-3},
    "no biases": {"bias": False, "attention_bias": False, "norm": "pre"},
    "three embeddings": {"tie": "none", "output_bias": True},
}


def model_of(task, family, **settings) -> tuple[Any, Model]:
    """A model with random weights, of which none is zero, and a tokenizer of its own words."""
    tokenizer = train_tokenizer(LINES, recipe_from_dict({"tokenizer": {"kind": "word"}}, "test").tokenizer)
    recipe = recipe_from_dict({"name": "tiny", "task": task, "model": {**TINY, "family": family, **settings}}, "test")
    tokenizers = TokenizerPair(tokenizer, tokenizer)
    model = find_task(task).build(recipe, tokenizers).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model, Model(recipe=recipe, tokenizers=tokenizers, weights=weights(model))


def rows(vocabulary, count=5):
    return [torch.randint(4, vocabulary, (3 + 4 * number,)).tolist() for number in range(count)]


def log_probs_here(state, targets):
    """Log-probabilities of the tokens after the first one, fed one at a time."""
    logits = [state.step(torch.tensor([token]))[0] for token in targets[:-1]]
    return [step.log_softmax(-1)[token].item() for step, token in zip(logits, targets[1:], strict=True)]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_encoder_decoder_gives_the_same_log_probabilities(shape, tmp_path):
    model, written = model_of("translation", "encoder_decoder", **SHAPES[shape])
    write(written, tmp_path / "out")

    tokens = json.loads((tmp_path / "out/shared_vocabulary.json").read_text())
    engine = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32")
    sources, targets = rows(len(tokens)), rows(len(tokens))
    theirs = engine.score_batch(*([[tokens[i] for i in row] for row in side] for side in (sources, targets)))
    for source, target, scores in zip(sources, targets, theirs, strict=True):
        ids = torch.tensor([[*source, EOS]])
        ours = log_probs_here(model.start(ids, torch.ones_like(ids, dtype=torch.bool)), [BOS, *target, EOS])
        assert scores.log_probs == pytest.approx(ours, abs=1e-4)


GPTS = [*(shape for shape in SHAPES if shape not in ("T5", "three embeddings")), "ALiBi"]


@pytest.mark.parametrize("shape", GPTS)
def test_a_gpt_gives_the_same_log_probabilities(shape, tmp_path):
    settings = SHAPES.get(shape, {"positions": "alibi", "norm": "pre"})
    model, written = model_of("language_model", "decoder", **settings)
    write(written, tmp_path / "out")

    tokens = json.loads((tmp_path / "out/vocabulary.json").read_text())
    engine = ctranslate2.Generator(str(tmp_path / "out"), compute_type="float32")
    texts = rows(len(tokens))
    for text, scores in zip(texts, engine.score_batch([[tokens[i] for i in row] for row in texts]), strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([text]))[0]
        ours = logits[:-1].log_softmax(-1)[range(len(text) - 1), text[1:]]
        assert scores.log_probs == pytest.approx(ours.tolist(), abs=1e-4)


def test_a_gpt_writes_the_same_texts(tmp_path):
    _, written = model_of("language_model", "decoder", norm="pre", positions="rotary", rope_theta=500.0)
    write(written, tmp_path / "out")
    write_model(tmp_path / "ours", written.recipe, written.tokenizers, written.weights)
    agreement = compare_outputs(load_model(tmp_path / "ours"), tmp_path / "out", LINES[:4])
    assert agreement.inputs == 4
    assert agreement.is_equal, agreement


@pytest.mark.parametrize("shape", ["BART", "of init", "relative positions", "no positions", "Llama"])
@pytest.mark.parametrize("segments", [0, 2])
def test_a_bert_gives_the_same_hidden_states(shape, segments, tmp_path):
    model, written = model_of("masked_lm", "encoder", segments=segments, **SHAPES[shape])
    write(written, tmp_path / "out")

    tokens = json.loads((tmp_path / "out/vocabulary.json").read_text())
    engine = ctranslate2.Encoder(str(tmp_path / "out"), compute_type="float32")
    texts = rows(len(tokens))
    batch = engine.forward_batch([[tokens[i] for i in row] for row in texts])
    for text, states in zip(texts, torch.tensor(np.array(batch.last_hidden_state)), strict=True):
        with torch.no_grad():
            ids = torch.tensor([text])
            ours = model.backbone(ids, torch.ones_like(ids, dtype=torch.bool))[0]
        torch.testing.assert_close(states[: len(text)], ours, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("task", ["regression", "ranking", "span_qa"])
def test_the_head_of_an_encoder_is_left_out(task, tmp_path):
    _, written = model_of(task, "encoder")
    write(written, tmp_path / "out")
    assert ctranslate2.Encoder(str(tmp_path / "out")).forward_batch([["one"]]).last_hidden_state.shape[-1] == 24


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"positions": "alibi"},
            'model.positions = "alibi": must be one of sinusoidal, learned, rotary, relative, none in an encoder',
        ),
        ({"d_v": 8}, "model.d_v = 8: must be equal to model.d_k"),
        ({"norm": "none"}, 'model.norm = "none": must be "post" or "pre"'),
        ({"residual": False}, "model.residual = false: must be true"),
        ({"scale_scores": False}, "model.scale_scores = false: must be true"),
        ({"activation": "identity"}, 'model.activation = "identity": must be one of relu, '),
        ({"attention": "latent"}, 'model.attention = "latent": must be "multi_head"'),
        ({"attention": "linear"}, 'model.attention = "linear": must be "multi_head"'),
        ({"window": 7}, "model.window = 7: must be left out"),
        ({"feed_forward": "experts"}, 'model.feed_forward = "experts": must be "dense"'),
    ],
)
def test_what_ctranslate2_cannot_express_is_refused_before_anything_is_written(settings, problem, tmp_path):
    _, written = model_of("translation", "encoder_decoder", **settings)
    with pytest.raises(InputError, match=problem):
        write(written, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_are_stored_in_any_precision(precision, tmp_path):
    _, written = model_of("translation", "encoder_decoder", norm="pre", positions="rotary")
    write(written, tmp_path / "out", precision)
    tokens = json.loads((tmp_path / "out/shared_vocabulary.json").read_text())
    [result] = ctranslate2.Translator(str(tmp_path / "out")).translate_batch([tokens[4:9]], max_decoding_length=7)
    assert set(result.hypotheses[0]) <= set(tokens)
    assert read_specification(tmp_path / "out/model.bin") == "TransformerSpec"


def test_a_text_that_is_longer_than_the_context_of_a_gpt_is_compared_in_its_first_window(tmp_path):
    gpt = {"family": "decoder", "decoder_layers": 1, "positions": "learned", "max_positions": 31}
    folder = write_random_model(tmp_path / "model", "language_model", gpt, data={"max_length": 31})
    agreement = heedful.export(folder, tmp_path / "out", to="ctranslate2", inputs=[" ".join(LINES)]).agreement
    assert agreement is not None
    assert agreement.difference < 1e-3


def test_blank_inputs_are_not_compared(tmp_path):
    folder = write_random_model(tmp_path / "model", "translation", {"encoder_layers": 1, "decoder_layers": 1})
    some = heedful.export(folder, tmp_path / "some", to="ctranslate2", inputs=["", LINES[3], " "]).agreement
    assert some is not None
    assert some.inputs == 1
    export = heedful.export(folder, tmp_path / "none", to="ctranslate2", inputs=["", " "])
    assert export.agreement is None
    assert "the given inputs are empty" in export.notes[-1]
