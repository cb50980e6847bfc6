"""Parameter counts: the number of a model's parameters by kind (embeddings, self-attention, feed-forward ...)."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from torch import nn

from heedful.config.schema import ModelConfig
from heedful.nn.meta_device import unallocated

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
        if id(parameter) not in seen:
            seen.add(id(parameter))
            (counts.biases if name == "bias" else counts.weights)[kind] += parameter.numel()
    return counts


def _parameters(module: nn.Module, name: str, kind: str) -> Iterator[tuple[str, str, nn.Parameter]]:
    """Iterate over parameters with their kind and the last part of their name."""
    kind = kind or _kind(module, name)
    for leaf, parameter in module.named_parameters(recurse=False):
        yield kind or "other", leaf, parameter
    for child_name, child in module.named_children():
        yield from _parameters(child, child_name, kind)


def _kind(module: nn.Module, name: str) -> str:
    if name in NAMED:
        return NAMED[name]
    if isinstance(own := getattr(type(module), "parameter_kind", None), str):
        return own
    return next((kind for layer, kind in KINDS.items() if isinstance(module, layer)), "")


def count_without_building(build: Callable[[], nn.Module]) -> ParameterCounts:
    """Count the parameters of the model that `build` makes, without memory for its weights."""
    with unallocated():
        return count_parameters(build())


@dataclass(frozen=True)
class Convention:
    """Convention for counting the parameters of Table 3 in Vaswani et al. (2017), which leaves the vocabulary open."""

    name: str
    vocab: int
    attention_bias: bool
    further_rows: int = 0  # rows of d_model in addition to those of the vocabulary

    def count(self, config: ModelConfig) -> int:
        """Count all parameters of a model under this convention."""
        from heedful.architectures.transformer import EncoderDecoder

        config = replace(config, attention_bias=self.attention_bias)
        counts = count_without_building(lambda: EncoderDecoder(config, self.vocab, self.vocab))
        return counts.total + self.further_rows * config.d_model


# The first public tensor2tensor (June 2017) reads `vocab.bpe.32000` into 40,960 rows, has biases on every projection,
# and adds one of 32 vectors, chosen by the target language, to every input of the encoder.
CONVENTIONS = (
    Convention("the paper's text", vocab=37_000, attention_bias=False),
    Convention("the authors' first code", vocab=40_960, attention_bias=True, further_rows=32),
)
