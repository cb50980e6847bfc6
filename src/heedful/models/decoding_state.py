"""Interface between a search and a model: feed one token for each row, select rows; the same for every model family."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class DecodingState(Protocol):
    """Interface of a model in the middle of decoding, which remembers the tokens that each of R rows was fed so far.

    Rows stay together by sentence, and sentences stay in order: a search never asks for a row of a later sentence
    before one of an earlier sentence.

    Attributes:
        begin: the token that is fed to each row first: <bos>, or the last token of a prompt.
    """

    begin: Int[Tensor, " R"]

    def step(self, tokens: Int[Tensor, " R"], /) -> Float[Tensor, "R V"]:
        """Feed one token to each row, `begin` first, and return the logits of the next token."""
        ...

    def select(self, rows: Int[Tensor, " R2"], /) -> None:
        """Keep, reorder or repeat the rows of the decoding state: row i becomes what row `rows[i]` was."""
        ...
