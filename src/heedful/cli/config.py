"""`heedful config`: show, check and describe recipes, the configuration files of training."""

import json
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import folder_to_read, folder_to_write
from heedful.cli.output import print_table
from heedful.errors import InputError
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import Recipe

app = typer.Typer(
    name="config",
    help="Show, check and describe recipes, the configuration files of training.",
    no_args_is_help=True,
    add_completion=False,
)

CONTENTS = {"text": "text", "image": "pictures", "audio": "sound", "video": "videos"}  # of files, by data.modality

Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a setting of the recipe, such as train.seed=2. Can be repeated."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the data files that the recipe names.",
        show_default="the folder of the recipe",
        callback=folder_to_read,
    ),
]


@app.command()
def show(
    recipe: Annotated[str, typer.Argument(help="TOML file, folder with a config.toml, or preset.")],
    data: Data = None,
    overrides: Overrides = None,
) -> None:
    """Print the whole recipe, with presets, changes, defaults and paths filled in. The output is a recipe, too."""
    from heedful.config.load import recipe_to_dict, to_toml

    typer.echo(to_toml(recipe_to_dict(recipe_or_preset(recipe, overrides or [], data))), nl=False)


def recipe_or_preset(name: str, overrides: list[str], data: Path | None = None) -> "Recipe":
    """Load the recipe at a path or, if nothing is at that path, the preset of that name."""
    from heedful.config.load import is_recipe, load_preset, load_recipe
    from heedful.config.presets import PRESETS
    from heedful.storage.paths import likely

    if Path(name).exists():
        return load_recipe(name, overrides, data)
    if name in PRESETS:
        return load_preset(name, overrides)
    near = [preset for preset in PRESETS if name in preset][:3] or get_close_matches(name, PRESETS)
    hint = f", such as {' or '.join(near)}" if near else " (`heedful config presets` lists them)"
    remedy = f"name a TOML file, a folder with config.toml, or a preset{hint}"
    raise InputError(f"{name}: there is no such recipe; {likely(Path(name), remedy, is_recipe)}")


@app.command()
def check(
    recipe: Annotated[Path, typer.Argument(help="TOML file, or folder with a config.toml.")],
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a run; check also that the run can start or resume there.", callback=folder_to_write
        ),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Check a recipe and its data for errors that would stop training; nothing is written.

    The checks find unknown keys, wrong values and impossible combinations,
    missing files, and missing columns or keys of tables. They also cover the
    tokenizer, the models to start from, and the device. `heedful train` begins
    with the same checks.
    """
    from heedful.config.load import load_recipe
    from heedful.data.preparation.prepared_data import files_of
    from heedful.training.preflight import preflight
    from heedful.training.trainer_state import rate_line

    settings = load_recipe(recipe, overrides or [], data)
    text = settings.data
    test = [text.test] if text.test else []
    checked = preflight(settings, out, test)
    corpora = [*text.train, *([text.valid] if text.valid else []), *test]
    count = len({file for corpus in corpora for file in files_of(corpus, text)})
    content = CONTENTS[text.modality]
    typer.echo(f"{recipe}: good, and its {counted(count, 'files')} of {content} {'is' if count == 1 else 'are'} there")
    typer.echo(rate_line(checked))


@app.command()
def schema() -> None:
    """Print the JSON Schema of recipes, for editors that complete and check TOML."""
    from heedful.config.load import recipe_schema

    typer.echo(json.dumps(recipe_schema(), indent=2))


@app.command()
def presets() -> None:
    """Print the presets that a recipe can start from, with their sizes and published scores."""
    from rich.table import Table

    from heedful.config.families import FAMILIES
    from heedful.config.presets import PRESETS, TABLE_3

    table = Table(box=None, pad_edge=False)
    for heading in ("preset", "what it is"):
        table.add_column(heading)
    for heading in ("10^6", "PPL", "BLEU"):
        table.add_column(heading, justify="right")
    table.add_row("tiny", "4+4 layers, d_model 128")
    for row in TABLE_3:
        changes = [f"{key} {value}" for table in row.changes.values() for key, value in table.items()]
        what = ", ".join(changes) or "6+6 layers, d_model 512"
        printed = "" if row.millions is None else str(row.millions)
        table.add_row(f"vaswani-{row.name}", what, printed, f"{row.perplexity:.2f}", f"{row.bleu:.1f}")
    listed = {"tiny", *(f"vaswani-{row.name}" for row in TABLE_3)}
    for name, values in PRESETS.items():
        if name in listed:
            continue
        model = values["model"]
        layers = "+".join(str(model[layers]) for layers in FAMILIES[model["family"]].layers)
        table.add_row(name, f"{values['task']}, {layers} layers, d_model {model['d_model']}")
    print_table(table)
    typer.echo(
        "\nMillions of parameters, perplexity and BLEU (newstest2013) as printed in Table 3 of Vaswani et al. (2017)."
    )
