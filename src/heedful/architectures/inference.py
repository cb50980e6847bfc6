"""Inference on batches: rows of similar length together, in evaluation mode, and no output that is not a number."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from heedful.errors import RunError


def batches(rows: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Group rows into batches of similar length, longest first; empty rows are left out.

    Args:
        rows: token ids without <eos>.
        tokens: the size of a batch: rows x length of the longest with its <eos>; a longer row is a batch of
            its own.

    Yields:
        The indices of the rows of a batch.
    """
    batch: list[int] = []
    for index in sorted(filter(rows.__getitem__, range(len(rows))), key=lambda i: -len(rows[i])):
        if batch and (len(batch) + 1) * (len(rows[batch[0]]) + 1) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch a model to evaluation mode within the block (no dropout), and back to its previous mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def check_numbers(output: Tensor) -> None:
    """Check that an output of a model holds no NaN: a damaged model ends in an error, and not in an answer.

    Raises:
        RunError: it does.
    """
    if output.isnan().any():
        raise RunError("the model's output is not a number (NaN): its weights are damaged or its training diverged")
