"""Processes that would not train the same model are refused before the first update."""

from dataclasses import replace

import pytest
import torch

from heedful.config.schema import Recipe
from heedful.errors import RunError
from heedful.training.startup_checks import check_agreement, checksum, shared_settings
from several_processes import in_processes


def agree(*values):
    in_processes(len(values), lambda reducer: check_agreement(reducer, values[reducer.rank]))


def model(weight=0.1):
    layer = torch.nn.Linear(3, 5)
    torch.nn.init.constant_(layer.weight, weight)
    torch.nn.init.zeros_(layer.bias)
    return layer


def test_a_process_that_differs_is_named_with_all_that_differs():
    same = {"data": "abc", "weights": checksum(model())}
    agree(same, same, dict(same))
    with pytest.raises(RunError, match="process 2 differs from process 0 in weights"):
        agree(same, same, same | {"weights": checksum(model(0.2))})
    with pytest.raises(RunError, match="process 1 differs from process 0 in data, weights"):
        agree(same, {"data": "abd", "weights": 7}, same)


def test_a_setting_that_differs_is_named():
    recipe = Recipe()
    other = replace(recipe, train=replace(recipe.train, seed=2), optimizer=replace(recipe.optimizer, lr=0.5))
    with pytest.raises(RunError, match=r"process 1 differs from process 0 in optimizer\.lr, train\.seed"):
        agree(shared_settings(recipe), shared_settings(other))


def test_machines_may_have_their_own_threads_and_their_own_folder_of_the_data():
    def at(root, threads):
        recipe = Recipe()
        return replace(
            recipe,
            data=replace(recipe.data, root=root),
            tokenizer=replace(recipe.tokenizer, path=f"{root}/tokenizer"),
            train=replace(recipe.train, threads=threads),
        )

    agree(shared_settings(at("/one", 7)), shared_settings(at("/two", 11)))
    agree(shared_settings(at("a", 7)), shared_settings(at("b", 11)))  # a name such as "adamw" begins with "a", too
    with pytest.raises(RunError, match=r"tokenizer\.path"):
        agree(
            shared_settings(at("/one", 7)),
            shared_settings(replace(at("/one", 7), tokenizer=replace(Recipe().tokenizer, path="/x"))),
        )
