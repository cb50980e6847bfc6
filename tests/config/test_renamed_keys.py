from heedful.config.keys import all_keys
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.renamed_keys import RENAMED, current_keys
from heedful.config.schema import Recipe


def test_a_recipe_with_old_names_means_the_same():
    values = recipe_to_dict(Recipe())
    old = dict(values["train"])
    old["validate_bleu"] = not old.pop("validate_decoding")
    recipe = recipe_from_dict(current_keys({**values, "train": old}), "here")
    assert recipe.train.validate_decoding is False
    assert current_keys(values) == values


def test_what_names_became_exists():
    keys = set(all_keys())
    assert {f"{table}.{new}" for table, names in RENAMED.items() for new in names.values()} <= keys
    assert not {f"{table}.{old}" for table, names in RENAMED.items() for old in names} & keys
