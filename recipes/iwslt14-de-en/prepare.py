"""Write the sentence pairs of IWSLT 2014 in a training, a validation and a test part.

python prepare.py DATA/iwslt14

As in fairseq's script of 2017, the text is lower-cased, every 23rd training pair is for validation, and five sets of
talks are the test set. Titles and descriptions of the training talks stay in, but no other facts about them.
"""

import argparse
import gzip
import re
from pathlib import Path

LANGUAGES = "de", "en"
TESTS = "TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"
TEXT_TAG = re.compile(r"</?(title|description)>")
EVERY = 23


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the data set iwslt14, to which the parts are written")
    folder = parser.parse_args().folder
    if not folder.is_dir():
        parser.error(f"{folder}: no such folder; download it with `heedful data iwslt14 --out {folder.parent}`")
    for language in LANGUAGES:
        training = talks(folder / f"train.tags.de-en.{language}.gz")
        parts = {
            "train": [text for number, text in enumerate(training, 1) if number % EVERY],
            "valid": training[EVERY - 1 :: EVERY],
            "test": [text for name in TESTS for text in lines(folder / f"{name}.{language}.gz")],
        }
        for name, texts in parts.items():
            content = "".join(f"{text.lower()}\n" for text in texts)
            (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(content.encode(), mtime=0))


def talks(path: Path) -> list[str]:
    """Read the training text, of which lines with other tags than those of titles and descriptions are left out."""
    texts = (TEXT_TAG.sub("", line).strip() for line in lines(path))
    return [text for text in texts if not text.startswith("<")]


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


if __name__ == "__main__":
    main()
