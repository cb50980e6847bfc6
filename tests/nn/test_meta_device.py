"""Models on the device "meta" have the shapes of others; they come without torch's compiler, which takes a second."""

import subprocess
import sys

import torch
from torch import nn

from heedful.architectures.transformer.model import EncoderDecoder
from heedful.config.schema import ModelConfig
from heedful.nn.meta_device import meta_device, unallocated


def build() -> EncoderDecoder:
    return EncoderDecoder(ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1), 11, 13)


def test_a_model_has_its_shapes_and_no_weights():
    with meta_device():
        on_paper = build()
    assert {parameter.device.type for parameter in on_paper.parameters()} == {"meta"}
    shapes = [{name: value.shape for name, value in model.state_dict().items()} for model in (on_paper, build())]
    assert shapes[0] == shapes[1]


def test_a_tensor_elsewhere_is_left_as_it_is():
    with meta_device():
        kept = nn.init.normal_(torch.full((3,), 7.0, device="cpu"))
    assert kept.tolist() == [7.0] * 3
    assert nn.init.ones_(kept).tolist() == [1.0] * 3


def test_a_model_is_read_without_the_compiler():
    code = "import sys, heedful; heedful.load('en-de').translate('A man.'); assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


COUNTED = """
import sys
from heedful.cli.config import describe
from heedful.config.presets import PRESETS
from heedful.tasks.model_size import count_model

for name in PRESETS:
    recipe, sizes = describe(name, [])
    if recipe.task != "image_classification":  # whose classes are not known
        count_model(recipe, *sizes)
assert "torch._dynamo" not in sys.modules
"""


def test_no_model_needs_the_compiler_to_be_counted():
    subprocess.run([sys.executable, "-c", COUNTED], check=True)


def test_weights_alone_have_no_memory_where_only_their_shapes_are_asked_for():
    with unallocated():
        on_paper = build()
        kept = nn.init.normal_(torch.full((3,), 7.0))
    assert {parameter.device.type for parameter in on_paper.parameters()} == {"meta"}
    assert {buffer.device.type for buffer in on_paper.buffers()} == {"cpu"}
    assert kept.tolist() == [7.0] * 3
    shapes = [{name: value.shape for name, value in model.state_dict().items()} for model in (on_paper, build())]
    assert shapes[0] == shapes[1]
