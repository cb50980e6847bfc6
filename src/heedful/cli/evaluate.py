"""`heedful evaluate`: score a model on a test set, score text that is there, or compare two translation systems."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.task_scores import located, score_lines, task_scores, test_set
from heedful.cli.translate import Precision, prepare, writing
from heedful.errors import InputError

if TYPE_CHECKING:
    from heedful.config.schema import Recipe
    from heedful.evaluate import Comparison, Resampled, Score, Scoring

METRICS = "bleu,chrf,ter"
ENOUGH = 100  # lines that end in " .": as many make sacrebleu, too, take a text for tokenised


@dataclass(frozen=True)
class TestSet:
    """The text to translate, if any is to be, and what it should become: lines by the name of their file."""

    source: dict[str, list[str]]
    references: dict[str, list[str]]


@dataclass(frozen=True)
class Decoding:
    """How a model translates."""

    device: str
    precision: str
    beam: int | None  # None: as its recipe says


def evaluate(
    model: Annotated[str | None, typer.Argument(help="A model folder, a run, or a name in the box.")] = None,
    source: Annotated[Path | None, typer.Option(help="Text to translate.  [default: the recipe's data.test]")] = None,
    reference: Annotated[list[Path] | None, typer.Option(help="What it should become. Repeatable.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where the recipe's relative data paths start.")] = None,
    hypotheses: Annotated[str | None, typer.Option(metavar="FILE", help="Score this text instead of a model.")] = None,
    against: Annotated[str | None, typer.Option(help="Compare with this baseline: a text file or a model.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the model's translations to this file.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Width of the search.  [default: the recipe's]")] = None,
    metrics: Annotated[str, typer.Option(help="Any of bleu, chrf, ter and tokenised-bleu.")] = METRICS,
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokenised: add tokenised-bleu.")] = False,
    language: Annotated[str | None, typer.Option(help="Target language, such as zh.  [default: the recipe's]")] = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, mps or auto.")] = "auto",
    precision: Precision = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all digits.")] = False,
) -> None:
    """Score translations with BLEU, chrF and TER; with --against, compare two systems by paired bootstrap.

    A model translates --source, or else the test set of its recipe. Every figure comes with sacrebleu's signature.
    A model for another task gets the scores of that task, on --source (and, where a task has two files, --reference)
    or else the test set of its recipe.
    """
    if model and hypotheses is None and (recipe := recipe_of(model)).task != "translation":
        refuse(
            {
                f'{option} is for translations, and {model} is for the task "{recipe.task}"': given
                for option, given in {
                    "--against": against,
                    "--output": output,
                    "--metrics": metrics != METRICS,
                    "--tokenised": tokenised,
                    "--language": language,
                    "--precision": precision != "float32",
                }.items()
            }
        )
        facts = task_scores(model, test_set(recipe, source, reference, data), device, beam)
        typer.echo(json.dumps(facts, indent=2) if as_json else "\n".join(score_lines(facts["scores"])))
        return
    refuse(
        {
            "give either a model or --hypotheses FILE": (model is None) == (hypotheses is None),
            "--source needs --reference FILE, what it should become": source and not reference,
            "--hypotheses needs --reference FILE, what it should be": hypotheses and not reference,
            "--reference needs --source FILE, the text to translate": model and reference and not source,
            "--data is where the recipe's test set is, and --reference names another": data and reference,
            "--output keeps what a model translates, and --hypotheses are there already": output and hypotheses,
            "--beam is for models, and there is nothing to translate": beam and hypotheses and not source,
            f"--output {output}: there is no such folder; make it first": output and not output.parent.is_dir(),
        }
    )
    from heedful.config.schema import Recipe
    from heedful.evaluate import Scoring, check_aligned

    recipe = recipe_of(model) if model else Recipe()
    names = [name.strip() for name in metrics.split(",")] + ["tokenised-bleu"] * tokenised
    scoring = Scoring(metrics=tuple(dict.fromkeys(names)), language=language or recipe.data.target_language)
    test = files_test_set(source, reference) if reference else recipe_test_set(recipe, data)
    files = [name for name in (hypotheses, against) if name and (name == hypotheses or Path(name).is_file())]
    texts = {name: read(Path(name)) for name in files}
    check_aligned({**test.source, **test.references, **texts})
    for name in (against, model):
        if name and name not in texts:
            texts[name] = translated(name, test, Decoding(device, precision, beam))
    if model and output:
        with writing(output) as stream:
            stream.writelines(f"{line}\n".encode() for line in texts[model])
    facts, table = results(str(model or hypotheses), against, texts, test.references, scoring)
    typer.echo(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else "\n".join(table))


def results(
    system: str, baseline: str | None, texts: dict[str, list[str]], references: dict[str, list[str]], scoring: "Scoring"
) -> tuple[dict[str, Any], list[str]]:
    """Scores of a system or, if there is a baseline, their comparison: as JSON values, and as lines of a table."""
    from heedful.evaluate import paired_bootstrap, score

    lines, wanted = texts[system], list(references.values())
    if "tokenised-bleu" not in scoring.metrics and sum(line.endswith(" .") for line in lines) >= ENOUGH:
        note = "heedful: the text looks tokenised; --tokenised adds the BLEU that papers give for such text"
        typer.echo(note, err=True)
    facts = {"system": system, "references": [*references], "sentences": len(lines)}
    if baseline is None:
        scores = score(lines, wanted, scoring)
        return {**facts, "scores": [asdict(entry) for entry in scores]}, score_table(scores)
    comparisons = paired_bootstrap(texts[baseline], lines, wanted, scoring)
    compared = {"baseline": baseline, "comparisons": [asdict(entry) for entry in comparisons]}
    return {**facts, **compared}, comparison_table(comparisons)


def score_table(scores: "Sequence[Score]") -> list[str]:
    """One line a metric: name, score, signature."""
    width = max(len(score.name) for score in scores)
    return [f"{score.name:{width}}  {score.value:6.2f}  {score.signature}" for score in scores]


def comparison_table(comparisons: "Sequence[Comparison]") -> list[str]:
    """One line a metric: both systems with mean and 95 % interval over the resamples, p-value, signature."""
    width = max(len(found.name) for found in comparisons)
    lines = [f"{'':{width}}  {'baseline':23}  {'system':23}  p-value  signature"]
    for found in comparisons:
        systems = f"{interval(found.baseline)}  {interval(found.system)}"
        lines.append(f"{found.name:{width}}  {systems}  {found.p_value:7.4f}  {found.signature}")
    return lines


def interval(found: "Resampled") -> str:
    """A score with the mean and the 95 % interval over resamples, 23 characters wide."""
    return f"{found.value:6.2f} ({found.mean:.2f} ± {found.interval:.2f})".ljust(23)


def refuse(problems: dict[str, object]) -> None:
    """Raise an InputError with the first message whose condition holds."""
    for message, holds in problems.items():
        if holds:
            raise InputError(message)


def recipe_of(model: str) -> "Recipe":
    """The recipe that a model was trained by."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.manifest import check_sizes
    from heedful.checkpoint.model import read_description

    return read_description(check_sizes(find_model(model)))[0]


def read(path: Path) -> list[str]:
    """All lines of a file."""
    from heedful.data.files import read_lines

    return list(read_lines(path))


def files_test_set(source: Path | None, references: list[Path]) -> TestSet:
    """The test set that the options name."""
    return TestSet({str(path): read(path) for path in [source] if path}, {str(path): read(path) for path in references})


def recipe_test_set(recipe: "Recipe", folder: Path | None) -> TestSet:
    """The test set that the recipe names; its relative paths start at `folder`, or where they did in training."""
    from heedful.data.corpus import read_pairs

    test = recipe.data.test
    if test is None:
        raise InputError("the model's recipe names no data.test: give --source FILE and --reference FILE")
    pairs = list(read_pairs(test, located(recipe, folder)))
    return TestSet(
        {test.source: [pair.source for pair in pairs]}, {test.target or test.source: [pair.target for pair in pairs]}
    )


def translated(model: str, test: TestSet, decoding: Decoding) -> list[str]:
    """What a model makes of the test set's source."""
    if not test.source:
        raise InputError(f"{model} is no text file; for a model to translate, give --source FILE")
    from rich.console import Console
    from rich.progress import track

    changes = {"n_best": 1} if decoding.beam is None else {"n_best": 1, "beam": decoding.beam}
    translator = prepare(model, decoding.device, decoding.precision, changes)
    [lines] = test.source.values()
    console = Console(stderr=True)
    found = translator.translate_lines(lines)
    shown = track(found, model, len(lines), console=console, transient=True, disable=not console.is_terminal)
    done = list(shown)
    if cut := sum(translation.truncated for translation in done):
        typer.echo(f"heedful: {cut} of {len(lines)} source lines were too long for {model} and were cut", err=True)
    return [translation.text for translation in done]
