"""Write the sentence pairs of IWSLT 2014 in a training, a validation and a test part.

python prepare.py DATA/iwslt14 DATA/iwslt14-de-en

As in fairseq's script of 2017, the text is lower-cased, every 23rd training pair is for validation, and five sets of
talks are the test set. Titles and descriptions of the training talks stay in, but no other facts about them.
"""

import gzip
import re
import sys
from pathlib import Path

LANGUAGES = "de", "en"
TESTS = "TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"
TEXT_TAG = re.compile(r"</?(title|description)>")
SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.DOTALL)
EVERY = 23


def main(folder: Path, out: Path) -> None:
    out.mkdir(parents=True)
    training = list(zip(*(talks(folder / f"train.tags.de-en.{language}.gz") for language in LANGUAGES), strict=True))
    tests = [
        pair
        for name in TESTS
        for pair in zip(
            *(segments(folder / f"IWSLT14.{name}.de-en.{language}.xml") for language in LANGUAGES), strict=True
        )
    ]
    parts = {
        "train": [pair for number, pair in enumerate(training, 1) if number % EVERY],
        "valid": training[EVERY - 1 :: EVERY],
        "test": tests,
    }
    for name, pairs in parts.items():
        for side, language in enumerate(LANGUAGES):
            lines = "".join(f"{pair[side]}\n" for pair in pairs)
            (out / f"{name}.{language}.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def talks(path: Path) -> list[str]:
    """Read the training text, of which lines with other tags than those of titles and descriptions are left out."""
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
    texts = (TEXT_TAG.sub("", line).strip() for line in lines)
    return [text.lower() for text in texts if not text.startswith("<")]


def segments(path: Path) -> list[str]:
    return [" ".join(text.split()).lower() for text in SEGMENT.findall(path.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
