"""Gaps: what the model takes for likely there, given all that is not a gap."""

import copy
import math

import pytest
import torch
from torch import nn

from heedful.architectures import MaskedLanguageModel
from heedful.config.schema import ModelConfig, TokenizerConfig
from heedful.errors import InputError, RunError
from heedful.predictors.filler import Filler
from heedful.text.tokenizer import BOS, EOS, MASK
from heedful.text.training import train_tokenizer

WORDS = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st", "uv"]


@pytest.fixture(scope="module")
def filler() -> Filler:
    torch.manual_seed(0)
    tokenizer = train_tokenizer(WORDS, TokenizerConfig(kind="word", vocab_size=331, mask=True))
    config = ModelConfig(family="encoder", d_model=16, d_ff=23, heads=2, encoder_layers=1, tie="none")
    model = MaskedLanguageModel(config, len(tokenizer), pairs=False)
    nn.init.normal_(model.output.weight, std=0.7)
    return Filler(model, tokenizer, 17)


def ids(filler: Filler, *words: str | int) -> list[int]:
    found = [word if isinstance(word, int) else filler.tokenizer.encode(word) for word in words]
    return [BOS, *(i for word in found for i in ([word] if isinstance(word, int) else word)), EOS]


def test_a_gap_is_one_mask_in_the_place_of_a_word(filler):
    assert filler.encode("ab [MASK] ef") == ids(filler, "ab", MASK, "ef")
    assert filler.encode("[MASK] ef") == ids(filler, MASK, "ef")
    assert filler.encode("ab <mask>, cd") == ids(filler, "ab", MASK)[:-1] + filler.tokenizer.encode("x, cd")[-2:] + [
        EOS
    ]
    assert filler.encode("ab [MASK][MASK]") == ids(filler, "ab", MASK, MASK)
    assert filler.encode("[MASK]") == [BOS, MASK, EOS]


def test_candidates_are_the_likeliest_words_best_first(filler):
    first, second = filler.fill("ab [MASK] ef [MASK] ij", 7)
    tokens = torch.tensor([ids(filler, "ab", MASK, "ef", MASK, "ij")])
    filler.model.eval()
    with torch.no_grad():
        logits = filler.model(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros_like(tokens))[0]
    filler.model.train()
    for gap, place in ((first, 2), (second, 4)):
        shares = logits[place, 5:].double().softmax(0)
        best = sorted(range(len(shares)), key=lambda i: -shares[i])[:7]
        assert [candidate.token for candidate in gap] == [i + 5 for i in best]
        assert [candidate.probability for candidate in gap] == pytest.approx(shares[best].tolist(), abs=1e-5)
        assert [candidate.text for candidate in gap] == [
            filler.tokenizer.decode([c.token]).strip() or filler.tokenizer.pieces([c.token])[0] for c in gap
        ]


def test_there_are_no_more_candidates_than_words(filler):
    (gap,) = filler.fill("[MASK]", 1009)
    assert len(gap) == len(filler.tokenizer) - 5
    assert sum(candidate.probability for candidate in gap) == pytest.approx(1.0, abs=1e-5)


def test_several_texts_are_filled_each_by_itself(filler):
    texts = ["ab [MASK]", "[MASK] cd [MASK]"]
    assert filler.fill(texts, 3) == [filler.fill(text, 3) for text in texts]


def test_what_cannot_be_filled_is_told(filler):
    with pytest.raises(InputError, match=r"'ab cd' has no gap; write \[MASK\]"):
        filler.fill("ab cd")
    with pytest.raises(InputError, match="the text has 18 tokens, but the model reads at most 17; shorten it"):
        filler.fill("[MASK] " + " ".join(["ab"] * 15))
    assert filler.fill("[MASK] " + " ".join(["ab"] * 14))


def test_a_model_that_computes_no_numbers_fills_no_gap(filler):
    broken = copy.deepcopy(filler)
    broken.model.output.weight.data.fill_(math.nan)
    with pytest.raises(RunError, match="is not a number"):
        broken.fill("ab [MASK] ef")
