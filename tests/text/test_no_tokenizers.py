"""A model of no text has no tokenizers, and its folder says so."""

import pytest
import torch

from heedful.checkpoint import write_model
from heedful.checkpoint.description import read_description
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.storage.complete_folder import read_manifest
from heedful.text.tokenizer_pair import NoTokenizers


@pytest.mark.parametrize("side", ["source", "target"])
def test_whoever_asks_for_a_tokenizer_is_told_that_there_is_none(side):
    with pytest.raises(InputError, match="neither reads nor generates text"):
        getattr(NoTokenizers(), side)


def test_a_model_folder_without_tokenizers_is_read_again(tmp_path):
    write_model(tmp_path / "model", Recipe(), NoTokenizers(), {"weight": torch.ones(3)})
    assert not (tmp_path / "model" / "tokenizer").exists()
    recipe, tokenizers = read_description(read_manifest(tmp_path / "model"))
    assert recipe == Recipe()
    assert tokenizers.sizes == (0, 0)
    assert tokenizers.joint
    assert not hasattr(tokenizers, "digest")
