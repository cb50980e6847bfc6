from heedful.config.keys import hints_of_keys
from heedful.config.load import recipe_from_dict, recipe_to_dict
from heedful.config.renamed_keys import current_keys
from heedful.config.schema import Recipe
from heedful.config.setting import setting_in


def test_a_recipe_with_old_names_means_the_same():
    values = recipe_to_dict(Recipe())
    old = dict(values["train"])
    old["validate_bleu"] = not old.pop("validate_decoding")
    recipe = recipe_from_dict(current_keys({**values, "train": old}), "here")
    assert recipe.train.validate_decoding is False
    assert current_keys(values) == values


def test_former_names_are_not_those_of_other_settings():
    former = [name for hint in hints_of_keys().values() for name in setting_in(hint).former]
    assert "validate_bleu" in former
    assert not {key.rpartition(".")[2] for key in hints_of_keys()} & set(former)


def test_what_is_not_a_table_is_left_for_the_checks():
    assert current_keys({"train": 3, "data": {"train": [{"source": "a"}]}, "x": {"y": 1}}) == {
        "train": 3,
        "data": {"train": [{"source": "a"}]},
        "x": {"y": 1},
    }
