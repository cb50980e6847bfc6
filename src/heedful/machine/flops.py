"""FLOPs of a call: counted while torch computes.

Counted are matrix products and convolutions, 2 FLOPs for each multiplication with its addition; sums, norms and
activations, which take few, are not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def count_flops(call: Callable[[], object]) -> int:
    """Count the FLOPs of a call."""
    with taken_apart(), FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


@contextmanager
def taken_apart() -> Iterator[None]:
    """Let torch compute fused attention and recurrent layers by their matrix products, which can be counted."""
    mkldnn = torch.backends.mkldnn
    before, *_ = mkldnn.set_flags(_enabled=False)
    try:
        with torch.backends.cudnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        mkldnn.set_flags(_enabled=before)
