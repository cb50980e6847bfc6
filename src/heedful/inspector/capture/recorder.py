"""What passes the taps of a model: kept, or replaced on its way.

While nobody records, the model has no trace of this: a tap is a hook that is put on and taken off again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase

from torch import Tensor

from heedful.errors import InputError
from heedful.inspector.capture.taps import KERNEL, Tap, taps
from heedful.models import Model
from heedful.nn.attention import Attention, mix, scaled_scores, softmax
from heedful.nn.dropout import dropout

Edit = Callable[[Tensor], Tensor]  # with the dimension of the batch first


@contextmanager
def recording(
    model: Model, keep: Collection[str] = (), edits: Mapping[str, Edit] | None = None
) -> Iterator[dict[str, Tensor]]:
    """Within the block, keep what passes some taps, and put other values in the place of what passes others.

    Attention whose inside is asked for computes the plain formula meanwhile; everything else runs as ever. Afterwards
    the model is what it was, whatever happened.

    Args:
        model: any of heedful's models, not in training.
        keep: names of taps, or patterns such as "dec.*.cross.attn".
        edits: by such names, what becomes of the tensor there.

    Yields:
        The tensors by name, (B ...), as they passed last.

    Raises:
        InputError: the model has no such tap.
    """
    there = taps(model)
    kept = {name for pattern in patterns(keep) for name in matching(pattern, there)}
    edited = {name: edit for pattern, edit in (edits or {}).items() for name in matching(pattern, there)}
    found: dict[str, Tensor] = {}

    def passing(name: str, x: Tensor) -> Tensor:
        x = edited[name](x) if name in edited else x
        if name in kept:
            found[name] = x.detach()
        return x

    inside: dict[Attention, dict[str, str]] = {}
    with ExitStack() as undo:
        for name in [name for name in there if name in kept or name in edited]:
            tap = there[name]
            if isinstance(tap.module, Attention) and tap.place in KERNEL:
                inside.setdefault(tap.module, {})[tap.place] = name
            else:
                undo.callback(hook(tap, name, passing))
        for attention, names in inside.items():
            undo.callback(setattr, attention, "kernel", attention.kernel)
            attention.kernel = watched(names, passing)
        yield found


def patterns(names: str | Collection[str]) -> Collection[str]:
    """Names of taps or patterns of them; one alone may come without a list."""
    return [names] if isinstance(names, str) else names


def matching(pattern: str, there: Iterable[str]) -> list[str]:
    """The names that match a pattern.

    Raises:
        InputError: there are none.
    """
    found = [name for name in there if fnmatchcase(name, pattern)]
    if not found:
        raise InputError(f"there is no tensor {pattern}; there are {', '.join(there)}")
    return found


def hook(tap: Tap, name: str, passing: Callable[[str, Tensor], Tensor]) -> Callable[[], None]:
    """Let what goes into a module or comes out of it pass; return what ends that."""
    if tap.place == "input":
        return tap.module.register_forward_pre_hook(lambda _, args: (passing(name, args[0]), *args[1:])).remove
    return tap.module.register_forward_hook(lambda *passed: passing(name, passed[-1])).remove


def watched(names: Mapping[str, str], passing: Callable[[str, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Scaled dot-product attention (formula 1) that lets some of its steps, by place, pass under a name."""

    def at(place: str, x: Tensor) -> Tensor:
        return passing(names[place], x) if place in names else x

    def kernel(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, rate: float) -> Tensor:
        scores = at("score", scaled_scores(at("q", q), at("k", k)))
        weights = at("attn", softmax(scores + at("bias", bias)))
        return at("z", mix(dropout(weights, rate), at("v", v)))

    return kernel
