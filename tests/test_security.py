"""No source file can run what a file says: no pickle, no text as code, no shell, no import by a name that is read.

But for the programs of models whose score is the share that passes tests: `tests/metrics/test_programs.py`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
FORBIDDEN_MODULES = {
    "cloudpickle",
    "code",
    "dill",
    "joblib",
    "marshal",
    "pickle",
    "runpy",
    "shelve",
    "xmlrpc",
    "yaml",
}
FORBIDDEN_CALLS = re.compile(
    r"(eval|exec|compile|__import__|os\.(system|popen|exec\w+|spawn\w+)|yaml\.\w+|torch\.(load|save|hub\.\w+)"
    r"|dcp\.\w+|(\w+\.)*FileSystem(Reader|Writer)|(\w+\.)*(extractall|_extract_member|unpack_archive))"
)
FORBIDDEN_FLAGS = {
    ("shell", "True"),
    ("allow_pickle", "True"),
    ("weights_only", "False"),
    ("trust_remote_code", "True"),
}
IMPORTERS = {
    "cli/commands.py",  # modules of its own table
    "config/user_code.py",  # a module that the user has named
    "former_names.py",  # modules of its own table
    "registry.py",  # modules of its own tables
}
NAMED_BY_OTHERS = {  # getattr(torch, ...) by a name that is no constant, and whose name that is
    "checkpoint/save.py": "dtype",  # an argument of our own
    "convert/model.py": "DTYPE",  # of a config.json that this process writes
    "distributed/reducer.py": "type",  # a process of this run
}

OWN_FILES = {  # what runs or unpacks a file that this process has just written, or a program
    "convert/argos_export.py": ["package.extractall"],  # the package of an export, to compare its outputs
    "documents/yaml_strings.py": ["import yaml", "yaml.SafeDumper"],  # nodes of the safe loader; no object is made
    "convert/onnx/comparison.py": ["import runpy"],  # run.py of an export, a copy of a file of heedful
    "metrics/untrusted_program.py": ["compile", "exec"],  # in a process with limits, what a model wrote
}


def findings(text: str) -> Iterator[str]:
    """Yield what a source file may not do."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from (f"import {name}" for name in names if name.partition(".")[0] in FORBIDDEN_MODULES)
        if isinstance(node, ast.Call):
            called, flags = ast.unparse(node.func), {(word.arg, ast.unparse(word.value)) for word in node.keywords}
            if FORBIDDEN_CALLS.fullmatch(called):
                yield called
            if called == "np.load" and ("allow_pickle", "False") not in flags:
                yield called
            yield from (f"{name}={value}" for name, value in flags & FORBIDDEN_FLAGS)


def imports_by_name(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that import a module whose name is a value."""
    for node in ast.walk(tree):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if (
            isinstance(node, ast.Call)
            and called.endswith("import_module")
            and not isinstance(node.args[0], ast.Constant)
        ):
            yield node


def looked_up_in_torch(tree: ast.AST) -> Iterator[str]:
    """Yield the names that are looked up in torch and are no constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            owner, name, *_ = node.args
            if ast.unparse(owner).startswith("torch") and not isinstance(name, ast.Constant):
                yield ast.unparse(name)


def sources() -> list[Path]:
    """Every source file."""
    return sorted((SOURCE / "heedful").rglob("*.py"))


def test_no_source_file_unpickles_or_runs_what_it_reads() -> None:
    places = {str(path.relative_to(SOURCE / "heedful")): list(findings(path.read_text())) for path in sources()}
    assert {place: found for place, found in places.items() if found} == OWN_FILES


def test_modules_are_imported_by_name_in_four_places_only() -> None:
    found = {
        str(path.relative_to(SOURCE / "heedful"))
        for path in sources()
        if [*imports_by_name(ast.parse(path.read_text()))]
    }
    assert found == IMPORTERS


def test_no_name_from_a_file_is_looked_up_in_torch() -> None:
    found = {
        str(path.relative_to(SOURCE / "heedful")): names
        for path in sources()
        if (names := [*looked_up_in_torch(ast.parse(path.read_text()))])
    }
    assert found.keys() == NAMED_BY_OTHERS.keys(), found


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import yaml.loader",
        "eval(text)",
        "exec(text)",
        "__import__(name)",
        "os.system(command)",
        "subprocess.run(command, shell=True)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "array.read(path, allow_pickle=True)",
        "archive.extractall(folder)",
        "shutil.unpack_archive(path)",
        "yaml.load(text)",
    ],
)
def test_what_is_forbidden_would_be_found(line: str) -> None:
    assert [*findings(line)]


@pytest.mark.parametrize(
    "line",
    ["model.eval()", "re.compile(text)", "json.load(file)", "stack.compile(dynamic=True)", "subprocess.run(command)"],
)
def test_what_is_harmless_is_not_found(line: str) -> None:
    assert not [*findings(line)]
