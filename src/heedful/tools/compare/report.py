"""Report of a comparison: its sections, as an HTML page that needs no network or scripts, and as Markdown."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from heedful import __version__
from heedful.metrics import ScoreInterval
from heedful.metrics.bootstrap import MIN_EXAMPLES, few_examples
from heedful.metrics.classes import missing_classes_warning
from heedful.metrics.metric import lower_is_better
from heedful.tools.compare.charts import PREFIXES, Chart, Series, legend_key
from heedful.tools.compare.results import AXES, FAILED, NONE, WAITING, Report, SystemReport
from heedful.tools.compare.setup import TOLERANCE
from heedful.tools.compare.statistics import Group, SampleOutputs
from heedful.training.logger import VALID
from heedful.wording import counted, duration

TEMPLATE, STYLE = "report.html", "report.css"
CODE = re.compile(r"`([^`]+)`")
MARKDOWN_SPECIAL = re.compile(r"([\\|*_<>\[\]`#])")
NUMBERS = re.compile(r"[-+–]?[\d,.]+( ± [\d,.]+)?( ?[%a-zA-Z/]+)?|–")
OF_100 = ("BLEU", "chrF2")  # scores from 0 to 100; most others go from 0 to 1
OF_TOKENS = ("loss", "perplexity")  # scores per token, not comparable if the tokens differ
METHOD = (
    "Scores: the same as those of `heedful evaluate`; ± is half the width of the 95% bootstrap interval.",
    "FLOPs: counted for matrix multiplications and convolutions as they run, 2 per multiply-add; sums, norms and "
    "activations are not counted. FLOPs per update cover the forward pass, the backward pass and the optimizer, "
    "averaged over the first updates. FLOPs per example are averaged over part of the test set; if the model "
    "generates text, each example is decoded separately.",
    "Training time and speed: taken from the run log, excluding validation and saving. Testing speed: measured once on "
    "the whole test set in batches; it counts generated tokens if the model generates text, and otherwise the tokens "
    "in the batches.",
    "Memory: the peak during training, including validation; on a CPU, that of the whole process.",
)
BY_LENGTH = "The test sentences, in groups of about the same size; the bars show 95% intervals."
BY_MOVE = (
    "The reordering distance of a sentence is the largest |i - j| over all pairs of a source word i and a target "
    "word j that is aligned with it, according to the gold alignment of the data: the farther a word moves, the "
    "farther a system has to attend. Bars show 95% intervals."
)
BY_DIFFERENCE = "The number next to an output is its score: chrF for translations, otherwise the task's first score."


@dataclass(frozen=True)
class Table:
    head: list[str]
    rows: list[list[str]]
    strong: frozenset[tuple[int, int]] = frozenset()  # row and column of each cell in bold


@dataclass(frozen=True)
class Section:
    title: str
    text: list[str] = field(default_factory=list)
    table: Table | None = None
    charts: list[Chart] = field(default_factory=list)  # each series has the colour of its system
    samples: list[SampleOutputs] = field(default_factory=list)  # sentences with the outputs of all systems


def sections(report: Report) -> list[Section]:
    """Return the sections of a report, except for empty ones."""
    failed = [[system.name, system.error or ""] for system in report.systems if system.error]
    others = [
        Section("Failed", table=Table(["system", "what happened"], failed) if failed else None),
        significance(report),
        curves(report),
        grouped(report, report.by_length, "Score by length", "source length in tokens", BY_LENGTH),
        grouped(report, report.by_move, "Score by reordering distance", "largest distance in words", BY_MOVE),
        Section("Where systems differ most", [BY_DIFFERENCE], samples=report.different),
        Section("First sentences of the test set", samples=report.first),
        settings(report),
    ]
    others = [section for section in others if section.table or section.charts or section.samples]
    return [overview(report), *others, Section("How this was measured", [*METHOD, *machines(report)])]


def overview(report: Report) -> Section:
    """Write the table of scores and costs of all systems except failed ones, with remarks."""
    systems = [system for system in report.systems if system.state != FAILED]
    rows, strong = score_rows(systems)
    by_system = [costs(system) for system in systems]
    for name in dict.fromkeys(name for of_system in by_system for name in of_system):
        values = [of_system.get(name) for of_system in by_system]
        rows += [[name, *(value or NONE for value in values)]] if any(values) else []
    waiting = [system.name for system in systems if system.state == WAITING]
    remarks = [f"{system.name} {remark}." for system in systems for remark in system.remarks]
    if others := on_other_data(report):
        remarks.append(
            f"Trained on other data, or on data that is not available for comparison: {', '.join(others)}. A loss or "
            "perplexity is comparable only if the tokens are the same."
        )
    remarks += absent_classes(report)
    remarks += [f"Not trained yet: {', '.join(waiting)}."] if waiting else []
    table = Table(["", *(system.name for system in systems)], rows, frozenset(strong)) if rows else None
    return Section("Systems", [*introduction(report), *remarks], table)


def on_other_data(report: Report) -> list[str]:
    return [system.name for system in report.done if not system.shares_data]


def introduction(report: Report) -> list[str]:
    """Describe the task and the budget; name the best system, and the systems that are not significantly worse."""
    budget = report.budget
    limits = [
        counted(budget.updates, "updates") if budget.updates else "",
        f"{budget.minutes:g} minutes of training" if budget.minutes else "",
        f"{budget.parameters:,} parameters (within {TOLERANCE:.0%})" if budget.parameters else "",
    ]
    equal = " and ".join(filter(None, limits))
    first = f"Task: {report.task}. Tested on {report.test}."
    second = f"Equal budget: {equal}." if equal else "No budget was set: each system was trained with its own recipe."
    setting = f"{first} {second}"

    name = report.score
    ranked = [system for system in report.done if name in system.scores]
    if name is None or len(ranked) < 2:
        return [setting]
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
    chance = f" The difference from {', '.join(doubtful)} is not statistically significant." if doubtful else ""
    return [setting, f"Best {name}: {' and '.join(best)}, {value}.{chance}"]


def score_rows(systems: Sequence[SystemReport]) -> tuple[list[list[str]], set[tuple[int, int]]]:
    """Write a row for each score on the test set; return the rows, and the row and column of each best value."""
    # Not all of these scores have intervals.
    plain = [system.measured.test.scores if system.measured else {} for system in systems]
    names = dict.fromkeys(name for system, own in zip(systems, plain, strict=True) for name in (*system.scores, *own))
    rows, strong = [], set()
    for row, name in enumerate(names):
        values, cells = [], []
        for system, own in zip(systems, plain, strict=True):
            resampled = system.scores.get(name)
            value = resampled.value if resampled else own.get(name)
            values.append(value)
            if resampled:
                cells.append(interval(name, resampled))
            else:
                cells.append(NONE if value is None else f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}")
        rows.append([name, *cells])
        numbers = [value for value in values if value is not None]
        is_comparable = name not in OF_TOKENS or all(system.shares_data for system in systems)
        if len(numbers) > 1 and is_comparable:
            best = best_of(name, numbers)
            strong |= {(row, column) for column, value in enumerate(values, start=1) if value == best}
    return rows, strong


def best_of(name: str, values: Sequence[float]) -> float:
    """Return the best of several values of a score: the largest, or the smallest for an error rate or a loss."""
    return min(values) if lower_is_better(name) else max(values)


def decimals(name: str) -> int:
    return 2 if name.startswith(OF_100) else 4


def interval(name: str, resampled: ScoreInterval) -> str:
    digits = decimals(name)
    return f"{resampled.value:.{digits}f} ± {resampled.interval:.{digits}f}"


def scaled(value: float, unit: str) -> str:
    """Format a large number with three digits and an SI prefix, as in 1.23 TFLOPs."""
    value = float(f"{value:.3g}")
    size, prefix = next((entry for entry in PREFIXES if value >= entry[0]), (1.0, ""))
    return f"{value / size:.3g} {prefix}{unit}"


def costs(system: SystemReport) -> dict[str, str | None]:
    """Return the costs of a system as text, by name; None for unknown ones."""
    measured, curves = system.measured, system.curves
    if measured is None:
        return {}
    test, flops = measured.test, measured.flops_per_update
    training_speed = curves.tokens_per_second if curves else None
    testing_speed = test.tokens / test.seconds if test.tokens and test.seconds else None

    def cell(value: float | None, form: Callable[[float], str]) -> str | None:
        return None if value is None else form(value)

    return {
        "parameters": f"{measured.parameters:,}",
        "training: precision": measured.precision,
        "training: updates": cell(measured.updates, "{:,}".format),
        "training: time": cell(measured.seconds, duration),
        "training: speed": cell(training_speed, "{:,.0f} tokens/s".format),
        "training: FLOPs per update": cell(flops, lambda value: scaled(value, "FLOPs")),
        "training: total FLOPs": cell(
            (flops or 0) * (measured.updates or 0) or None, lambda value: scaled(value, "FLOPs")
        ),
        "training: peak memory": cell(measured.peak_memory, lambda value: scaled(value, "B")),
        "testing: speed": cell(testing_speed, "{:,.0f} tokens/s".format),
        "testing: FLOPs per example": scaled(measured.flops_per_example, "FLOPs"),
    }


def absent_classes(report: Report) -> list[str]:
    """List the classes without an example in the test set, if there are any."""
    tests = [system.measured.test for system in report.done if system.measured]
    line = missing_classes_warning(
        dict.fromkeys(label for test in tests for label in test.absent or ()), "The test set"
    )
    return [f"{line}."] if line else []


def significance(report: Report) -> Section:
    """Write the table of differences between all pairs of systems, with p-values."""
    rows = []
    for pair in report.pairs:
        for comparison in pair.comparisons:
            difference = comparison.system.value - comparison.baseline.value
            signed = f"{difference:+.{decimals(comparison.name)}f}"
            verdict = "significant" if comparison.is_significant else "not significant"
            name = f"{pair.system} – {pair.baseline}"
            rows.append(
                [name, comparison.name, signed, f"{comparison.p_value:.4f}", verdict if difference else "equal"]
            )
    head = ["pair", "score", "difference", "p-value", "at p < 0.05"]
    text = ["Paired bootstrap: both systems are scored on the same resamples of the test set (Koehn 2004)."]
    counts = [system.measured.test.count for system in report.done if system.measured]
    if counts and min(counts) < MIN_EXAMPLES:
        text.append(f"{few_examples(min(counts)).capitalize()}.")
    return Section("Differences", text, Table(head, rows) if rows else None)


def curves(report: Report) -> Section:
    """Chart the losses and the score of all systems against updates, minutes and FLOPs."""
    charts = []
    for name in dict.fromkeys(["loss", f"{VALID}loss", report.curve]):
        label = f"validation {name.removeprefix(VALID)}" if name.startswith(VALID) else f"training {name}"
        for axis, words in AXES.items():
            series = [
                Series(system.name, index, points)
                for index, system in enumerate(report.systems)
                if system.curves and (points := system.curves.against(axis, name))
            ]
            if series:
                charts.append(Chart(f"{label} against {words}", words, label, series, prefixed=axis == "FLOPs"))
    text = ["Losses are in nats, including label smoothing if a recipe uses it."]
    return Section("Curves", text, charts=charts)


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
    for index, system in enumerate(ordered):  # side by side, so that no bar covers another
        offset, scores = 0.3 * ((index + 0.5) / len(ordered) - 0.5), [group.scores[system.name] for group in groups]
        points = [(i + offset, score.value) for i, score in enumerate(scores)]
        series.append(Series(system.name, report.systems.index(system), points, [score.interval for score in scores]))
    chart = Chart(f"{report.score} by {axis}", axis, report.score, series, names=names)
    return Section(title, [text], Table([axis, "sentences", *(system.name for system in ordered)], rows), [chart])


def settings(report: Report) -> Section:
    ordered = [system.name for system in report.systems if system.recipe and system.state != FAILED]
    rows = [[key, *(values[name] for name in ordered)] for key, values in report.settings.items()]
    alike = "All other settings are the same"
    if not on_other_data(report):
        alike += ", including the tokenizer, the data and, unless a seed differs, their order"
    return Section("What differs", [f"{alike}."], Table(["setting", *ordered], rows) if rows else None)


def machines(report: Report) -> list[str]:
    lines = []
    for system in report.done:
        if system.measured:
            facts = system.measured.environment
            cpu = f"a CPU ({facts.get('processor', facts['machine'])})"
            hardware = facts["gpu"] if facts["device"] == "cuda" else cpu
            threads, cores = counted(int(facts["threads"]), "threads"), counted(int(facts["cores"]), "cores")
            lines.append(f"Machine: {hardware}, {threads} on {cores}, torch {facts['torch']}.")
    return list(dict.fromkeys(lines))


def html_page(report: Report) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    folder, names = files("heedful.tools.compare"), [system.name for system in report.systems]
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["code"] = lambda text: Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))
    environment.filters["series_names"] = lambda charts: {series.name for chart in charts for series in chart.series}
    environment.filters["key"] = lambda name: Markup(legend_key(names.index(name)))
    environment.filters["svg"] = lambda chart: Markup(chart.svg())
    environment.tests["number_like"] = NUMBERS.fullmatch
    return environment.from_string((folder / TEMPLATE).read_text(encoding="utf-8")).render(
        names=names,
        sections=sections(report),
        style=Markup((folder / STYLE).read_text(encoding="utf-8")),
        version=__version__,
    )


def markdown_page(report: Report) -> str:
    """Write the report as Markdown, which refers to the HTML page for the charts."""
    parts = ["# Comparison of systems"]
    for section in sections(report):
        parts += [f"## {section.title}", *section.text]
        if section.table:
            parts.append(markdown_table(section.table))
        if section.charts:
            parts.append("The charts are in `report.html`, and their numbers in `report.json`.")
        for sample in section.samples:
            outputs = [[name, f"{sample.scores[name]:.3g}", output] for name, output in sample.outputs.items()]
            rows = [["source", "", sample.source], ["reference", "", sample.reference], *outputs]
            parts.append(markdown_table(Table([f"sentence {sample.number}", "score", "text"], rows)))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    lines = [[escaped(name) for name in table.head], ["---"] * len(table.head)]
    for row, cells in enumerate(table.rows):
        bold = ["**" * ((row, column) in table.strong) for column in range(len(cells))]
        lines.append([f"{mark}{escaped(cell)}{mark}" for mark, cell in zip(bold, cells, strict=True)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escaped(text: str) -> str:
    """Escape the special characters of Markdown, and put the text on one line."""
    return MARKDOWN_SPECIAL.sub(r"\\\1", " ".join(text.split()))
