"""Convergence from word vectors beside random ones: python benchmarks/vectors_start.py RECIPE --data DATA [--help]

Both runs have the same architecture, whose embeddings begin as the vectors of a file or at random; the tokenizer of a
recipe for this should be of words. For several seeds the result is the best validation score, and the number of updates
until the best score that random ones reach with that seed. The runs stay in the folder --out; the same command resumes.
"""

import json
from dataclasses import replace
from pathlib import Path

import record
from rich.console import Console
from rich.table import Table
from warm_start import score, spread

from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.tasks import find_task
from heedful.tasks.specs import best_score_name


def curve(folder: Path, name: str) -> list[tuple[int, float]]:
    """Updates and validation scores of a run, from its log."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(line["update"], line[f"valid_{name}"]) for line in lines if f"valid_{name}" in line]


def updates_to(points: list[tuple[int, float]], target: float) -> float:
    """The first update with at least the target score; infinite if there is none."""
    return next((update for update, value in points if value >= target), float("inf"))


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("recipe", type=Path, help="a recipe whose best score is the highest")
    parser.add_argument("--data", type=Path, required=True, help="where its paths start")
    parser.add_argument("--vectors", required=True, help="a file of word vectors, below DATA or with a whole path")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="of both")
    options = parser.parse_args()
    console = Console(stderr=True)
    common = [*options.overrides, f"train.threads={options.threads}"]
    random = load_recipe(options.recipe, common, options.data)
    starts: dict[str, Recipe] = {"random": random}
    for name, frozen in (("vectors", "false"), ("vectors, frozen", "true")):
        changes = [f"model.source_vectors={options.vectors}", f"model.freeze_vectors={frozen}"]
        starts[name] = load_recipe(options.recipe, [*common, *changes], options.data)
    measure = best_score_name(find_task(random.task).spec, random)
    found: dict[str, list[float]] = {name: [] for name in starts}
    reached: dict[str, list[float]] = {name: [] for name in starts}
    for seed in options.seeds:
        target = float("inf")
        for name, recipe in starts.items():
            run = options.out / f"{random.name}-{name.replace(', ', '-')}-{seed}"
            seeded = replace(recipe, train=replace(recipe.train, seed=seed))
            found[name].append(100 * score(seeded, run, console))
            points = curve(run, measure)
            if name == "random":
                target = max(value for _, value in points)
            reached[name].append(updates_to(points, target))
    table = Table("start", f"best {measure}", "updates to the best of random ones")
    for name in starts:
        table.add_row(name, spread(found[name]), ", ".join(f"{count:,.0f}" for count in reached[name]))
    facts = record.machine(options.threads) | {"recipe": random.name, "set": options.overrides}
    Console(width=100).print(facts, table)
    record.append(__file__, facts | {"best": found, "updates": reached})


if __name__ == "__main__":
    main()
