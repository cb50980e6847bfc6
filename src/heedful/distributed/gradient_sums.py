"""Sums of dense gradients over all training processes, in the background of the backward pass.

The parameters are divided into buckets, in their order. A backward pass finishes the gradients of the last layers
first, so the buckets are summed from the last one to the first, each as soon as its gradients are finished. The buckets
and their order do not depend on when the gradients finish, so sums computed after the pass would have the same bits.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn

BUCKET = 1 << 23  # elements summed in one call: enough for few calls, but the first begins early in the backward pass


class GradientSums:
    """Sums of the gradients of `parameters`, which every process must list in the same order."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.buckets = list(buckets(list(parameters)))[::-1]
        self.bucket_of = {parameter: index for index, bucket in enumerate(self.buckets) for parameter in bucket}
        self.is_last_pass = False  # True in the backward pass of this process's last batch in an update
        self.unfinished = [len(bucket) for bucket in self.buckets]  # parameters without a finished gradient, by bucket
        self.works: list[dist.Work] = []  # for the buckets whose sums have begun, in order
        self.missing: set[nn.Parameter] = set()  # parameters that had no gradient in this process

    def finish(self, parameter: nn.Parameter) -> None:
        """Record that the last backward pass has added a parameter's gradient; begin the sums that are now possible.

        A call during an earlier pass has no effect.
        """
        if not self.is_last_pass:
            return
        self.unfinished[self.bucket_of[parameter]] -= 1
        # Processes may finish gradients in different orders, but must make collective calls in the same order: a
        # finished bucket waits for the buckets before it.
        while len(self.works) < len(self.buckets) and self.unfinished[len(self.works)] == 0:
            self.begin()

    def begin(self) -> None:
        """Begin to sum the next bucket."""
        bucket = self.buckets[len(self.works)]
        self.missing |= {parameter for parameter in bucket if parameter.grad is None}
        # One call sums many small gradients, because each call has a fixed cost. The gradients become views of the sum.
        # Another process may have a gradient where this one has none, but all must sum tensors of the same size.
        grads = [torch.zeros_like(one) if one.grad is None else one.grad for one in bucket]
        parts = [grad.flatten() for grad in grads]
        flat = torch.cat(parts) if len(parts) > 1 else parts[0]
        for parameter, part in zip(bucket, flat.split([len(part) for part in parts]), strict=True):
            parameter.grad = part.view_as(parameter)
        work = dist.all_reduce(flat, async_op=True)
        assert work is not None
        self.works.append(work)

    def wait(self) -> set[nn.Parameter]:
        """Wait for the sums of all buckets; return the parameters that had no gradient in this process."""
        # Begin the sums that no backward pass has begun: a gradient is missing, this process has no batch, or nothing
        # calls `finish`.
        while len(self.works) < len(self.buckets):
            self.begin()
        for work in self.works:
            work.wait()
        missing = self.missing
        self.is_last_pass, self.works, self.missing = False, [], set()
        self.unfinished = [len(bucket) for bucket in self.buckets]
        return missing


def buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Divide parameters, in order, into lists of at most `BUCKET` elements each, or of a single larger parameter."""
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        if bucket and sum(one.numel() for one in bucket) + parameter.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(parameter)
    if bucket:
        yield bucket
