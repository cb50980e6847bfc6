"""The caller's random numbers: what heedful draws for itself does not advance the global generators of torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Put torch's global generators back, after the block or the decorated function, to where they were before it.

    These are the generator of the CPU, and those of GPUs if this process uses them.
    """
    gpus = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=gpus):
        yield
