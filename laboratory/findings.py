"""Pages of the laboratory: a claim, its source, the experiment, the result and a verdict, in English and in Chinese."""

import argparse
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import fmean, stdev

import torch
from matplotlib.figure import Figure

from heedful.machine.device import processor
from heedful.machine.process import usable_cores

DOCS = Path(__file__).parents[1] / "docs"
TEXTS = Path(__file__).parent / "texts"
STUDENT = (math.nan, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # 97.5 % for 1, 2, ... 9 degrees
PAGE = """# {said[title]}

<!-- written by laboratory/{script} -->

**{frame[claim]}** {said[claim]}

**{frame[source]}** {said[source]}

**{frame[experiment]}** {said[experiment]}

![{said[title]}]({picture})

| {frame[quantity]} | {frame[bounds]} | {frame[mean]} | {frame[interval]} | {frame[column]} |
| --- | --- | --- | --- | --- |
{rows}

**{frame[verdict]} {verdict}** {said[conclusion]}

{measured} {frame[again]}

<!-- not run: it takes minutes -->

```bash
python laboratory/{script}
```
"""


@dataclass(frozen=True)
class Check:
    """One part of a claim: a quantity, its measured values (one for each seed or round), and what the claim says.

    Attributes:
        quantity: its name in the table `measured` of the texts.
        values: the measured values; one of a quantity that no seed changes.
        least: the claim holds from this value on.
        most: the claim holds up to this value.
        case: what to fill into the text, such as the name of a model.
    """

    quantity: str
    values: Sequence[float]
    least: float = -math.inf
    most: float = math.inf
    case: Mapping[str, object] = field(default_factory=dict)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the mean, by Student's t; a single value is free of chance."""
        if len(self.values) == 1:
            return self.values[0], self.values[0]
        half = STUDENT[len(self.values) - 1] * stdev(self.values) / math.sqrt(len(self.values))
        return fmean(self.values) - half, fmean(self.values) + half

    @property
    def holds(self) -> bool | None:
        """True if the interval is within the bounds, False if it is outside, None if it reaches over one."""
        low, high = self.interval
        if self.least <= low and high <= self.most:
            return True
        return False if high < self.least or low > self.most else None

    @property
    def bounds(self) -> str:
        """The bounds as a formula."""
        if math.isinf(self.least):
            return f"≤ {self.most:g}"
        return f"≥ {self.least:g}" if math.isinf(self.most) else f"{self.least:g} ... {self.most:g}"


def verdict(checks: Sequence[Check]) -> str:
    """The verdict on a claim: it holds if all of its parts do, with limits if some do, and not if one is refuted."""
    held = [check.holds for check in checks]
    if any(held):
        return "holds" if all(held) else "holds_with_limits"
    return "does_not_hold" if False in held else "is_undecided"


def arguments(description: str | None, seeds: int) -> argparse.Namespace:
    """Parse the options that all experiments have: seeds or rounds, threads, and where the pages go."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--seeds", type=int, default=seeds, help=f"repetitions, from 2 to {len(STUDENT)}")
    parser.add_argument("--out", type=Path, help="the folder of the pages; without it they replace those below docs/")
    parser.add_argument("--quick", action="store_true", help="sizes that only show that the script runs")
    options = parser.parse_args()
    if not 2 <= options.seeds <= len(STUDENT):
        parser.error(f"--seeds {options.seeds}: an interval needs from 2 to {len(STUDENT)} repetitions")
    if options.quick and options.out is None:
        parser.error("--quick measures nothing that a page could say; give the folder of a trial as --out")
    options.out = options.out or DOCS
    torch.set_num_threads(options.threads)
    return options


def publish(name: str, checks: Sequence[Check], figure: Figure, options: argparse.Namespace) -> None:
    """Write the picture and the page of an experiment in both languages, and print the checks.

    Args:
        name: the name of the script without .py; its texts are `texts/NAME.toml`.
        checks: what was measured.
        figure: the picture.
        options: the options of the script.
    """
    measured = {"count": options.seeds, "threads": options.threads, "date": date.today()}
    measured |= {"processor": processor(torch.device("cpu")), "torch": torch.__version__}
    texts = tomllib.loads((TEXTS / f"{name}.toml").read_text(encoding="utf-8"))
    frames = tomllib.loads((TEXTS / "frame.toml").read_text(encoding="utf-8"))
    page = name.replace("_", "-")
    for folder in ("laboratory", "zh"):
        (options.out / folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out / "laboratory" / f"{page}.svg", metadata={"Date": None}, bbox_inches="tight")
    for language, folder, picture in (("en", "laboratory", f"{page}.svg"), ("zh", "zh", f"../laboratory/{page}.svg")):
        said, frame = texts[language], frames[language]
        written = PAGE.format(
            script=f"{name}.py",
            picture=picture,
            rows="\n".join(row(check, said["measured"], frame) for check in checks),
            verdict=frame[verdict(checks)],
            measured=frame["repetitions"].format(**measured),
            frame=frame,
            said=said,
        )
        (options.out / folder / f"{page}.md").write_text(written, encoding="utf-8")
    for check in checks:
        print(row(check, texts["en"]["measured"], frames["en"]))
    print(verdict(checks))


def row(check: Check, measured: Mapping[str, str], frame: Mapping[str, str]) -> str:
    """The row of a check in the table of a page."""
    low, high = check.interval
    held = {True: frame["yes"], False: frame["no"], None: frame["undecided"]}[check.holds]
    what = measured[check.quantity].format(**check.case)
    return f"| {what} | {check.bounds} | {fmean(check.values):.3g} | {low:.3g} ... {high:.3g} | {held} |"
