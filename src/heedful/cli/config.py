"""`heedful config`: show, check and describe recipes; and `heedful info`: count the parameters of their models."""

import json
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Data, Overrides, folder_to_write
from heedful.cli.output import print_table
from heedful.config.families import FAMILIES
from heedful.config.load import is_recipe, load_preset, load_recipe, recipe_schema, recipe_to_dict, to_toml
from heedful.config.presets import PRESETS, TABLE_3, Table3Row
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.storage.manifest import read_manifest
from heedful.storage.paths import likely, near_paths
from heedful.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.architectures.parameters import ParameterCounts

app = typer.Typer(
    name="config",
    help="Show, check and describe recipes, the configuration files of training.",
    no_args_is_help=True,
    add_completion=False,
)

CONTENTS = {"text": "text", "image": "pictures", "audio": "sound", "video": "videos"}  # of files, by data.modality


@app.command()
def show(
    recipe: Annotated[str, typer.Argument(help="TOML file, folder with a config.toml, or preset.")],
    data: Data = None,
    overrides: Overrides = None,
) -> None:
    """Print the whole recipe, with presets, changes, defaults and paths filled in. The output is a recipe, too."""
    typer.echo(to_toml(recipe_to_dict(recipe_or_preset(recipe, overrides or [], data))), nl=False)


def recipe_or_preset(name: str, overrides: list[str], data: Path | None = None) -> "Recipe":
    """Load the recipe at a path or, if nothing is at that path, the preset of that name."""
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
    typer.echo(json.dumps(recipe_schema(), indent=2))


@app.command()
def presets() -> None:
    """Print the presets that a recipe can start from, with their sizes and published scores."""
    from rich.table import Table

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


def info(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Preset, recipe, or the folder of a model or of a run.",
            show_default="all models of Table 3 of the paper",
        ),
    ] = None,
    vocab: Annotated[
        int | None,
        typer.Option(min=5, help="Vocabulary size.", show_default="the model's, or the largest that the recipe allows"),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Count the parameters of a model by kind: attention, feed-forward, embeddings, norms.

    Without a model, all models of Table 3 of "Attention Is All You Need" are
    counted, beside the numbers that the paper prints.
    """
    from heedful.tasks.model_size import count_model

    if model is None:
        if vocab or overrides:
            raise InputError("--vocab and --set need one model: name a preset, a recipe or a model as well")
        print_table(paper_table(TABLE_3))
        return
    recipe, vocabs = describe(model, overrides or [])
    vocabs = (vocab, vocab) if vocab else vocabs
    counts = count_model(recipe, *vocabs)
    typer.echo(f"{summary(recipe, vocabs)}\n")
    print_table(kinds_table(counts))
    if rows := [row for row in TABLE_3 if model == f"vaswani-{row.name}" and not overrides]:
        typer.echo("\nin the paper, Table 3:\n")
        print_table(paper_table(rows))


def describe(name: str, overrides: list[str]) -> tuple["Recipe", tuple[int, int]]:
    """Return the recipe and the source and target vocabulary sizes of a preset, a recipe, a model or a run."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.model_folder import read_description
    from heedful.tasks.model_size import vocabulary_sizes

    path = Path(name)
    if name in PRESETS or path.suffix == ".toml" or (path / "config.toml").is_file():
        recipe = recipe_or_preset(name, overrides)
        return recipe, vocabulary_sizes(recipe)
    try:
        folder = find_model(name)
    except InputError as error:
        near = " or ".join(map(str, near_paths(path, is_recipe)))
        raise InputError(
            f"{str(error).removesuffix('?')}. Nor is it a recipe or a preset (`heedful config presets`)"
            + (f"; did you mean {near}?" if near else "")
        ) from error
    if overrides:
        raise InputError(f"--set {overrides[0]}: {name} is a trained model; only recipes and presets can be changed")
    recipe, tokenizers = read_description(read_manifest(folder))
    return recipe, tokenizers.sizes


def summary(recipe: "Recipe", vocabs: tuple[int, int]) -> str:
    """Describe the shape of a model in one line, with the size of its vocabulary if it reads or writes text."""
    config = recipe.model
    apart = recipe.data.modality == "text" and FAMILIES[config.family].pairs and not config.one_vocabulary
    vocabulary = f"{vocabs[0]:,} + {vocabs[1]:,}" if apart else f"{vocabs[0]:,}"
    return f"{config.shape()}, vocabulary {vocabulary}" if any(vocabs) else config.shape()


def kinds_table(counts: "ParameterCounts") -> "Table":
    table = plain_table("", "weights", "biases", "all", "share")
    for kind in sorted(counts.weights, key=lambda kind: -counts.weights[kind]):
        weights, biases = counts.weights[kind], counts.biases[kind]
        share = (weights + biases) / counts.total
        table.add_row(kind, f"{weights:,}", f"{biases:,}", f"{weights + biases:,}", f"{share:.1%}")
    table.add_section()
    table.add_row("all", f"{counts.weights.total():,}", f"{counts.biases.total():,}", f"{counts.total:,}", "100.0%")
    return table


def paper_table(rows: "list[Table3Row] | tuple[Table3Row, ...]") -> "Table":
    """Make a table of the parameter counts in Vaswani et al. (2017), Table 3, beside exact counts by convention."""
    from heedful.architectures.transformer.model import CONVENTIONS

    table = plain_table("preset", "printed", *(f"{c.name}\n{c.vocab:,} tokens" for c in CONVENTIONS))
    for row in rows:
        config = load_preset(f"vaswani-{row.name}").model
        printed = f"{row.millions},000,000" if row.millions else ""
        table.add_row(f"vaswani-{row.name}", printed, *(f"{c.count(config):,}" for c in CONVENTIONS))
    return table


def plain_table(first: str, *numbers: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
