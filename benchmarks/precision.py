"""Training speed of every recipe in float32 and bfloat16, and the choice of `precision = "auto"`:
python benchmarks/precision.py DATA [--recipes NAME ...]

DATA is the folder that the recipes' READMEs call DATA; texts that heedful generates are made. Each recipe is timed
twice: with all instructions of this processor, and as an AVX2 processor without bfloat16, simulated by environment
variables of oneDNN, MKL and torch. Two trainers, one per precision, take the first updates of the recipe in turn, so
that other work on the machine affects both alike.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import record
import torch
from rich.console import Console
from rich.table import Table

from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.machine import choose_precision, prepare_process
from heedful.machine.speed import timed
from heedful.random_numbers import seed_of
from heedful.tasks import find_task, import_reader
from heedful.training.training_step import TrainingStep

RECIPES = Path(__file__).parent.parent / "recipes"
AS_AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
SETTINGS = {"as it is": {}, "as AVX2": AS_AVX2}
WRITTEN = {"scenes-en-de": "scenes", "scenes-en-de-shallow": "scenes", "scenes-bert": "stories"}  # heedful's command
WARM_UP, UPDATES = 2, 7


def measure(name: str, data: Path, folder: Path) -> dict[str, float | str]:
    """Measure the median seconds of an update in each precision, and note the precision that "auto" chooses."""
    recipe = load_recipe(RECIPES / name, data_root=data)
    task_class = find_task(recipe.task)
    prepare_process()
    task = task_class.prepare(import_reader(recipe.task).resolve(recipe), folder / name, lambda _: None)
    batches = [task.data.batch(ids, 0, record.CPU) for ids in task.data.epoch(0)[: WARM_UP + UPDATES]]
    seconds: dict[str, list[float]] = {"float32": [], "bfloat16": []}
    learners = {precision: learner(task, recipe, precision) for precision in seconds}
    for batch in batches:
        for precision, taken in seconds.items():
            step = learners[precision]
            taken.append(timed(lambda step=step, batch=batch: step.update([batch], 1), 1, record.CPU))
    medians = {precision: statistics.median(taken[WARM_UP:]) for precision, taken in seconds.items()}
    return medians | {"auto": choose_precision(record.CPU).precision}


def learner(task, recipe: Recipe, precision: str) -> TrainingStep:
    recipe = replace(task.recipe, train=replace(recipe.train, precision=precision))
    torch.manual_seed(seed_of(recipe.train.seed))
    return TrainingStep(task.build(recipe, task.tokenizers), task.loss, recipe)


def write_text(name: str, folder: Path) -> Path:
    """Generate the training text of a recipe by `heedful scenes` or `heedful stories`."""
    text = folder / f"{name}-text"
    arguments = {"scenes": ["scenes", "en-de", "--train", "20000"], "stories": ["stories", "--train", "2000"]}
    command = [
        sys.executable,
        "-c",
        "from heedful.cli import main; main()",
        *arguments[WRITTEN[name]],
        "--out",
        str(text),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return text


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--recipes", nargs="+", default=sorted(path.name for path in RECIPES.iterdir()), metavar="NAME")
    parser.add_argument(
        "--one", metavar="FOLDER", type=Path, help="measure one recipe in this process, print the figures"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.one:
        print(json.dumps(measure(options.recipes[0], options.data, options.one)))
        return
    table = Table(title="updates a second, float32 / bfloat16; chosen", title_justify="left")
    for column in ("recipe", *SETTINGS, *(f"chosen / better, {setting}" for setting in SETTINGS)):
        table.add_column(column, justify="left" if column == "recipe" else "right")
    results = {}
    with tempfile.TemporaryDirectory() as name:
        for recipe in options.recipes:
            data = write_text(recipe, Path(name)) if recipe in WRITTEN else options.data
            results[recipe] = {setting: apart(recipe, data, name, changes) for setting, changes in SETTINGS.items()}
            table.add_row(recipe, *map(speeds, results[recipe].values()), *map(share, results[recipe].values()))
    Console(width=130).print(table)
    record.append(__file__, record.machine(options.threads) | {"results": results})


def apart(recipe: str, data: Path, folder: str, changes: dict[str, str]) -> dict[str, float | str]:
    """Measure a recipe in a process of its own, with changes to the environment variables."""
    command = [sys.executable, __file__, str(data), "--recipes", recipe, "--one", folder]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | changes).stdout
    return json.loads(output.splitlines()[-1])


def speeds(found: dict) -> str:
    return f"{1 / found['float32']:.2f} / {1 / found['bfloat16']:.2f}; {found['auto']}"


def share(found: dict) -> str:
    """Format the speed of the chosen precision as a share of the faster precision's speed."""
    return f"{min(found['float32'], found['bfloat16']) / found[found['auto']]:.0%}"


if __name__ == "__main__":
    main()
