"""`heedful reproduce`: run a recipe from its data to its score, and compare with the stored results."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.progress import show_progress


def reproduce(
    recipe: Annotated[
        Path, typer.Argument(help="Recipe of this repository: a folder with config.toml and results.toml.")
    ],
    data: Annotated[
        Path,
        typer.Option(help="Data folder; data sets that it lacks are downloaded.", callback=options.folder_to_write),
    ] = Path("data"),
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder.", show_default="runs/NAME-SEED", callback=options.run_folder),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the training.")] = 1,
    mirror: options.Mirror = None,
) -> None:
    """Download the data of a recipe, train and evaluate its model, and compare the score with the stored results.

    The score of a new run is expected between the limits of a 95% prediction
    interval, which is computed from the stored runs; if it is outside, the exit
    code is 1. After an interruption, the same command resumes.
    """
    import heedful
    from heedful.data.catalogue import public_sets
    from heedful.tools.data_sets import fetch
    from heedful.tools.reproduce import comparison, prepare, scores_on_test_set, stored_results

    results = stored_results(recipe)
    for name in results.data:
        with show_progress(f"downloading {name}") as progress:
            fetch(public_sets()[name], data, mirror, progress)
    prepare(results, recipe, data)
    folder, root = out or Path("runs") / f"{recipe.resolve().name}-{seed}", data / results.folder
    run = heedful.train(recipe, folder, root, {"train.seed": seed})
    scores = scores_on_test_set(results, folder, root) if results.part == "test" else run.scores
    lines, is_reproduced = comparison(results, seed, scores)
    typer.echo("\n".join(lines))
    if not is_reproduced:
        raise typer.Exit(1)
