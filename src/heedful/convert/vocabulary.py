"""The rows of a model's embeddings in the order of another vocabulary.

V tokens of heedful's vocabulary, W of theirs.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import InputError
from heedful.text.special_tokens import ABSENT
from heedful.text.tokenizer import BOS, EOS, PAD, UNK

# The logit of what is never an output: its probability is exactly 0 in float32, and unlike minus infinity it leaves a
# loss with label smoothing finite.
NEVER = -1e4


def reorder(weights: Mapping[str, Tensor], old_id_of: NDArray[np.int64], tables: tuple[str, ...]) -> dict[str, Tensor]:
    """Weights whose tables have a row for each of heedful's ids; a token that had none gets zeros.

    Args:
        weights: By heedful's names.
        old_id_of: (V,), the row that each id had, or -1.
        tables: The names of those with a row a token, (W, D) or (W,).
    """
    rows = torch.from_numpy(old_id_of)
    absent = rows == ABSENT
    chosen = {name: weights[name][rows.clamp(min=0)] for name in tables if name in weights}
    for table in chosen.values():
        table[absent] = 0.0
    return {**weights, **chosen}


def never_said(old_id_of: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Ids without a probability of their own, (V,): what was lacking, and <bos> where another token stands for it."""
    never = old_id_of == ABSENT
    never[BOS] |= bool((old_id_of == old_id_of[BOS]).sum() > 1)
    return never


def silence(bias: Tensor | None, old_id_of: NDArray[np.int64]) -> dict[str, Tensor]:
    """The output bias with which the other tokens have their old probabilities; none where none is needed."""
    never = torch.from_numpy(never_said(old_id_of))
    if bias is None and not never.any():
        return {}
    base = torch.zeros(len(old_id_of)) if bias is None else bias
    return {"output.bias": base.masked_fill(never, NEVER)}


def lacking(table: Tensor, bias: Tensor) -> tuple[int, ...]:
    """Special tokens that a model lacked and got from `reorder` and `silence`, if its bias says nothing else.

    Args:
        table: The embeddings, (V, D), which are the output matrix too.
        bias: The output bias, (V,).

    Returns:
        Ids without which the model gives every other token the same probability; none where the bias was trained.
    """
    never = bias == NEVER
    ids = never.nonzero().flatten().tolist()
    stand_in = {PAD: torch.zeros_like(table[PAD]), UNK: torch.zeros_like(table[UNK]), BOS: table[EOS]}
    unchanged = all(i in stand_in and torch.equal(table[i], stand_in[i]) for i in ids)
    return tuple(ids) if unchanged and not bias[~never].any() else ()


def check_rows(old_id_of: NDArray[np.int64], rows: int, where: str) -> None:
    """Whether each of a model's rows belongs to a token, and each token has a row.

    Raises:
        InputError: Not so.
    """
    known = np.unique(old_id_of[old_id_of != ABSENT])
    last = known.max(initial=-1)
    if len(known) != rows or last != rows - 1:
        raise InputError(
            f"{where}: the tokenizer has {len(known)} tokens up to id {last}, the embeddings have {rows} rows; "
            "give the model its own tokenizer, or in transformers model.resize_token_embeddings(len(tokenizer))"
        )
