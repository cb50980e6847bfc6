"""A translator's export names the head that aligns, and CTranslate2 returns what this head attends to."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_ctranslate2_export import model_of

from heedful.config.schema import CorpusConfig
from heedful.convert import alignment_heads
from heedful.convert.alignment_heads import alignment_head, statistical_alignment, with_head_first
from heedful.convert.ctranslate2_export import write
from heedful.predictors.cross_attention import head_weights
from heedful.text.tokenizer import BOS, EOS

ctranslate2 = pytest.importorskip("ctranslate2")

SOURCES = ["one two three", "three four one", "two three", "one four two three"]
TARGETS = ["seven six five", "six eight seven", "six five", "five six seven eight"]  # one is seven, two is five ...


@pytest.fixture
def translator(tmp_path):
    """A random translator with grouped heads, whose validation pairs translate word by word in another order."""
    torch.manual_seed(3)
    network, model = model_of("translation", "encoder_decoder", norm="pre", positions="rotary", kv_heads=2)
    for side, lines in (("source", SOURCES), ("target", TARGETS)):
        (tmp_path / side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    data = replace(model.recipe.data, root=str(tmp_path), valid=CorpusConfig(source="source", target="target"))
    return network, replace(model, recipe=replace(model.recipe, data=data))


def weights_of_head(network, source, target, head):
    ids, written = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target[:-1]]])
    masks = torch.ones_like(ids, dtype=torch.bool), torch.ones_like(written, dtype=torch.bool)
    return head_weights(network, ids, masks[0], written, masks[1], [head])[0, 0].numpy()


def test_a_statistical_alignment_finds_the_words():
    numbers = {"one": 0, "two": 1, "three": 2, "four": 3, "seven": 4, "five": 5, "six": 6, "eight": 7}
    pairs = [
        ([numbers[word] for word in source.split()], [numbers[word] for word in target.split()])
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    for (source, target), links in zip(pairs, statistical_alignment(pairs, 8, 8), strict=True):
        assert [target[i] - source[link] for i, link in enumerate(links)] == [4] * len(target)


@pytest.mark.parametrize("planted", [0, 5, 10])
def test_the_head_that_attends_to_the_translated_word_is_chosen(translator, planted, monkeypatch):
    def attention(network, ids, mask, written, written_mask, heads):
        """Uniform, but that one head attends to the source word of the next target word."""
        words = {tokens[side]: i for i, tokens in enumerate(dictionary) for side in range(2)}
        weights = torch.full((len(heads), written.size(1), ids.size(1)), 0.1)
        [target] = [
            target for target in targets if len(target) == written.size(1) and target[:-1] == written[0, 1:].tolist()
        ]
        for row, token in enumerate(target):
            place = [words.get(i) for i in ids[0].tolist()].index(words[token])
            weights[planted, row, place] = 1.0
        return weights[None]

    tokenizer = translator[1].tokenizers.target
    targets = tokenizer.encode_batch(TARGETS)
    pairs = [("one", "seven"), ("two", "five"), ("three", "six"), ("four", "eight")]
    dictionary = [tuple(tokenizer.encode(word)[0] for word in pair) for pair in pairs]
    monkeypatch.setattr(alignment_heads, "head_weights", attention)
    assert alignment_head(translator[1]) == divmod(planted, 4)


def aligned(model, text, folder):
    """Export a model, and return the ids of a text and of its translation, and the attention of CTranslate2."""
    write(model, folder)
    tokens = json.loads((folder / "shared_vocabulary.json").read_text())
    source = model.tokenizers.source.encode(text)
    engine = ctranslate2.Translator(str(folder), compute_type="float32")
    [result] = engine.translate_batch(
        [[tokens[i] for i in source]], beam_size=1, max_decoding_length=6, return_attention=True
    )
    target = [tokens.index(token) for token in result.hypotheses[0]]
    return source, target, np.array(result.attention[0])[: len(target), : len(source)]


def test_ctranslate2_returns_what_the_chosen_head_attends_to(translator, tmp_path):
    network, model = translator
    best = alignment_head(model)
    assert best is not None
    layer, head = best
    source, target, attention = aligned(model, SOURCES[3], tmp_path / "out")
    expected = weights_of_head(network, source, target, layer * 4 + head)
    np.testing.assert_allclose(attention, expected[:, : len(source)], atol=1e-4)


@pytest.mark.parametrize("head", range(4))
def test_reordered_heads_compute_the_same(translator, head):
    network, model = translator
    reordered, _ = model_of("translation", "encoder_decoder", norm="pre", positions="rotary", kv_heads=2)
    reordered.load_state_dict(network.state_dict() | with_head_first(model.weights, model.recipe.model, 1, head))
    ids, target = [4, 7, 9, 5], [6, 8, 4]
    for layer, other in ((0, 0), (1, 0), (2, 3)):
        expected = weights_of_head(network, ids, target, layer * 4 + (head if layer == 1 else other))
        found = weights_of_head(reordered, ids, target, layer * 4 + other)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_without_validation_pairs_all_heads_of_the_last_layer_but_one_align(translator, tmp_path):
    network, model = translator
    recipe = replace(model.recipe, data=replace(model.recipe.data, valid=CorpusConfig(source="x.en", target="x.de")))
    assert alignment_head(replace(model, recipe=recipe)) is None
    source, target, attention = aligned(replace(model, recipe=recipe), SOURCES[0], tmp_path / "out")
    expected = np.mean([weights_of_head(network, source, target, 4 + head) for head in range(4)], axis=0)
    np.testing.assert_allclose(attention, expected[:, : len(source)], atol=1e-4)
