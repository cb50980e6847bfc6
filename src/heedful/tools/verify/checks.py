"""Table of the checks that verify a model, each with the largest difference that rounding may make."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from heedful.checkpoint.load import LoadedModel
from heedful.tools.verify import of_outputs, of_search, of_training
from heedful.tools.verify.subjects import Subject

ROUNDING = 2e-5  # largest difference of float32 results that are equal in exact arithmetic, relative to the largest


@dataclass(frozen=True)
class Check:
    """A check of a model."""

    name: str  # what is compared, in words
    # measures the difference; None: the check does not apply to the model
    measure: Callable[[Subject, LoadedModel], float | None]
    limit: float = ROUNDING  # the largest difference that passes

    def passes(self, difference: float) -> bool:
        """True if a difference is within the limit; NaN is not."""
        return difference <= self.limit


def of_model(measure: Callable[[Subject], float | None]) -> Callable[[Subject, LoadedModel], float | None]:
    """Make a measure of a subject alone one that is called without gradients, and without the loaded model."""

    @torch.no_grad()
    def measured(subject: Subject, _: LoadedModel) -> float | None:
        return measure(subject)

    return measured


CHECKS = (
    Check("an example alone, and in a batch with padding", of_model(of_outputs.in_a_batch)),
    Check("a batch, and the same in another order", of_model(of_outputs.order_of_rows)),
    Check("the first tokens written, and the same before other ones", of_model(of_outputs.later_tokens)),
    Check("a token at a time with a cache, and all at once", of_model(of_search.token_by_token)),
    Check("texts that a search repeats and drops, and each alone", of_model(of_search.selected)),
    Check("beam search of size 1, and greedy search", of_model(of_search.greedy), 0),
    Check("a wide beam, and all outputs of three tokens out of four", of_model(of_search.exhaustive), 0),
    Check("fast attention kernels, and the formula in float64", of_model(of_outputs.attention_kernels)),
    Check("a forward pass with all tensors recorded, and unwatched", of_model(of_outputs.recorded)),
    Check("the model in memory, and written and read again", of_training.saved, 0),
    Check("the gradient of several batches, and of one", of_training.several_batches),
    Check("updates with a checkpoint on the way, and without", of_training.resumed, 0),
    Check("updates by two processes, the weights whole or shared, and by one", of_training.several_processes, 0),
)
