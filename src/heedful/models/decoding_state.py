"""What a search asks of a model: two methods, whatever the family."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class DecodingState(Protocol):
    """A model in the middle of its output: it remembers what each of R rows was fed so far.

    Rows stay together by sentence, and sentences stay in order: a search never asks for a row of a later sentence
    before one of an earlier sentence.

    Attributes:
        begin: what is fed to each row first: <bos>, or the last token of a prompt.
    """

    begin: Int[Tensor, " R"]

    def step(self, tokens: Int[Tensor, " R"], /) -> Float[Tensor, "R V"]:
        """Feed one token a row, `begin` first; return the logits of the next token."""
        ...

    def select(self, rows: Int[Tensor, " R2"], /) -> None:
        """Keep, reorder or repeat rows: row i becomes what row `rows[i]` was."""
        ...
