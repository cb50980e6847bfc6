"""What matrices are drawn from before training, kind by kind."""

import math
from dataclasses import replace

import pytest
import torch

from heedful.architectures import EncoderDecoder, LanguageModel, MaskedLanguageModel, TextClassifier
from heedful.config.schema import ModelConfig

WIDE = ModelConfig(d_model=120, d_ff=211, heads=5, encoder_layers=3, decoder_layers=2, positions="learned", segments=2)
SUBLAYER_ENDS = ("_attention.out.weight", "feed_forward.down.weight")


def build(kind, init, **more):
    config = ModelConfig(**{**vars(WIDE), "init": init, **more})
    return {
        "lm": lambda: LanguageModel(replace(config, family="decoder"), 503),
        "mlm": lambda: MaskedLanguageModel(config, 503, pairs=True),
        "classifier": lambda: TextClassifier(config, 503, 307),
        "translator": lambda: EncoderDecoder(config, 503, 503),
    }[kind]()


def spread(parameter: torch.Tensor) -> float:
    return parameter.detach().double().std(unbiased=False).item()


def tolerance(parameter: torch.Tensor) -> float:
    """Six standard errors of a standard deviation, which has 1 / sqrt(2n) of itself."""
    return 6 / math.sqrt(2 * parameter.numel())


@pytest.mark.parametrize(("kind", "sublayers"), [("lm", 4), ("mlm", 6), ("classifier", 6), ("translator", 12)])
@pytest.mark.parametrize("init", ["normal", "scaled"])
def test_matrices_are_normal_and_the_ends_of_sublayers_narrower_if_scaled(kind, sublayers, init):
    more = {"family": "encoder"} if kind == "classifier" else {}
    for name, parameter in build(kind, init, **more).named_parameters():
        if parameter.dim() == 1:
            assert torch.equal(parameter, torch.full_like(parameter, float("norm.weight" in name)))
            continue
        narrow = init == "scaled" and name.endswith(SUBLAYER_ENDS)
        want = 0.02 * (sublayers**-0.5 if narrow else 1.0)
        assert spread(parameter) == pytest.approx(want, rel=tolerance(parameter)), name
        assert abs(parameter.mean().item()) < 6 * want / parameter.numel() ** 0.5, name


@pytest.mark.parametrize("std", [0.1, 120**-0.5])
def test_the_standard_deviation_of_normal_weights_can_be_set(std):
    for name, parameter in build("translator", "normal", init_std=std).named_parameters():
        if parameter.dim() > 1:
            assert spread(parameter) == pytest.approx(std, rel=tolerance(parameter)), name
            assert abs(parameter.mean().item()) < 6 * std / parameter.numel() ** 0.5, name


def test_the_last_matrix_of_a_gated_sublayer_is_narrower_too():
    model = build("lm", "scaled", activation="swiglu")
    ends = [p for name, p in model.named_parameters() if name.endswith(SUBLAYER_ENDS)]
    assert len(ends) == 4
    assert all(spread(p) == pytest.approx(0.01, rel=tolerance(p)) for p in ends)


def test_the_last_matrix_of_every_expert_is_narrower_and_a_mixture_is_one_sublayer():
    more = {"attention": "latent", "feed_forward": "experts", "experts": 3, "shared_experts": 1}
    model = build("lm", "scaled", **more)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            narrow = name.endswith(("self_attention.out.weight", ".down.weight")) and "latent" not in name
            assert spread(parameter) == pytest.approx(0.01 if narrow else 0.02, rel=tolerance(parameter)), name


@pytest.mark.parametrize("kind", ["lm", "mlm", "translator"])
def test_glorot_leaves_embeddings_as_they_were_and_bounds_the_rest(kind):
    model = build(kind, "glorot")
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            continue
        if any(part in name for part in ("embedding", "segments", "positions")):
            assert spread(parameter) == pytest.approx(120**-0.5, rel=tolerance(parameter)), name
        else:
            limit = math.sqrt(6 / sum(parameter.shape))
            assert limit * 0.9 < parameter.abs().max().item() <= limit, name


@pytest.mark.parametrize("init", ["normal", "scaled", "glorot"])
@pytest.mark.parametrize("kind", ["lm", "mlm"])
def test_a_tied_matrix_has_the_embeddings_distribution(kind, init):
    model = build(kind, init)
    assert model.output.weight is model.backbone.embedding.weight
    want = 120**-0.5 if init == "glorot" else 0.02
    assert spread(model.output.weight) == pytest.approx(want, rel=tolerance(model.output.weight))


@pytest.mark.parametrize("kind", ["lm", "mlm", "classifier", "translator"])
def test_the_same_seed_draws_the_same_model(kind):
    models = []
    for seed in (3, 3, 5):
        torch.manual_seed(seed)
        models.append(torch.cat([p.flatten() for p in build(kind, "normal", family="encoder").parameters()]))
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])
