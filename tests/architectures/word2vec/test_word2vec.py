import re

import pytest

from heedful.architectures.word2vec.settings import Word2VecConfig
from heedful.config.load import make_recipe
from heedful.config.rules import remarks
from heedful.errors import InputError


def test_a_recipe_of_word_vectors_has_defaults_of_its_own():
    recipe = make_recipe({"task": "word_vectors"})
    assert recipe.model == Word2VecConfig()
    assert (recipe.optimizer.name, recipe.optimizer.lr, recipe.tokenizer.kind) == ("row_sgd", 0.025, "word")
    assert recipe.model.shape() == "skip_gram with negative_sampling, vectors of size 100, window 5"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.window", 0, "model.window must be at least 1, but is 0"),
        ("model.negatives", 0, "model.negatives must be at least 1, but is 0"),
        ("model.subsample", -0.5, "model.subsample must be at least 0, but is -0.5"),
        ("model.noise_power", -1.0, "model.noise_power must be at least 0"),
        ("model.phrase_discount", -1, "model.phrase_discount must be at least 0"),
        ("model.phrases", [100.0, 0.0], "give numbers above 0"),
        ("model.source_vectors", "glove.txt", "leave model.source_vectors"),
        ("model.kind", "skipgram", 'did you mean "skip_gram"?'),
        ("model.family", "encoder", 'model.family must be "word_vectors"'),
        ("model.heads", 8, "unknown key model.heads"),
        ("optimizer.name", "adam", 'set optimizer.name = "row_sgd"'),
        ("optimizer.weight_decay", 0.1, "set optimizer.weight_decay = 0.0"),
        ("tokenizer.kind", "bpe", 'set tokenizer.kind = "word"'),
        ("train.precision", "bfloat16", "leave it out"),
        ("train.label_smoothing", 0.1, "set train.label_smoothing = 0.0"),
    ],
)
def test_what_word_vectors_cannot_have_is_refused_with_the_remedy(key, value, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make_recipe({"task": "word_vectors"}, {key: value})


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"objective": "softmax", "negatives": 7}, 'with model.objective = "softmax" they have no effect'),
        ({"objective": "hierarchical_softmax", "noise_power": 0.5}, "belong to negative sampling"),
        ({"phrase_discount": 3}, "without phrases it has no effect"),
    ],
)
def test_settings_that_change_nothing_are_remarked_upon(model, said):
    (remark,) = remarks(make_recipe({"task": "word_vectors", "model": model}))
    assert said in remark
    assert (
        remarks(
            make_recipe({"task": "word_vectors", "model": {"negatives": 7, "phrases": [1.0], "phrase_discount": 3}})
        )
        == []
    )
