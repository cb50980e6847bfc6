"""Fine-tuning from a pre-trained model beside training from scratch: python benchmarks/warm_start.py [--help]

Both runs have the architecture and the tokenizer of the pre-trained model, and the recipe's other settings; they see
the first part of the labels, for several seeds. The result is the validation score of the best checkpoint of each run:
the mean and, for several seeds, the standard deviation. The runs stay in the folder --out; the same command resumes.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console
from rich.table import Table

from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.tasks import find_task
from heedful.tasks.specs import best_score_name
from heedful.training.loop import train
from heedful.training.warm_start import with_warm_start


def from_scratch(recipe: Recipe) -> Recipe:
    """Copy a recipe with the architecture of the pre-trained model that it starts from, but not the weights."""
    shaped = with_warm_start(recipe)
    return replace(shaped, train=replace(shaped.train, start=None))


def with_labels(recipe: Recipe, share: float, seed: int) -> Recipe:
    """Copy a recipe so that it reads only the first part of each training corpus."""
    corpora = tuple(replace(corpus, part=(0.0, share)) for corpus in recipe.data.train)
    return replace(recipe, data=replace(recipe.data, train=corpora), train=replace(recipe.train, seed=seed))


def score(recipe: Recipe, folder: Path, console: Console) -> float:
    """Train a run, or resume it where it was interrupted, and return its validation score."""
    console.rule(str(folder))
    if code := train(recipe, folder, console).exit_code:
        raise SystemExit(code)
    name = best_score_name(find_task(recipe.task).spec, recipe)
    return json.loads((folder / "result.json").read_text())[name]


def spread(scores: list[float]) -> str:
    """Format the mean of scores and, for several scores, the standard deviation."""
    return f"{mean(scores):.1f}" + (f" ± {stdev(scores):.1f}" if len(scores) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path, help="a recipe that reads labels")
    parser.add_argument("--data", type=Path, required=True, help="where its paths start")
    parser.add_argument("--start", type=Path, required=True, help="the run, or the model, to start from")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the runs")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1, 1.0], help="parts of the labels")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="of both")
    options = parser.parse_args()
    console = Console(stderr=True)
    warm = load_recipe(options.recipe, [*options.overrides, f"train.start={options.start}"], options.data)
    table = Table("start", *(f"{share:.0%} of the labels" for share in options.shares))
    for name, recipe in {"scratch": from_scratch(warm), options.start.name: warm}.items():
        cells = []
        for share in options.shares:
            runs = {seed: options.out / f"{name}-{share}-{seed}" for seed in options.seeds}
            scores = [100 * score(with_labels(recipe, share, seed), run, console) for seed, run in runs.items()]
            cells.append(spread(scores))
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
