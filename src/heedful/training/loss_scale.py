"""Dynamic scaling of the loss for training in float16 (Micikevicius et al. 2018, section 3.2).

The smallest positive float16 number is 6e-8, but many gradients are smaller. They are preserved if the loss is
multiplied by a large factor before the backward pass, and the gradients are divided by it afterwards. If the factor is
too large, the gradients overflow, and are computed again with half the factor: the data, the dropout and the learning
rate of an update do not depend on the factor. All factors are powers of two, so that multiplication is exact.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import ConfigDict, Field, StrictFloat, StrictInt
from torch import nn

from heedful.distributed.shards import local
from heedful.optim import coalesced

MAX_FACTOR = 2.0**24
PATIENCE = 2000  # updates without a change of the factor, after which it is doubled


@dataclass(frozen=True)
class LossScale:
    """Factor for the loss, stored in checkpoints; `lowered` and `after_update` return the next one."""

    factor: Annotated[StrictFloat, Field(ge=1.0, le=MAX_FACTOR)] = 2.0**16
    updates: Annotated[StrictInt, Field(ge=0)] = 0  # since the factor changed

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    def lowered(self) -> "LossScale | None":
        """Return a scale with half the factor; None if the factor is 1, which does not cause an overflow."""
        return LossScale(self.factor / 2) if self.factor > 1 else None

    def after_update(self) -> "LossScale":
        """Return the scale for the next update; after `PATIENCE` updates without a change, the factor is doubled."""
        if self.updates + 1 < PATIENCE:
            return LossScale(self.factor, self.updates + 1)
        return LossScale(min(2 * self.factor, MAX_FACTOR))

    @torch.no_grad()
    def unscale(self, model: nn.Module) -> bool:
        """Divide the gradients of a model by the factor; return True if all are finite.

        Of a sharded gradient, only the rows in this process are divided and checked.
        """
        norms = []
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad = gradient = coalesced(parameter.grad)
                values = gradient.values() if gradient.is_sparse else local(gradient)
                # The largest magnitude is finite only if all numbers are: one number per tensor to check.
                norms.append(torch.linalg.vector_norm(values.mul_(1 / self.factor), torch.inf))
        return not norms or bool(torch.stack(norms).isfinite().all())
