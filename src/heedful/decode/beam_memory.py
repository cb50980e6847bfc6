"""Whether there is room for a beam search."""

import torch

from heedful.errors import InputError
from heedful.machine.doctor import free_memory

PER_TOKEN, PER_PAIR = 48, 150  # bytes for each hypothesis and token of the vocabulary, and for each two hypotheses


def check_beam(beam: int, vocabulary: int, device: torch.device) -> None:
    """Make sure that the search for one output can keep its hypotheses.

    Args:
        beam: The beam size.
        vocabulary: Tokens that a hypothesis can go on with.
        device: Where the model computes.

    Raises:
        InputError: The beam is larger than the vocabulary, or needs more memory than is free.
    """
    if beam > vocabulary:
        raise InputError(f"a beam size of {beam:,} is more than the {vocabulary:,} tokens of the vocabulary; lower it")
    needed, free = needed_memory(beam, vocabulary), free_on(device)
    if free is not None and needed > free:
        raise InputError(
            f"a beam size of {beam:,} needs about {needed:,.1f} GB of memory for each sentence, and {free:,.1f} GB are "
            "free; lower it"
        )


def needed_memory(beam: int, vocabulary: int) -> float:
    """GB that the search for one output takes, by what was measured with beams of 100 to 2,000."""
    return beam * (PER_TOKEN * vocabulary + PER_PAIR * beam) / 1e9


def free_on(device: torch.device) -> float | None:
    """GB that are free where a model computes; None where the system does not say."""
    return torch.cuda.mem_get_info(device)[0] / 1e9 if device.type == "cuda" else free_memory()
