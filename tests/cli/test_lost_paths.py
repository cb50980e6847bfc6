"""Every command and option that takes a path says what is wrong with one, and which path may be meant."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.main import get_command

from cli.invocation import invoke
from every_task import RECIPES
from heedful.architectures.model import weights
from heedful.checkpoint import write_model
from heedful.cli import app
from heedful.cli.hints import commands_of
from heedful.errors import HeedfulError
from heedful.tasks import find_task

FILE = {
    "phrase.en": 'did you mean "phrases.en"',
    "nix/phrases.en": "the folder nix does not exist",
    "texts": "give a file in it.*texts/a",
}
EITHER = {"text": 'did you mean "texts"', "nix/phrases.en": "the folder nix does not exist"}
FOLDER = {"text": 'no such folder; did you mean "texts"', "phrases.en": "is a file; give a folder"}
VECTORS = {
    "rankin": 'no model "rankin".* did you mean "ranking"',
    "unfinished": "is a run that has no checkpoint or model yet",
    "recipes/fr": "is a recipe, not a model",
    "texts": "is not a heedful model",
}
MODEL = {**VECTORS, "phrases.en": "is a file"}
RECIPE = {
    "recipe.tom": 'no such recipe; did you mean "recipe.toml"',
    "recipes": "contains no config.toml; give recipes/fr",
}
RECIPE_OR_MODEL = {"recipe.tom": 'did you mean "recipe.toml"', "rankin": 'did you mean "ranking"'}
RUN = {"finishe": 'no such folder; did you mean "finished"', "phrases.en": "is a file; give a folder"}
OUT = {"nix/out.svg": "no folder nix", "phrases.en/out.svg": "phrases.en is a file"}
PAGE = {"nix/out.html": "no folder nix", "phrases.en/out.html": "phrases.en is a file"}
OUT_FOLDER = {"phrases.en": "phrases.en: is a file; give a folder", "phrases.en/out": "phrases.en is a file"}
PATHS = re.compile(
    r"\b(files?|folders?|TOML|another model|or images)\b", re.IGNORECASE
)  # in the help of what takes a path as text
NO_PATHS = {("inspect", "head"), ("export", "push")}  # their help names files that are written

USES: dict[tuple[str, str], tuple[str, dict[str, str]]] = {  # by command and parameter: a use of {}, what is said
    ("init", "source"): ("{}", EITHER),
    ("init", "target"): ("phrases.en {}", FILE),
    ("init", "out"): ("phrases.en --out {}", OUT_FOLDER),
    ("init", "valid"): ("phrases.en texts/a.en --valid {} others.en", FILE),
    ("init", "test"): ("phrases.en texts/a.en --test {} others.en", FILE),
    ("train", "recipe"): ("{}", RECIPE),
    ("train", "data"): ("recipe.toml --data {}", FOLDER),
    ("train", "out"): ("recipe.toml --out {}", OUT_FOLDER),
    ("evaluate", "model"): ("{}", MODEL),
    ("evaluate", "source"): ("en-de --source {} --reference phrases.en", FILE),
    ("evaluate", "reference"): ("en-de --source phrases.en --reference {}", FILE),
    ("evaluate", "data"): ("en-de --data {}", FOLDER),
    ("evaluate", "hypotheses"): ("--hypotheses {} --reference phrases.en", FILE),
    ("evaluate", "against"): ("en-de --source phrases.en --reference phrases.en --against {}", VECTORS),
    ("evaluate", "output"): ("en-de --source phrases.en --reference phrases.en --output {}", OUT),
    ("evaluate", "plot"): ("classification --source phrases.en --plot {}", OUT),
    ("plan", "recipe"): ("{}", RECIPE),
    ("plan", "data"): ("recipe.toml --data {}", FOLDER),
    ("plan", "prepared"): ("recipe.toml --prepared {}", FOLDER),
    ("compare", "systems"): ("one={} two=nowhere --out new", RECIPE_OR_MODEL),
    ("compare", "out"): ("recipe.toml recipes/fr --out {}", OUT_FOLDER),
    ("compare", "data"): ("recipe.toml recipes/fr --out new --data {}", FOLDER),
    ("verify", "model"): ("{}", MODEL),
    ("replay", "run"): ("{} 1", RUN),
    ("replay", "data"): ("finished 1 --data {}", FOLDER),
    **{
        (command, name): use
        for command in ("translate", "write")
        for name, use in {
            "models": ("hi --model {}", MODEL),
            "source": ("--model en-de --input {}", EITHER),
            "output": ("hi --model en-de --output {}", OUT),
        }.items()
    },
    ("translate", "alignments"): ("hi --model en-de --alignments {}", OUT),
    ("translate", "glossary"): ("hi --model en-de --glossary {}.tsv", {"phrases": "phrases.tsv: no such file"}),
    ("transcribe", "file"): ("{} --model speech_recognition", EITHER),
    ("transcribe", "model"): ("phrases.en --model {}", MODEL),
    ("transcribe", "out"): ("phrases.en --model speech_recognition --out {}", OUT_FOLDER),
    ("transcribe", "output"): ("phrases.en --model speech_recognition --output {}", OUT),
    **{
        (command, name): use
        for command, model in {
            "generate": "language_model",
            "fill": "masked_lm",
            "predict": "classification",
            "encode": "ranking",
        }.items()
        for name, use in {
            "models" if command == "generate" else "model": ("hi --model {}", MODEL),
            "source": (f"--model {model} --input {{}}", FILE),
            "output": (f"[MASK] --model {model} --output {{}}{'.jsonl' * (command == 'encode')}", OUT),
        }.items()
    },
    ("fill", "text"): ("{} --model masked_patches --output new.png", EITHER),
    ("predict", "text"): ("{} --model image_classification", EITHER),
    ("caption", "files"): ("{} --model captioning", EITHER),
    ("caption", "model"): ("phrases.en --model {}", MODEL),
    ("caption", "output"): ("phrases.en --model captioning --output {}", OUT),
    ("search", "model"): ("hi --corpus phrases.en --model {}", MODEL),
    ("search", "query"): (
        "{} --model image_text_retrieval --corpus pictures",
        {"phrase.png": 'did you mean "phrases.en"'},
    ),
    ("search", "corpus"): ("hi --model ranking --corpus {}", {**FILE, "texts": "--corpus texts: is a folder"}),
    ("search", "source"): ("--model ranking --corpus phrases.en --input {}", FILE),
    ("search", "output"): ("hi --model ranking --corpus phrases.en --output {}", OUT),
    ("search", "index"): ("hi --model ranking --corpus phrases.en --index {}", OUT),
    ("attention", "text"): ("{} --model captioning", FILE),
    ("attention", "model"): ("hi --model {}", MODEL),
    ("attention", "out"): ("hi --out {}", OUT),
    ("inspect", "model"): ("{} hi --out new.html", MODEL),
    ("inspect", "text"): ("captioning {} --out new.html", FILE),
    ("inspect", "out"): ("en-de hi --out {}", PAGE),
    ("inspect", "beside"): ("en-de --beside {}", MODEL),
    ("inspect", "data"): ("en-de --data {}", FOLDER),
    ("export", "model"): ("{} new", MODEL),
    ("export", "out"): ("en-de {}", OUT_FOLDER),
    ("export", "inputs"): ("en-de new --to ctranslate2 --inputs {}", FILE),
    ("convert", "model"): ("{} --out new", MODEL),
    ("convert", "adapter"): (
        "en-de --out new --adapter {}",
        {"text": "--adapter text: can only be merged into a Hugging Face model"},
    ),
    ("distill", "recipe"): ("{} --teacher en-de --out new", RECIPE),
    ("distill", "teacher"): ("recipe.toml --out new --teacher {}", MODEL),
    ("distill", "out"): ("recipe.toml --teacher en-de --out {}", OUT_FOLDER),
    ("distill", "sources"): ("recipe.toml --teacher en-de --out new --sources {}", FILE),
    ("distill", "data"): ("recipe.toml --teacher en-de --out new --data {}", FOLDER),
    ("convert", "out"): ("en-de --to marian --out {}", OUT_FOLDER),
    ("info", "model"): ("{}", RECIPE_OR_MODEL),
    ("info", "graph"): ("tiny --graph {}", OUT),
    ("data", "out"): ("sst2 --out {}", OUT_FOLDER),
    ("reproduce", "recipe"): (
        "{}",
        {
            "recipe": 'no such folder; did you mean "recipes"',
            "recipe.toml": "is a file; give a folder",
            "recipes/fr": "results.toml: no such file, so there is nothing to reproduce",
        },
    ),
    ("reproduce", "data"): ("recipes/fr --data {}", OUT_FOLDER),
    ("reproduce", "out"): ("recipes/fr --out {}", OUT_FOLDER),
    ("scenes", "out"): ("en-de --out {}", OUT_FOLDER),
    ("stories", "out"): ("--out {}", OUT_FOLDER),
    ("functions", "out"): ("--out {}", OUT_FOLDER),
    ("shapes", "out"): ("--out {}", OUT_FOLDER),
    ("tokenizer train", "files"): ("{} --out new", FILE),
    ("tokenizer train", "out"): ("phrases.en --out {}", OUT_FOLDER),
    **{
        (f"tokenizer {command}", name): use
        for command in ("encode", "decode", "stats")
        for name, use in {
            "tokenizer": (
                "{} phrases.en",
                {"text": 'no such tokenizer; did you mean "texts"', "phrases.en": "is a file"},
            ),
            "files": ("ranking/tokenizer/joint {}", FILE),
        }.items()
    },
    ("config show", "recipe"): ("{}", RECIPE),
    ("config show", "data"): ("recipe.toml --data {}", FOLDER),
    ("config check", "recipe"): ("{}", RECIPE),
    ("config check", "data"): ("recipe.toml --data {}", FOLDER),
    ("config check", "out"): ("recipe.toml --out {}", OUT_FOLDER),
    **{
        (f"vectors {command}", "model"): (f"{words} --model {{}}", VECTORS)
        for command, words in {
            "nearest": "cat",
            "analogy": "cat dog hen",
            "similarity": "cat dog",
            "plot": "cat dog hen",
            "export": "new.vec",
        }.items()
    },
    ("vectors analogy", "questions"): ("--model words.vec --questions {}", FILE),
    ("vectors similarity", "pairs"): ("--model words.vec --pairs {}", FILE),
    ("vectors plot", "out"): ("cat dog hen --model words.vec --out {}", OUT),
    ("vectors export", "out"): ("--model words.vec {}", OUT),
    ("runs list", "folder"): ("{}", FOLDER),
    ("runs check", "runs"): ("{}", RUN),
    ("runs diff", "first"): ("{} finished", RUN),
    ("runs diff", "second"): ("finished {}", RUN),
    ("runs prune", "run"): ("{}", RUN),
}
CASES = [(*key, bad) for key, (_, expected) in USES.items() for bad in expected]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained models by task, each written when a test asks for it."""
    return tmp_path_factory.mktemp("models")


def model_of(task: str, folder: Path) -> Path:
    if not (folder / task).exists():
        data = folder / f"{task} data"
        data.mkdir()
        prepared = find_task(task).prepare(RECIPES[task](data), data / "prepared", lambda _: None)
        model: Any = prepared.build(prepared.recipe, prepared.tokenizers)
        write_model(folder / task, prepared.recipe, prepared.tokenizers, weights(model))
    return folder / task


@pytest.fixture
def here(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: texts, vectors, recipes, a model, and runs with and without an end."""
    monkeypatch.chdir(tmp_path)
    for name in ("texts", "recipes/fr", "unfinished", "finished"):
        Path(name).mkdir(parents=True)
    Path("phrases.en").write_text("A dog barks.\nA cat sleeps.\n")
    Path("texts/a.en").write_text("A dog barks.\nA cat sleeps.\n")
    Path("others.en").write_text("An owl.\nA hen.\n")
    Path("words.vec").write_text("cat 1 2 3\ndog 2 3 1\nhen 3 1 2\nowl 1 1 2\n")
    for name in ("recipe.toml", "recipes/fr/config.toml"):
        Path(name).write_text('preset = "tiny"\n[data]\ntrain = [{source = "phrases.en", target = "phrases.en"}]\n')
    Path("pictures").mkdir()
    Image.new("L", (24, 16)).save("pictures/a.png")
    for run in ("unfinished", "finished"):
        Path(run, "heedful.lock").touch()
        Path(run, "log.jsonl").touch()
    shutil.copytree(model_of("ranking", models), "ranking")
    return tmp_path


def message(command: str, arguments: str, models: Path) -> str:
    """What the command says of the error with which it ends."""
    for task in RECIPES:
        if task != "ranking" and re.search(rf"\b{task}\b", arguments):
            shutil.copytree(model_of(task, models), task)
    with pytest.raises(HeedfulError) as caught:
        invoke(*command.split(), *shlex.split(arguments))
    return str(caught.value)


@pytest.mark.parametrize(("command", "name", "bad"), CASES)
def test_a_path_that_is_not_what_is_wanted_is_named_with_what_may_be_meant(command, name, bad, here, models):
    arguments, expected = USES[command, name]
    said = message(command, arguments.format(bad), models)
    assert bad.split("/")[0] in said
    assert re.search(expected[bad], said)
    assert command == "compare" or not Path("new").exists()


def test_all_parameters_that_take_paths_are_tried():
    taking = {
        (" ".join(words), parameter.name)
        for words, command in commands_of(get_command(app))
        for parameter in command.params
        for annotation in [str(getattr(parameter, "type_descriptor", "") and parameter.type_descriptor.annotation)]
        if "Path" in annotation or ("str" in annotation and PATHS.search(getattr(parameter, "help", None) or ""))
    }
    assert taking - NO_PATHS == set(USES)
