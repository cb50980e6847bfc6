"""Specs of tasks: what the checks before a run know without torch is what the tasks themselves do."""

import pytest

from heedful.errors import InputError
from heedful.tasks import TASKS, Task, find_task, import_reader, import_spec
from heedful.tasks.specs import SPECS


def test_every_bundled_task_has_a_spec():
    assert SPECS.keys() == TASKS.places.keys()


@pytest.mark.parametrize("name", SPECS)
def test_the_checks_before_a_run_know_the_spec_and_the_reader_of_the_task(name):
    assert import_spec(name) is TASKS[name].spec
    assert import_reader(name) is TASKS[name].dataset.reader


class Unspecified(Task):
    """A user's class that forgot its spec."""


def test_a_class_without_a_spec_is_refused_with_a_remedy():
    with pytest.raises(InputError, match=r"Unspecified has no spec; set spec = heedful\.tasks\.specs\.TaskSpec"):
        find_task(f"{__name__}:Unspecified")
