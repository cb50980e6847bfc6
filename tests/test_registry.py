"""Parts by name: nothing is imported before its name is used, and installed packages add names of theirs."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from heedful import registry
from heedful.config.user_code import find_class
from heedful.errors import InputError
from heedful.registry import ARCHITECTURES, FORMATS, MODELS, POSITIONS, TASKS, TOKENIZERS, Registry, import_attribute
from heedful.tasks import Task, find_task
from installed_package import install

GROUP = "heedful.animals"
TABLES = (ARCHITECTURES, TASKS, POSITIONS, TOKENIZERS, FORMATS)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path, for packages that are installed during a test."""
    monkeypatch.syspath_prepend(tmp_path)
    registry.entry_points_of.cache_clear()
    yield tmp_path
    registry.entry_points_of.cache_clear()
    for name in [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def animals() -> Registry[Any]:
    return Registry("animal", {"cat": "heedful.errors:InputError", "dog": "heedful.errors:RunError"}, GROUP)


def test_a_part_is_imported_when_it_is_looked_up():
    code = (
        "import sys; from heedful.registry import TASKS; names = list(TASKS); assert 'tagging' in TASKS; "
        "assert not [name for name in sys.modules if name.startswith('heedful.tasks')], sys.modules; "
        "assert TASKS['tagging'].__name__ == 'Tagging'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.kind)
def test_every_name_of_a_table_leads_to_something(table):
    assert len(table) == len(dict(table)) > 4
    assert all(table[name] is not None for name in table)


def test_every_architecture_has_models():
    assert MODELS.keys() == ARCHITECTURES.places.keys()
    assert all(isinstance(import_attribute(place), type) for families in MODELS.values() for place in families.values())


def test_an_installed_package_adds_names(path):
    install(path, "zoo", {"zoo.py": "class Owl: pass\n"}, {GROUP: {"owl": "zoo:Owl"}, "other": {"bat": "zoo:Owl"}})
    known = animals()
    assert list(known) == ["cat", "dog", "owl"]
    assert "owl" in known
    assert "bat" not in known
    assert "zoo" not in sys.modules
    assert known["owl"] is import_module("zoo").Owl
    assert known.is_custom("owl")
    assert not known.is_custom("cat")


def test_a_package_that_is_on_the_path_twice_is_one(path):
    for folder in ("a", "b"):
        install(path / folder, "zoo", {"zoo.py": "class Owl: pass\n"}, {GROUP: {"owl": "zoo:Owl"}})
        sys.path.insert(0, str(path / folder))
    try:
        assert animals()["owl"].__name__ == "Owl"
    finally:
        del sys.path[:2]


def test_a_table_without_a_group_is_not_extended(path):
    install(path, "zoo", {"zoo.py": "class Owl: pass\n"}, {GROUP: {"owl": "zoo:Owl"}})
    assert list(Registry("animal", {"cat": "heedful.errors:InputError"})) == ["cat"]


@pytest.mark.parametrize(
    ("name", "owners"), [("cat", "heedful, zoo"), ("owl", "zoo, farm|farm, zoo")], ids=["heedful's", "two packages"]
)
def test_a_name_in_several_packages_is_refused_when_it_is_used(path, name, owners):
    for package in ("zoo", "farm"):
        parts = {"owl": f"{package}:Owl"} | ({"cat": "zoo:Owl"} if package == "zoo" else {})
        install(path, package, {f"{package}.py": "class Owl: pass\n"}, {GROUP: parts})
    known = animals()
    with pytest.raises(
        InputError, match=rf'the animal "{name}" is provided by several packages \(({owners})\); uninstall'
    ):
        known[name]
    assert known["dog"].__name__ == "RunError"


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("import no_such_module\n", "zoo:Owl", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0\n", "zoo:Owl", "ZeroDivisionError: division by zero"),
        ("class Owl: pass\n", "zoo:Eagle", "AttributeError: .*Eagle"),
        ("class Owl: pass\n", "zoology:Owl", "ModuleNotFoundError: No module named 'zoology'"),
    ],
)
def test_a_part_that_cannot_be_imported_is_named_with_its_package_and_the_reason(path, text, place, reason):
    install(path, "zoo-animals", {"zoo.py": text}, {GROUP: {"owl": place}})
    with pytest.raises(InputError, match=rf'the animal "owl" of the package zoo-animals .* from {place}: {reason}'):
        animals()["owl"]


def test_a_task_of_a_package_is_found_by_its_name(path):
    text = "from heedful.tasks.classification import Classification\nclass Own(Classification): pass\n"
    install(path, "zoo", {"zoo.py": text}, {"heedful.tasks": {"animals": "zoo:Own", "plain": "builtins:dict"}})
    assert issubclass(find_task("animals"), Task)
    with pytest.raises(InputError, match=r'task = "plain": dict is not a subclass of heedful\.tasks\.Task'):
        find_task("plain")
    with pytest.raises(InputError, match='did you mean "animals"'):
        find_task("animal")


def test_what_is_registered_and_is_not_a_class_is_refused(path):
    install(path, "zoo", {"zoo.py": "owl = 3\n"}, {"heedful.architectures": {"owl": "zoo:owl"}})
    with pytest.raises(InputError, match=r'model\.architecture = "owl": zoo:owl, which a package registers, is not'):
        find_class("model.architecture", "owl")
