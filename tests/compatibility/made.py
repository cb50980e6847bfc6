"""Make an archive for test_old_files.py: PYTHONPATH=src:tests:faults python tests/compatibility/made.py FILE.tar.xz

It holds for each task a recipe, a run that was stopped after half of its updates, what the whole run came to, its model
and a trace of it. An archive is made once, by the version that its name tells; later versions read it and go on.
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import heedful
import reversal
import toy_tasks
from heedful.config.load import recipe_to_dict
from heedful.training.logger import LOG, RESULT
from interrupted import stop_after, train

TEXT = Path("text")
TASKS = {
    "translation": (lambda: reversal.recipe(TEXT), 9, "w1 w2 w3"),
    **{task: (lambda task=task: toy_tasks.recipe(task, TEXT), 5, "good w1 red") for task in toy_tasks.TASKS},
}


def make(task: str) -> None:
    recipe, half, text = TASKS[task]
    settings, folder = recipe(), Path(task)
    folder.mkdir()
    (folder / "recipe.json").write_text(json.dumps(recipe_to_dict(settings), indent=1))
    train(settings, folder / "whole")
    with pytest.MonkeyPatch.context() as patch:
        stop_after(half, patch)
        train(settings, folder / "run")
    best = json.loads((folder / "run/checkpoints/best.json").read_text())["step"]
    for step in sorted((folder / "run/checkpoints").glob("step-*"))[:-1]:
        if int(step.name.removeprefix("step-")) != best:
            shutil.rmtree(step)
    weights = (folder / "whole/model/model.safetensors").read_bytes()
    log = (folder / "whole" / LOG).read_text().splitlines()
    expected = {
        "weights": hashlib.sha256(weights).hexdigest(),
        "losses": [entry["loss"] for entry in map(json.loads, log) if "loss" in entry],
        "result": json.loads((folder / "whole" / RESULT).read_text()),
        "text": text,
        "torch": torch.__version__,
        "kernels": torch.backends.cpu.get_cpu_capability(),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))
    heedful.trace(folder / "whole", text).save(folder / "trace.safetensors")
    shutil.move(folder / "whole/model", folder / "model")
    shutil.rmtree(folder / "whole")


def main() -> None:
    archive = Path(sys.argv[1]).absolute()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        toy_tasks.write_text(TEXT)
        for name, count, seed in (("train", 97, 1), ("valid", 13, 2)):
            reversal.write_pairs(TEXT, name, count, seed)
        for task in TASKS:
            make(task)
        with tarfile.open(archive, "x:xz") as file:
            file.add(folder, ".")


if __name__ == "__main__":
    main()
