"""One update: forward, backward, clip, step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from heedful.config.schema import Recipe
from heedful.models import EncoderDecoder
from heedful.optim import build_optimizer, learning_rate
from heedful.tasks import translation
from heedful.tasks.translation import Batch
from heedful.train.precision import PRECISIONS


@dataclass(frozen=True)
class Update:
    """What one update did."""

    loss: float  # sums over the target tokens of all its batches, in nats
    nll: float
    count: int
    tokens: int
    lr: float
    norm: float  # of the gradient before clipping
    finite: bool  # False: the gradient was not, and the weights were left alone


class Learner:
    """A model and its optimiser."""

    def __init__(self, model: EncoderDecoder, recipe: Recipe) -> None:
        self.model = model
        self.recipe = recipe
        self.optimizer = build_optimizer(recipe.optimizer, model)
        self.precision = PRECISIONS[recipe.train.precision](model)
        if recipe.train.compile:
            self.precision.replica.encoder.compile(dynamic=True)
            self.precision.replica.decoder.compile(dynamic=True)

    def update(self, batches: Sequence[Batch], number: int) -> Update:
        """Take update `number`, counted from 1, on the gradient of all `batches` together.

        The gradient is that of (sum of losses) / (count of target tokens) over all batches: cutting a batch into
        several changes only rounding. Dropout is drawn from (seed, update, batch): there is no generator to save.
        """
        count = sum(batch.target_tokens for batch in batches)
        self.precision.replica.train()
        self.precision.refresh()
        losses = [self.backward(batch, (number, i), count) for i, batch in enumerate(batches)]
        lr = learning_rate(self.recipe.optimizer, number, self.recipe.train.max_updates, self.recipe.model.d_model)
        norm = self.step(lr)
        total, nll = torch.stack(losses).double().sum(0).tolist()
        tokens = sum(batch.tokens for batch in batches)
        return Update(total, nll, count, tokens, lr, norm, math.isfinite(norm))

    def backward(self, batch: Batch, key: tuple[int, int], count: int) -> Tensor:
        """Add the gradient of one batch; return its smoothed loss and its negative log-likelihood."""
        torch.manual_seed(seed_of(self.recipe.train.seed, *key))
        with self.precision.context():
            loss = translation.loss(self.precision.replica, batch, self.recipe.train.label_smoothing)
        (loss.sum / count).backward()
        self.precision.collect()
        return torch.stack([loss.sum.detach(), loss.nll])

    def step(self, lr: float) -> float:
        """Clip and step, unless the gradient is not finite; return its norm."""
        parameters = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        limit = self.recipe.optimizer.clip_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit, foreach=True).item()
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        if math.isfinite(norm):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm


def seed_of(*key: int) -> int:
    """A 64-bit seed that is a pure function of its key."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
