"""Processes that would not train the same model are refused before the first update."""

from types import SimpleNamespace

import pytest
import torch

from heedful.config.schema import Recipe
from heedful.errors import RunError
from heedful.train.agreement import check_agreement
from several_processes import in_processes


def trainers(**changes):
    """Work of three processes, of which the last one differs."""

    def work(reducer):
        mine = changes if reducer.rank == 2 else {}
        model = torch.nn.Linear(3, 5)
        torch.nn.init.constant_(model.weight, mine.get("weight", 0.1))
        torch.nn.init.zeros_(model.bias)
        train = {"seed": mine.get("seed", 1), "threads": mine.get("threads")}
        recipe = Recipe(train=type(Recipe().train)(**train))
        task = SimpleNamespace(digest=mine.get("digest", "abc"))
        check_agreement(SimpleNamespace(reducer=reducer, model=model, recipe=recipe, task=task))

    return work


@pytest.mark.parametrize(
    ("changes", "what"), [({"weight": 0.2}, "weights"), ({"digest": "abd"}, "data"), ({"seed": 2}, "settings")]
)
def test_a_process_that_differs_is_named_with_what_differs(changes, what):
    with pytest.raises(RunError, match=f"process 2 has other {what} than process 0"):
        in_processes(3, trainers(**changes))


def test_processes_that_agree_may_have_their_own_number_of_threads():
    assert in_processes(3, trainers(threads=7)) == [None] * 3
