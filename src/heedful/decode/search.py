"""Entry point of decoding: chooses greedy search or beam search."""

from collections.abc import Sequence

from heedful.config.schema import DecodeConfig
from heedful.decode import beam, greedy
from heedful.decode.hypothesis import Hypothesis
from heedful.models.model import DecodingState


def search(state: DecodingState, limits: Sequence[int], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Find the best outputs for a batch of sentences: by greedy search with a beam size of 1, else by beam search.

    The result for a sentence never depends on the other sentences. An output that reaches its limit without <eos> is
    cut there and competes with the score it has.

    Args:
        state: the decoding state of the model, one row for each sentence, with nothing fed yet.
        limits: the most tokens of each output, <eos> counted.
        config: the beam size, and the length penalty; `n_best` <= `beam` and `alpha` >= 0.

    Returns:
        For each sentence at most `config.n_best` different hypotheses, best first.
    """
    strategy = greedy if config.beam == 1 else beam
    return strategy.search(state, limits, config)
