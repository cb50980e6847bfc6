"""The package of docs/how-to/own-package.md, installed: its parts work in the plain commands, as heedful's own do."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from invocation import invoke

from heedful import registry
from heedful.config.user_code import REGISTRIES
from heedful.errors import InputError
from installed_package import install

PAGE = Path(__file__).parents[2] / "docs/how-to/own-package.md"
FILES = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
PACKAGE = tomllib.loads(FILES["pyproject.toml"])["project"]
MODULE = "sample_parts"
TABLES = (*REGISTRIES.values(), registry.METRICS, registry.POSITIONS, registry.TOKENIZERS)
TEXT = "there was sun and rain"
FEW = ("--set", "train.batch_tokens=256", "--set", "train.validate_every=2", "--set", "train.save_every=2")


def forget() -> None:
    """Let the tables look again which packages are installed."""
    registry.entry_points_of.cache_clear()
    sys.modules.pop(MODULE, None)
    for table in TABLES:
        for name in [name for name in table._imported if table.is_custom(name)]:
            del table._imported[name]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is installed, and the current folder holds the recipe of the page with its data."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    install(tmp_path / "site", PACKAGE["name"], {f"{MODULE}.py": FILES[f"{MODULE}.py"]}, PACKAGE["entry-points"])
    for name, count in (("train", 40), ("valid", 8), ("test", 8)):
        rows = [f"there was {'mud' if n % 3 else 'sun'} and {n}\t{'bad' if n % 3 else 'good'}" for n in range(count)]
        Path(f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    Path("moods.toml").write_text(FILES["moods.toml"])
    forget()
    yield
    forget()


def train(updates: int) -> None:
    assert invoke("train", "moods.toml", "--out", "run", "--set", f"train.max_updates={updates}", *FEW).exit_code == 0


def test_its_parts_are_trained_resumed_evaluated_used_and_inspected(installed):
    assert invoke("config", "check", "moods.toml").exit_code == 0
    train(2)
    train(4)
    assert invoke("evaluate", "run").stdout.split()[:6:2] == ["accuracy", "worst_recall", "loss"]
    assert invoke("predict", "--model", "run", TEXT).stdout.split()[0] in ("good", "bad")
    assert "--out" not in invoke("inspect", "run", TEXT, "--out", "page.html").stderr
    assert TEXT.split(maxsplit=1)[0] in Path("page.html").read_text("utf-8")
    assert "d_ff 48" in invoke("info", "run").stdout
    assert Path("run/model/recipe.json").read_text().count("maxout") == 1


def test_a_resumed_run_ends_with_the_weights_of_one_without_a_break(installed):
    train(2)
    train(4)
    resumed = Path("run/model/model.safetensors").read_bytes()
    Path("run").rename("before")
    train(4)
    assert Path("run/model/model.safetensors").read_bytes() == resumed


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("task", "focal_classificaton", 'unknown task; did you mean "focal_classification"'),
        ("model.architecture", "max_out", r'model\.architecture = "max_out".* did you mean "maxout"'),
        (
            "evaluate.metrics",
            '["best_recall"]',
            'unknown metric "best_recall" for classes; did you mean .*worst_recall',
        ),
        ("model.positions", "log", r'model\.positions must be "sinusoidal", .*, but is "log"'),
        ("tokenizer.kind", "letter_pair", r'tokenizer\.kind must be "word", .*, but is "letter_pair"'),
    ],
)
def test_a_name_that_no_package_has_is_refused_with_the_nearest(installed, key, value, words):
    with pytest.raises(InputError, match=words):
        invoke("config", "check", "moods.toml", "--set", f"{key}={value}")


def test_a_model_without_the_package_names_what_is_missing(installed, monkeypatch):
    train(2)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not folder.endswith("site")])
    forget()
    with pytest.raises(InputError, match=r'model\.architecture = "maxout": unknown architecture'):
        invoke("predict", "--model", "run", TEXT)


def test_the_json_schema_lists_the_added_names(installed):
    schema = invoke("config", "schema").stdout
    assert '"log_distance"' in schema
    assert '"letter_pairs"' in schema


def test_the_package_is_short():
    assert sum(len(text.splitlines()) for name, text in FILES.items() if name != "moods.toml") < 100
