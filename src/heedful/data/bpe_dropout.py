"""BPE dropout while training (Provilkov et al. 2020): each time a sentence is seen, it is spelled another way."""

import random

import numpy as np

from heedful.text.padding import pad
from heedful.text.tokenizer import EOS, PAD, Tokenizer


def respell(rows: np.ndarray, tokenizer: Tokenizer, rate: float, rng: random.Random) -> np.ndarray:
    """Spell padded rows of ids, shape (B, S), anew; they end in <eos> as before and decode to the same text.

    Args:
        rows: Ids padded at the end, each row ending in <eos>.
        tokenizer: Of kind "bpe".
        rate: The probability of overlooking a merge.
        rng: Where chance comes from; from the same state come the same spellings.
    """
    texts = [tokenizer.decode(row[row != PAD][:-1]) for row in rows]
    return pad([[*tokenizer.encode_with_dropout(text, rate, rng), EOS] for text in texts])[0]
