"""Reorder rows of embeddings and output bias when a vocabulary gets heedful's special tokens and ids.

V tokens of heedful's vocabulary, W of the original vocabulary.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import InputError
from heedful.nn.embedding import NEVER
from heedful.text.pipeline import ABSENT
from heedful.text.tokenizer import BOS, PAD, UNK


def reorder(weights: Mapping[str, Tensor], old_id_of: NDArray[np.int64], tables: tuple[str, ...]) -> dict[str, Tensor]:
    """Reorder the rows of the weights `tables`, (W, D) or (W,), to heedful's ids; a token without a row gets zeros.

    `old_id_of`, (V,), is the row that each of heedful's ids had in the original vocabulary, or -1.
    """
    rows = torch.from_numpy(old_id_of)
    reordered = {name: weights[name][rows.clamp(min=0)] for name in tables if name in weights}
    for table in reordered.values():
        table[rows == ABSENT] = 0.0
    return {**weights, **reordered}


def silence(bias: Tensor | None, old_id_of: NDArray[np.int64]) -> dict[str, Tensor]:
    """Output bias, by its name, that gives tokens probability 0 which the converted model must never generate.

    These are the tokens that the original vocabulary lacked, and <bos> if it shares its old id with another token. All
    others keep their probabilities. The dictionary is empty if `bias` is None and there are no such tokens.
    """
    never = torch.from_numpy(old_id_of == ABSENT)
    never[BOS] |= bool((old_id_of == old_id_of[BOS]).sum() > 1)
    if bias is None and not never.any():
        return {}
    base = torch.zeros(len(old_id_of)) if bias is None else bias
    return {"output.bias": base.masked_fill(never, NEVER)}


def lacking(bias: Tensor) -> tuple[int, ...]:
    """Ids of the special tokens that conversion added to a model, as `silence` marks them in its output bias (V,).

    A model that reads none of <pad>, <unk> and <bos> can leave them without a change to any other probability.
    """
    ids = (bias == NEVER).nonzero().flatten().tolist()
    return tuple(ids) if {PAD, UNK, BOS}.issuperset(ids) else ()


def check_rows(old_id_of: NDArray[np.int64], rows: int, where: str) -> None:
    """Raise an InputError unless tokenizer and embeddings agree: one row per token, and one token per row."""
    ids = np.unique(old_id_of[old_id_of != ABSENT])
    last = ids.max(initial=-1)
    if len(ids) != rows or last != rows - 1:
        raise InputError(
            f"{where}: the tokenizer has {len(ids)} tokens up to id {last}, the embeddings have {rows} rows; "
            "give the model its own tokenizer, or in transformers model.resize_token_embeddings(len(tokenizer))"
        )
