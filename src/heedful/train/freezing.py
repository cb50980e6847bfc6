"""Freezing: weights that a run leaves as they are, named in the recipe by how their names begin."""

from torch import nn

from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.models import Model
from heedful.nn.dropout import Dropping


def freeze(model: Model, recipe: Recipe) -> None:
    """Exclude the weights that `train.freeze` names from training. Modules that are frozen whole drop nothing out.

    They compute what they would compute in use, as trained weights that cannot adapt to dropout expect it.

    Args:
        model: the recipe's own model; its weights may be without values, on the meta device.
        recipe: the recipe.

    Raises:
        InputError: the model has no weights of such a name, or nothing is left to train.
    """
    if not recipe.train.freeze:
        return
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for beginning in recipe.train.freeze:
        found = [value for name, value in parameters.items() if f"{name}.".startswith(f"{beginning}.")]
        if not found:
            parts = sorted({".".join(name.split(".")[:2]) for name in parameters})
            raise InputError(
                f'train.freeze: the name of no weight begins with "{beginning}"; the weights are those of '
                f"{', '.join(parts)}"
            )
        for value in found:
            value.requires_grad_(False)
    if is_frozen(model):
        raise InputError("train.freeze leaves nothing to train; take a part of the model out of it")
    for module in filter(is_frozen, model.modules()):
        for layer in module.modules():
            if isinstance(layer, Dropping):
                layer.rate = 0.0


def is_frozen(module: nn.Module) -> bool:
    """True if a module has weights, and none of them is trained."""
    values = list(module.parameters())
    return bool(values) and not any(value.requires_grad for value in values)
