"""`heedful evaluate`: score a model on a test set, score a file of translations, or compare two systems."""

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.answering import changed, load, recipe_of, refuse, settings
from heedful.cli.files import Channel, FileOptions, ScoredFiles, SkipBad, Truncated, check_bad_files
from heedful.cli.inputs import columns_of, warning_if_unknown
from heedful.cli.output import check_output, check_picture, draw_picture, one_line, writing_results
from heedful.cli.translate import OutputCounts, prepare
from heedful.config.families import FAMILIES
from heedful.config.schema import DataConfig, Recipe
from heedful.data.preparation.prepared_data import files_of
from heedful.data.readers.corpus import corpus_files, read_pairs
from heedful.data.readers.files import read_lines
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.text.coverage import UnknownTokens, unknown_lines
from heedful.text.languages import check_language
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.metrics import Comparison, Resampled, Scoring
    from heedful.metrics.classes import ClassReport
    from heedful.predictors.translator import Translator
    from heedful.tasks.task import Results

METRICS = "bleu,chrf,ter"
ENOUGH = 100  # lines that end in " .", from which a text is taken for tokenised; sacrebleu has the same limit


@dataclass(frozen=True)
class TestSet:
    """Test set of a translator: source text, if it is to be translated, and references, as lines by file name."""

    source: dict[str, list[str]]
    references: dict[str, list[str]]
    files: tuple[Path, ...]  # all files of the test set


def files_test_set(source: Path | None, references: list[Path]) -> TestSet:
    sources = [source] if source else []
    texts = {path: list(read_lines(path)) for path in (*sources, *references)}
    return TestSet(
        {str(path): texts[path] for path in sources},
        {str(path): texts[path] for path in references},
        (*sources, *references),
    )


def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="Folder of a model or of a run, or the name of a built-in model.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to translate, or the test set of a task other than translation.",
            show_default="data.test of the model's recipe",
        ),
    ] = None,
    reference: Annotated[
        list[Path] | None, typer.Option(help="File with reference translations of the text. Can be repeated.")
    ] = None,
    source_field: options.SourceField = None,
    pair_field: options.PairField = None,
    target_field: Annotated[
        str | None,
        typer.Option(
            help="Column or key of the label or of the expected text.", show_default="the recipe's target_field"
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data files that the recipe names.",
            show_default="as in training",
            callback=options.folder_to_read,
        ),
    ] = None,
    hypotheses: Annotated[
        str | None, typer.Option(metavar="FILE", help="File of translations to score, instead of a model.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Baseline to compare with: a file of translations, or a model.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File to write the model's translations to.")] = None,
    beam: options.Beam = None,
    max_extra: options.MaxExtra = None,
    metrics: Annotated[
        str, typer.Option(help="Metrics, separated by commas: bleu, chrf, ter, tokenised-bleu, bleu-lc, chrf-lc.")
    ] = METRICS,
    tokenised: Annotated[
        bool,
        typer.Option("--tokenised", help="Add the metric tokenised-bleu, for text that is already split into words."),
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the translations as an ISO 639 code; it selects how BLEU splits text into words.",
            show_default=options.MODELS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture of the confusion matrix to write, of a model that predicts classes: .png or .svg."),
    ] = None,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    channel: Channel = None,
    device: options.Device = "auto",
    _force: options.Force = False,
    precision: options.Precision = "float32",
    as_json: options.AsJson = False,
) -> None:
    """Score a model on a test set, or a file of translations; with --against, compare two systems.

    A translator is scored with BLEU, chrF and TER, each with sacrebleu's
    signature, on --source and --reference or else on the test set of its
    recipe. A model for another task gets the scores of that task, on --source
    (and, where a task has two files, --reference) or else on the test set of
    its recipe; if the columns of a table have other names than in the recipe,
    name them with --source-field and --target-field. A classifier or tagger
    also gets precision, recall and F1 of each class, and a confusion matrix,
    which --plot draws. Images, sounds and videos that cannot be read are left
    out and named at the end. --against tests by
    paired bootstrap resampling whether the difference to a baseline is more
    than chance.
    """
    search = settings(beam=beam, max_extra=max_extra)
    fields = settings(source_field=source_field, pair_field=pair_field, target_field=target_field)
    if model and hypotheses is None and (recipe := recipe_of(model)).task != "translation":
        for_translations = {
            "--output": output,
            "--metrics": metrics != METRICS,
            "--tokenised": tokenised,
            "--language": language,
            "--precision": precision != "float32",
        }
        refuse(
            {
                f'{option} is for translations, and {model} is for the task "{recipe.task}"': is_set
                for option, is_set in for_translations.items()
            }
        )
        files = ScoredFiles(FileOptions(skip_bad, truncated, channel))
        files.options.check(model, recipe)
        test = task_test_set(recipe, source, reference, data, fields)
        if against:
            refuse({"--plot draws the confusion matrix of one model; leave --against out": plot})
            check_alike(model, recipe, against, recipe_of(against))
            facts, table = task_comparison((model, against), test, device, search, files)
        else:
            facts, table = task_scores(model, test, device, search, files, plot)
        typer.echo(json.dumps(facts, indent=2) if as_json else "\n".join(table))
        check_bad_files(list(files.bad), files.count, skip_bad=skip_bad)
        return

    refuse(
        {
            "give either a model or --hypotheses FILE": (model is None) == (hypotheses is None),
            "--source needs --reference FILE, what it should become": source and not reference,
            "--hypotheses needs --reference FILE, what it should be": hypotheses and not reference,
            "--reference needs --source FILE, the text to translate": model and reference and not source,
            "--data is where the recipe's test set is, and --reference names another": data and reference,
            "--output keeps what a model translates, and --hypotheses are there already": output and hypotheses,
            "--beam and --max-extra are for models, and there is nothing to translate": search
            and hypotheses
            and not source,
            "--plot draws what is confused with what, and translations are not classes; leave it out": plot,
            "--skip-bad, --truncated and --channel are for models that read images, sounds or videos": (
                skip_bad or truncated or channel
            ),
            "--source-field and the like name columns of a table; the text of translators is in files of its own": (
                fields
            ),
        }
    )
    check_output(output)
    from heedful.metrics import Scoring, check_aligned

    if language:
        check_language(language, "--language")
    recipe = recipe_of(model) if model else Recipe()
    names = [name.strip().lower() for name in metrics.split(",")] + ["tokenised-bleu"] * tokenised
    scoring = Scoring(metrics=tuple(dict.fromkeys(names)), language=language or recipe.data.target_language)
    test = files_test_set(source, reference) if reference else recipe_test_set(recipe, data)
    files = [name for name in (hypotheses, against) if name and (name == hypotheses or Path(name).is_file())]
    check_output(output, *map(Path, files), *test.files)
    texts = {name: list(read_lines(Path(name))) for name in files}
    check_aligned({**test.source, **test.references, **texts})
    lower_cased = []
    for name in (each for each in (against, model) if each and each not in files):
        translator = prepare_for(name, test, device, precision, search)
        texts[name] = translated(name, translator, test, output if name == model else None)
        tokenizer = translator.tokenizers.target.config
        if tokenizer.normalization == "nfkc":
            scoring = replace(scoring, form="NFKC")
        if tokenizer.lowercase:
            lower_cased.append(name)
    facts, table = results(str(model or hypotheses), against, texts, test.references, scoring, lower_cased)
    typer.echo(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else "\n".join(table))


def prepare_for(model: str, test: TestSet, device: str, precision: str, search: dict[str, int]) -> "Translator":
    """Load a translator for a test set, and warn if many tokens are unknown to its vocabulary."""
    if not test.source:
        raise InputError(f"{model} is no text file; for a model to translate, give --source FILE")
    translator = prepare(model, device, precision, {"n_best": 1, **search})
    # Of the source the model cannot read them, and of the references it cannot write them.
    sides = ((test.source, translator.tokenizers.source), (test.references, translator.tokenizers.target))
    for texts, tokenizer in sides:
        for name, lines in texts.items():
            unknown = UnknownTokens()
            for ids in tokenizer.encode_lines(lines):
                unknown.count(ids)
            for sentence in unknown_lines({f"tokens of {name}": unknown}, tokenizer.config):
                typer.echo(f"heedful: {sentence}", err=True)
    return translator


def translated(model: str, translator: "Translator", test: TestSet, output: Path | None) -> list[str]:
    """Translate the source text of a test set with a model; also write the translations to `output`, if given."""
    [(source, lines)] = test.source.items()
    translations, counts = [], OutputCounts()
    with (
        show_progress(f"translating with {model}", "lines", len(lines)) as progress,
        writing_results(output, Path(source)) if output else nullcontext() as results,
    ):
        texts = warning_if_unknown(lines, translator.tokenizers.source)
        for translation in translator.translate_lines(texts, done=progress.advance):
            translations.append(translation)
            counts.add(translation)
            if results:
                results.write(one_line(translation.text))
    if cut := sum(translation.truncated for translation in translations):
        typer.echo(f"heedful: {cut:,} of {counted(len(lines), 'source lines')} too long for {model}, and cut", err=True)
    counts.warn(model, translator)
    return [translation.text for translation in translations]


def results(
    system: str,
    baseline: str | None,
    texts: dict[str, list[str]],
    references: dict[str, list[str]],
    scoring: "Scoring",
    lower_cased: Sequence[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """Score a system's translations or, given a baseline, compare both: as JSON values, and as lines of a table."""
    from heedful.metrics import LOWER_CASED, paired_bootstrap
    from heedful.metrics import score as score_texts
    from heedful.metrics.bootstrap import MIN_EXAMPLES, few_examples
    from heedful.metrics.translation import has_capitals, is_lower_cased

    lines, expected = texts[system], list(references.values())
    lower = [name for name in texts if name in lower_cased or is_lower_cased(texts[name], expected)]
    if lower and has_capitals(expected) and not set(LOWER_CASED) & set(scoring.metrics):
        added = [name for name in LOWER_CASED if name.removesuffix("-lc") in scoring.metrics]
        scoring = replace(scoring, metrics=(*scoring.metrics, *added))
        typer.echo(
            f"heedful: {' and '.join(lower)}: in lower case, and the references are not, so that case alone lowers "
            "BLEU and chrF; the scores marked lower-cased compare without case (case:lc)",
            err=True,
        )
    if warning := scoring.warning(expected):
        typer.echo(f"heedful: the references: {warning} (--language)", err=True)
    if "tokenised-bleu" not in scoring.metrics and sum(line.endswith(" .") for line in lines) >= ENOUGH:
        note = "heedful: the text looks tokenised; --tokenised adds the BLEU that papers give for such text"
        typer.echo(note, err=True)
    facts = {"system": system, "references": [*references], "sentences": len(lines)}
    if baseline is None:
        with show_progress("scoring"):
            scores = score_texts(lines, expected, scoring)
        width = max(len(score.name) for score in scores)
        table = [f"{score.name:{width}}  {score.value:6.2f}  {score.signature}" for score in scores]
        return {**facts, "scores": [asdict(score) for score in scores]}, table
    if len(lines) < MIN_EXAMPLES:
        typer.echo(f"heedful: {few_examples(len(lines))}", err=True)
    with show_progress("comparing by paired bootstrap"):
        comparisons = paired_bootstrap(texts[baseline], lines, expected, scoring)
    compared = {"baseline": baseline, "comparisons": [asdict(entry) for entry in comparisons]}
    return {**facts, **compared}, comparison_lines(baseline, system, comparisons)


def recipe_test_set(recipe: "Recipe", folder: Path | None) -> TestSet:
    """Read the test set that a recipe names; relative paths start at `folder`, or where they did in training."""
    test = recipe.data.test
    if test is None:
        raise InputError("the model's recipe names no data.test: give --source FILE and --reference FILE")
    data = located_data(recipe, folder)
    pairs = list(read_pairs(test, data))
    return TestSet(
        {test.source: [pair.source for pair in pairs]},
        {test.target or test.source: [pair.target for pair in pairs]},
        corpus_files(test, data),
    )


def task_test_set(
    recipe: "Recipe",
    source: Path | None,
    references: list[Path] | None,
    folder: Path | None,
    fields: dict[str, str],
) -> "DataConfig":
    """Return the data settings of a recipe with the test set that the options of `heedful evaluate` name."""
    data = recipe.data
    if fields and (source is None or references):
        raise InputError("--source-field and the like name columns of a table; give it, and it alone, as --source FILE")
    if source is None:
        if references:
            raise InputError("--reference is the second of two files of a test set; give the first as --source FILE")
        if data.test is None:
            raise InputError("the model's recipe names no data.test; give a test set as --source FILE")
        return located_data(recipe, folder)
    if folder or len(references or ()) > 1:
        raise InputError("--source names a test set of its own: leave --data out, and give one --reference at most")
    target = str(references[0].absolute()) if references else None
    test = replace(columns_of(recipe), source=str(source.absolute()), target=target, part=(0.0, 1.0), **fields)
    return replace(data, test=test)


def located_data(recipe: "Recipe", folder: Path | None) -> "DataConfig":
    """Return the data settings of a recipe, with relative paths that start at `folder` or, if None, as in training."""
    if folder is None and not Path(recipe.data.root).is_dir():
        raise InputError(f"the recipe's data were in {recipe.data.root}, which is not here: give --data FOLDER")
    return replace(recipe.data, root=str(folder or recipe.data.root))


def task_scores(
    model: str, data: "DataConfig", device: str, search: dict[str, int], files: ScoredFiles, plot: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Score a model on a test set with the metrics of its task: as JSON values, and as lines."""
    from heedful.training.logger import strict

    if plot:
        check_picture(plot, "--plot", *(files_of(data.test, data) if data.test else ()))
    recipe = recipe_of(model)
    if plot and not recipe.data.labels:
        raise InputError(f"--plot draws what is confused with what, and {model} does not predict classes; leave it out")
    warn = warn_once()
    results = evaluated(model, data, device, search, files, warn)
    scores = results.scores if results else {}
    facts = {"system": model, "task": recipe.task, "scores": {name: strict(x) for name, x in scores.items()}}
    width = max(map(len, scores))
    lines = [f"{name:{width}}  {value:9.4f}" for name, value in scores.items()]
    classes = results.outcomes.classes if results and results.outcomes else None
    if classes is None:
        return facts, lines
    warn_of_classes(classes, warn, model)
    if plot:
        from heedful.inspector.plots import draw_confusion

        draw_picture(plot, lambda path: draw_confusion(classes, f"model {model}", path), "Classes", "confusion matrix")
    return facts | classes.to_dict(), [*lines, "", *classes.lines()]


def task_comparison(
    models: tuple[str, str], data: "DataConfig", device: str, search: dict[str, int], files: ScoredFiles
) -> tuple[dict[str, Any], list[str]]:
    """Compare two models of a task on a test set, example by example: as JSON values, and as lines of a table."""
    from heedful.metrics.bootstrap import MIN_EXAMPLES, compare_scores, few_examples

    warn = warn_once()
    model, baseline = models
    task = recipe_of(model).task
    outcomes, names = [], []
    for name in (baseline, model):
        results = evaluated(name, data, device, search, files, warn)
        if results is None or results.outcomes is None:
            raise InputError(
                f'two models for the task "{task}" cannot be compared by resampling, as its scores '
                f"({', '.join(results.scores if results else ())}) are not made of single examples, or are no numbers; "
                "evaluate each model by itself"
            )
        outcomes.append(results.outcomes)
        names = list(results.scores)
    theirs, ours = outcomes
    for name, each in zip((baseline, model), outcomes, strict=True):
        if each.classes:
            warn_of_classes(each.classes, warn, name)
    if ours.count != theirs.count:
        raise InputError(
            f"{model} tells {ours.count:,} examples of the test set apart, and {baseline} {theirs.count:,}; they read "
            "it too differently to be compared example by example"
        )
    if ours.count < MIN_EXAMPLES:
        warn(f"heedful: {few_examples(ours.count)}")
    with show_progress("comparing by paired bootstrap"):
        comparisons = compare_scores(theirs, ours)
    if others := [name for name in names if name not in ours.scores]:
        warn(f"heedful: scores of a test set as a whole, such as {others[-1]}, are not compared")
    facts: dict[str, Any] = {"system": model, "task": task, "examples": ours.count, "baseline": baseline}
    if ours.classes:
        facts["classes_without_examples"] = ours.classes.absent
    facts["comparisons"] = [asdict(comparison) for comparison in comparisons]
    return facts, comparison_lines(baseline, model, comparisons, digits=4)


def evaluated(
    model: str,
    test: "DataConfig",
    device: str,
    search: dict[str, int],
    files: ScoredFiles,
    warn: Callable[[str], None],
) -> "Results | None":
    """Load a model with some keys of [decode] other than its recipe says, and compute the results of its task."""
    from heedful.tasks.task import Evaluation

    loaded = load(model, device)
    if search:
        if not FAMILIES[loaded.recipe.model.family].pairs:
            option = "--beam is the beam size" if "beam" in search else "--max-extra is the length limit"
            raise InputError(f"{option} of a search, and {model} searches for nothing; leave it out")
        loaded = replace(loaded, recipe=changed(loaded, "decode", search))
    loaded = files.options.applied(model, loaded)
    data = replace(loaded.recipe.data, root=test.root, test=test.test)
    with show_progress(f"evaluating {model}") as progress, files.testing(loaded, data, warn) as task:
        return task.evaluate(loaded.model, Evaluation(progress=progress, warn=warn, is_test=True))


def warn_once() -> Callable[[str], None]:
    """Make a function that prints sentences on standard error, each only once, as two models may report the same."""
    printed: set[str] = set()

    def warn(sentence: str) -> None:
        if sentence not in printed:
            printed.add(sentence)
            typer.echo(sentence, err=True)

    return warn


def warn_of_classes(classes: "ClassReport", warn: Callable[[str], None], model: str) -> None:
    """Name classes of which the test set has no example, and warn of a model that predicts one class only."""
    from heedful.metrics.classes import absence, sameness

    for sentence in (absence(classes.absent, "the test set"), sameness(classes, model, "the test set")):
        if sentence:
            warn(f"heedful: {sentence}")


def check_alike(model: str, recipe: "Recipe", baseline: str, other: "Recipe") -> None:
    if recipe.task != other.task:
        raise InputError(
            f'{baseline} is a model for the task "{other.task}", and {model} for the task "{recipe.task}"; compare two '
            "of one task"
        )
    if recipe.data.labels != other.data.labels:
        raise InputError(
            f"{baseline} tells {', '.join(other.data.labels)}, and {model} {', '.join(recipe.data.labels)}; compare "
            "two models whose data.labels are the same"
        )


def comparison_lines(baseline: str, system: str, comparisons: "Sequence[Comparison]", digits: int = 2) -> list[str]:
    """Format the comparison of two systems as lines: a table with a row per score, then a verdict on each score."""
    signed = any(comparison.signature for comparison in comparisons)
    rows = [("", f"{baseline} (baseline)", system, "p-value", "signature" if signed else "")]
    for comparison in comparisons:
        scores = (interval(comparison.baseline, digits), interval(comparison.system, digits))
        rows.append((comparison.name, *scores, f"{comparison.p_value:7.4f}", comparison.signature))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*table, "", *(verdict(baseline, system, comparison, digits) for comparison in comparisons)]


def interval(score: "Resampled", digits: int) -> str:
    return f"{score.value:6.{digits}f} ({score.mean:.{digits}f} ± {score.interval:.{digits}f})"


def verdict(baseline: str, system: str, comparison: "Comparison", digits: int) -> str:
    """Write a sentence on which of two systems is better, and whether the difference is statistically significant."""
    from heedful.metrics.bootstrap import SIGNIFICANT

    if comparison.baseline.value == comparison.system.value:
        return f"{comparison.name}: {system} and {baseline} are equal"
    better, worse = (system, baseline) if comparison.is_better else (baseline, system)
    difference = f"{abs(comparison.system.value - comparison.baseline.value):.{digits}f}"
    if comparison.is_significant:
        chance = f"is more than chance (p = {comparison.p_value:.4f} < {SIGNIFICANT})"
    else:
        chance = f"may be chance (p = {comparison.p_value:.4f}, not below {SIGNIFICANT})"
    return f"{comparison.name}: {better} is better than {worse} by {difference}, which {chance}"
