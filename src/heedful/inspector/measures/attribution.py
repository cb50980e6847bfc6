"""Direct logit attribution: how much each part of a model adds to the logit of a token (Elhage et al. 2021).

The residual stream is a sum: embedding, position, and what each sublayer adds. A logit would be a linear function of
it if norms did not divide by a scale. With that scale held at the value that it has in this very pass, each norm is
affine, and the logit falls into parts that sum to it exactly. All norms between a part and the logit are held so: the
last one of a pre-norm model, that of every later sublayer of a post-norm model. So is the GELU in BERT's head:
GELU(x) = x gate(x), with the gates held.

A part is a direct effect: it does not say what else would change without it, neither the scales nor what later
sublayers make of it. Of a translator's encoder it shows what the heads of cross-attention bring along.

D model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.inspector.capture.taps import SUBLAYERS
from heedful.inspector.capture.trace import Trace
from heedful.inspector.measures.logit_lens import check_speaks
from heedful.nn.attention import Attention
from heedful.nn.residual import PostNorm
from heedful.nn.stack import NamedStack


@dataclass(frozen=True)
class Part:
    """One summand of a logit.

    Attributes:
        source: where it comes from: "tgt" or "src" for what is embedded, a sublayer such as "dec.0.cross", a stack,
            "transform" or "output".
        kind: "token", "position", "head", "hidden" (a feed-forward network without its bias), "bias" (of a linear map)
            or "norm" (the bias of a norm).
        value: what it adds.
        head: its number, from 0, where it is one.
    """

    source: str
    kind: str
    value: float
    head: int | None = None


@dataclass(frozen=True)
class Attribution:
    """A logit and what it consists of.

    Attributes:
        place: the position in the last stack's line, from 0.
        token: its id.
        logit: as the model computed it.
        parts: in the order in which they are added.
        difference: the sum of the parts minus the logit: rounding, nothing else.
    """

    place: int
    token: int
    logit: float
    parts: tuple[Part, ...]
    difference: float


@torch.no_grad()
def attribute(model: Any, seen: Trace, place: int, token: int) -> Attribution:
    """Take a logit apart.

    Args:
        model: that of the trace, in floating point.
        seen: a whole trace; heads may have been switched off in it, the stream must not have been edited otherwise.
        place: the position.
        token: the id whose logit is meant.

    Raises:
        InputError: the model says no tokens, is in integers, or there is no such position or token.
    """
    check_speaks(model)
    side = model.named_stacks()[-1]
    if not isinstance(model.output, nn.Linear):
        raise InputError(
            "a model in int8 rounds what it adds, so that its logits have no exact parts; load it in float32"
        )
    logits = seen["logits"].values
    for name, number, size in (("position", place, logits.shape[0]), ("token", token, logits.shape[1])):
        if not 0 <= number < size:
            raise InputError(f"{name} {number}: there are {size}, counted from 0")
    parts = tuple(Walk(model, side, seen, place).parts(token))[::-1]
    logit = float(logits[place, token])
    return Attribution(place, token, logit, parts, sum(part.value for part in parts) - logit)


class Walk:
    """The way back from a logit to the embedding.

    Attributes:
        direction: by how much the logit grows with each number of the stream, where the walk is now.
    """

    direction: Float[Tensor, " D"]

    def __init__(self, model: Any, side: NamedStack, seen: Trace, place: int) -> None:
        self.model, self.side, self.seen, self.place = model, side, seen, place

    def parts(self, token: int) -> Iterator[Part]:
        """Every part, last first."""
        output, stack, name = self.model.output, self.side.stack, self.side.name
        self.direction = exact(output.weight[token])
        if output.bias is not None:
            yield Part("output", "bias", float(output.bias[token]))
        if transform := self.model.head_transform():
            yield from self._transform(transform)
        yield from self._norm(name, stack.norm, self._at(f"{name}.{len(stack.blocks) - 1}.ffn.resid"))
        for number in reversed(range(len(stack.blocks))):
            block = dict(stack.blocks[number].named_children())
            for short, (sublayer, residual) in reversed(SUBLAYERS.items()):
                if sublayer in block:
                    yield from self._sublayer(f"{name}.{number}.{short}", block[sublayer], block[residual])
        line = self.side.sequence
        yield from self._norm(line, stack.embedding_norm, self._at(f"{line}.sum"))
        yield Part(line, "position", float(self.direction @ self._at(f"{line}.pos")))
        yield Part(line, "token", float(self.direction @ self._at(f"{line}.tok")))

    def _at(self, name: str) -> Tensor:
        """What passed a tap at this position."""
        values = exact(torch.from_numpy(self.seen[name].values))
        return values[:, self.place] if self.seen.axes[name][0].name == "head" else values[self.place]

    def _sublayer(self, name: str, sublayer: Any, residual: nn.Module) -> Iterator[Part]:
        if isinstance(residual, PostNorm):
            yield from self._norm(name, residual.norm, self._at(f"{name}.in") + self._at(f"{name}.out"))
        last = sublayer.out if isinstance(sublayer, Attention) else sublayer.down
        if last.bias is not None:
            yield Part(name, "bias", float(self.direction @ exact(last.bias)))
        weights = self.direction @ exact(last.weight)
        if isinstance(sublayer, Attention):
            values = (weights.unflatten(0, (sublayer.heads, -1)) * self._at(f"{name}.z")).sum(1).tolist()
            yield from (Part(name, "head", values[head], head) for head in reversed(range(sublayer.heads)))
        else:
            yield Part(name, "hidden", float(weights @ self._at(f"{name}.h")))

    def _norm(self, source: str, norm: Any, entered: Float[Tensor, " D"]) -> Iterator[Part]:
        """Go back through a norm whose scale is held."""
        if isinstance(norm, nn.Identity):
            return
        if getattr(norm, "bias", None) is not None:
            yield Part(source, "norm", float(self.direction @ exact(norm.bias)))
        direction = self.direction * exact(norm.weight)
        if isinstance(norm, nn.LayerNorm):  # nn.RMSNorm takes no mean off
            direction, entered = direction - direction.mean(), entered - entered.mean()
        self.direction = direction / (entered.square().mean() + norm.eps).sqrt()

    def _transform(self, transform: Any) -> Iterator[Part]:
        """Go back through norm(GELU(x W + b)), scale and gates held."""
        dense = transform.dense
        inner = exact(dense.weight) @ self._at(f"{self.side.name}.norm") + exact(dense.bias)
        gate = torch.special.ndtr(inner)
        yield from self._norm("transform", transform.norm, inner * gate)
        self.direction = self.direction * gate
        yield Part("transform", "bias", float(self.direction @ exact(dense.bias)))
        self.direction = self.direction @ exact(dense.weight)


def exact(x: Tensor) -> Tensor:
    """In float64, so that what is left of the difference is the model's own rounding."""
    return x.detach().cpu().double()
