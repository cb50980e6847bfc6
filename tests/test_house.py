"""The rules of the house that no linter knows."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.config.load import load_recipe

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = {path.relative_to(ROOT / "src/heedful").with_suffix("") for path in SOURCES}
RECIPES = sorted((ROOT / "recipes").glob("*/config.toml"))

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|farm|home/\w+)/\w")
PACKAGE_HOST = re.compile(
    r"--(?:extra-)?index-url|--registry[ =]|pypi[.]org|pythonhosted[.]org|registry[.]npmjs|download[.]pytorch"
)


def tracked_files() -> list[Path]:
    """Every file that git holds or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(path.read_text(), str(path))


def calls(tree: ast.AST) -> Iterator[str]:
    """Each call in a file without its arguments' values: `print()`, `subprocess.run(shell=True)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            flags = ", ".join(f"{word.arg}={ast.unparse(word.value)}" for word in node.keywords)
            yield f"{ast.unparse(node.func)}({flags})"


def test_every_source_file_has_a_name_that_tells() -> None:
    assert [path for path in SOURCES if re.search(r"util|helper|common|misc", path.stem)] == []


def test_no_source_file_prints_or_runs_text_as_code() -> None:
    forbidden = r"(print|eval|exec|torch\.(load|save)|pickle\..*)\(|.*(shell|allow_pickle)=True"
    programs = ROOT / "src/heedful/convert/onnx/examples"  # which are copied into exported models, and print answers
    tested = ROOT / "src/heedful/metrics/untrusted_program.py"  # which runs programs, in a process with limits
    sources = [path for path in SOURCES if path.parent != programs]
    found = [(path, call) for path in sources for call in calls(parsed(path)) if re.match(forbidden, call)]
    assert found == [(tested, "exec()")]


def test_no_source_file_silences_a_checker_or_is_unfinished() -> None:
    forbidden = r"# (noqa|type: ignore|pyright: ignore)|TODO|FIXME|XXX|NotImplementedError"
    assert [path for path in SOURCES if re.search(forbidden, path.read_text())] == []


def test_no_file_names_a_machine_or_a_package_host() -> None:
    found = []
    for path in tracked_files():
        text = path.read_bytes()
        if b"\0" not in text:
            lines = enumerate(text.decode(errors="replace").splitlines(), start=1)
            found += [f"{path}:{i}" for i, line in lines if MACHINE_PATH.search(line) or PACKAGE_HOST.search(line)]
    assert found == []


def test_no_file_is_a_burden_to_clone() -> None:
    assert [path for path in tracked_files() if path.stat().st_size > 12_000_000] == []


def test_tests_mirror_the_package() -> None:
    homes = {path.relative_to(ROOT / "tests").parent for path in (ROOT / "tests").glob("*/**/test_*.py")}
    whole = {Path("compatibility"), Path("docs"), Path("web")}  # about more than one module
    assert homes <= {module.parent for module in MODULES} | whole


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_every_recipe_loads_and_tells_its_story(path: Path) -> None:
    assert load_recipe(path).name == path.parent.name
    assert (path.parent / "README.md").is_file()
    assert f"]({path.parent.name}/README.md)" in (ROOT / "recipes/README.md").read_text()


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.parent.name)
def test_every_recipe_can_be_tried_with_three_updates(path: Path) -> None:
    assert load_recipe(path, ["train.max_updates=3"]).train.max_updates == 3
