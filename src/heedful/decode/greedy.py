"""Greedy search: the likeliest token at every step."""

from collections.abc import Sequence

import torch

from heedful.config.schema import DecodeConfig
from heedful.decode.hypothesis import Hypothesis, hypothesis
from heedful.decode.ranking import best_tokens
from heedful.decode.state import State
from heedful.text.tokenizer import EOS


def search(state: State, limits: Sequence[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Decode a batch; a sentence leaves it with its <eos> or at its longest length. See `heedful.decode.search`."""
    tokens: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    rows = list(range(len(limits)))  # the sentence in each row
    fed = state.begin
    while rows:
        values, chosen = best_tokens(state.step(fed), 1)
        for sentence, token, value in zip(rows, chosen[:, 0].tolist(), values[:, 0].tolist(), strict=True):
            tokens[sentence].append(token)
            scores[sentence].append(value)
        going = [i for i, s in enumerate(rows) if tokens[s][-1] != EOS and len(tokens[s]) < limits[s]]
        if 0 < len(going) < len(rows):
            state.select(torch.tensor(going, device=fed.device))
        fed = chosen[going, 0].to(fed.device)
        rows = [rows[i] for i in going]
    return [[hypothesis(*pair, config)] for pair in zip(tokens, scores, strict=True)]
