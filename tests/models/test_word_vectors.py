from dataclasses import replace

import pytest
import torch

from heedful.config.load import recipe_from_dict
from heedful.errors import InputError
from heedful.models import EncoderDecoder
from heedful.models.word_vectors import place_vectors
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from reversal import SETTINGS

VECTORS = {"w1": [2.0] * 8 + [0.0] * 8, "w5": [0.0] * 8 + [-2.0] * 8, "elsewhere": [1.0] * 16}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in VECTORS.items()))
    return file


def setting(path, **model):
    recipe = recipe_from_dict(SETTINGS, "test")
    recipe = replace(recipe, model=replace(recipe.model, source_vectors=str(path), tie="none", **model))
    tokenizer = train_tokenizer(["w1 w2 w3 w4 w5 w1"], recipe.tokenizer)
    torch.manual_seed(0)
    built = EncoderDecoder(recipe.model, len(tokenizer), len(tokenizer))
    return built, recipe, TokenizerPair(tokenizer, tokenizer)


def test_words_get_their_vectors_at_the_scale_of_embeddings(path):
    built, recipe, tokenizers = setting(path)
    before = built.source_embedding.weight.clone()
    place_vectors(built, recipe, tokenizers)
    (w1,), (w2,), (w5,) = (tokenizers.source.encode(word) for word in ("w1", "w2", "w5"))
    after = built.source_embedding.weight
    assert torch.equal(after[w2], before[w2])
    assert (after[w1, :8] > 0).all()
    assert (after[w1, 8:] == 0).all()
    torch.testing.assert_close(after[w5, 8:], -after[w1, :8])
    assert torch.stack([after[w1], after[w5]]).std().item() == pytest.approx(16**-0.5)
    assert after.requires_grad


def test_frozen_vectors_are_not_trained(path):
    built, recipe, tokenizers = setting(path, freeze_vectors=True)
    place_vectors(built, recipe, tokenizers)
    assert not built.source_embedding.weight.requires_grad
    assert built.target_embedding.weight.requires_grad


def test_vectors_of_another_size_are_refused_with_the_remedy(path):
    with pytest.raises(InputError, match=r"vectors of size 16; set model\.d_model = 16, now 24"):
        place_vectors(*setting(path, d_model=24))
