"""Learning curve of a run as an image: python benchmarks/learning_curve.py RUN --score accuracy --out docs/NAME.svg

Reads the log of the run. Training loss and a validation score over updates, in two panels.
"""

import json
from pathlib import Path

import record

from heedful.training.logger import LOG, VALID


def points(log: Path, key: str) -> list[tuple[int, float]]:
    """Read the values of a key in a log, each with its update."""
    rows = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [(row["update"], row[key]) for row in rows if key in row]


def draw(panels: dict[str, list[tuple[int, float]]], path: Path) -> None:
    """Draw a panel for each named list of points."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(8, 3), layout="constrained")
    for panel, (name, values) in zip(axes, panels.items(), strict=True):
        marks = "o-" if len(values) < 50 else "-"
        panel.plot(*zip(*values, strict=True), marks, color="#1f5fa8", markersize=3.5, linewidth=1.3)
        panel.set_xlabel("updates")
        panel.set_ylabel(name)
        panel.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--score", default="accuracy", help="of the validation set")
    parser.add_argument("--out", type=Path, required=True, help="picture to write, .svg or .png")
    options = parser.parse_args()
    log = options.run / LOG
    if not log.is_file():
        parser.error(f"{options.run}: no log of a training is here; name the folder that --out of heedful train named")
    scores = points(log, VALID + options.score)
    if not scores:
        parser.error(f"{log}: no validation has a score named {options.score}; name another with --score")
    draw({"training loss": points(log, "loss"), f"validation {options.score}": scores}, options.out)


if __name__ == "__main__":
    main()
