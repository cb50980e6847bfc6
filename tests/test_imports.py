"""What a process imports of heedful: the parts that a recipe or a command names, and no others."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

LISTING_MODULES = """
import json, sys
from heedful.cli import main

try:
    main()
finally:
    sys.stderr.write("\\n" + json.dumps([name for name in sys.modules if name.split(".")[0] == "heedful"]))
"""
SOURCE = Path(__file__).parents[1] / "src" / "heedful"
MOST_OF_A_GPT = 116
MOST_OF_THE_VERSION = 10
NOT_OF_A_GPT = (
    r"cli\.(?!commands|hints|options|stopping|train)",
    r"config\.presets",
    r"(convert|corpora|inspector|jobs|media|predictors|search|server|tools)\b",
    r"data\.(word_vectors|passages|batches)",
    r"data\.readers\.(rows|columns|labelled|tagged|squad|dialogues|media_files)",
    r"architectures\.(bag_of_words|bytenet|convolutional|dual_encoder|recurrent|text_|transformer\.masked|word2vec)",
    r"nn\.(frames|patches|tubelets)",
    r"tasks\.(?!task$|dataset$|specs$|language_model$|(parts|readers)(\.running_text)?$)",
    r"text\.(hugging_face|sentencepiece|speech_tokens)",
    r"training\.(warm_start|sharding)",
    r"workers",
)
RECIPE = """
task = "language_model"
data = { train = [{ source = "text.txt" }], valid = { source = "text.txt" }, max_length = 16 }
tokenizer = { kind = "character", vocab_size = 300 }
model = { d_model = 8, d_ff = 12, heads = 2, decoder_layers = 1 }
train = { max_updates = 2, batch_tokens = 64, device = "cpu" }
"""


EVERY_MODULE = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in SOURCE.rglob("*.py")
]


def modules_of(folder: Path, *arguments: str) -> list[str]:
    """The modules of heedful that a command has imported when it ends, without "heedful."."""
    command = [sys.executable, "-c", LISTING_MODULES, *arguments]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:2000]
    return [name.removeprefix("heedful.") for name in json.loads(ended.stderr.splitlines()[-1])]


@pytest.fixture(scope="module")
def of_a_gpt(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The modules that train a GPT for two updates."""
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "text.txt").write_text("".join(f"the {n} cats sat on the mat\n" for n in range(100)))
    (folder / "recipe.toml").write_text(RECIPE)
    return modules_of(folder, "train", "recipe.toml", "--out", "run")


def test_a_gpt_is_trained_by_few_modules(of_a_gpt):
    assert len(of_a_gpt) <= MOST_OF_A_GPT


@pytest.mark.parametrize("pattern", NOT_OF_A_GPT)
def test_what_a_recipe_does_not_name_is_not_imported(of_a_gpt, pattern):
    assert [name for name in EVERY_MODULE if re.match(pattern, name)]
    assert [name for name in of_a_gpt if re.match(pattern, name)] == []


def test_the_version_is_printed_by_a_handful_of_modules(tmp_path):
    assert len(modules_of(tmp_path, "--version")) <= MOST_OF_THE_VERSION


def test_help_imports_no_command(tmp_path):
    assert set(modules_of(tmp_path, "--help")) <= set(modules_of(tmp_path, "--version"))
