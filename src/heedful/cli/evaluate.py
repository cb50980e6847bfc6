"""`heedful evaluate`: score a model on a test set, score a file of translations, or compare two systems."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.compare import comparison_lines
from heedful.cli.files import Channel, FileOptions, ScoredFiles, SkipBad, Truncated
from heedful.cli.inputs import warning_if_unknown
from heedful.cli.options import (
    MODELS,
    Beam,
    Device,
    Force,
    MaxExtra,
    PairField,
    Precision,
    SourceField,
    folder_to_read,
)
from heedful.cli.output import check_output, writing_results
from heedful.cli.tables import one_line
from heedful.cli.task_scores import check_alike, located, task_comparison, task_scores, test_set
from heedful.cli.translate import Said, prepare
from heedful.errors import InputError
from heedful.progress import show_progress
from heedful.wording import counted

if TYPE_CHECKING:
    from heedful.config.schema import Recipe, TokenizerConfig
    from heedful.metrics import Score, Scoring
    from heedful.predictors.translator import Translator

METRICS = "bleu,chrf,ter"
ENOUGH = 100  # lines that end in " .", from which a text is taken for tokenised; sacrebleu has the same limit


@dataclass(frozen=True)
class TestSet:
    """Test set of a translator: source text, if it is to be translated, and references, as lines by file name."""

    source: dict[str, list[str]]
    references: dict[str, list[str]]
    files: tuple[Path, ...]  # all files of the test set


@dataclass(frozen=True)
class Decoding:
    """Options for translating a test set with a model: device, precision and settings of the search."""

    device: str
    precision: str
    search: dict[str, int]  # keys of [decode] that are not as the recipe of the model says


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
    source_field: SourceField = None,
    pair_field: PairField = None,
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
            callback=folder_to_read,
        ),
    ] = None,
    hypotheses: Annotated[
        str | None, typer.Option(metavar="FILE", help="File of translations to score, instead of a model.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Baseline to compare with: a file of translations, or a model.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="File to write the model's translations to.")] = None,
    beam: Beam = None,
    max_extra: MaxExtra = None,
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
            show_default=MODELS,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture of the confusion matrix to write, of a model that predicts classes: .png or .svg."),
    ] = None,
    skip_bad: SkipBad = False,
    truncated: Truncated = False,
    channel: Channel = None,
    device: Device = "auto",
    _force: Force = False,
    precision: Precision = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all digits.")] = False,
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
    search = {key: value for key, value in (("beam", beam), ("max_extra", max_extra)) if value is not None}
    fields = {"source_field": source_field, "pair_field": pair_field, "target_field": target_field}
    if model and hypotheses is None and (recipe := recipe_of(model)).task != "translation":
        refuse(
            {
                f'{option} is for translations, and {model} is for the task "{recipe.task}"': given
                for option, given in {
                    "--output": output,
                    "--metrics": metrics != METRICS,
                    "--tokenised": tokenised,
                    "--language": language,
                    "--precision": precision != "float32",
                }.items()
            }
        )
        files = ScoredFiles(FileOptions(skip_bad, truncated, channel))
        files.options.check(model, recipe)
        asked = test_set(recipe, source, reference, data, fields)
        if against:
            refuse({"--plot draws the confusion matrix of one model; leave --against out": plot})
            check_alike(model, recipe, against, recipe_of(against))
            facts, table = task_comparison((model, against), asked, device, search, files)
        else:
            facts, table = task_scores(model, asked, device, search, files, plot)
        typer.echo(json.dumps(facts, indent=2) if as_json else "\n".join(table))
        files.check()
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
            "--source-field and the like name columns of a table; the text of translators is in files of its own": any(
                fields.values()
            ),
        }
    )
    check_output(output)
    from heedful.config.schema import Recipe
    from heedful.metrics import Scoring, check_aligned
    from heedful.text.languages import check_language

    if language:
        check_language(language, "--language")
    recipe = recipe_of(model) if model else Recipe()
    names = [name.strip().lower() for name in metrics.split(",")] + ["tokenised-bleu"] * tokenised
    scoring = Scoring(metrics=tuple(dict.fromkeys(names)), language=language or recipe.data.target_language)
    test = files_test_set(source, reference) if reference else recipe_test_set(recipe, data)
    files = [name for name in (hypotheses, against) if name and (name == hypotheses or Path(name).is_file())]
    check_output(output, *map(Path, files), *test.files)
    texts = {name: read(Path(name)) for name in files}
    check_aligned({**test.source, **test.references, **texts})
    for name in (against, model):
        if name and name not in texts:
            kept = output if name == model else None
            texts[name] = translated(name, test, Decoding(device, precision, search), kept)
    written = {name: target_settings(name) for name in (against, model) if name and name not in files}
    if any(settings.normalization == "nfkc" for settings in written.values()):
        scoring = replace(scoring, form="NFKC")
    lower_cased = [name for name, settings in written.items() if settings.lowercase]
    facts, table = results(str(model or hypotheses), against, texts, test.references, scoring, lower_cased)
    typer.echo(json.dumps(facts, ensure_ascii=False, indent=2) if as_json else "\n".join(table))


def results(
    system: str,
    baseline: str | None,
    texts: dict[str, list[str]],
    references: dict[str, list[str]],
    scoring: "Scoring",
    lower_cased: Sequence[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """Score a system's translations or, given a baseline, compare both: as JSON values, and as lines of a table.

    Args:
        system: The name of the system.
        baseline: The name of the baseline; None: there is none.
        texts: The translations by system.
        references: The references by file.
        scoring: The metrics and their settings.
        lower_cased: Systems whose models write lower-cased text; of others their translations show it.
    """
    from heedful.metrics import LOWER_CASED, paired_bootstrap, score
    from heedful.metrics.bootstrap import MIN_EXAMPLES, few_examples
    from heedful.metrics.translation import has_capitals, is_lower_cased

    lines, wanted = texts[system], list(references.values())
    lower = [name for name in texts if name in lower_cased or is_lower_cased(texts[name], wanted)]
    if lower and has_capitals(wanted) and not set(LOWER_CASED) & set(scoring.metrics):
        added = [name for name in LOWER_CASED if name.removesuffix("-lc") in scoring.metrics]
        scoring = replace(scoring, metrics=(*scoring.metrics, *added))
        typer.echo(
            f"heedful: {' and '.join(lower)}: in lower case, and the references are not, so that case alone lowers "
            "BLEU and chrF; the scores marked lower-cased compare without case (case:lc)",
            err=True,
        )
    if warning := scoring.warning(wanted):
        typer.echo(f"heedful: the references: {warning} (--language)", err=True)
    if "tokenised-bleu" not in scoring.metrics and sum(line.endswith(" .") for line in lines) >= ENOUGH:
        note = "heedful: the text looks tokenised; --tokenised adds the BLEU that papers give for such text"
        typer.echo(note, err=True)
    facts = {"system": system, "references": [*references], "sentences": len(lines)}
    if baseline is None:
        with show_progress("scoring"):
            scores = score(lines, wanted, scoring)
        return {**facts, "scores": [asdict(entry) for entry in scores]}, score_table(scores)
    if len(lines) < MIN_EXAMPLES:
        typer.echo(f"heedful: {few_examples(len(lines))}", err=True)
    with show_progress("comparing by paired bootstrap"):
        comparisons = paired_bootstrap(texts[baseline], lines, wanted, scoring)
    compared = {"baseline": baseline, "comparisons": [asdict(entry) for entry in comparisons]}
    return {**facts, **compared}, comparison_lines(baseline, system, comparisons)


def score_table(scores: "Sequence[Score]") -> list[str]:
    """Format translation scores as lines, one per metric: name, score, sacrebleu signature."""
    width = max(len(score.name) for score in scores)
    return [f"{score.name:{width}}  {score.value:6.2f}  {score.signature}" for score in scores]


def refuse(problems: dict[str, object]) -> None:
    """Raise an InputError with the first message whose condition holds."""
    for message, holds in problems.items():
        if holds:
            raise InputError(message)


def recipe_of(model: str) -> "Recipe":
    """Read the recipe that a model was trained with, given its folder or name."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.model_folder import read_description
    from heedful.storage.manifest import read_manifest

    return read_description(read_manifest(find_model(model)))[0]


def target_settings(model: str) -> "TokenizerConfig":
    """Read the settings of the tokenizer of the texts that a model writes, given its folder or name."""
    from heedful.checkpoint import find_model
    from heedful.checkpoint.model_folder import read_description
    from heedful.storage.manifest import read_manifest

    return read_description(read_manifest(find_model(model)))[1].target.config


def read(path: Path) -> list[str]:
    """Read all lines of a text file."""
    from heedful.data.readers.files import read_lines

    return list(read_lines(path))


def files_test_set(source: Path | None, references: list[Path]) -> TestSet:
    """Read the test set in the files given as `--source` and `--reference`."""
    sources = [source] if source else []
    return TestSet(
        {str(path): read(path) for path in sources},
        {str(path): read(path) for path in references},
        (*sources, *references),
    )


def recipe_test_set(recipe: "Recipe", folder: Path | None) -> TestSet:
    """Read the test set that a recipe names; relative paths start at `folder`, or where they did in training."""
    from heedful.data.readers.corpus import corpus_files, read_pairs

    test = recipe.data.test
    if test is None:
        raise InputError("the model's recipe names no data.test: give --source FILE and --reference FILE")
    data = located(recipe, folder)
    pairs = list(read_pairs(test, data))
    return TestSet(
        {test.source: [pair.source for pair in pairs]},
        {test.target or test.source: [pair.target for pair in pairs]},
        corpus_files(test, data),
    )


def translated(model: str, test: TestSet, decoding: Decoding, output: Path | None) -> list[str]:
    """Translate the source text of a test set with a model; also write the translations to `output`, if given."""
    if not test.source:
        raise InputError(f"{model} is no text file; for a model to translate, give --source FILE")
    translator = prepare(model, decoding.device, decoding.precision, {"n_best": 1, **decoding.search})
    tell_unknown_tokens(test, translator)
    [(source, lines)] = test.source.items()
    done, said = [], Said()
    with (
        show_progress(f"translating with {model}", "lines", len(lines)) as progress,
        writing_results(output, Path(source)) if output else nullcontext() as results,
    ):
        texts = warning_if_unknown(lines, translator.tokenizers.source)
        for translation in translator.translate_lines(texts, done=progress.advance):
            done.append(translation)
            said.count(translation)
            if results:
                results.write(one_line(translation.text))
    if cut := sum(translation.truncated for translation in done):
        typer.echo(f"heedful: {cut:,} of {counted(len(lines), 'source lines')} too long for {model}, and cut", err=True)
    said.tell(model, translator)
    return [translation.text for translation in done]


def tell_unknown_tokens(test: TestSet, translator: "Translator") -> None:
    """Warn if many tokens are unknown to the vocabulary: the model cannot read them, or cannot write what is right."""
    from heedful.text.coverage import UnknownTokens, unknown_lines

    sides = ((test.source, translator.tokenizers.source), (test.references, translator.tokenizers.target))
    for texts, tokenizer in sides:
        for name, lines in texts.items():
            found = UnknownTokens()
            for ids in tokenizer.encode_lines(lines):
                found.count(ids)
            for sentence in unknown_lines({f"tokens of {name}": found}, tokenizer.config):
                typer.echo(f"heedful: {sentence}", err=True)
