"""The one entry to every search strategy."""

from jaxtyping import Int
from torch import Tensor

from heedful.config.schema import DecodeConfig
from heedful.decode import beam, greedy
from heedful.decode.hypothesis import Hypothesis
from heedful.decode.state import State


def search(state: State, source_lengths: Int[Tensor, " B"], config: DecodeConfig) -> list[list[Hypothesis]]:
    """Find the best outputs for a batch of sentences: greedily with a beam of 1, else by beam search.

    What is found for a sentence never depends on the others. An output has at most source length + `config.max_extra`
    tokens, <eos> counted; one that reaches the limit without <eos> is cut there and competes with the score it has.

    Args:
        state: the model, one row a sentence, nothing fed yet.
        source_lengths: tokens of each source sentence without <eos>, on the device of the state.
        config: the width of the beam, the length penalty and the limits; `n_best` <= `beam` and `alpha` >= 0.

    Returns:
        For each sentence at most `config.n_best` different hypotheses, best first.
    """
    strategy = greedy if config.beam == 1 else beam
    return strategy.search(state, source_lengths, config)
