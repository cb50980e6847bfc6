"""A model folder from a stranger: no command that takes a model runs code that the folder names."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from invocation import invoke

import subjects
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import CorpusConfig, DataConfig, DecodeConfig, Recipe
from heedful.errors import InputError
from heedful.predictors.translator import Translator
from heedful.tasks import find_task

MODULE = "a_strangers_tasks"
CODE = """
from pathlib import Path

from heedful.tasks.text_to_text import Translation

Path("was_here").write_text("code of a model folder was run")


class Theirs(Translation):
    pass
"""
RECIPE = """
name = "mine"
[data]
train = [{source = "text", target = "text"}]
[model]
family = "encoder_decoder"
"""

COMMANDS = [
    "translate hello --model model",
    "write hello --model model",
    "generate hello --model model",
    "fill [MASK] --model model",
    "predict hello --model model",
    "search hello --model model --corpus text",
    "encode hello --model model --output vectors.npy",
    "attention hello --model model --out image.png",
    "inspect model hello --out page.html",
    "inspect model --no-open --port 0",
    "inspect en-de --beside model --no-open --port 0",
    "evaluate model --source text --reference text",
    "evaluate --hypotheses text --against model --source text --reference text",
    "export model copy",
    "convert model --to marian --out copy",
    "info model",
    "train recipe.toml --out run --set train.start=model",
    "train recipe.toml --out run --set train.start_decoder=model",
    "config check recipe.toml --set train.start=model",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a model whose task is a class in a module beside it, which could be imported."""
    translator = subjects.translator()
    corpus = CorpusConfig(source="text", target="text")
    recipe = Recipe(
        task=f"{MODULE}:Theirs",
        model=subjects.SHAPE,
        decode=DecodeConfig(beam=2, max_extra=3),
        data=DataConfig(train=(corpus,), root=str(tmp_path)),
    )
    write_model(tmp_path / "model", recipe, translator.tokenizers, weights(translator.model))
    (tmp_path / f"{MODULE}.py").write_text(CODE)
    (tmp_path / "text").write_text("the old dog\n")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop(MODULE, None)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_imports_what_a_model_folder_names(command: str, folder: Path) -> None:
    with pytest.raises(InputError, match=rf"heedful does not import code .* `heedful --import {MODULE} COMMAND"):
        invoke(*command.split())
    assert not (folder / "was_here").exists()
    assert MODULE not in sys.modules


def test_python_does_not_import_it_either(folder: Path) -> None:
    with pytest.raises(InputError, match=f"or in Python `import {MODULE}` before the model is loaded"):
        load_model("model")
    assert not (folder / "was_here").exists()


def test_whoever_trusts_a_module_says_so_before_the_command(folder: Path) -> None:
    assert invoke("--import", MODULE, "translate", "the dog", "--model", "model").exit_code == 0
    assert (folder / "was_here").exists()
    assert load_model("model").use_as(Translator)


def test_a_module_that_cannot_be_imported_is_one_message() -> None:
    with pytest.raises(InputError, match=r"the module my_tasks\.py cannot be imported"):
        invoke("--import", "my_tasks.py", "config", "presets")
    with pytest.raises(InputError, match=r'"\./tasks" is not a module name'):
        invoke("--import", "./tasks", "config", "presets")
    with pytest.raises(InputError, match=r"the module no_such_module cannot be imported .* PYTHONPATH"):
        invoke("--import", "no_such_module", "config", "presets")


@pytest.mark.parametrize(
    "name", [f"{MODULE}:Theirs", f"{MODULE}:subclass_of_nothing", "json:JSONDecoder", "sys:modules", "os:no.such", ":"]
)
def test_a_name_that_is_no_task_is_refused_wherever_it_leads(name: str, folder: Path) -> None:
    with pytest.raises(InputError, match="task = "):
        find_task(name)
    assert not (folder / "was_here").exists()


def test_a_run_of_ones_own_needs_no_option_to_go_on(folder: Path) -> None:
    (folder / "own.toml").write_text(
        f'task = "{MODULE}:Theirs"\n'
        '[data]\ntrain = [{source = "text", target = "text"}]\nfilters = {max_tokens = 17}\n'
        "[tokenizer]\nvocab_size = 281\n"
        "[model]\nd_model = 6\nd_ff = 7\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\n"
        '[train]\nmax_updates = 2\nbatch_tokens = 17\nsave_every = 1\ndevice = "cpu"\n'
    )
    assert invoke("train", "own.toml", "--out", "run").exit_code == 0
    result = invoke("train", "own.toml", "--out", "run", "--set", "train.max_updates=3")
    assert "resuming after update 2" in result.stderr
