"""Masking for masked language models: chooses the tokens to predict, and replaces them (Devlin et al. 2019, A.1)."""

from collections.abc import Sequence

import numpy as np

from heedful.config.schema import MaskingConfig
from heedful.random_numbers import MASKS, draw
from heedful.text.tokenizer import MASK

Key = tuple[int, int, int]  # seed, epoch and the number of a sequence


def mask_tokens(
    ids: np.ndarray,
    words: np.ndarray | None,
    masking: MaskingConfig,
    vocab_size: int,
    first_piece: int,
    keys: Sequence[Key],
) -> tuple[np.ndarray, np.ndarray]:
    """Mask tokens: choose some of each sequence at random, and put <mask>, a random token or the same in their place.

    Of the tokens that are not special, max(1, round(rate x their number)) are chosen, one by one or, with
    `whole_words`, word by word until there are as many: then the last word may exceed the number. The result for a
    sequence depends on its tokens and its key, not on the batch, its padding or its row.

    Args:
        ids: Token ids, padded at the end, shape (B, S).
        words: The number of each token's word in its sequence, shape (B, S); only `whole_words` needs it.
        masking: How many are chosen, and what becomes of them.
        vocab_size: Random tokens have ids below this one.
        first_piece: Random tokens have this id or a higher one: special tokens, and bytes if wanted, have lower ones.
        keys: The seed, epoch and number of each sequence, on which its random choices depend.

    Returns:
        What the model sees, like `ids`, of shape (B, S), and a mask of the tokens that it is to predict, bool, (B, S).
    """
    if first_piece >= vocab_size:
        raise ValueError(f"no tokens from {first_piece} on in a vocabulary of {vocab_size}")
    if masking.whole_words and words is None:
        raise ValueError("whole words need the word of each token")
    inputs, chosen = ids.copy(), np.zeros(ids.shape, bool)
    places = np.arange(ids.shape[1])
    for row, (seed, epoch, number) in enumerate(keys):
        candidates = places[ids[row] > MASK]  # the special tokens are the first ids
        order, action, piece = draw(3 * len(candidates), seed, MASKS, epoch, number).reshape(3, -1)
        units = words[row, candidates] if words is not None and masking.whole_words else candidates
        taken = _choose(units, order, masking.rate)
        random = first_piece + (piece[taken] % (vocab_size - first_piece)).astype(ids.dtype)
        inputs[row, candidates[taken]] = _hide(ids[row, candidates[taken]], random, action[taken] * 2.0**-64, masking)
        chosen[row, candidates[taken]] = True
    return inputs, chosen


def _choose(units: np.ndarray, random: np.ndarray, rate: float) -> np.ndarray:
    """Choose tokens, bool, shape (n,): whole units in random order until `rate` of the tokens are reached."""
    _, unit, sizes = np.unique(units, return_inverse=True, return_counts=True)
    order = np.argsort(random[: len(sizes)], kind="stable")
    count = 1 + np.searchsorted(np.cumsum(sizes[order]), round(rate * len(units)))
    return np.isin(unit, order[:count])


def _hide(tokens: np.ndarray, random: np.ndarray, share: np.ndarray, masking: MaskingConfig) -> np.ndarray:
    """Replace chosen tokens, shape (n,), by <mask>, a random token or the same, as `share` in [0, 1) says."""
    kept = np.where(share < masking.mask + masking.random, random, tokens)
    return np.where(share < masking.mask, MASK, kept)
