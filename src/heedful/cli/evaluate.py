"""`heedful evaluate`: score a model on a test set, score a file of translations, or compare two systems."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.checkpoint.hub import file_hashes, pinned
from heedful.cli import options
from heedful.cli.answering import load, recipe_of, reject_if, settings
from heedful.cli.files import Channel, FileOptions, SkipBad, Truncated, check_bad_files
from heedful.cli.inputs import columns_of, warning_if_unknown
from heedful.cli.output import check_output, check_plot, draw_plot, one_line, warn, writing_results
from heedful.cli.translate import OutputCounts, load_translator
from heedful.config.families import FAMILIES
from heedful.config.options import with_options
from heedful.config.schema import DataConfig, DecodeConfig, Recipe
from heedful.data.preparation.prepared_data import files_of
from heedful.data.readers.corpus import corpus_files, read_pairs
from heedful.data.readers.files import read_lines
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.tasks.specs import kind_of_model
from heedful.text.coverage import UnknownTokens, unknown_lines
from heedful.text.languages import check_language

if TYPE_CHECKING:
    from heedful.metrics import Comparison, ScoreInterval, Scoring
    from heedful.metrics.classes import ClassReport
    from heedful.predictors.translator import Translator
    from heedful.tasks.task import Results

METRICS = "bleu,chrf,ter"
MIN_TOKENISED_LINES = 100  # a text with this many lines that end in " ." counts as tokenised, as in sacrebleu


@dataclass(frozen=True)
class TestSet:
    """Test set of a translator, as lines by file name: the source text, if it is to be translated, and references."""

    source: dict[str, list[str]]
    references: dict[str, list[str]]
    files: tuple[Path, ...]  # all files of the test set

    def by_path(self) -> dict[str, list[str]]:
        """Return the lines by path: the names of files in a recipe are relative to its data folder."""
        sides = [*self.source.values(), *self.references.values()]
        paths = self.files if len(self.files) == len(sides) else self.files[:1] * len(sides)  # a table has both sides
        return dict(zip(map(str, paths), sides, strict=True))


def evaluate(
    model: Annotated[
        str | None, typer.Argument(help="Model or run folder, the name of a bundled model, or hf:OWNER/NAME.")
    ] = None,
    models: options.FurtherModels = None,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to translate, or the test set of a task other than translation.",
            show_default="data.test of the model's recipe",
        ),
    ] = None,
    reference: Annotated[
        list[Path] | None, typer.Option(help="File with reference translations of --source. Can be repeated.")
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
            help="Folder with the recipe's data files.",
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
        typer.Option(help="Image file for the confusion matrix of a model that predicts classes: .png or .svg."),
    ] = None,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    channel: Channel = None,
    device: options.Device = "auto",
    _force: options.Force = False,
    precision: options.Precision = "float32",
    engine: options.Engine = "auto",
    _verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on a test set, or score a file of translations; with --against, compare two systems.

    A translator is scored with BLEU, chrF and TER, each with sacrebleu's
    signature, on --source and --reference or else on the test set of its
    recipe. A model for another task gets the scores of that task, on --source
    (and, if the task has two files, --reference) or else on the test set of its
    recipe; if a table's columns have names other than those in the recipe, give
    them with --source-field and --target-field. For a classifier or tagger, the
    output also has the precision, recall and F1 of each class, and a confusion
    matrix, which --plot draws. Images, audio files and videos that cannot be
    read are left out and listed at the end. --against tests by paired bootstrap
    resampling whether the difference from a baseline is significant.
    """
    search = settings(locals(), DecodeConfig)
    ensemble = [pinned(name) for name in (model, *(models or ())) if name]
    model, others = next(iter(ensemble), None), ensemble[1:]
    against = pinned(against) if against else None
    record: dict[str, Any] = ({"ensemble": ensemble} if others else {}) | (file_hashes(model) if model else {})
    columns = {"source_field": source_field, "pair_field": pair_field, "target_field": target_field}
    fields = {key: column for key, column in columns.items() if column}
    if model and hypotheses is None and (recipe := recipe_of(model)).task != "translation":
        for_translations = {
            "--output": output,
            "--metrics": metrics != METRICS,
            "--tokenised": tokenised,
            "--language": language,
            "--precision": precision != "float32",
        }
        reject_if(misplaced(for_translations, f"is for translations, but {model} is {kind_of_model(recipe.task)}"))
        reading = FileOptions(skip_bad, truncated, channel)
        reading.check(model, recipe)
        evaluation = TaskEvaluation(
            task_test_set(recipe, source, reference, data, fields), device, search, reading, engine, others
        )
        if against:
            reject_if({"--plot draws the confusion matrix of one model; leave --against out": plot})
            check_comparable(model, recipe, against, recipe_of(against))
            facts, lines = evaluation.comparison(model, against)
        else:
            facts, lines = evaluation.scores(model, plot)
        typer.echo(json.dumps(facts | record, indent=2) if as_json else "\n".join(lines))
        check_bad_files(list(evaluation.bad), evaluation.count, skip_bad=skip_bad)
        return

    reject_if(
        {
            "give a model or --hypotheses FILE": model is None and hypotheses is None,
            "give a model or --hypotheses FILE, not both": model is not None and hypotheses is not None,
            "--source needs --reference FILE, its reference translation": source and not reference,
            "--hypotheses needs --reference FILE, the reference translation": hypotheses and not reference,
            "--reference needs --source FILE, the text to translate": model and reference and not source,
            "--data locates the recipe's test set, but --reference gives another; leave one of them out": (
                data and reference
            ),
            "--output saves a model's translations, but --hypotheses is already a file of them; leave --output out": (
                output and hypotheses
            ),
            "--plot draws a confusion matrix, but translations are not classes; leave it out": plot,
        }
        | misplaced(
            {options.option_of(name): hypotheses and not source for name in search},
            "is for models, but there is nothing to translate",
        )
        | misplaced(
            {"--skip-bad": skip_bad, "--truncated": truncated, "--channel": channel},
            "is for models that read images, audio files or videos",
        )
        | misplaced(
            dict.fromkeys(map(options.option_of, fields), True),
            "is for tables, but a translator is evaluated on text files",
        )
    )
    check_output(output, source, *(reference or ()))
    from heedful.metrics import Scoring, check_aligned

    if language:
        check_language(language, "--language")
    recipe = recipe_of(model) if model else Recipe()
    names = dict.fromkeys([*(name.strip().lower() for name in metrics.split(",")), *["tokenised-bleu"] * tokenised])
    scoring = Scoring(metrics=tuple(names), language=language or recipe.data.target_language)
    test = (
        files_test_set(source, reference)
        if reference
        else recipe_test_set(str(model), recipe, data, "--source and --reference")
    )
    files = [name for name in (hypotheses, against) if name and (name == hypotheses or Path(name).is_file())]
    check_output(output, *map(Path, files), *test.files)
    texts = {name: list(read_lines(Path(name))) for name in files}
    check_aligned(test.by_path() | texts)
    lower_cased = []
    system = " and ".join(ensemble) or str(hypotheses)
    for name in (each for each in (against, system) if each and each not in files):
        if not test.source:
            raise InputError(
                f"--against {name}: no such file of translations; check the path or, if it is a model, give --source "
                "FILE for it to translate"
            )
        if model and name == against:
            check_can_translate(model, recipe, name, recipe_of(name))
        translator = load_translator(
            ensemble if name == system else [name], device, precision, engine, {"n_best": 1, **search}
        )
        texts[name] = translated(name, translator, test, output if name == system else None)
        tokenizer = translator.tokenizers.target.config
        if tokenizer.normalization == "nfkc":
            scoring = replace(scoring, form="NFKC")
        if tokenizer.lowercase:
            lower_cased.append(name)
    facts, lines = translation_scores(system, against, texts, test.references, scoring, lower_cased)
    typer.echo(json.dumps(facts | record, ensure_ascii=False, indent=2) if as_json else "\n".join(lines))


def misplaced(are_set: dict[str, Any], reason: str) -> dict[str, object]:
    """Return a message for each option that is out of place for a reason, and whether it is set, for `reject_if`."""
    return {f"{option} {reason}; leave it out": is_set for option, is_set in are_set.items()}


def files_test_set(source: Path | None, references: list[Path]) -> TestSet:
    sources = [source] if source else []
    texts = {path: list(read_lines(path)) for path in (*sources, *references)}
    return TestSet(
        {str(path): texts[path] for path in sources},
        {str(path): texts[path] for path in references},
        (*sources, *references),
    )


def recipe_test_set(model: str, recipe: "Recipe", folder: Path | None, others: str = "") -> TestSet:
    """Read the test set of a model's recipe, with data files in `folder`, by default the folder used in training.

    `others` are the options that give another test set, for messages.
    """
    test = recipe.data.test
    if test is None:
        raise InputError("the model's recipe has no data.test; give --source FILE and --reference FILE")
    data = located_data(recipe, folder)
    files = corpus_files(test, data)
    if missing := [file for file in files if not file.exists()]:
        remedy = f"with --data, give the folder that contains {test.source}" + (
            f", or another test set with {others}" if others else ""
        )
        raise InputError(f"{model}: its test set {missing[0]} was not found; {remedy}")
    pairs = list(read_pairs(test, data))
    return TestSet(
        {test.source: [pair.source for pair in pairs]},
        {test.target or test.source: [pair.target for pair in pairs]},
        files,
    )


def located_data(recipe: "Recipe", folder: Path | None) -> "DataConfig":
    """Return a recipe's data settings, with data files in `folder`, by default the folder used in training."""
    if folder is None and not Path(recipe.data.root).is_dir():
        raise InputError(f"the recipe's data was in {recipe.data.root}, which does not exist here; give --data FOLDER")
    return replace(recipe.data, root=str(folder or recipe.data.root))


def translated(model: str, translator: "Translator", test: TestSet, output: Path | None) -> list[str]:
    """Translate the source text of a test set with a model; write the translations to `output` as well, if given."""
    # Unknown tokens lower the scores: the model cannot read them in a source, or write them to match a reference.
    sides = ((test.source, translator.tokenizers.source), (test.references, translator.tokenizers.target))
    for side, tokenizer in sides:
        for name, texts in side.items():
            unknown = UnknownTokens()
            for ids in tokenizer.encode_lines(texts):
                unknown.count(ids)
            for sentence in unknown_lines({f"tokens of {name}": unknown}, tokenizer.config):
                warn(sentence)

    [(source, lines)] = test.source.items()
    translations, counts = [], OutputCounts()
    with (
        show_progress(f"translating with {model}", "lines", len(lines)) as progress,
        writing_results(output, Path(source)) if output else nullcontext() as results,
    ):
        texts = warning_if_unknown(lines, translator.tokenizers.source)
        for number, translation in enumerate(translator.translate_lines(texts, done=progress.advance), start=1):
            translations.append(translation.text)
            counts.add(translation, number)
            if results:
                results.write(one_line(translation.text))
    counts.warn(model, translator)
    return translations


def translation_scores(
    system: str,
    baseline: str | None,
    texts: dict[str, list[str]],
    references: dict[str, list[str]],
    scoring: "Scoring",
    lower_cased: Sequence[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """Score translations by a system, or compare them with a baseline; return JSON values, and the lines of a table."""
    from heedful.metrics import LOWER_CASED, paired_bootstrap
    from heedful.metrics import score as score_texts
    from heedful.metrics.bootstrap import MIN_EXAMPLES, few_examples
    from heedful.metrics.translation import has_capitals, is_lower_cased

    lines, expected = texts[system], list(references.values())
    lower = [name for name in texts if name in lower_cased or is_lower_cased(texts[name], expected)]
    if lower and has_capitals(expected) and not set(LOWER_CASED) & set(scoring.metrics):
        added = [name for name in LOWER_CASED if name.removesuffix("-lc") in scoring.metrics]
        scoring = replace(scoring, metrics=(*scoring.metrics, *added))
        warn(
            f"the outputs of {' and '.join(lower)} contain no capital letters, but the references do, so case alone "
            "lowers BLEU and chrF; the scores labelled lower-cased ignore case (case:lc)"
        )
    if problem := scoring.warning(expected):
        warn(f"the references: {problem} (--language)")
    if "tokenised-bleu" not in scoring.metrics and sum(line.endswith(" .") for line in lines) >= MIN_TOKENISED_LINES:
        warn("the text looks tokenised; --tokenised adds the BLEU that papers report for tokenised text")
    facts = {"system": system, "references": [*references], "sentences": len(lines)}
    if baseline is None:
        with show_progress("scoring"):
            scores = score_texts(lines, expected, scoring)
        width = max(len(score.name) for score in scores)
        rows = [f"{score.name:{width}}  {score.value:6.2f}  {score.signature}" for score in scores]
        return {**facts, "scores": [asdict(score) for score in scores]}, rows
    if len(lines) < MIN_EXAMPLES:
        warn(few_examples(len(lines)))
    with show_progress("comparing by paired bootstrap"):
        comparisons = paired_bootstrap(texts[baseline], lines, expected, scoring)
    compared = {"baseline": baseline, "comparisons": [asdict(entry) for entry in comparisons]}
    return {**facts, **compared}, comparison_lines(baseline, system, comparisons)


def task_test_set(
    recipe: "Recipe",
    source: Path | None,
    references: list[Path] | None,
    folder: Path | None,
    fields: dict[str, str],
) -> "DataConfig":
    """Return a recipe's data settings, with the test set given by the options of `heedful evaluate`."""
    data = recipe.data
    if fields and (source is None or references):
        raise InputError(
            "--source-field and similar options are for tables; give a table as --source FILE, without --reference"
        )
    if source is None:
        if references:
            raise InputError("--reference is the second file of a test set; give the first as --source FILE")
        if data.test is None:
            raise InputError("the model's recipe has no data.test; give a test set as --source FILE")
        return located_data(recipe, folder)
    if folder or len(references or ()) > 1:
        raise InputError("--source gives another test set; leave --data out, and give at most one --reference")
    target = str(references[0]) if references else None
    test = replace(columns_of(recipe), source=str(source), target=target, part=(0.0, 1.0), **fields)
    if test.target is None and test.source_field == test.target_field:
        raise InputError(
            f"input and target would both be read from column {test.source_field!r}; give two columns with "
            "--source-field and --target-field"
        )
    return replace(data, root=".", test=test)


class TaskEvaluation:
    """Evaluation of models on one test set with the metrics of their task.

    Attributes:
        others: Further models, which form an ensemble with the model that is evaluated.
        bad: The errors about files of the test set that cannot be read, as keys.
        count: The number of files in the test set; 0 as long as all files can be read.
    """

    def __init__(
        self,
        data: "DataConfig",
        device: str,
        search: dict[str, int],
        reading: FileOptions,
        engine: str,
        others: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.others = others
        self.device = device
        self.search = search
        self.reading = reading
        self.engine = engine
        self.bad: dict[str, None] = {}
        self.count = 0
        self.printed: set[str] = set()

    def print_once(self, sentence: str) -> None:
        """Print a sentence to standard error, unless it was already printed for another model."""
        if sentence not in self.printed:
            self.printed.add(sentence)
            typer.echo(sentence, err=True)

    def scores(self, model: str, plot: Path | None) -> tuple[dict[str, Any], list[str]]:
        """Score a model; return JSON values and lines of text. `plot` is the image file for the confusion matrix."""
        from heedful.training.logger import finite_or_none

        data, recipe = self.data, recipe_of(model)
        if plot:
            check_plot(plot, "--plot", *(files_of(data.test, data) if data.test else ()))
            if not recipe.data.labels:
                raise InputError(f"--plot draws a confusion matrix, but {model} does not predict classes; leave it out")
        results = self.results(model, *self.others)
        scores = results.scores if results else {}
        facts = {
            "system": " and ".join([model, *self.others]),
            "task": recipe.task,
            "scores": {name: finite_or_none(x) for name, x in scores.items()},
        }
        width = max(map(len, scores), default=0)
        lines = [f"{name:{width}}  {value:9.4f}" for name, value in scores.items()]
        classes = results.outcomes.classes if results and results.outcomes else None
        if classes is None:
            return facts, lines
        self.warn_of_classes(classes, model)
        if plot:
            from heedful.inspector.plots import draw_confusion

            draw_plot(plot, lambda path: draw_confusion(classes, f"model {model}", path), "Classes", "confusion matrix")
        return facts | classes.to_dict(), [*lines, "", *classes.lines()]

    def comparison(self, model: str, baseline: str) -> tuple[dict[str, Any], list[str]]:
        """Compare two models for a task, example by example; return JSON values, and the lines of a table."""
        from heedful.metrics.bootstrap import MIN_EXAMPLES, compare_scores, few_examples

        task = recipe_of(model).task
        outcomes, names = [], []
        for name, *others in ((baseline,), (model, *self.others)):
            results = self.results(name, *others)
            if results is None or results.outcomes is None:
                raise InputError(
                    f'two models for the task "{task}" cannot be compared by resampling, because its scores '
                    f"({', '.join(results.scores if results else ())}) are not computed from individual examples, or "
                    "are not numbers; evaluate each model separately"
                )
            outcomes.append(results.outcomes)
            names = list(results.scores)
        theirs, ours = outcomes
        for name, each in ((baseline, theirs), (model, ours)):
            if each.classes:
                self.warn_of_classes(each.classes, name)
        if ours.count != theirs.count:
            raise InputError(
                f"{model} reads the test set as {ours.count:,} examples, but {baseline} as {theirs.count:,}; they "
                "cannot be compared example by example"
            )
        if ours.count < MIN_EXAMPLES:
            warn(few_examples(ours.count))
        with show_progress("comparing by paired bootstrap"):
            comparisons = compare_scores(theirs, ours)
        if whole := [name for name in names if name not in ours.scores]:
            warn(f"scores of a test set as a whole, such as {whole[-1]}, are not compared")
        system = " and ".join([model, *self.others])
        facts: dict[str, Any] = {"system": system, "task": task, "examples": ours.count, "baseline": baseline}
        if ours.classes:
            facts["classes_without_examples"] = ours.classes.absent
        facts["comparisons"] = [asdict(comparison) for comparison in comparisons]
        return facts, comparison_lines(baseline, system, comparisons, digits=4)

    def results(self, model: str, *others: str) -> "Results | None":
        """Load a model and evaluate it on the readable files of the test set; return None if there are no examples.

        If there are other models, the ensemble of all is evaluated.
        """
        from heedful.tasks.task import Evaluation

        loaded = load(model, self.device, *others)
        recipe = loaded.recipe
        if self.search and not FAMILIES[recipe.model.family].pairs:
            option = "--beam is the beam size" if "beam" in self.search else "--max-extra is the length limit"
            raise InputError(f"{option} of a search, but {model} does not search; leave it out")
        predictor = engine_predictor(model, others, recipe, self.engine, self.device, self.search)
        recipe = replace(recipe, decode=with_options(recipe.decode, self.search))
        loaded = self.reading.applied(model, replace(loaded, recipe=recipe))
        data = replace(loaded.recipe.data, root=self.data.root, test=self.data.test, bad_files="skip_all")
        with show_progress(f"evaluating {model}") as progress, loaded.testing(data, self.print_once) as task:
            examples = task.data.examples
            if bad := dict.fromkeys(examples.report.bad_files):
                self.bad |= bad
                self.count = len(bad) + len(examples.valid or ())
            run = Evaluation(progress=progress, warn=self.print_once, is_test=True, predictor=predictor)
            return task.evaluate(loaded.model, run)

    def warn_of_classes(self, classes: "ClassReport", model: str) -> None:
        """List classes without an example in the test set, and warn about a model that predicts only one class."""
        from heedful.metrics.classes import missing_classes_warning, single_class_warning

        for sentence in (
            missing_classes_warning(classes.absent, "the test set"),
            single_class_warning(classes, model, "the test set"),
        ):
            if sentence:
                self.print_once(f"heedful: {sentence}")


def engine_predictor(
    model: str, others: Sequence[str], recipe: "Recipe", engine: str, device: str, search: dict[str, int]
) -> Any:
    """Load the CTranslate2 predictor that decodes or scores the texts of a test set; None if torch does it."""
    from heedful.convert.engine import RANKING, leave_to_torch, may_use_ctranslate2, open_predictor
    from heedful.registry import ENGINE_PREDICTORS

    misfits = []
    if recipe.task not in ENGINE_PREDICTORS or recipe.task == RANKING:
        misfits.append(f'task = "{recipe.task}": must be "language_model", or a task from text to text')
    elif recipe.task == "language_model":  # CTranslate2 scores each token given all preceding ones
        if not recipe.data.cross_documents:
            misfits.append("data.cross_documents = false: must be true")
        if recipe.train.label_smoothing:
            misfits.append(f"train.label_smoothing = {recipe.train.label_smoothing:g}: must be 0")
    if misfits:
        return leave_to_torch(model, engine, misfits) if may_use_ctranslate2(engine) else None
    return open_predictor(ENGINE_PREDICTORS[recipe.task], model, engine, device, options=search or None, others=others)


def check_can_translate(model: str, recipe: "Recipe", baseline: str, other: "Recipe") -> None:
    """Reject a baseline that cannot translate text. A model for another text-to-text task is accepted."""
    if other.data.modality != "text" or not FAMILIES[other.model.family].pairs:
        check_comparable(model, recipe, baseline, other)


def check_comparable(model: str, recipe: "Recipe", baseline: str, other: "Recipe") -> None:
    if recipe.task != other.task:
        raise InputError(
            f"{baseline} is {kind_of_model(other.task)}, but {model} is {kind_of_model(recipe.task)}; compare two "
            "models for the same task"
        )
    if recipe.data.labels != other.data.labels:
        raise InputError(
            f"{baseline} predicts {', '.join(other.data.labels)}, but {model} predicts "
            f"{', '.join(recipe.data.labels)}; compare two models with the same data.labels"
        )


def comparison_lines(baseline: str, system: str, comparisons: "Sequence[Comparison]", digits: int = 2) -> list[str]:
    """Format the comparison of two systems as lines: a table with a row per score, then a verdict on each score."""
    from heedful.metrics.bootstrap import SIGNIFICANCE_LEVEL

    def interval(score: "ScoreInterval") -> str:
        return f"{score.value:6.{digits}f} ({score.mean:.{digits}f} ± {score.interval:.{digits}f})"

    signed = any(comparison.signature for comparison in comparisons)
    rows = [("", f"{baseline} (baseline)", system, "p-value", "signature" if signed else "")]
    verdicts = []
    for comparison in comparisons:
        name, p_value = comparison.name, comparison.p_value
        scores = (interval(comparison.baseline), interval(comparison.system))
        rows.append((name, *scores, f"{p_value:7.4f}", comparison.signature))
        if comparison.baseline.value == comparison.system.value:
            verdicts.append(f"{name}: {system} and {baseline} are equal")
            continue
        better, worse = (system, baseline) if comparison.is_better else (baseline, system)
        difference = f"{abs(comparison.system.value - comparison.baseline.value):.{digits}f}"
        verdict = f"not statistically significant (p = {p_value:.4f}, not below {SIGNIFICANCE_LEVEL})"
        if comparison.is_significant:
            verdict = f"statistically significant (p = {p_value:.4f} < {SIGNIFICANCE_LEVEL})"
        verdicts.append(f"{name}: {better} is better than {worse} by {difference}; the difference is {verdict}")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*table, "", *verdicts]
