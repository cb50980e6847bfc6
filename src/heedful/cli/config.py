"""`heedful config`: show, check and describe recipes; and `heedful info`: count the parameters of their models."""

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Data, Force, Overrides, run_folder
from heedful.cli.output import check_output, print_table, writing
from heedful.config.families import FAMILIES
from heedful.config.load import is_recipe, load_preset, load_recipe, recipe_schema, recipe_to_dict, to_toml
from heedful.config.presets import PRESETS, TABLE_3, Table3Row
from heedful.config.schema import Recipe, TransformerSettings
from heedful.errors import InputError
from heedful.storage.complete_folder import read_manifest
from heedful.storage.paths import likely, near_paths
from heedful.wording import counted, did_you_mean, either

if TYPE_CHECKING:
    from rich.table import Table

    from heedful.architectures.parameters import ParameterCounts

app = typer.Typer(
    name="config",
    help="Show, check and describe recipes, the configuration files for training.",
    no_args_is_help=True,
    add_completion=False,
)

GRAPH_ENDINGS = (".svg", ".mmd")
FILES = {"text": "text files", "image": "image files", "audio": "audio files", "video": "video files"}  # by modality


@app.command()
def show(
    recipe: Annotated[str, typer.Argument(help="TOML file, folder with a config.toml, or preset.")],
    data: Data = None,
    overrides: Overrides = None,
) -> None:
    """Print the complete recipe, with presets, changes, defaults and paths filled in. The output is itself a recipe."""
    typer.echo(to_toml(recipe_to_dict(recipe_or_preset(recipe, overrides or [], data))), nl=False)


def recipe_or_preset(name: str, overrides: list[str], data: Path | None = None) -> "Recipe":
    """Load the recipe at a path or, if the path does not exist, the preset of that name."""
    if Path(name).exists():
        return load_recipe(name, overrides, data)
    if name in PRESETS:
        return load_preset(name, overrides)
    near = [preset for preset in PRESETS if name in preset][:3] or get_close_matches(name, PRESETS)
    hint = f", such as {either(near)}" if near else ""
    remedy = f"give a TOML file, a folder with config.toml, or a preset{hint} (`heedful config presets` lists them)"
    raise InputError(f"{name}: no such recipe; {likely(Path(name), remedy, is_recipe)}")


@app.command()
def check(
    recipe: Annotated[Path, typer.Argument(help="TOML file, or folder with a config.toml.")],
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder; also check that the run can start or resume there.", callback=run_folder),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Check a recipe and its data for errors that would stop training; nothing is written.

    The checks find unknown keys, wrong values and impossible combinations,
    missing files, and missing columns or keys of tables. They also cover the
    tokenizer, the models to start from, and the device. `heedful train` begins
    with the same checks.
    """
    from heedful.config.rules import remarks
    from heedful.data.preparation.prepared_data import files_of
    from heedful.training.learning_rate import rate_line
    from heedful.training.preflight import preflight

    settings = load_recipe(recipe, overrides or [], data)
    data_config = settings.data
    checked = preflight(settings, out, [data_config.test] if data_config.test else [])
    corpora = filter(None, [*data_config.train, data_config.valid, data_config.test])
    count = len({file for corpus in corpora for file in files_of(corpus, data_config)})
    typer.echo(f"{recipe}: no errors; found {counted(count, FILES[data_config.modality])}")
    typer.echo(rate_line(checked))
    for sentence in remarks(checked):
        typer.echo(sentence)


@app.command()
def schema() -> None:
    """Print the JSON Schema of recipes, for editors that complete and check TOML."""
    typer.echo(json.dumps(recipe_schema(), indent=2))


@app.command()
def presets() -> None:
    """Print the presets that a recipe can start from, with their sizes and published scores."""
    table = plain_table(("preset", "description"), "params (M)", "PPL", "BLEU")
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
        "\nMillions of parameters, perplexity and BLEU (newstest2013) as published in Table 3 of Vaswani et al. (2017)."
    )


def info(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Preset, recipe, or model or run folder.",
            show_default="all models in Table 3 of the paper",
        ),
    ] = None,
    vocab: Annotated[
        int | None,
        typer.Option(min=5, help="Vocabulary size.", show_default="the model's, or the maximum in the recipe"),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(help="File to draw the model's graph to: .svg for an image, .mmd for mermaid text."),
    ] = None,
    overrides: Overrides = None,
    _force: Force = False,
) -> None:
    """Count the parameters of a model by kind: attention, feed-forward, embeddings, norms.

    Without a model, count the parameters of all models in Table 3 of
    "Attention Is All You Need", next to the published numbers.

    With --graph, also draw the model: its layers in the order in which they
    compute, and whose results each of them reads, as observed in a forward
    pass. Neither weights nor data are needed.
    """
    from heedful.tasks.model_size import count_model

    if model is None:
        if vocab or overrides or graph:
            raise InputError(
                "--vocab, --graph and --set apply to a single model: give a preset, a recipe or a model as well"
            )
        print_table(paper_table(TABLE_3))
        return
    if graph:
        check_graph(graph, Path(model))
    recipe, vocabs = describe(model, overrides or [])
    vocabs = (vocab, vocab) if vocab else vocabs
    counts = count_model(recipe, *vocabs)
    typer.echo(summary(recipe, vocabs))
    for line in costs_per_token(recipe, counts):
        typer.echo(line)
    typer.echo()
    print_table(kinds_table(counts))
    if recipe.train.lora is not None or recipe.train.freeze:
        typer.echo(f"\n{trained_weights(recipe, vocabs)}")
    if rows := [row for row in TABLE_3 if model == f"vaswani-{row.name}" and not overrides]:
        typer.echo("\nTable 3 of the paper:\n")
        print_table(paper_table(rows))
    if graph:
        draw_graph(graph, model, recipe, vocabs)


def check_graph(path: Path, model: Path) -> None:
    if path.suffix.lower() not in GRAPH_ENDINGS:
        raise InputError(f"--graph {path}: the name must end in .svg, for an image, or in .mmd, for mermaid text")
    check_output(path, model if model.is_file() else None, option="--graph")


def draw_graph(path: Path, name: str, recipe: "Recipe", vocabs: tuple[int, int]) -> None:
    from heedful.tools.graph import WRITERS, graph_of

    text = WRITERS[path.suffix.lower()](graph_of(recipe, vocabs), name)
    with writing(path) as stream:
        stream.write(text.encode())
    typer.echo(f"{path}: the graph of {name}", err=True)


def describe(name: str, overrides: list[str]) -> tuple["Recipe", tuple[int, int]]:
    """Return the recipe and the source and target vocabulary sizes of a preset, a recipe, a model or a run."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.description import read_description
    from heedful.checkpoint.hub import is_hub_name
    from heedful.tasks import import_spec
    from heedful.tasks.model_size import vocabulary_sizes
    from heedful.tasks.specs import check_task

    path = Path(name)
    if name in PRESETS or path.suffix == ".toml" or (path / "config.toml").is_file():
        recipe = recipe_or_preset(name, overrides)
        check_task(import_spec(recipe.task), recipe)
        if recipe.train.lora is not None:
            from heedful.training.warm_start import with_lora

            recipe = with_lora(recipe)
        return recipe, vocabulary_sizes(recipe)
    try:
        folder = find_model(name)
    except InputError as error:
        if is_hub_name(name) or path.is_file() or (path / "config.json").is_file():  # it is something else
            raise
        near = near_paths(path, is_recipe)
        raise InputError(
            f"{str(error).removesuffix('?')}. There is no such recipe or preset either (see `heedful config presets`)"
            + (f"; {did_you_mean(near)}" if near else "")
        ) from error
    if overrides:
        raise InputError(f"--set {overrides[0]}: {name} is a trained model; only recipes and presets can be changed")
    recipe, tokenizers = read_description(read_manifest(folder))
    return recipe, tokenizers.sizes


def trained_weights(recipe: "Recipe", vocabs: tuple[int, int]) -> str:
    """Describe how many weights of a recipe's model are trained, including LoRA updates."""
    from heedful.nn.lora import add_updates
    from heedful.nn.meta_device import unallocated
    from heedful.tasks import find_task
    from heedful.tasks.model_size import SizeOnly
    from heedful.text.tokenizer_pair import TokenizerPair
    from heedful.training.startup_checks import trained_line
    from heedful.training.warm_start import freeze

    with unallocated():
        model = find_task(recipe.task).build(recipe, TokenizerPair(*map(SizeOnly, vocabs)))
        if recipe.train.lora is not None:
            add_updates(model, recipe.train.lora)
    freeze(model, recipe)
    return trained_line(model)


def summary(recipe: "Recipe", vocabs: tuple[int, int]) -> str:
    """Describe the shape of a model in one line, with its vocabulary size if it reads or writes text."""
    config = recipe.model
    has_two = recipe.data.modality == "text" and FAMILIES[config.family].pairs and not config.one_vocabulary
    vocabulary = f"{vocabs[0]:,} + {vocabs[1]:,}" if has_two else f"{vocabs[0]:,}"
    return f"{config.shape()}, vocabulary {vocabulary}" if any(vocabs) else config.shape()


def kinds_table(counts: "ParameterCounts") -> "Table":
    table = plain_table([""], "weights", "biases", "total", "share")
    for kind in sorted(counts.weights, key=lambda kind: -counts.weights[kind]):
        weights, biases = counts.weights[kind], counts.biases[kind]
        share = (weights + biases) / counts.total
        table.add_row(kind, f"{weights:,}", f"{biases:,}", f"{weights + biases:,}", f"{share:.1%}")
    table.add_section()
    table.add_row("total", f"{counts.weights.total():,}", f"{counts.biases.total():,}", f"{counts.total:,}", "100.0%")
    return table


def costs_per_token(recipe: "Recipe", counts: "ParameterCounts") -> Iterator[str]:
    """Describe what a token costs: the parameters that compute it, if not all do, and its share of the KV cache."""
    if counts.inactive:
        yield f"active per token: {counts.active:,} parameters ({counts.active / counts.total:.1%})"
    if isinstance(recipe.model, TransformerSettings) and FAMILIES[recipe.model.family].writes:
        size, sums = recipe.model.cache_size, recipe.model.sums_size
        if recipe.model.attention == "linear" and recipe.model.family == "decoder":
            yield f"sums of all tokens, instead of a KV cache: {counted(sums, 'values')}, {4 * sums:,} bytes in float32"
        else:
            yield f"KV cache per token: {counted(size, 'values')}, {4 * size:,} bytes in float32"
        if recipe.model.window and recipe.model.family == "decoder":
            yield f"KV cache of a text: at most {counted(2 * recipe.model.window, 'tokens')}, which are two windows"


def paper_table(rows: "list[Table3Row] | tuple[Table3Row, ...]") -> "Table":
    """Make a table of the parameter counts in Table 3 of Vaswani et al. (2017), next to computed counts."""
    from heedful.architectures.transformer.model import CONVENTIONS

    computed = (f"computed as in\n{c.name},\n{c.vocab:,}-token vocabulary" for c in CONVENTIONS)
    table = plain_table(["preset"], "as published", *computed)
    for row in rows:
        config = load_preset(f"vaswani-{row.name}").model
        printed = f"{row.millions},000,000" if row.millions else ""
        table.add_row(f"vaswani-{row.name}", printed, *(f"{c.count(config):,}" for c in CONVENTIONS))
    return table


def plain_table(headings: Sequence[str], *numbers: str) -> "Table":
    from rich.table import Table

    table = Table(*headings, box=None, pad_edge=False)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
