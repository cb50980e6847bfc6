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
    """Reorder the rows of embeddings and output weights to heedful's token ids; a token without a row gets zeros.

    Args:
        weights: Weights by heedful's names.
        old_id_of: (V,), the row that each of heedful's ids had in the original vocabulary, or -1.
        tables: Names of the weights with one row per token, (W, D) or (W,).
    """
    rows = torch.from_numpy(old_id_of)
    absent = rows == ABSENT
    chosen = {name: weights[name][rows.clamp(min=0)] for name in tables if name in weights}
    for table in chosen.values():
        table[absent] = 0.0
    return {**weights, **chosen}


def never_said(old_id_of: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Boolean mask (V,), True for token ids that the converted model must never generate.

    These are the tokens that the original vocabulary lacked, and <bos> if it shares its old id with another token.
    """
    never = old_id_of == ABSENT
    never[BOS] |= bool((old_id_of == old_id_of[BOS]).sum() > 1)
    return never


def silence(bias: Tensor | None, old_id_of: NDArray[np.int64]) -> dict[str, Tensor]:
    """Output bias that gives the tokens of `never_said` probability 0, as a dictionary with the parameter's name.

    All other tokens keep their probabilities. The dictionary is empty if `bias` is None and there are no such tokens.
    """
    never = torch.from_numpy(never_said(old_id_of))
    if bias is None and not never.any():
        return {}
    base = torch.zeros(len(old_id_of)) if bias is None else bias
    return {"output.bias": base.masked_fill(never, NEVER)}


def lacking(bias: Tensor) -> tuple[int, ...]:
    """Ids of the special tokens that conversion added to a model, as `silence` marks them, whatever was trained since.

    A model that reads none of <pad>, <unk> and <bos> can leave them without a change to any other probability.

    Args:
        bias: The output bias, (V,).
    """
    ids = (bias == NEVER).nonzero().flatten().tolist()
    return tuple(ids) if {PAD, UNK, BOS}.issuperset(ids) else ()


def check_rows(old_id_of: NDArray[np.int64], rows: int, where: str) -> None:
    """Raise an InputError unless tokenizer and embeddings agree: one row per token, and one token per row.

    Raises:
        InputError: A token has no row, or a row no token.
    """
    known = np.unique(old_id_of[old_id_of != ABSENT])
    last = known.max(initial=-1)
    if len(known) != rows or last != rows - 1:
        raise InputError(
            f"{where}: the tokenizer has {len(known)} tokens up to id {last}, the embeddings have {rows} rows; "
            "give the model its own tokenizer, or in transformers model.resize_token_embeddings(len(tokenizer))"
        )
