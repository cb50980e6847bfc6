"""Check of a model's output: a damaged model, or one that has diverged, ends in an error, and not in an answer."""

from torch import Tensor

from heedful.errors import RunError


def check_numbers(output: Tensor) -> None:
    """Check that an output of a model holds no NaN.

    Raises:
        RunError: it does.
    """
    if output.isnan().any():
        raise RunError("the model's output is not a number (NaN): its weights are damaged or its training diverged")
