"""Charts of a comparison: loss and score curves against updates, minutes and FLOPs, as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from heedful.training.logger import LOG, TIMINGS, records

CurvePoints = list[tuple[float, float]]


@dataclass(frozen=True)
class Curves:
    """Curves of one run by logged value, such as "loss" and "valid_bleu", against updates."""

    values: dict[str, CurvePoints]  # for each name, pairs of update and value
    # pairs of update and training time up to it, in seconds; empty for a run without timings
    seconds: CurvePoints
    flops_per_update: float | None  # FLOPs of one update; None if unknown
    tokens_per_second: float | None  # training speed of the whole run; None if unknown

    def against(self, axis: str, name: str) -> CurvePoints:
        """Return a curve against "updates", "minutes" or "FLOPs"; empty if the run does not have the numbers for it."""
        points = self.values.get(name, [])
        if axis == "updates":
            return points
        if axis == "FLOPs":
            per_update = self.flops_per_update
            return [(x * per_update, y) for x, y in points] if per_update else []
        if not self.seconds or not points:
            return []
        updates, clock = zip((0.0, 0.0), *self.seconds, strict=True)
        minutes = np.interp([x for x, _ in points], updates, clock) / 60
        return [(float(x), y) for x, (_, y) in zip(minutes, points, strict=True)]


def read_curves(folder: Path, flops_per_update: float | None) -> Curves:
    values: dict[str, CurvePoints] = {}
    for record in records(folder / LOG):
        for name, value in record.items():
            if name != "update" and value is not None:
                values.setdefault(name, []).append((record["update"], value))
    timings = [record for record in records(folder / TIMINGS) if record.get("seconds") is not None]
    seconds = [(record["update"], record["seconds"]) for record in timings]
    # The speed is the mean over the records, weighted by their time.
    spans = np.diff([0.0, *(clock for _, clock in seconds)])
    speeds = [record["tokens_per_second"] for record in timings]
    speed = float(np.average(speeds, weights=spans)) if timings and spans.sum() > 0 else None
    return Curves(values, seconds, flops_per_update, speed)


WIDTH, HEIGHT = 380, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 22, 12, 44  # margins around the plotted area
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2")
SHAPES = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z",
    "M-3 -3h6v6h-6z",
    "M0 -4L4 3h-8z",
    "M0 -4.2L4.2 0L0 4.2L-4.2 0z",
    "M0 4L4 -3h-8z",
    "M-4 -1h3v-3h2v3h3v2h-3v3h-2v-3h-3z",
)
COLOURS = 6
PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MAX_MARKS = 25  # a series with more points is drawn as a line without marks
TICKS = 5

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    name: str
    style: int  # index of its colour, dashes and mark
    points: Points
    spread: Sequence[float] = ()  # half the height of an error bar at each point


@dataclass(frozen=True)
class Chart:
    title: str  # a description for readers who cannot see the chart
    x_label: str
    y_label: str
    series: Sequence[Series]
    prefixed: bool = False  # True if the unit of the horizontal axis gets an SI prefix, as in "GFLOPs"
    # the names of the groups at positions 0, 1, ... of the horizontal axis; empty for a numeric axis
    names: Sequence[str] = field(default=())

    def svg(self) -> str:
        """Draw the chart as an SVG element; series without points are left out."""
        visible = [series for series in self.series if series.points]
        xs, ys = [0.0], []
        for series in visible:
            spread = series.spread or [0.0] * len(series.points)
            xs += [x for x, _ in series.points]
            ys += [y + sign * half for (_, y), half in zip(series.points, spread, strict=True) for sign in (-1, 1)]
        begin, end = LEFT, WIDTH - RIGHT
        x_axis = Axis(-0.5, len(self.names) - 0.5, begin, end, 1) if self.names else Axis.over(xs, begin, end)
        y_axis = Axis.over(ys, HEIGHT - BOTTOM, TOP)
        unit, prefix = x_axis.scale if self.prefixed else (1.0, "")
        ticks = (
            enumerate(self.names) if self.names else [(tick, x_axis.tick_label(tick, unit)) for tick in x_axis.ticks]
        )
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.title)}">',
            *grid(y_axis),
            *(label(x_axis.place(x), HEIGHT - BOTTOM + 16, text, "middle", "tick") for x, text in ticks),
            *(line for series in visible for line in lines(series, x_axis, y_axis)),
            label(WIDTH - RIGHT, HEIGHT - 6, f"{prefix}{self.x_label}", "end", "axis"),
            f'<text class="axis" x="{LEFT - 44}" y="{TOP}" transform="rotate(-90 {LEFT - 44} {TOP})" '
            f'text-anchor="end" dominant-baseline="hanging">{escape(self.y_label)}</text>',
            "</svg>",
        ]
        return "".join(parts)


@dataclass(frozen=True)
class Axis:
    """Axis of a chart: `low` to `high`, drawn from `begin` to `end` in SVG units, with a tick every `step`."""

    low: float
    high: float
    begin: float
    end: float
    step: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> "Axis":
        """Make an axis that covers all finite values, and starts and ends at a tick."""
        finite = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(finite), max(finite)
        if high <= low:
            low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
        step = round_step((high - low) / TICKS)
        return cls(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, begin, end, step)

    @property
    def ticks(self) -> list[float]:
        """Round numbers from the start to the end of the axis."""
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]

    @property
    def scale(self) -> tuple[float, str]:
        """Power of ten that makes the numbers on the axis short, and its SI prefix."""
        largest = max(abs(self.low), abs(self.high))
        return next((entry for entry in PREFIXES if largest >= 10 * entry[0]), (1.0, ""))

    def place(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def tick_label(self, value: float, unit: float = 1.0) -> str:
        """Format a tick, divided by a unit, with as many decimals as the ticks need."""
        decimals = max(0, -math.floor(math.log10(self.step / unit) + 1e-9))
        return f"{value / unit + 0.0:,.{decimals}f}"


def round_step(rough: float) -> float:
    """Round a positive number up to 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def grid(axis: Axis) -> list[str]:
    """Draw a horizontal line and a number at each tick of the vertical axis."""
    parts = []
    for tick in axis.ticks:
        y = axis.place(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(label(LEFT - 6, y + 3.5, axis.tick_label(tick), "end", "tick"))
    return parts


def lines(series: Series, x_axis: Axis, y_axis: Axis) -> list[str]:
    """Draw a series: its line, its error bars, and a mark at each point if there are at most `MAX_MARKS`."""
    colour, dash, shape = line_style(series.style)
    positions = [(x_axis.place(x), y_axis.place(y)) for x, y in series.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in positions)
    parts = [f'<g class="series s{colour}"><title>{escape(series.name)}</title>']
    parts.append(f'<path class="line" d="{path}" stroke-dasharray="{dash}"/>')
    for (x, _), (_, value), half in zip(positions, series.points, series.spread, strict=False):
        low, high = y_axis.place(value - half), y_axis.place(value + half)
        parts.append(f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
    if len(positions) <= MAX_MARKS:
        parts += [f'<path class="mark" d="{shape}" transform="translate({x:.1f} {y:.1f})"/>' for x, y in positions]
    return [*parts, "</g>"]


def legend_key(style: int) -> str:
    """Draw the line and the mark of a series as a small SVG element for a legend."""
    colour, dash, shape = line_style(style)
    return (
        f'<svg class="key series s{colour}" viewBox="0 0 34 12" aria-hidden="true">'
        f'<path class="line" d="M1 6L33 6" stroke-dasharray="{dash}"/>'
        f'<path class="mark" d="{shape}" transform="translate(17 6)"/></svg>'
    )


def line_style(style: int) -> tuple[int, str, str]:
    """Return the colour, dashes and mark of a series; where colours repeat, dashes and marks differ."""
    colour = style % COLOURS
    variant = (style + style // COLOURS) % COLOURS
    return colour, DASHES[variant], SHAPES[variant]


def label(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
