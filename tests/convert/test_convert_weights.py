import json

import pytest
import torch
from safetensors.torch import save_file

from heedful.convert.weights import read_safetensors
from heedful.errors import InputError

TENSORS = {"a": torch.randn(5, 3), "b": torch.randn(7).bfloat16(), "c": torch.arange(11)}
PLACES = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}


@pytest.fixture
def shards(tmp_path):
    """A folder with its tensors in two files."""
    for file in set(PLACES.values()):
        save_file({name: TENSORS[name] for name, place in PLACES.items() if place == file}, tmp_path / file)
    write_index(tmp_path, PLACES)
    return tmp_path


def write_index(folder, places):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_one_file_and_several_give_the_same(shards, tmp_path_factory):
    assert same(read_safetensors(shards), TENSORS)
    folder = tmp_path_factory.mktemp("single")
    save_file(TENSORS, folder / "model.safetensors")
    assert same(read_safetensors(folder), TENSORS)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({**PLACES, "d": "two.safetensors"}, "two.safetensors: disagrees with .* about 'd'"),
        ({name: PLACES[name] for name in "ac"}, "one.safetensors: disagrees with .* about 'b'"),
        ({**PLACES, "d": "three.safetensors"}, "three.safetensors: is missing"),
        ({"a": "../one.safetensors"}, "names '../one.safetensors', which is not a file in the same folder"),
        ({"a": 7}, "names 7, which is not a file"),
        ([], "cannot be read, or is damaged"),
    ],
)
def test_an_index_that_is_wrong_is_named(shards, places, message):
    write_index(shards, places)
    with pytest.raises(InputError, match=message):
        read_safetensors(shards)


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 31)
    with pytest.raises(InputError, match=r"model\.safetensors: is missing, or is not a readable safetensors file"):
        read_safetensors(tmp_path)


def test_a_pickled_model_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"contains neither model\.safetensors nor"):
        read_safetensors(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"pytorch_model\.bin: is a pickle file, .*save_pretrained"):
        read_safetensors(tmp_path)
