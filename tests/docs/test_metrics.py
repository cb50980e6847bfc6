"""The pages on metrics explain every score that heedful prints, with the direction in which it gets better."""

import re

import pytest
from pages import ROOT, rows

from heedful import registry
from heedful.metrics import METRICS
from heedful.metrics.metric import lower_is_better
from heedful.tasks.specs import SPECS

BETTER = {"docs/reference/metrics.md": ("higher", "lower"), "docs/zh/metrics.md": ("越高越好", "越低越好")}
BY_NAME = {key.rpartition(".")[2] for key in registry.METRICS}  # which a recipe can name
PRINTED = {name for task in SPECS.values() for name in task.metrics} | set(METRICS) | BY_NAME


@pytest.mark.parametrize("page", BETTER)
def test_every_score_is_explained_with_its_direction(page: str) -> None:
    told = [row for row in rows(ROOT / page) if row[-1] in BETTER[page]]
    found = {(name, row[-1]) for row in told for name in re.findall("`([^`]+)`", row[0])}
    assert found == {(name, BETTER[page][lower_is_better(name)]) for name in PRINTED}
