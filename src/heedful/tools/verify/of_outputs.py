"""Checks of a forward pass: the other rows of a batch, padding, later tokens, kernels and recording do not matter."""

import torch

from heedful.inspector.capture.recorder import recording
from heedful.inspector.capture.taps import taps
from heedful.nn.attention import MASKED_SCORE, SENTENCE, Attention, scaled_dot_product
from heedful.tools.verify.subjects import Generating, Subject, apart, furthest


def alone(subject: Subject) -> list[torch.Tensor]:
    """The outputs of each example in a batch of its own."""
    return [subject.outputs(subject.model, [example])[0] for example in subject.examples]


def in_a_batch(subject: Subject) -> float:
    """Difference between outputs of rows in a batch with longer and shorter ones, and of each row alone."""
    together = [rows for side in subject.sides for rows in subject.outputs(subject.model, subject.examples, side)]
    return furthest(together, alone(subject) * len(subject.sides))


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
    """Difference between the kernel of each attention layer and the formula in float64, with few keys and with many.

    Which kernel is the fastest depends on the number of keys. A query that sees nothing gets a mean value.
    """
    layers = [module for module in subject.model.modules() if isinstance(module, Attention)]
    found = [of_kernel(layer, keys, subject.random) for layer in layers for keys in (11, SENTENCE + 7)]
    return float(torch.tensor(found).max()) if found else None


def of_kernel(layer: Attention, keys: int, random: torch.Generator) -> float:
    """Difference between the kernel of an attention layer and the formula in float64."""
    size, value_size = layer.q.out_features // layer.heads, layer.v.out_features // layer.kv_heads
    q = torch.randn(2, layer.heads, 7, size, generator=random)
    k, v = (torch.randn(2, layer.kv_heads, keys, width, generator=random) for width in (size, value_size))
    bias = torch.zeros(2, 1, 7, keys)
    bias[0, :, :, 8:] = bias[1, :, 3] = MASKED_SCORE  # padding, and a query that sees nothing
    wanted = scaled_dot_product(q.double(), k.double(), v.double(), bias.double())[0].float()
    wanted[1, :, 3] = v[1].mean(1).repeat_interleave(layer.heads // layer.kv_heads, dim=0)
    return apart(layer.attention_fn(q, k, v, bias, 0.0), wanted)


def recorded(subject: Subject) -> float:
    """Difference between outputs of a forward pass with every tensor recorded, and of one that nobody watches."""
    watched = []
    for example in subject.examples:
        with recording(subject.model, list(taps(subject.model))):
            watched += subject.outputs(subject.model, [example])
    return furthest(watched, alone(subject))
