"""Report of a comparison: every number, gathered from results and logs, in the sections that `pages` renders."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from heedful.config.keys import KEYS
from heedful.config.load import dotted, recipe_to_dict
from heedful.config.schema import Recipe
from heedful.metrics import Comparison, Resampled
from heedful.metrics.bootstrap import MIN_EXAMPLES, few_examples
from heedful.metrics.classes import absence
from heedful.metrics.metric import lower_is_better
from heedful.tasks import find_task
from heedful.tasks.task import score_names
from heedful.tools.compare.charts import PREFIXES, Chart, Curves, Series, read_curves
from heedful.tools.compare.job import Measured
from heedful.tools.compare.measure import largest_moves
from heedful.tools.compare.setup import TOLERANCE, Budget
from heedful.tools.compare.statistics import Group, SampleOutputs, TextSample, choose_samples, group_scores, sample_of
from heedful.training.logger import VALID
from heedful.wording import counted, duration

NONE = "–"
DONE, FAILED, WAITING = "done", "failed", "waiting"  # states of a system
AXES = {"updates": "updates", "minutes": "minutes of training", "FLOPs": "FLOPs of training"}
UNREPORTED = tuple(  # settings that are alike, or reported elsewhere
    str(key)
    for key in (
        KEYS.name,
        KEYS.data.root,
        KEYS.data.test,
        KEYS.data.train,
        KEYS.data.valid,
        KEYS.data.words,
        KEYS.train.max_minutes,
        KEYS.train.precision,
    )
)


@dataclass(frozen=True)
class SystemReport:
    name: str
    source: str  # the recipe, or the folder of the trained model
    recipe: Recipe | None  # the recipe with its budget; None if it cannot be read
    state: str  # `DONE`, `FAILED`, or `WAITING` for its turn
    error: str | None = None  # for a system that failed, what happened
    measured: Measured | None = None
    curves: Curves | None = None
    # the scores of single examples on the test set, by name, with 95 % intervals
    scores: dict[str, Resampled] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)  # sentences about the training, such as why it ended
    # True if it was trained on the data of the first system; False also if that is unknown
    shares_data: bool = True


@dataclass(frozen=True)
class Pair:
    """Comparison of a system with one that was named before it, by paired bootstrap: one for each score."""

    baseline: str
    system: str
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Report:
    systems: list[SystemReport]  # the systems, in the order of the command line
    task: str
    test: str  # the test set, in words
    budget: Budget
    score: str | None  # the name of the first score on the test set; None before any system is done
    curve: str  # the name of the validation score that is drawn, such as "valid_bleu"
    pairs: list[Pair]
    by_length: list[Group]  # scores by the length of the source in tokens
    by_move: list[Group]  # scores by the distance over which words move in translation, where the data say it
    first: list[SampleOutputs]  # the first sentences of the test set with all outputs
    different: list[SampleOutputs]  # the sentences on which systems differ most
    settings: dict[str, dict[str, str]]  # the settings in which the recipes differ, with the value of each system

    @property
    def done(self) -> list[SystemReport]:
        return [system for system in self.systems if system.state == DONE]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": 1,
            "task": self.task,
            "test": self.test,
            "budget": asdict(self.budget),
            "systems": [system_json(system) for system in self.systems],
            "comparisons": [asdict(pair) for pair in self.pairs],
            "by_length": [asdict(group) for group in self.by_length],
            "by_move": [asdict(group) for group in self.by_move],
            "samples": [asdict(sample) for sample in (*self.first, *self.different)],
            "settings": self.settings,
        }


def system_json(system: SystemReport) -> dict[str, Any]:
    """Convert the numbers of one system to JSON values; its texts stay in the file of its result."""
    measured = asdict(system.measured) if system.measured else {}
    test = measured.pop("test", {})
    curves = system.curves
    return {
        "name": system.name,
        "source": system.source,
        "state": system.state,
        "error": system.error,
        "remarks": system.remarks,
        "shares_data": system.shares_data,
        **measured,
        "tokens_per_second": curves and curves.tokens_per_second,
        "test": {key: test[key] for key in ("count", "seconds", "tokens", "scores")} if test else None,
        "intervals": {name: asdict(resampled) for name, resampled in system.scores.items()},
        "curves": {name: {axis: curves.against(axis, name) for axis in AXES} for name in curves.values}
        if curves
        else {},
    }


def gather(systems: Sequence[SystemReport], test: str, budget: Budget) -> Report:
    done = {system.name: system.measured.test for system in systems if system.measured}
    samples = {name: sample for name, result in done.items() if (sample := sample_of(result))}
    texts = {name: sample for name, sample in samples.items() if isinstance(sample, TextSample)}
    recipes = {system.name: system.recipe for system in systems if system.recipe and system.state != FAILED}
    recipe = next(iter(recipes.values()), None) or next(system.recipe for system in systems if system.recipe)
    score = next((name for system in systems for name in system.scores), None)
    lengths = next((result.lengths for result in done.values() if result.lengths), [])
    moves = largest_moves(recipe) if texts else None
    first, different = choose_samples(done, texts)
    # The curve is of the first score that a log has, the one that chose the best checkpoint before all others.
    names = [f"{VALID}{name}" for name in (recipe.train.best, *score_names(find_task(recipe.task), recipe)) if name]
    logged = {name for system in systems if system.curves for name in system.curves.values}
    return Report(
        systems=list(systems),
        task=recipe.task,
        test=test,
        budget=budget,
        score=score,
        curve=next((name for name in names if name in logged), names[0]),
        pairs=[
            Pair(a, b, samples[b].against(samples[a]))
            for a, b in combinations(samples, 2)
            if done[a].count == done[b].count
        ],
        by_length=group_scores(lengths, texts, score) if texts and score else [],
        by_move=group_scores(moves, texts, score) if moves and score and len(moves) == len(lengths) else [],
        first=first,
        different=different,
        settings=differing(recipes),
    )


def report_system(
    name: str,
    source: str,
    recipe: Recipe,
    measured: Measured,
    folder: Path,
    remarks: Sequence[str] = (),
    *,
    shares_data: bool = True,
) -> SystemReport:
    """Report a system that is trained and measured; `folder` holds the log of its training."""
    curves = read_curves(folder, measured.flops_per_update)
    sample = sample_of(measured.test)
    scores = sample.intervals() if sample else {}
    return SystemReport(name, source, recipe, DONE, None, measured, curves, scores, list(remarks), shares_data)


def differing(recipes: Mapping[str, Recipe]) -> dict[str, dict[str, str]]:
    """Return the settings in which recipes differ, with the value of each; "–" where a recipe has no such key."""
    flat = {}
    for name, recipe in recipes.items():
        settings = {
            key: shown(value) for key, value in dotted(recipe_to_dict(recipe)) if not key.startswith(UNREPORTED)
        }
        flat[name] = settings | {"data.train.weight": shown([corpus.weight for corpus in recipe.data.train])}
    keys = dict.fromkeys(key for settings in flat.values() for key in settings)
    table = {key: {name: settings.get(key, NONE) for name, settings in flat.items()} for key in keys}
    return {key: values for key, values in table.items() if len(set(values.values())) > 1}


def shown(value: object) -> str:
    """Format a setting for readers, much as a recipe has it."""
    match value:
        case None:
            return "not set"
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(shown, value)) or "none"
    return str(value)


OF_100 = ("BLEU", "chrF2")  # scores from 0 to 100; most others go from 0 to 1
OF_TOKENS = ("loss", "perplexity")  # scores of each token, not comparable where tokens differ
METHOD = (
    "Scores: `heedful evaluate` prints the same; ± is half of the 95 % interval over bootstrap resamples.",
    "FLOPs: counted while the matrix products and convolutions run, 2 for each multiplication with its addition; sums, "
    "norms and activations are left out. Of an update: forward, backward and optimiser, the mean of the first updates. "
    "Of an example: the mean over some of the test set; where a text is written, of decoding it by itself.",
    "Training time and speed: from the log of the run; validation and saving are not counted. Testing speed: the whole "
    "test set in batches, measured once; of tokens that are written, where a text is written, else of those in the "
    "batches.",
    "Memory: the most that the training needed, validation included; on a CPU that of the whole process.",
)


@dataclass(frozen=True)
class Table:
    """Table: its head, its rows, and the places (row, column) of cells that stand out."""

    head: list[str]
    rows: list[list[str]]
    strong: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    table: Table | None = None
    charts: list[Chart] = field(default_factory=list)  # charts, whose series have the colours of the systems
    samples: list[SampleOutputs] = field(default_factory=list)  # sentences with the outputs of all systems


def sections(report: Report) -> list[Section]:
    """Write the sections of a report, without those that have nothing to show."""
    failed = [[system.name, system.error or ""] for system in report.systems if system.error]
    others = [
        Section("Failed", table=Table(["system", "what happened"], failed) if failed else None),
        significance(report),
        curves(report),
        grouped(report, report.by_length, "Score by length", "source length in tokens", BY_LENGTH),
        grouped(report, report.by_move, "Score by distance of dependency", "largest distance in words", BY_MOVE),
        Section("Where systems differ most", [BY_DIFFERENCE], samples=report.different),
        Section("First sentences of the test set", samples=report.first),
        settings(report),
    ]
    others = [section for section in others if section.table or section.charts or section.samples]
    return [overview(report), *others, Section("How this was measured", [*METHOD, *machine(report)])]


BY_LENGTH = "Sentences of the test set in groups of about the same number; bars show 95 % intervals."
BY_MOVE = (
    "The distance of a sentence is the largest |i - j| of a source word i and the target word j that it is aligned "
    "with, from the gold alignment of the data: the farther a word moves, the farther a system has to look. Bars show "
    "95 % intervals."
)
BY_DIFFERENCE = (
    "The number beside an output is its own score: chrF for a translation, else the first score of the task."
)


def overview(report: Report) -> Section:
    """Write the table of all systems: what they reach and what they cost."""
    systems = [system for system in report.systems if system.state != FAILED]
    rows, strong = score_rows(systems)
    spent = [costs(system) for system in systems]
    for name in dict.fromkeys(name for of_system in spent for name in of_system):
        values = [of_system.get(name) for of_system in spent]
        rows += [[name, *(value or NONE for value in values)]] if any(values) else []
    waiting = [system.name for system in systems if system.state == WAITING]
    remarks = [f"{system.name} {remark}." for system in systems for remark in system.remarks]
    remarks += other_data(report) + absent_classes(report)
    remarks += [f"Not trained yet: {', '.join(waiting)}."] if waiting else []
    table = Table(["", *(system.name for system in systems)], rows, frozenset(strong)) if rows else None
    return Section("Systems", [*introduction(report), *remarks], table)


def other_data(report: Report) -> list[str]:
    """Say which systems were trained on other data, or on data that is not here to be compared."""
    others = [system.name for system in report.done if not system.shares_data]
    if not others:
        return []
    return [
        f"Trained on other data, or on data that is not here to be compared: {', '.join(others)}. A loss or perplexity "
        "is comparable only where the tokens are the same."
    ]


def introduction(report: Report) -> list[str]:
    budget = report.budget
    limits = [
        counted(budget.updates, "updates") if budget.updates else "",
        f"{budget.minutes:g} minutes of training" if budget.minutes else "",
        f"{budget.parameters:,} parameters (up to {TOLERANCE:.0%})" if budget.parameters else "",
    ]
    equal = " and ".join(filter(None, limits))
    first = f"Task: {report.task}. Tested on {report.test}."
    second = f"Equal budget: {equal}." if equal else "No budget was set: each system was trained as its recipe says."
    return [f"{first} {second}", *verdict(report)]


def verdict(report: Report) -> list[str]:
    """Say which system is the best, and from which others the difference may be chance."""
    name = report.score
    ranked = [system for system in report.done if name in system.scores]
    if name is None or len(ranked) < 2:
        return []
    top = best_of(name, [system.scores[name].value for system in ranked])
    best = [system.name for system in ranked if system.scores[name].value == top]
    doubtful = [
        other
        for pair in report.pairs
        for comparison in pair.comparisons
        if comparison.name == name and not comparison.is_significant and best[0] in (pair.baseline, pair.system)
        for other in (pair.baseline, pair.system)
        if other not in best
    ]
    value = interval(name, next(system.scores[name] for system in ranked if system.name == best[0]))
    chance = f" The difference to {', '.join(doubtful)} may be chance." if doubtful else ""
    return [f"Best {name}: {' and '.join(best)}, {value}.{chance}"]


def score_rows(systems: Sequence[SystemReport]) -> tuple[list[list[str]], set[tuple[int, int]]]:
    """Write a row for each score on the test set; the best of each row stands out."""
    plain = [system.measured.test.scores if system.measured else {} for system in systems]  # without intervals, too
    names = dict.fromkeys(name for system, own in zip(systems, plain, strict=True) for name in (*system.scores, *own))
    rows, strong = [], set()
    for row, name in enumerate(names):
        values, cells = [], []
        for system, own in zip(systems, plain, strict=True):
            resampled = system.scores.get(name)
            value = resampled.value if resampled else own.get(name)
            values.append(value)
            cells.append(interval(name, resampled) if resampled else NONE if value is None else number(value))
        rows.append([name, *cells])
        known = [value for value in values if value is not None]
        is_comparable = name not in OF_TOKENS or all(system.shares_data for system in systems)
        if len(known) > 1 and is_comparable:
            best = best_of(name, known)
            strong |= {(row, column) for column, value in enumerate(values, start=1) if value == best}
    return rows, strong


def best_of(name: str, values: Sequence[float]) -> float:
    """Return the best of several values of a score: the largest, or the smallest of an error rate or a loss."""
    return min(values) if lower_is_better(name) else max(values)


def interval(name: str, resampled: Resampled) -> str:
    digits = decimals(name)
    return f"{resampled.value:.{digits}f} ± {resampled.interval:.{digits}f}"


def decimals(name: str) -> int:
    """Return how many decimals of a score are shown: BLEU and chrF go from 0 to 100, the others mostly from 0 to 1."""
    return 2 if name.startswith(OF_100) else 4


def number(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"


def scaled(value: float, unit: str) -> str:
    """Format a large number with three digits and an SI prefix, as in 1.23 TFLOPs."""
    value = float(f"{value:.3g}")
    size, prefix = next((one for one in PREFIXES if value >= one[0]), (1.0, ""))
    return f"{value / size:.3g} {prefix}{unit}"


def optional(value: float | None, text: Callable[[float], str]) -> str | None:
    return None if value is None else text(value)


def costs(system: SystemReport) -> dict[str, str | None]:
    """What a system costs, in words; None for what is not known."""
    measured, curves = system.measured, system.curves
    if measured is None:
        return {}
    test, flops = measured.test, measured.flops_per_update
    training_speed = curves.tokens_per_second if curves else None
    testing_speed = test.tokens / test.seconds if test.tokens and test.seconds else None

    def speed(value: float) -> str:
        return f"{value:,.0f} tokens/s"

    def with_prefix(unit: str) -> Callable[[float], str]:
        return lambda value: scaled(value, unit)

    return {
        "parameters": f"{measured.parameters:,}",
        "training: precision": measured.precision,
        "training: updates": optional(measured.updates, "{:,}".format),
        "training: time": optional(measured.seconds, duration),
        "training: speed": optional(training_speed, speed),
        "training: FLOPs of an update": optional(flops, with_prefix("FLOPs")),
        "training: FLOPs in all": optional((flops or 0) * (measured.updates or 0) or None, with_prefix("FLOPs")),
        "training: peak memory": optional(measured.peak_memory, with_prefix("B")),
        "testing: speed": optional(testing_speed, speed),
        "testing: FLOPs of an example": scaled(measured.flops_per_example, "FLOPs"),
    }


def absent_classes(report: Report) -> list[str]:
    """Name the classes of which the test set has no example, if there are any."""
    tests = [system.measured.test for system in report.done if system.measured]
    line = absence(dict.fromkeys(label for test in tests for label in test.absent or ()), "The test set")
    return [f"{line}."] if line else []


def significance(report: Report) -> Section:
    """Write the table of differences between all pairs of systems, with p-values."""
    rows = []
    for pair in report.pairs:
        for comparison in pair.comparisons:
            difference = comparison.system.value - comparison.baseline.value
            judgement = (
                "equal" if not difference else "more than chance" if comparison.is_significant else "may be chance"
            )
            signed = f"{difference:+.{decimals(comparison.name)}f}"
            rows.append(
                [f"{pair.system} – {pair.baseline}", comparison.name, signed, f"{comparison.p_value:.4f}", judgement]
            )
    head = ["pair", "score", "difference", "p-value", "at p < 0.05"]
    text = ["Paired bootstrap: both systems are scored on the same resamples of the test set (Koehn 2004)."]
    counts = [system.measured.test.count for system in report.done if system.measured]
    if counts and min(counts) < MIN_EXAMPLES:
        text.append(f"{few_examples(min(counts)).capitalize()}.")
    return Section("Differences", text, Table(head, rows) if rows else None)


def curves(report: Report) -> Section:
    names = dict.fromkeys(["loss", f"{VALID}loss", report.curve])
    charts = [chart for name in names for axis in AXES if (chart := curve_chart(report, name, axis))]
    text = ["Losses are in nats, label smoothing included where a recipe has it."]
    return Section("Curves", text, charts=charts)


def curve_chart(report: Report, name: str, axis: str) -> Chart | None:
    """Draw one value of the log of all systems against one measure of training; None if no system has points."""
    series = [
        Series(system.name, place, system.curves.against(axis, name))
        for place, system in enumerate(report.systems)
        if system.curves and system.curves.against(axis, name)
    ]
    if not series:
        return None
    label = f"validation {name.removeprefix(VALID)}" if name.startswith(VALID) else f"training {name}"
    return Chart(f"{label} against {AXES[axis]}", AXES[axis], label, series, prefixed=axis == "FLOPs")


def grouped(report: Report, groups: Sequence[Group], title: str, axis: str, text: str) -> Section:
    if not groups or report.score is None:
        return Section(title)
    names = [f"{group.low}–{group.high}" if group.low < group.high else str(group.low) for group in groups]
    ordered = [system for system in report.systems if system.name in groups[0].scores]
    rows = [
        [name, f"{group.count:,}", *(interval(report.score, group.scores[system.name]) for system in ordered)]
        for name, group in zip(names, groups, strict=True)
    ]
    series = []
    for place, system in enumerate(ordered):
        offset, scores = offset_in_group(place, len(ordered)), [group.scores[system.name] for group in groups]
        points = [(i + offset, score.value) for i, score in enumerate(scores)]
        series.append(Series(system.name, report.systems.index(system), points, [score.interval for score in scores]))
    chart = Chart(f"{report.score} by {axis}", axis, report.score, series, names=names)
    return Section(title, [text], Table([axis, "sentences", *(system.name for system in ordered)], rows), [chart])


def offset_in_group(place: int, count: int) -> float:
    """The offset of a system in a group, so that the bars of several systems do not cover one another."""
    return 0.3 * ((place + 0.5) / count - 0.5)


def settings(report: Report) -> Section:
    ordered = [system.name for system in report.systems if system.recipe and system.state != FAILED]
    rows = [[key, *(values[name] for name in ordered)] for key, values in report.settings.items()]
    alike = "All other settings are alike"
    if not other_data(report):
        alike += ", the tokenizer, the data and their order included unless a seed differs"
    text = [f"{alike}."]
    return Section("What differs", text, Table(["setting", *ordered], rows) if rows else None)


def machine(report: Report) -> list[str]:
    lines = []
    for system in report.done:
        if system.measured:
            facts = system.measured.environment
            place = facts["gpu"] if facts["device"] == "cuda" else f"a CPU ({facts.get('processor', facts['machine'])})"
            threads, cores = counted(int(facts["threads"]), "threads"), counted(int(facts["cores"]), "cores")
            lines.append(f"Machine: {place}, {threads} of {cores}, torch {facts['torch']}.")
    return list(dict.fromkeys(lines))
