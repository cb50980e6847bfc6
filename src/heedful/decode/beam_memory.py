"""Memory check for beam search: estimates what a beam size needs and compares it with the free memory."""

import torch

from heedful.errors import InputError
from heedful.machine.doctor import free_memory

PER_TOKEN, PER_PAIR = 48, 150  # bytes for each hypothesis and token of the vocabulary, and for each two hypotheses


def check_beam(beam: int, vocabulary: int, device: torch.device) -> None:
    """Check that a beam size is at most the vocabulary size and that its beam search fits into memory.

    Args:
        beam: The beam size.
        vocabulary: Tokens that a hypothesis can go on with.
        device: The device on which the model computes.

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
    """Estimate the GB of memory that a beam search takes for each sentence, as measured with beams of 100 to 2,000."""
    return beam * (PER_TOKEN * vocabulary + PER_PAIR * beam) / 1e9


def free_on(device: torch.device) -> float | None:
    """GB of memory that are free on a device; None where the system does not say."""
    return torch.cuda.mem_get_info(device)[0] / 1e9 if device.type == "cuda" else free_memory()
