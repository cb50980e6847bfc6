"""Classes of a user's own: found where they were imported, imported only where a user says so."""

import sys
from types import ModuleType

import pytest

from heedful.config.user_code import find_class, import_class, import_user_module
from heedful.errors import InputError


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("own_module")
    vars(module).update(Thing=type("Thing", (), {}), number=7)
    monkeypatch.setitem(sys.modules, "own_module", module)
    return module


def test_a_class_of_an_imported_module_is_found(own):
    assert find_class("task", "own_module:Thing") is own.Thing


def test_a_name_without_a_colon_is_no_class_of_a_users_own():
    assert find_class("task", "translation") is None


@pytest.mark.parametrize("name", ["own_module:number", "own_module:Nothing", "own_module:"])
def test_what_is_no_class_is_refused_by_its_key(own, name):
    with pytest.raises(InputError, match=f'model.architecture = "{name}": own_module has no class'):
        find_class("model.architecture", name)


def test_a_module_is_not_imported_because_a_model_names_it(tmp_path, monkeypatch):
    tmp_path.joinpath("never_imported.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="heedful --import never_imported COMMAND"):
        find_class("task", "never_imported:Thing")
    assert "never_imported" not in sys.modules


def test_what_makes_names_when_asked_for_is_not_asked(own):
    vars(own)["__getattr__"] = lambda name: pytest.fail(f"{name} was asked for")
    with pytest.raises(InputError, match="has no class Other"):
        find_class("task", "own_module:Other")


def test_a_recipe_of_the_users_imports_its_module(tmp_path, monkeypatch):
    tmp_path.joinpath("imported_once.py").write_text("class Thing: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_class("imported_once:Thing", "task")
    assert find_class("task", "imported_once:Thing") is sys.modules.pop("imported_once").Thing


@pytest.mark.parametrize(
    ("module", "words"),
    [("own.py/task", "is not a module name"), ("no_such_module", "is its folder on PYTHONPATH")],
)
def test_a_module_that_cannot_be_imported_is_told_with_the_remedy(module, words):
    with pytest.raises(InputError, match=words):
        import_user_module(module)
