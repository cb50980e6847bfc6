"""A user's own text of every kind that `heedful init` takes, made by the grammar of scenes."""

import csv
import json
from pathlib import Path

from heedful.corpora.scenes import generate

PAIRS = [(pair.source.text, pair.target.text) for pair in generate("en-de", 307, seed=1)]
ENGLISH = [source for source, _ in PAIRS]
REVIEWS = [
    (f"{text} Number {number}.", "about a man" if " man" in text else "other") for number, text in enumerate(ENGLISH)
]


def write_lines(file: Path, lines: list[str]) -> None:
    """A file with these lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_csv(file: Path, rows: list[tuple[str, ...]]) -> None:
    """A table with commas, quoted where that is needed."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)


def lay_out(folder: Path) -> None:
    """All of it."""
    write_lines(folder / "news.en", ENGLISH)
    write_lines(folder / "news.de", [target for _, target in PAIRS])
    write_lines(folder / "book.txt", [text + "\n" * (number % 7 == 0) for number, text in enumerate(ENGLISH)])
    for name, part in (("one.txt", ENGLISH[:151]), ("two.md", ENGLISH[151:])):
        write_lines(folder / "books" / name, part)
    write_lines(folder / "reviews.tsv", ["review\tverdict", *("\t".join(row) for row in REVIEWS)])
    write_csv(folder / "reviews.csv", [("Text", "Label"), *((f'"{text}",\nhe said', label) for text, label in REVIEWS)])
    objects = [{"id": number, "body": text, "kind": kind} for number, (text, kind) in enumerate(REVIEWS)]
    write_lines(folder / "reviews.jsonl", [json.dumps(values) for values in objects])
    write_csv(folder / "pairs.csv", [("en", "de"), *PAIRS])
    scored = [f"{number / 7}\t{text}" for number, (text, _) in enumerate(REVIEWS)]
    write_lines(folder / "scored.tsv", ["score\ttext", *scored])
    write_lines(folder / "same.tsv", [f"{a}\t{b}\t{number % 2}" for number, (a, b) in enumerate(PAIRS)])
