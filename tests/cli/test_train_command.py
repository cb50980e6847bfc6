import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from invocation import invoke

from heedful.checkpoint import load_model
from heedful.errors import InputError
from toy_model import TOY_MODEL

RECIPE = f"""
name = "toy"
[data]
source_language = "en"
target_language = "en"
train = [{{source = "train.src", target = "train.tgt"}}]
valid = {{source = "train.src", target = "train.tgt"}}
test = {{source = "train.src", target = "train.tgt"}}
[train]
threads = 1
device = "cpu"
max_updates = 3
log_every = 1
[tokenizer]
kind = "word"
vocab_size = 300
{TOY_MODEL}"""


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    for side in ("src", "tgt"):
        Path(f"data/train.{side}").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\n" for i in range(101)))
    Path("toy").mkdir()
    Path("toy/config.toml").write_text(RECIPE)
    return tmp_path


def heedful(*words: str) -> tuple[int, str, str]:
    result = invoke(*words)
    return result.exit_code, result.stdout, result.stderr


def test_a_recipe_becomes_a_model_that_evaluates_translates_and_is_exported(text):
    code, out, err = heedful("train", "toy", "--data", "data", "--set", "train.seed=5")
    assert (code, out) == (0, "")
    assert "update 3: loss" in err
    assert "heedful translate --model runs/toy" in err
    assert load_model("runs/toy").recipe.train.seed == 5
    code, out, _ = heedful("evaluate", "runs/toy", "--json", "--metrics", "bleu")
    assert code == 0
    assert json.loads(out)["sentences"] == 101
    code, out, _ = heedful("export", "runs/toy", "small", "--dtype", "bfloat16")
    assert code == 0
    assert re.search(r"small: \d+\.\d kB", out)
    code, out, _ = heedful("translate", "--model", "small", "w1 w2", "", "w3")
    assert code == 0
    assert len(out.split("\n")) == 4
    assert str(text) not in Path("small/recipe.json").read_text()


CHILD = "from heedful.cli import main; main()"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(number, code, text):
    words = ["train", "toy", "--data", "data", "--out", "run"]
    endless = ["--set", "train.max_updates=100000", "--set", "train.validate_every=100000"]
    command = [sys.executable, "-c", CHILD, *words, *endless]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("update 5:"):
                child.send_signal(number)
                break
        rest = child.stderr.read()
    assert child.wait() == code
    assert "stopped and saved after update" in rest
    assert "heedful train toy --data data --out run --set train.max_updates=100000" in rest
    assert "Traceback" not in rest
    saved = max(Path("run/checkpoints").glob("step-*"))
    update = json.loads((saved / "state.json").read_text())["progress"]["update"]
    exit_code, _, err = heedful(*words, "--set", f"train.max_updates={update + 1}", *endless[2:])
    assert exit_code == 0
    assert f"resuming after update {update}" in err


@pytest.mark.parametrize("command", [("train",), ("config", "check")])
def test_the_folder_of_a_comparison_is_not_a_run_folder(command, tmp_path):
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(InputError, match="is the folder of a comparison; choose another folder for the run"):
        invoke(*command, "recipe.toml", "--out", tmp_path)
