"""Parameters of a model: drawn before training, and counted by kind (embeddings, self-attention, feed-forward ...)."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torch import nn

from heedful.config.schema import TextModelConfig
from heedful.nn.embedding import Embedding
from heedful.nn.meta_device import unallocated

STD = 0.02  # standard deviation in BERT and GPT


def glorot(model: nn.Module) -> None:
    """Draw uniform weights after Glorot & Bengio (2010) and zero biases, as in the code of Vaswani et al. (2017)."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            # Variance 2 / (inputs + outputs) keeps that of activations and of gradients about the same.
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def normal(model: nn.Module) -> None:
    """Draw all matrices from N(0, 0.02^2), with zero biases (Radford et al. 2018; Devlin et al. 2019)."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding | Embedding):
            nn.init.normal_(module.weight, std=STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def scaled(model: nn.Module) -> None:
    """Draw as `normal`, with deviation 0.02 / sqrt(N) for the last matrix of each of N sublayers, as in GPT-2.

    Each sublayer adds to the residual stream, whose variance so does not grow with depth (Radford et al. 2019, 2.3).
    """
    normal(model)
    ends = ("_attention.out.weight", "feed_forward.down.weight")
    # Also of a decoder's cross-attention: N is the number of all sublayers.
    last = [name for name, _ in model.named_parameters() if name.endswith(ends)]
    for name in last:
        nn.init.normal_(model.get_parameter(name), std=STD * len(last) ** -0.5)


INITS: dict[str, Callable[[nn.Module], None]] = {"glorot": glorot, "normal": normal, "scaled": scaled}


def initialise(model: nn.Module, config: TextModelConfig) -> None:
    """Draw the weights of a model from torch's global generator; tie matrices afterwards, or they are drawn twice."""
    INITS[config.init](model)


# Kinds of torch's modules that hold parameters; a module of heedful has an attribute `parameter_kind`. From
# the outside in, the first module that has a kind names it for all parameters within.
KINDS: dict[type[nn.Module], str] = {
    nn.Embedding: "embeddings",
    nn.LayerNorm: "norms",
    nn.RMSNorm: "norms",
    nn.Linear: "linear",
    nn.RNNBase: "recurrent",
}

# Kinds of modules by their name; a dense layer outside of a pooler is BERT's transform before the output.
NAMED = {"cross_attention": "cross-attention", "output": "output", "dense": "output"}


@dataclass(frozen=True)
class ParameterCounts:
    """Numbers of parameters by kind; a matrix with several purposes (tied weights) counts once, for the first."""

    weights: Counter[str] = field(default_factory=Counter)
    biases: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Total number of parameters, weights and biases."""
        return self.weights.total() + self.biases.total()


def count_parameters(model: nn.Module) -> ParameterCounts:
    """Count every parameter of a model by kind, frozen or not."""
    counts = ParameterCounts()
    seen: set[int] = set()
    for kind, name, parameter in _parameters(model, "", ""):
        if id(parameter) not in seen:  # a tied matrix is met under each of its names
            seen.add(id(parameter))
            (counts.biases if name == "bias" else counts.weights)[kind] += parameter.numel()
    return counts


def _parameters(module: nn.Module, name: str, kind: str) -> Iterator[tuple[str, str, nn.Parameter]]:
    """Iterate over parameters with their kind and the last part of their name."""
    if not kind and name in NAMED:
        kind = NAMED[name]
    elif not kind and isinstance(named := getattr(type(module), "parameter_kind", None), str):
        kind = named
    elif not kind:
        kind = next((kind for layer, kind in KINDS.items() if isinstance(module, layer)), "")
    for leaf, parameter in module.named_parameters(recurse=False):
        yield kind or "other", leaf, parameter
    for child_name, child in module.named_children():
        yield from _parameters(child, child_name, kind)


def count_without_building(build: Callable[[], nn.Module]) -> ParameterCounts:
    """Count the parameters of the model that `build` makes, without memory for its weights."""
    with unallocated():
        return count_parameters(build())
