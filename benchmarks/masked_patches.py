"""Few labels after masked patches beside few labels from scratch: python benchmarks/masked_patches.py RECIPE [--help]

A model of masked patches learns from all training images, without their classes; a classifier that begins with it and
one that begins at random then learn from a part of the labels: the same images, settings and number of updates. The
result is the accuracy of the final model on the test set, the mean over seeds and the standard deviation. There is one
pre-training for all seeds. The runs stay in the folder --out; the same command resumes.
"""

from dataclasses import replace
from pathlib import Path

import record
from rich.console import Console
from rich.table import Table
from warm_start import from_scratch, score, spread, with_labels

from heedful.checkpoint import load_model
from heedful.config.load import load_recipe
from heedful.config.schema import Recipe


def accuracy(recipe: Recipe, folder: Path, console: Console) -> float:
    """Train a classifier, or resume where it was interrupted, and return its accuracy on the test set, in percent."""
    score(recipe, folder, console)
    return 100 * load_model(folder).test(recipe.data, console.print)["accuracy"]


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("recipe", type=Path, help="a recipe of image classification, with a test set")
    parser.add_argument("--data", type=Path, required=True, help="where its paths start")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the runs")
    parser.add_argument("--share", type=float, default=0.1, help="the part of the labels, of each class")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="of all")
    parser.add_argument("--before", action="append", default=[], metavar="KEY=VALUE", help="of the pre-training")
    parser.add_argument("--after", action="append", default=[], metavar="KEY=VALUE", help="of the classifiers")
    options = parser.parse_args()
    console = Console(stderr=True)
    common = [*options.overrides, f"train.threads={options.threads}"]
    start = options.out / "masked-patches"
    before = [*common, "task=masked_patches", "image.mixup=0.0", "train.label_smoothing=0.0", *options.before]
    pretraining = load_recipe(options.recipe, before, options.data)
    error = score(pretraining, start, console)
    warm = load_recipe(options.recipe, [*common, *options.after, f"train.start={start}"], options.data)
    found: dict[str, list[float]] = {}
    for name, recipe in {"at random": from_scratch(warm), "masked patches": warm}.items():
        folders = {seed: options.out / f"{name.replace(' ', '-')}-{options.share}-{seed}" for seed in options.seeds}
        found[name] = [
            accuracy(with_labels(replace(recipe, name=warm.name), options.share, seed), folder, console)
            for seed, folder in folders.items()
        ]
    table = Table("begins", f"accuracy with {options.share:.0%} of the labels", "each seed")
    for name, scores in found.items():
        table.add_row(name, spread(scores), ", ".join(f"{score:.1f}" for score in scores))
    facts = record.machine(options.threads) | {"recipe": warm.name, "share": options.share, "set": options.overrides}
    facts |= {"before": options.before, "after": options.after, "loss of masked patches": error}
    Console(width=100).print(facts, table)
    record.append(__file__, facts | {"accuracy": found})


if __name__ == "__main__":
    main()
