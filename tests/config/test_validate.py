"""The keys of [model] are those of its architecture, whether heedful or the user brought it."""

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.schema import ArchitectureConfig, ModelConfig
from heedful.config.validate import OPTIONS, options_of
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class OwnConfig(ArchitectureConfig):
    """Keys of an architecture of a user's own."""

    filters: int = 7
    widths: tuple[int, ...] = (3, 5)


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_architectures")
    vars(module).update(
        Own=type("Own", (), {"Config": OwnConfig}),
        WithoutKeys=type("WithoutKeys", (), {}),
        NoDataclass=type("NoDataclass", (), {"Config": dict}),
    )
    monkeypatch.setitem(sys.modules, "own_architectures", module)


def own_recipe(**keys):
    return recipe_from_dict({"model": {"architecture": "own_architectures:Own", **keys}}, "here")


def test_a_recipe_that_names_no_architecture_is_of_a_transformer():
    assert isinstance(recipe_from_dict({}, "here").model, ModelConfig)
    assert options_of("transformer") is OPTIONS["transformer"] is ModelConfig


def test_the_keys_are_those_of_the_architecture():
    model = own_recipe(filters=11, d_model=13).model
    assert model == OwnConfig(architecture="own_architectures:Own", filters=11, d_model=13)


def test_a_recipe_of_ones_own_architecture_is_stored_and_read_again():
    recipe = own_recipe(filters=11, widths=[2, 17])
    assert recipe_from_dict(recipe_to_dict(recipe), "stored") == recipe


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"filter": 11}, 'unknown key model.filter; did you mean "model.filters"'),
        ({"heads": 4}, "unknown key model.heads"),
        ({"colour": 4}, "unknown key model.colour; .* filters, widths"),
        ({"filters": "many"}, "model.filters"),
        ({"architecture": "transfomer"}, 'unknown architecture; did you mean "transformer"'),
        ({"architecture": "own_architectures:WithoutKeys"}, "its class needs an attribute Config"),
        ({"architecture": "own_architectures:NoDataclass"}, "its class needs an attribute Config"),
        ({"architecture": "own_architectures:Gone"}, "has no class Gone"),
    ],
)
def test_a_mistake_is_refused_by_its_key(keys, words):
    with pytest.raises(InputError, match=words):
        own_recipe(**keys)
