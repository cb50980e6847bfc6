"""The options of each model architecture: which keys [model] may have.

An architecture that does not come with heedful is a class whose attribute `Config` is a dataclass that extends
`ArchitectureConfig`. A recipe names it as "module:Class", or by the name of its entry point in an installed package.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from typing import Any

from heedful.config.schema import ArchitectureConfig
from heedful.config.user_code import find_class
from heedful.errors import InputError
from heedful.registry import ARCHITECTURES, Registry

KEY = "model.architecture"
OPTIONS: Registry[type[ArchitectureConfig]] = Registry("architecture", ARCHITECTURES.places)  # of heedful's own


def options_of(architecture: str) -> type[ArchitectureConfig]:
    """The dataclass of the keys of [model] for an architecture.

    Raises:
        InputError: there is no such architecture, its module has not been imported, or its class has no options.
    """
    own = find_class(KEY, architecture)
    if own is None and architecture not in OPTIONS:
        near = get_close_matches(architecture, ARCHITECTURES) or ARCHITECTURES
        raise InputError(
            f'{KEY} = "{architecture}": there is no such architecture; did you mean {" or ".join(near)}? A class of '
            "your own is named as module:Class"
        )
    options = OPTIONS[architecture] if own is None else config_of(own)
    if not (isinstance(options, type) and issubclass(options, ArchitectureConfig) and is_dataclass(options)):
        raise InputError(
            f'{KEY} = "{architecture}": its class needs an attribute Config, a dataclass that extends '
            "heedful.config.schema.ArchitectureConfig"
        )
    return options


def config_of(own: type) -> Any:
    """The attribute Config of a class of the user's own, or of a class that it extends; None without one.

    Not by getattr, which may run code of its metaclass.
    """
    return next((vars(base)["Config"] for base in own.__mro__ if "Config" in vars(base)), None)


def architecture_in(values: Mapping[str, Any]) -> str:
    """The architecture that the values of a recipe name; the Transformer, unless they name one."""
    model = values.get("model")
    named = model.get("architecture") if isinstance(model, Mapping) else None
    return named if isinstance(named, str) else ArchitectureConfig.architecture
