"""Choosing a device makes float32 float32 on a GPU, too."""

import pytest
import torch

from heedful.machine import choose_device


@pytest.mark.parametrize("name", ["auto", "cpu", torch.device("cpu")])
def test_convolutions_and_recurrent_layers_are_not_computed_in_tf32(name, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    choose_device(name)
    assert not torch.backends.cudnn.allow_tf32
