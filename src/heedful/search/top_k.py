"""Top-k selection of next tokens: the most probable tokens of each row, ties ordered by lower id.

R rows, V vocabulary, K best tokens of each row.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.architectures.model import check_no_nan
from heedful.text.tokenizer import BOS, PAD

BLOCK = 64  # values in a block; the maxima of the blocks are compared first


def next_log_probs(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """Compute the log-probabilities of the next tokens; <pad> and <bos>, which are never generated, have -inf.

    They keep their share of the probability, so that scores are log-probabilities under the unmodified model.
    """
    log_probs = logits.float().log_softmax(-1)
    log_probs[:, [PAD, BOS]] = -torch.inf
    return log_probs


def best_tokens(logits: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """Select the K = min(count, V) most probable next tokens of each row and their log-probabilities, best first.

    <pad> and <bos> have the log-probability -inf; see `next_log_probs` and `most_probable`.
    """
    return most_probable(next_log_probs(logits), count)


def most_probable(log_probs: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """Select the K = min(count, V) tokens of each row with the highest log-probabilities, best first.

    Returns:
        Log-probabilities in float64 and token ids, both on the CPU.

    Raises:
        RunError: the log-probabilities contain NaN.
    """
    values, tokens = top(log_probs, min(count, log_probs.size(1)))
    values = values.cpu().double()
    check_no_nan(values)
    return values, tokens.cpu()


def top(values: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """Select the `count` largest values of each row, largest first; ties are ordered by lower index."""
    # One value more than requested shows whether the last one is tied with a value that is left out.
    best, index = largest(values, min(count + 1, values.size(1)))
    tied = (best[:, 1:] == best[:, :-1]).any(1)
    # Ties are rare: only their rows are sorted completely.
    if tied.any():
        best[tied], index[tied] = (x[:, : best.size(1)] for x in values[tied].sort(descending=True, stable=True))
    return best[:, :count], index[:, :count]


def largest(values: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R K"], Int[Tensor, "R K"]]:
    """Select the same values as `values.topk(count)`, ties in any order, in half the time on a CPU.

    Only the blocks with the largest maxima, and the rest that does not fill a block, can contain the largest values;
    nothing else is searched.
    """
    end = values.size(1) // BLOCK * BLOCK
    # (R, V) -> (R, V // BLOCK, BLOCK) -> the ids in the K best blocks and in the rest, (R, K x BLOCK + V % BLOCK).
    blocks = values[:, :end].unflatten(1, (-1, BLOCK))
    best_blocks = blocks.amax(2).topk(min(count, blocks.size(1))).indices
    ids = torch.arange(values.size(1), device=values.device)
    inside = (best_blocks[:, :, None] * BLOCK + ids[:BLOCK]).flatten(1)
    index = torch.cat([inside, ids[end:].expand(len(values), -1)], dim=1)
    best, column = values.gather(1, index).topk(count)
    return best, index.gather(1, column)
