"""Checks of a forward pass: the other rows of a batch, padding, later tokens, kernels and recording do not matter."""

import torch
import torch.nn.functional as F

from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.taps import taps
from heedful.nn.attention import MASKED_SCORE, Attention, attend, scaled_dot_product
from heedful.verify.differences import apart, furthest
from heedful.verify.subject import Generating, Subject


def alone(subject: Subject) -> list[torch.Tensor]:
    """The outputs of each example in a batch of its own."""
    return [subject.outputs(subject.model, [example])[0] for example in subject.examples]


def in_a_batch(subject: Subject) -> float:
    """Difference between outputs of rows in a batch with longer and shorter ones, and of each row alone."""
    sides = [subject.outputs(subject.model, subject.examples, side) for side in subject.sides]
    return max(furthest(together, alone(subject)) for together in sides)


def order_of_rows(subject: Subject) -> float:
    """Difference between outputs of a batch in reverse order, and of the batch."""
    outputs = subject.outputs(subject.model, subject.examples)
    return furthest(subject.outputs(subject.model, subject.examples[::-1])[::-1], outputs)


def later_tokens(subject: Subject) -> float | None:
    """Change of the outputs at the first three written tokens by other tokens behind; None if the model writes none."""
    if not isinstance(subject, Generating):
        return None
    long = [example for example in subject.examples if len(example[-1]) > 3]
    others = [subject.changed(example, 3) for example in long]
    outputs, changed = (subject.outputs(subject.model, rows) for rows in (long, others))
    return furthest([rows[:3] for rows in changed], [rows[:3] for rows in outputs])


def attention_kernels(subject: Subject) -> float | None:
    """Difference between attention kernels and the formula in float64; a query that sees nothing gets a mean value."""
    layers = [module for module in subject.model.modules() if isinstance(module, Attention)]
    if not layers:
        return None
    size = layers[0].q.out_features // layers[0].heads
    q, k, v = (torch.randn(2, 4, length, size, generator=subject.random) for length in (7, 11, 11))
    bias = torch.zeros(2, 1, 7, 11)
    bias[0, :, :, 8:] = bias[1, :, 3] = MASKED_SCORE  # padding, and a query that sees nothing
    wanted = scaled_dot_product(q.double(), k.double(), v.double(), bias.double())[0].float()
    wanted[1, :, 3] = v[1].mean(1)
    fused = F.scaled_dot_product_attention(q, k, v, bias)
    return max(apart(attend(q, k, v, bias), wanted), apart(fused, wanted))


def recorded(subject: Subject) -> float:
    """Difference between outputs of a forward pass with every tensor recorded, and of one that nobody watches."""
    watched = []
    for example in subject.examples:
        with recording(subject.model, list(taps(subject.model))):
            watched += subject.outputs(subject.model, [example])
    return furthest(watched, alone(subject))
