"""Weights of a type that weights do not have are refused on every path that reads weights."""

import pytest
import torch
import toy_checkpoints
from safetensors.torch import save_file

from heedful.architectures.model import load_weights
from heedful.checkpoint.model_folder import average, read_weights
from heedful.checkpoint.save import model_files
from heedful.convert.model import read_weights as read_foreign_weights
from heedful.errors import InputError
from heedful.storage.atomic import write_folder
from heedful.storage.complete_folder import read_manifest
from heedful.storage.disk import DISK

WRONG = [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]


def folder_with(dtype, path):
    weights = {"a.weight": torch.ones(5, 3), "b.weight": torch.ones(7).to(dtype)}
    files = model_files(toy_checkpoints.RECIPE, toy_checkpoints.tokenizers(), weights)
    write_folder(path, files, {"kind": "model"}, DISK)
    return path


@pytest.mark.parametrize("dtype", WRONG)
def test_a_model_folder_with_weights_that_are_not_floating_point_is_refused(dtype, tmp_path):
    folder = folder_with(dtype, tmp_path / "model")
    with pytest.raises(InputError, match=r"b\.weight has the type"):
        read_weights(read_manifest(folder))
    with pytest.raises(InputError, match=r"b\.weight has the type"):
        average([folder, folder])


@pytest.mark.parametrize("dtype", WRONG)
def test_a_model_takes_only_floating_point_weights(dtype):
    model = torch.nn.Linear(3, 5)
    values = {"weight": torch.ones(5, 3).to(dtype), "bias": torch.ones(5)}
    with pytest.raises(ValueError, match="weight has the type"):
        load_weights(model, values)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_floating_point_weights_of_any_width_are_taken(dtype):
    model = torch.nn.Linear(3, 5)
    load_weights(model, {"weight": torch.ones(5, 3).to(dtype), "bias": torch.ones(5)})
    assert model.weight.eq(1).all()


@pytest.mark.parametrize("dtype", WRONG)
def test_a_foreign_model_with_weights_that_are_not_floating_point_is_refused(dtype, tmp_path):
    save_file({"h.0.attn.c_attn.weight": torch.ones(5, 3).to(dtype)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"h\.0\.attn\.c_attn\.weight has the type"):
        read_foreign_weights(tmp_path)


def test_positions_and_masks_of_a_foreign_model_may_be_integers(tmp_path):
    masks = {"h.0.attn.bias": torch.ones(3).bool(), "bert.embeddings.position_ids": torch.arange(3)}
    save_file(masks, tmp_path / "model.safetensors")
    assert read_foreign_weights(tmp_path).keys() == masks.keys()
