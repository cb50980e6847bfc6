"""BPE dropout in training (Provilkov et al. 2020): a sentence is split into other subwords each time it is seen."""

import random

import numpy as np

from heedful.text.padding import pad
from heedful.text.tokenizer import EOS, PAD, Tokenizer


def respell(rows: np.ndarray, tokenizer: Tokenizer, rate: float, rng: random.Random) -> np.ndarray:
    """Encode padded rows of token ids, shape (B, S), again with BPE dropout; they decode to the same texts as before.

    Args:
        rows: Ids padded at the end, each row ending in <eos>.
        tokenizer: A tokenizer of kind "bpe".
        rate: The probability of skipping a merge.
        rng: Source of randomness; the same state gives the same subwords.
    """
    texts = [tokenizer.decode(row[row != PAD][:-1]) for row in rows]
    return pad([[*tokenizer.encode_with_dropout(text, rate, rng), EOS] for text in texts])[0]
