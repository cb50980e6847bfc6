"""Write the digits of mnist_5k.csv.gz as PNG files, a folder for each class: every fifth row for validation."""

import gzip
import sys
from pathlib import Path

import numpy as np
from PIL import Image


def unpack(table: Path, out: Path) -> None:
    """Write train/DIGIT/ROW.png and valid/DIGIT/ROW.png from rows of 784 pixels and a digit."""
    with gzip.open(table, "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    for number, row in enumerate(rows):
        folder = out / ("train" if number % 5 else "valid") / str(row[-1])
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(row[:-1].reshape(28, 28)).save(folder / f"{number:04}.png")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
