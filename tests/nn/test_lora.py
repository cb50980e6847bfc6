"""LoRA in every architecture: an update begins as nothing, is all that is trained, and becomes part of the weights."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from children import ids, ones
from every_architecture import (
    ENCODER_DECODERS,
    ENCODERS,
    LANGUAGE_MODELS,
    encoder_decoder,
    language_model,
    text_classifier,
)
from heedful.architectures import load_weights, weights
from heedful.architectures.bag_of_words.settings import BagOfWordsConfig
from heedful.architectures.convolutional.settings import ConvolutionalConfig
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.config.schema import LoraConfig, OptimizerConfig
from heedful.errors import InputError
from heedful.nn.lora import LoraLinear, add_updates, split_adapter
from heedful.optim import build_optimizer

CONFIG = LoraConfig(rank=2, alpha=7.0)
MODELS: dict[str, tuple[object, Callable[[], nn.Module]]] = {
    **{f"pairs, {name}": (config, partial(encoder_decoder, name)) for name, config in ENCODER_DECODERS.items()},
    **{f"text, {name}": (config, partial(language_model, name)) for name, config in LANGUAGE_MODELS.items()},
    **{f"classes, {name}": (config, partial(text_classifier, name, 3)) for name, config in ENCODERS.items()},
}
# All others compute with linear layers, apart from the output layer.
WITHOUT = {
    name
    for name, (config, _) in MODELS.items()
    if isinstance(config, ConvolutionalConfig)
    or (isinstance(config, RecurrentConfig) and not name.startswith("pairs"))
    or (isinstance(config, BagOfWordsConfig) and config.pooler == "none")
}
every_model = pytest.mark.parametrize("name", sorted(MODELS.keys() - WITHOUT))


def outputs(model: nn.Module, name: str) -> Tensor:
    torch.manual_seed(7)
    source, target = ids(3, 5), ids(3, 7)
    return model(source, ones(source), *([target, ones(target)] if name.startswith("pairs") else []))


def updated(name: str, config: LoraConfig = CONFIG) -> nn.Module:
    """A model whose updates compute something."""
    model = MODELS[name][1]().eval()
    add_updates(model, config)
    for layer in model.modules():
        if isinstance(layer, LoraLinear):
            nn.init.normal_(layer.lora_b)
    return model


@every_model
@torch.no_grad()
def test_updates_change_no_bit_of_the_outputs_before_they_are_trained(name):
    model = MODELS[name][1]().eval().requires_grad_(False)  # torch has another kernel for a GRU that is trained
    before = outputs(model, name)
    add_updates(model, CONFIG)
    assert torch.equal(outputs(model, name), before)


@every_model
def test_a_step_of_the_optimizer_changes_the_updates_alone(name):
    model = updated(name)
    before = {key: value.clone() for key, value in weights(model).items()}
    optimizer = build_optimizer(OptimizerConfig(name="adamw", weight_decay=0.1), model, torch.float32)
    outputs(model, name).square().mean().backward()
    optimizer.step()
    changed = {key for key, value in weights(model).items() if not torch.equal(value, before[key])}
    assert changed == {key for key in before if key.endswith(("lora_a", "lora_b"))}
    assert {id(p) for p in optimizer.state} == {id(model.get_parameter(key)) for key in changed}


@every_model
def test_weights_with_the_updates_added_compute_the_same_without_them(name):
    # In double precision: where no norm holds them, updates grow from layer to layer, and rounding errors with them.
    model, plain = updated(name).double(), MODELS[name][1]().eval().double()
    values, adapter = split_adapter(weights(model), CONFIG)
    load_weights(plain, adapter.merged(values))
    expected = outputs(model, name)
    torch.testing.assert_close(outputs(plain, name), expected, atol=1e-9, rtol=1e-9)
    load_weights(plain, values)
    assert not torch.allclose(outputs(plain, name), expected, atol=1e-2)


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_a_model_without_linear_layers_is_refused(name):
    with pytest.raises(InputError, match=r"train\.lora: this model has no linear layers to update; leave train\.lora"):
        add_updates(MODELS[name][1](), CONFIG)


def layers(**config: object) -> set[str]:
    """The layers of a translator of two layers that get an update."""
    model = MODELS["pairs, transformer"][1]()
    add_updates(model, LoraConfig(rank=2, **config))
    return {name for name, layer in model.named_modules() if isinstance(layer, LoraLinear)}


def test_targets_are_parts_of_names():
    assert layers(targets=("encoder.blocks.1", "cross_attention.v")) == {
        *(f"encoder.blocks.1.self_attention.{part}" for part in ("q", "k", "v", "out")),
        *(f"encoder.blocks.1.feed_forward.{part}" for part in ("up", "down")),
        *(f"decoder.blocks.{layer}.cross_attention.v" for layer in (0, 1)),
    }


def test_what_is_trained_as_well_gets_no_update():
    model = MODELS["pairs, transformer"][1]()
    add_updates(model, LoraConfig(also=("encoder", "decoder.blocks.0.self_residual"), targets=("self_attention.q",)))
    trained = {name for name, value in model.named_parameters() if value.requires_grad}
    updates = {f"decoder.blocks.{layer}.self_attention.q.lora_{part}" for layer in (0, 1) for part in "ab"}
    also = {name for name in weights(model) if name.startswith(("encoder.", "decoder.blocks.0.self_residual."))}
    assert trained == updates | also


def test_a_matrix_with_several_names_is_trained_by_each_of_them():
    model = MODELS["pairs, transformer"][1]()  # whose output is tied to the target embeddings
    add_updates(model, LoraConfig(also=("output.weight",)))
    assert model.target_embedding.weight.requires_grad


@pytest.mark.parametrize("target", ["query", "output", "encoder.blocks.2"])
def test_a_target_that_is_not_a_layer_is_refused_with_those_that_are(target):
    with pytest.raises(InputError, match=rf'targets: "{target}" is not .*encoder\.blocks\.self_attention\.q, '):
        layers(targets=("v", target))


def test_another_name_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r'train\.lora\.also: no weight name begins with "head"'):
        layers(also=("head",))


def test_dropout_of_the_updates_leaves_the_layer_itself_alone():
    layer = nn.Linear(64, 5)
    model = nn.ModuleDict({"layer": layer})
    add_updates(model, LoraConfig(rank=3, dropout=0.5))
    x = torch.randn(7, 64)
    assert torch.equal(model["layer"](x), layer(x))
    nn.init.ones_(model["layer"].lora_b)
    assert not torch.equal(model["layer"](x), model["layer"](x))
    assert torch.equal(model.eval()["layer"](x), model["layer"](x))
