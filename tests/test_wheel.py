"""However heedful is installed, the inspector's page comes with it."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from heedful.inspector.page import BUILT
from test_house import tracked_files

ROOT = Path(__file__).parent.parent
PAGE = "heedful/inspector/page/index.html"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--target"]
HATCHLING = [sys.executable, "-m", "hatchling", "build", "-t"]
WITH_NODE = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    """A command and what it said; the caller looks at how it ended."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, env=WITH_NODE | environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with the files of this one and nothing built."""
    folder = tmp_path_factory.mktemp("clone")
    for path in tracked_files():
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    me = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "--quiet"], ["add", "--all"], [*me, "commit", "--quiet", "--message", "all"]):
        assert run("git", *command, cwd=folder).returncode == 0
    return folder


def test_an_installation_from_git_builds_the_page(clone, tmp_path):
    done = run(*PIP, tmp_path / "site", f"git+file://{clone}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / PAGE).read_text() == BUILT.read_text()


def test_a_source_distribution_holds_the_page_and_its_sources_so_that_no_node_is_needed(tmp_path):
    assert run(*HATCHLING, "sdist", "-d", tmp_path).returncode == 0
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert {f"src/{PAGE}", "web/package-lock.json", "web/src/main.ts", "hatch_build.py"} <= names
    assert not [name for name in names if "node_modules" in name]
    done = run(*PIP, tmp_path / "site", "--no-build-isolation", archive, PATH="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / PAGE).read_bytes() == BUILT.read_bytes()


def test_the_wheel_holds_the_page_and_none_of_its_sources(tmp_path):
    assert run(*HATCHLING, "wheel", "-d", tmp_path).returncode == 0
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(PAGE) == BUILT.read_bytes()
        assert "heedful/py.typed" in archive.namelist()
        assert not [name for name in archive.namelist() if "node_modules" in name or name.startswith("web/")]


def test_without_a_registry_the_build_says_what_helps(clone, tmp_path):
    nowhere = {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_fetch_retries": "0"}
    done = run(*HATCHLING, "wheel", "-d", tmp_path, cwd=clone, npm_config_cache=str(tmp_path / "cache"), **nowhere)
    assert done.returncode != 0
    assert "the inspector's page cannot be built: `npm ci" in done.stderr
    assert "HATCH_BUILD_NO_HOOKS=true" in done.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_without_the_page_everything_else_installs(clone, tmp_path):
    done = run(*PIP, tmp_path / "site", "--no-build-isolation", clone, HATCH_BUILD_NO_HOOKS="true", PATH="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site/heedful/__init__.py").is_file()
    assert not (tmp_path / "site" / PAGE).exists()
