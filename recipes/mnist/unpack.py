"""Write the digits of mnist_5k.csv.gz as PNG files, a folder for each class: 3,800 to train on, 200 and 1,000 held out.

python unpack.py mnist_5k.csv.gz FOLDER
"""

import gzip
import sys
from pathlib import Path

import numpy as np
from PIL import Image


def part(number: int) -> str:
    """The part that a row belongs to: every fifth to the test set, one of 25 to the validation set."""
    return "test" if number % 5 == 0 else "valid" if number % 25 == 1 else "train"


def unpack(table: Path, out: Path) -> None:
    """Write PART/DIGIT/ROW.png for each row of the table: 784 pixels and a digit."""
    with gzip.open(table, "rt") as lines:
        rows = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    for number, row in enumerate(rows):
        folder = out / part(number) / str(row[-1])
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(row[:-1].reshape(28, 28)).save(folder / f"{number:04}.png")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
