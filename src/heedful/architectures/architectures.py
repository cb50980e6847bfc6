"""Which class of models an architecture has for each family; `heedful.registry` lists them.

A new architecture is a class in a file with its options, and a line there; see docs/how-to/new-architecture.md.
"""

from typing import Any

from heedful.config.schema import ArchitectureConfig
from heedful.config.user_code import find_class
from heedful.config.validate import KEY, config_of
from heedful.errors import InputError
from heedful.registry import MODELS, at


def model_class(config: ArchitectureConfig) -> Any:
    """The class of a model, or of its backbone, for the architecture and the family of a configuration.

    Raises:
        InputError: the architecture has no model of this family.
    """
    own = find_class(KEY, config.architecture)
    if own is None:
        families = MODELS[config.architecture]
        if config.family not in families:
            raise InputError(
                f'{KEY} = "{config.architecture}" has no model of family "{config.family}"; set model.family = '
                f'"{next(iter(families))}"'
            )
        return at(families[config.family])
    (family,) = families_of(config.architecture)
    if family != config.family:
        raise InputError(
            f'{KEY} = "{config.architecture}" is of family "{family}", not "{config.family}"; set model.family = '
            f'"{family}"'
        )
    return own


def families_of(architecture: str) -> tuple[str, ...]:
    """The families of which an architecture has models; a class of the user's own has one, by the class it extends.

    Raises:
        InputError: the module of the class has not been imported.
    """
    own = find_class(KEY, architecture)
    if own is None:
        return tuple(MODELS[architecture])
    from heedful.architectures.backbone import Backbone
    from heedful.architectures.model import SourceToTarget

    if issubclass(own, Backbone):
        return ("decoder" if own.causal else "encoder",)
    return ("encoder_decoder" if issubclass(own, SourceToTarget) else config_of(own).family,)
