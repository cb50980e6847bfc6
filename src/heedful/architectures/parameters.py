"""Parameters of a model: initialisation, and counts by kind (embeddings, self-attention, feed-forward, ...)."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import nn

from heedful.config.schema import TextModelConfig
from heedful.nn.embedding import Embedding
from heedful.nn.meta_device import unallocated

# Names of the last matrices of sublayers, of which a mixture of experts has one for each expert.
LAST = re.compile(r"(?P<sublayer>.*(?:_attention|feed_forward))(?:\.\w+\.\d+)?\.(?:out|down)\.weight")


def glorot(model: nn.Module, config: TextModelConfig) -> None:
    """Initialise linear layers as in the code of Vaswani et al. (2017): uniform weights and zero biases.

    The weights have the range of Glorot & Bengio (2010).
    """
    del config
    for module in model.modules():
        if isinstance(module, nn.Linear):
            # With variance 2 / (inputs + outputs), activations and gradients keep about the same variance.
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def normal(model: nn.Module, config: TextModelConfig) -> None:
    """Initialise linear layers and embeddings from N(0, `init_std`^2), and biases with 0, as in GPT and BERT.

    See Radford et al. (2018) and Devlin et al. (2019).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding | Embedding):
            nn.init.normal_(module.weight, std=config.init_std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)


def scaled(model: nn.Module, config: TextModelConfig) -> None:
    """Initialise as in `normal`, but scale the last matrix of each of N sublayers by 1 / sqrt(N), as in GPT-2.

    Each sublayer adds to the residual stream. With this factor, the variance of the stream does not grow with depth
    (Radford et al. 2019, section 2.3).
    """
    normal(model, config)
    matches = (LAST.fullmatch(name) for name, _ in model.named_parameters())
    last = {match[0]: match["sublayer"] for match in matches if match}
    # N counts self-attention, cross-attention and feed-forward sublayers; each expert has a last matrix.
    for name in last:
        nn.init.normal_(model.get_parameter(name), std=config.init_std * len(set(last.values())) ** -0.5)


INITS: dict[str, Callable[[nn.Module, TextModelConfig], None]] = {"glorot": glorot, "normal": normal, "scaled": scaled}


def initialise(model: nn.Module, config: TextModelConfig) -> None:
    """Initialise a model's weights with torch's global generator, before matrices are tied.

    A tied matrix would be initialised twice, the second time as a linear layer.
    """
    INITS[config.init](model, config)


# Kinds of torch modules with parameters; heedful's modules have an attribute `parameter_kind`. The outermost module
# with a kind determines the kind of all parameters inside it.
KINDS: dict[type[nn.Module], str] = {
    nn.Embedding: "embeddings",
    nn.LayerNorm: "norms",
    nn.RMSNorm: "norms",
    nn.Linear: "linear",
    nn.RNNBase: "recurrent",
}

# Kinds of modules by name; a dense layer outside of a pooler is BERT's transform before the output projection.
KINDS_BY_NAME = {"cross_attention": "cross-attention", "output": "output", "dense": "output"}


@dataclass(frozen=True)
class ParameterCounts:
    """Numbers of parameters by kind; a tied matrix counts once, under the first kind in which it occurs."""

    weights: Counter[str] = field(default_factory=Counter)
    biases: Counter[str] = field(default_factory=Counter)
    inactive: int = 0  # of the experts that a token does not use

    @property
    def total(self) -> int:
        return self.weights.total() + self.biases.total()

    @property
    def active(self) -> int:
        """The number of parameters that compute a token."""
        return self.total - self.inactive


def kind_of(module: nn.Module, name: str) -> str:
    """Return the kind of a module with this name in its parent; "" if the kinds of its parts differ."""
    by_class = (kind for layer, kind in KINDS.items() if isinstance(module, layer))
    return KINDS_BY_NAME.get(name) or getattr(type(module), "parameter_kind", None) or next(by_class, "")


def count_parameters(model: nn.Module) -> ParameterCounts:
    counts = ParameterCounts(inactive=count_inactive(model))
    visited: set[int] = set()

    def visit(module: nn.Module, name: str, kind: str) -> None:
        kind = kind or kind_of(module, name)
        for leaf, parameter in module.named_parameters(recurse=False):
            if id(parameter) not in visited:  # a tied matrix occurs under several names
                visited.add(id(parameter))
                (counts.biases if leaf == "bias" else counts.weights)[kind or "other"] += parameter.numel()
        for child_name, child in module.named_children():
            visit(child, child_name, kind)

    visit(model, "", "")
    return counts


def count_inactive(model: nn.Module) -> int:
    """Count the parameters of the experts that a token does not use; 0 in a model without experts."""
    counts = (getattr(module, "inactive_parameters", None) for module in model.modules())
    return sum(count() for count in counts if count)


def count_without_building(build: Callable[[], nn.Module]) -> ParameterCounts:
    """Count the parameters of the model that `build` returns, without allocating its weights."""
    with unallocated():
        return count_parameters(build())
