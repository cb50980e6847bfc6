"""Initialisation of a model's weights before training, drawn from torch's global generator."""

from collections.abc import Callable

from torch import nn

from heedful.config.schema import TextModelConfig
from heedful.nn.embedding import Embedding

STD = 0.02  # standard deviation in BERT and GPT


def glorot(model: nn.Module) -> None:
    """Draw uniform weights after Glorot & Bengio (2010) and zero biases, as in the code of Vaswani et al. (2017)."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            zero_bias(module)


def normal(model: nn.Module) -> None:
    """Draw all matrices from N(0, 0.02^2), with zero biases (Radford et al. 2018; Devlin et al. 2019)."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding | Embedding):
            nn.init.normal_(module.weight, std=STD)
        if isinstance(module, nn.Linear):
            zero_bias(module)


def scaled(model: nn.Module) -> None:
    """Draw as `normal`, with deviation 0.02 / sqrt(N) for the last matrix of each of N sublayers.

    Radford et al. (2019, section 2.3) initialise GPT-2 so.
    """
    normal(model)
    ends = ("_attention.out.weight", "feed_forward.down.weight")
    last = [name for name, _ in model.named_parameters() if name.endswith(ends)]
    for name in last:
        nn.init.normal_(model.get_parameter(name), std=STD * len(last) ** -0.5)


def zero_bias(module: nn.Linear) -> None:
    """Set the bias of a linear layer to zero."""
    if module.bias is not None:
        nn.init.zeros_(module.bias)


INITS: dict[str, Callable[[nn.Module], None]] = {"glorot": glorot, "normal": normal, "scaled": scaled}


def initialise(model: nn.Module, config: TextModelConfig) -> None:
    """Initialise the weights of a model by its configuration; tie shared matrices afterwards, or draw them once."""
    INITS[config.init](model)
