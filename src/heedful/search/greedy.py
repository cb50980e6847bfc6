"""Greedy search: decodes each sentence with the most probable token at every step."""

from collections.abc import Sequence

import torch

from heedful.architectures.model import DecodingState
from heedful.config.schema import DecodeConfig
from heedful.search.hypothesis import Hypothesis, hypothesis
from heedful.search.top_k import best_tokens
from heedful.text.tokenizer import EOS

STAYING = 7 / 8  # share of unfinished rows above which computing the finished ones too costs less than copying


def greedy_search(state: DecodingState, limits: Sequence[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Decode a batch of sentences greedily, each until <eos> or its limit. See `heedful.search.beam.search`."""
    tokens: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    rows = list(range(len(limits)))  # the sentence in each row
    going = rows  # the rows whose sentence has not ended
    fed = state.begin
    while going:
        values, best = (x[:, 0] for x in best_tokens(state.step(fed), 1))
        for i, token, value in zip(going, best[going].tolist(), values[going].tolist(), strict=True):
            tokens[rows[i]].append(token)
            scores[rows[i]].append(value)
        going = [i for i in going if tokens[rows[i]][-1] != EOS and len(tokens[rows[i]]) < limits[rows[i]]]
        if 0 < len(going) <= STAYING * len(rows):
            state.select(torch.tensor(going, device=fed.device))
            best, rows, going = best[going], [rows[i] for i in going], list(range(len(going)))
        fed = best.to(fed.device)
    return [[hypothesis(*pair, config)] for pair in zip(tokens, scores, strict=True)]
