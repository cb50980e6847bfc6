"""Write tables of the Free Spoken Digit Dataset: its standard split, and a split for each speaker, who is then unheard.

python tables.py FOLDER, where FOLDER/recordings holds DIGIT_SPEAKER_NUMBER.wav
"""

import csv
import sys
from pathlib import Path

VALIDATION = 2  # recordings of each digit and speaker
STANDARD_TEST = 5  # recordings of each digit and speaker: numbers 0 to 4


def write_tables(folder: Path) -> None:
    """Write SPLIT-train.csv, SPLIT-valid.csv and SPLIT-test.csv for each split, with the columns file and digit."""
    names = sorted(path.name for path in (folder / "recordings").glob("*.wav"))
    speakers = sorted({name.split("_")[1] for name in names})
    write_split(folder, "standard", names, [name for name in names if number(name) < STANDARD_TEST])
    for speaker in speakers:
        write_split(folder, speaker, names, [name for name in names if name.split("_")[1] == speaker])


def write_split(folder: Path, split: str, names: list[str], test: list[str]) -> None:
    """Write the three tables of a split, given its test recordings; the first others are for validation."""
    rest = [name for name in names if name not in set(test)]
    first = min(map(number, rest))
    valid = [name for name in rest if number(name) < first + VALIDATION]
    train = [name for name in rest if number(name) >= first + VALIDATION]
    for part, chosen in (("train", train), ("valid", valid), ("test", test)):
        with (folder / f"{split}-{part}.csv").open("w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(["file", "digit"])
            table.writerows([f"recordings/{name}", name[0]] for name in chosen)


def number(name: str) -> int:
    """The number of a recording."""
    return int(Path(name).stem.split("_")[2])


if __name__ == "__main__":
    write_tables(Path(sys.argv[1]))
