"""Sampling of the next token of each row, and its filters: temperature, top-k, nucleus (top-p), penalties.

A filter changes the logits of all rows that have the same value of its setting; excluded tokens get a logit of -inf.

R rows, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful import random_numbers
from heedful.architectures.model import check_no_nan
from heedful.config.schema import GenerateConfig
from heedful.search.constraints import ngram_ends
from heedful.search.generation import GenerationRow
from heedful.search.top_k import top
from heedful.text.tokenizer import EOS

Tokens = Sequence[Sequence[int]]  # R rows of ids
DEFAULTS = GenerateConfig()  # the default settings, which filter nothing


def sample(
    logits: Float[Tensor, "R V"], rows: Sequence[GenerationRow], never: Sequence[int]
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"]]:
    """Sample the next token of each row with the filters in the row's settings, such as temperature and top-p.

    Token ids in `never` are excluded.

    Returns:
        Token ids, and log P of each token before filtering; both on the CPU.

    Raises:
        RunError: the logits contain NaN.
    """
    logits = logits.cpu().double()
    check_no_nan(logits)
    # A random number depends only on the seed and the token's position, so that texts do not depend on batching.
    chances = torch.tensor([uniform(row.config.seed, len(row.output)) for row in rows], dtype=torch.float64)
    tokens = draw(apply_filters(logits, rows, never), chances)
    return tokens, logits.log_softmax(1).gather(1, tokens[:, None])[:, 0]


def draw(logits: Float[Tensor, "R V"], chances: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Pick, in each row, the first token id at which the cumulative probability exceeds the row's chance.

    A chance is a number in [0, 1).
    """
    cumulative = logits.softmax(1).cumsum(1)
    thresholds = chances[:, None] * cumulative[:, -1:]  # rounding leaves the last sum close to 1, not at 1
    return torch.searchsorted(cumulative, thresholds, right=True)[:, 0]


def uniform(seed: int, step: int) -> float:
    """Return a random number in [0, 1), a multiple of 2^-53, that is a function of seed and step."""
    return int(random_numbers.draw(1, seed, step)[0] >> 11) * 2.0**-53


def apply_filters(
    logits: Float[Tensor, "R V"], rows: Sequence[GenerationRow], never: Sequence[int]
) -> Float[Tensor, "R V"]:
    """Apply the sampling filters of each row's settings, in the order of `FILTERS`; ids in `never` are excluded."""
    # A copy, which filters may change: scores are computed from the model's logits.
    logits = logits.index_fill(1, torch.tensor(never, dtype=torch.long), -torch.inf)
    for name, (apply, *readers) in FILTERS.items():
        groups: dict[Any, list[int]] = defaultdict(list)  # rows with the same value are filtered together
        for index, row in enumerate(rows):
            value = getattr(row.config, name)
            if value != getattr(DEFAULTS, name):
                groups[value].append(index)

        for value, indices in groups.items():
            tokens = [[tokens_of(rows[index]) for index in indices] for tokens_of in readers]
            logits[indices] = apply(logits[indices], value, *tokens)
    return logits


def min_tokens(logits: Float[Tensor, "R V"], count: int, output: Tokens) -> Float[Tensor, "R V"]:
    """Exclude <eos> in the rows whose output has fewer than `count` tokens."""
    short = [row for row, tokens in enumerate(output) if len(tokens) < count]
    logits = logits.clone()
    logits[short, EOS] = -torch.inf
    return logits


def ignore_eos(logits: Float[Tensor, "R V"], _value: bool) -> Float[Tensor, "R V"]:
    """Exclude <eos>."""
    return logits.index_fill(1, torch.tensor([EOS]), -torch.inf)


def repetition_penalty(logits: Float[Tensor, "R V"], penalty: float, text: Tokens) -> Float[Tensor, "R V"]:
    """Divide positive logits of tokens in the text so far by `penalty`, and multiply negative ones by it.

    Keskar et al. (2019, section 4.1) divide both, which raises negative logits.
    """
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(counts(text, logits.size(1)) > 0, penalised, logits)


def frequency_penalty(logits: Float[Tensor, "R V"], penalty: float, output: Tokens) -> Float[Tensor, "R V"]:
    """Subtract `penalty` from a token's logit once for each time that the token has been generated."""
    return logits - penalty * counts(output, logits.size(1))


def presence_penalty(logits: Float[Tensor, "R V"], penalty: float, output: Tokens) -> Float[Tensor, "R V"]:
    """Subtract `penalty` once from the logit of each token that has been generated at all."""
    return logits - penalty * counts(output, logits.size(1)).clamp(max=1)


def counts(tokens: Tokens, size: int) -> Float[Tensor, "R V"]:
    """Count the occurrences of each of `size` token ids in each row."""
    return torch.stack([torch.bincount(torch.tensor(row, dtype=torch.long), minlength=size) for row in tokens]).double()


def no_repeat_ngram(logits: Float[Tensor, "R V"], size: int, text: Tokens) -> Float[Tensor, "R V"]:
    """Exclude the tokens that would complete an n-gram of `size` tokens that the text already contains."""
    allowed = torch.ones_like(logits, dtype=torch.bool)
    for row, tokens in enumerate(text):
        allowed[row, ngram_ends(tokens, size)] = False
    return keep_only(logits, allowed)


def temperature(logits: Float[Tensor, "R V"], degree: float) -> Float[Tensor, "R V"]:
    """Divide the logits by the temperature `degree`; 0 keeps only the most probable token."""
    if degree == 0:
        return top_k(logits, 1)
    return (logits - logits.amax(1, keepdim=True)) / degree  # no logit overflows at a low temperature


def top_k(logits: Float[Tensor, "R V"], count: int) -> Float[Tensor, "R V"]:
    """Keep the `count` most probable tokens of each row and exclude the rest (top-k sampling)."""
    _, best = top(logits, min(count, logits.size(1)))
    return keep_only(logits, torch.zeros_like(logits, dtype=torch.bool).scatter(1, best, True))


def top_p(logits: Float[Tensor, "R V"], mass: float) -> Float[Tensor, "R V"]:
    """Keep the fewest tokens that together have probability `mass` (nucleus sampling, Holtzman et al. 2020)."""
    return keep_mass(logits, -logits, mass)


def min_p(logits: Float[Tensor, "R V"], share: float) -> Float[Tensor, "R V"]:
    """Keep the tokens with at least `share` of the probability of the most probable one (min-p, Nguyen et al. 2024)."""
    probabilities = logits.softmax(1)
    return keep_only(logits, probabilities >= share * probabilities.amax(1, keepdim=True))


def typical(logits: Float[Tensor, "R V"], mass: float) -> Float[Tensor, "R V"]:
    """Keep the fewest tokens with total probability `mass` whose surprise is nearest to the entropy.

    This is locally typical sampling (Meister et al. 2023). The surprise of a token is -log P, and the entropy of the
    distribution is the mean surprise.
    """
    log_probs = logits.log_softmax(1)
    entropy = torch.special.entr(log_probs.exp()).sum(1, keepdim=True)
    return keep_mass(logits, (-log_probs - entropy).abs(), mass)


def keep_mass(logits: Float[Tensor, "R V"], distance: Float[Tensor, "R V"], mass: float) -> Float[Tensor, "R V"]:
    """Keep the smallest set of tokens, in order of distance, whose total probability is at least `mass`.

    A token is kept if those before it sum to less than `mass`; equivalently, if it and those after it sum to more than
    1 - `mass`. The second form loses no token by rounding: a `mass` of 1 keeps all tokens.
    """
    order = distance.sort(dim=1, stable=True).indices
    rest = logits.softmax(1).gather(1, order).flip(1).cumsum(1).flip(1)
    # The first token is always kept, even if 1 - mass is rounded to 1.
    is_kept = (rest > 1 - mass).index_fill(1, order.new_zeros(1), True)
    return keep_only(logits, torch.zeros_like(logits, dtype=torch.bool).scatter(1, order, is_kept))


def keep_only(logits: Float[Tensor, "R V"], allowed: Bool[Tensor, "R V"]) -> Float[Tensor, "R V"]:
    """Exclude all tokens except the allowed ones; a row without any allowed token keeps its most probable token."""
    empty = ~(allowed & logits.isfinite()).any(1, keepdim=True)
    best = torch.zeros_like(allowed).scatter(1, top(logits, 1)[1], True)
    return logits.masked_fill(~(allowed | empty & best), -torch.inf)


def output_of(row: GenerationRow) -> list[int]:
    return row.output


def text_of(row: GenerationRow) -> list[int]:
    return row.prompt + row.output


# Filters by setting, in the order in which they are applied. A function after a filter returns the tokens of a row that
# the filter reads. Penalties and temperature come before the filters that compare probabilities.
FILTERS: dict[str, Sequence[Callable[..., Any]]] = {
    "min_tokens": (min_tokens, output_of),
    "ignore_eos": (ignore_eos,),
    "repetition_penalty": (repetition_penalty, text_of),
    "frequency_penalty": (frequency_penalty, output_of),
    "presence_penalty": (presence_penalty, output_of),
    "no_repeat_ngram": (no_repeat_ngram, text_of),
    "temperature": (temperature,),
    "top_k": (top_k,),
    "top_p": (top_p,),
    "min_p": (min_p,),
    "typical": (typical,),
}
