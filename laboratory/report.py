"""Write every page of the laboratory from its text and its stored results: python laboratory/report.py

An experiment measures, and calls `publish`, which stores an image and the results, and writes the page. A text can so
be corrected without measuring again.
"""

import argparse
import json
import math
import posixpath
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from heedful.machine.device import processor
from heedful.machine.process import usable_cores
from heedful.tools.reproduce import STUDENT

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXTS = Path(__file__).parent / "texts"
FRAME = tomllib.loads((TEXTS / "frame.toml").read_text(encoding="utf-8"))  # what all pages share, by language
FOLDERS = {"en": "laboratory", "zh": "zh/laboratory"}  # of the pages, below docs
RESULTS = FOLDERS["en"]  # where the images and the results of all languages are
GALLERIES = {"en": "README.md", "zh": "README.zh.md"}


@dataclass(frozen=True)
class Prediction:
    """One prediction of a claim: a quantity, the bounds that the claim sets, and what was measured.

    Attributes:
        quantity: the key of its description in the table `quantities` of the text.
        case: fills the placeholders of the description, such as the name of a model.
        least: the claim predicts this value or more.
        most: the claim predicts this value or less.
        mean: the mean of the values.
        low: the lower end of the 95 % confidence interval.
        high: the upper end.
        values: one for each seed or round; None if only the mean and the interval were stored.
    """

    quantity: str
    case: Mapping[str, Any]
    least: float | None
    most: float | None
    mean: float
    low: float
    high: float
    values: Sequence[float] | None

    @property
    def holds(self) -> bool | None:
        """True if the whole interval is within the bounds, False if it is outside, None if it overlaps one."""
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        if least <= self.low and self.high <= most:
            return True
        return False if self.high < least or self.low > most else None


def check(
    quantity: str, values: Sequence[float], least: float | None = None, most: float | None = None, **case: Any
) -> Prediction:
    """Check a prediction by the confidence interval of Student's t; a single value does not depend on chance."""
    mean, margin = fmean(values), 0.0
    if len(values) > 1:
        margin = STUDENT[len(values) - 1] * stdev(values) / math.sqrt(len(values))
    return Prediction(quantity, case, least, most, mean, mean - margin, mean + margin, list(values))


def verdict(predictions: Sequence[Prediction]) -> str:
    """Return the key of the verdict: a claim with several predictions holds with limits if only some of them hold."""
    outcomes = [prediction.holds for prediction in predictions]
    if any(outcomes):
        return "holds" if all(outcomes) else "holds_with_limits"
    return "does_not_hold" if False in outcomes else "undecided"


def arguments(
    description: str | None, seeds: int, *, models: str = "", **further: dict[str, Any]
) -> argparse.Namespace:
    """Parse the options of all experiments, `--work` for those that train `models`, and `further` ones by name."""
    parser = argparse.ArgumentParser(description=description)
    for name, option in further.items():
        parser.add_argument(f"--{name}", **option)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--seeds", type=int, default=seeds, help=f"repetitions, from 2 to {len(STUDENT)}")
    parser.add_argument("--out", type=Path, help="folder of the pages; the default replaces those below docs/")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that the script runs")
    if models:
        parser.add_argument("--work", type=Path, default=ROOT / "runs" / models, help="folder of the trained models")
    options = parser.parse_args()
    if not 2 <= options.seeds <= len(STUDENT):
        parser.error(f"--seeds {options.seeds}: an interval needs from 2 to {len(STUDENT)} repetitions")
    if options.quick and options.out is None:
        parser.error("--quick: its results are meaningless and must not replace the pages; pass a folder with --out")
    options.out = options.out or DOCS
    if models and options.quick:
        options.work = options.out / "runs"
    torch.set_num_threads(options.threads)
    return options


def publish(
    name: str, predictions: Sequence[Prediction], figure: Figure, options: argparse.Namespace, **facts: Any
) -> None:
    """Store the image and the results of an experiment, write its pages, and print the predictions.

    Args:
        name: the name of the script without .py; its text is `texts/NAME.toml`.
        predictions: those of the claim.
        figure: the image.
        options: the options of the script.
        facts: what is stored with the conditions of the measurement, such as the points of the image.
    """
    conditions = {"repetitions": options.seeds, "processor": processor(torch.device("cpu"))}
    conditions |= facts | {"threads": options.threads, "torch": torch.__version__, "date": str(date.today())}
    stem = options.out / RESULTS / page_name(name)
    stem.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": name}):  # the same figure gives the same file
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None}, bbox_inches="tight")
    # Before the pages, so that a mistake in a text does not cost the measurement.
    lines = [json.dumps(line, ensure_ascii=False) for line in (conditions, *map(asdict, predictions))]
    stem.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_pages(name, options.out)
    if options.out == DOCS:
        write_galleries(ROOT / "laboratory")
    for prediction in predictions:
        print(row(prediction, text(name)["en"]["quantities"], FRAME["en"]))
    print(verdict(predictions))


def write_pages(name: str, docs: Path) -> None:
    """Write the page of an experiment in every language, from its text and the results below `docs`."""
    conditions, predictions = results(name, docs)
    page = page_name(name)
    for language, folder in FOLDERS.items():
        frame, words = FRAME[language], text(name)[language]
        content = frame["page"].format(
            **words,
            page_name=page,
            script=f"{name}.py",
            results=posixpath.relpath(f"{RESULTS}/{page}.jsonl", folder),
            image=posixpath.relpath(f"{RESULTS}/{page}.svg", folder),
            rows="\n".join(row(prediction, words["quantities"], frame) for prediction in predictions),
            verdict=frame[verdict(predictions)],
            **conditions,
        )
        (docs / folder).mkdir(parents=True, exist_ok=True)
        (docs / folder / f"{page}.md").write_text(content, encoding="utf-8")


def write_galleries(folder: Path) -> None:
    """Write README.md and README.zh.md, which show every experiment with its claim and its verdict."""
    for language, file in GALLERIES.items():
        entries = []
        for name in experiments():
            words, verdict_key = text(name)[language], verdict(results(name, DOCS)[1])
            page = f"../docs/{FOLDERS[language]}/{page_name(name)}.md"
            image = f"../docs/{RESULTS}/{page_name(name)}.svg"
            link = f"[![{words['title']}]({image})]({page})"
            entries.append(
                f"| {link} | [{words['title']}]({page}) | {words['claim']} | {FRAME[language][verdict_key]} |"
            )
        (folder / file).write_text(FRAME[language]["gallery"].format(entries="\n".join(entries)), encoding="utf-8")


def experiments() -> list[str]:
    """Return the names of the experiments that were measured; their texts have the same names."""
    names = sorted(path.stem for path in TEXTS.glob("*.toml"))
    return [name for name in names if (DOCS / RESULTS / f"{page_name(name)}.jsonl").exists()]


def text(name: str) -> dict[str, Any]:
    """Return the text of a page, by language."""
    return tomllib.loads((TEXTS / f"{name}.toml").read_text(encoding="utf-8"))


def results(name: str, docs: Path) -> tuple[dict[str, Any], list[Prediction]]:
    """Return the conditions of a measurement, the first line of its file, and the predictions."""
    file = docs / RESULTS / f"{page_name(name)}.jsonl"
    conditions, *predictions = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return conditions, [Prediction(**fields) for fields in predictions]


def page_name(name: str) -> str:
    """Return the name of the files of an experiment's page: addresses have hyphens."""
    return name.replace("_", "-")


def row(prediction: Prediction, quantities: Mapping[str, str], frame: Mapping[str, Any]) -> str:
    """Return the row of a prediction in the table of a page."""
    case = {key: frame["names"].get(value, value) for key, value in prediction.case.items()}
    least, most = prediction.least, prediction.most
    if least is not None and most is not None:
        bounds = frame["range"].format(f"{least:g}", f"{most:g}")
    else:
        bounds = f"≤ {most:g}" if least is None else f"≥ {least:g}"
    interval = frame["range"].format(f"{prediction.low:.3g}", f"{prediction.high:.3g}")
    outcome = frame[{True: "holds", False: "does_not_hold", None: "undecided"}[prediction.holds]]
    quantity = quantities[prediction.quantity].format(**case)
    return f"| {quantity} | {bounds} | {prediction.mean:.3g} | {interval} | {outcome} |"


if __name__ == "__main__":
    for experiment in experiments():
        write_pages(experiment, DOCS)
    write_galleries(ROOT / "laboratory")
