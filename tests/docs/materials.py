"""What a reader has at hand before the first line of a page: a little text, and folders of Hugging Face."""

import gzip
import wave
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from pages import ROOT

import foreign_models
from heedful.corpora.scenes import generate

PAIRS = list(generate("en-de", 307, seed=1))
ENGLISH = [pair.source.text for pair in PAIRS]
GERMAN = [pair.target.text for pair in PAIRS]
PARTS = {"train": slice(0, 251), "valid": slice(251, 268), "test": slice(268, 287)}
LABELLED = [f"{text}\t{number % 2}" for number, text in enumerate(ENGLISH)]
QUOTED = [f'"{text}",{number % 2}' for number, text in enumerate(ENGLISH)]
CHAPTERS = ["\n".join(ENGLISH[i : i + 11]) + "\n\n" for i in range(0, 307, 11)]
MINE = """
name = "mine"
[data]
train = [{ source = "news.en", target = "news.de" }]
valid = { source = "other.en", target = "other.de" }
test = { source = "other.en", target = "other.de" }
filters = { max_tokens = 61 }
[tokenizer]
vocab_size = 503
[model]
d_model = 8
d_ff = 11
heads = 2
encoder_layers = 1
decoder_layers = 1
[train]
max_updates = 300
validate_every = 300
save_every = 100
batch_tokens = 67
device = "cpu"
[decode]
max_extra = 3
"""


def lay_out(folder: Path) -> None:
    """Put everything that the pages take for granted into a folder."""
    write(folder / "news.en", ENGLISH)
    write(folder / "news.de", GERMAN)
    for name in ("recipes", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    write_pairs(folder)
    write_texts(folder)
    foreign_models.bert(folder / "all-MiniLM-L6-v2", "BertModel", max_position_embeddings=512)  # as the real one
    foreign_models.whisper(folder / "whisper-tiny")
    write_sounds(folder)
    foreign_models.marian(folder / "opus-mt-en-de", max_position_embeddings=512)


def write_sounds(folder: Path) -> None:
    """Recordings of some seconds, of one channel each."""
    for name, hertz, seconds in (("talk", 440, 3), ("interview", 220, 2)):
        times = np.arange(16_000 * seconds) / 16_000
        with wave.open(str(folder / f"{name}.wav"), "wb") as sound:
            sound.setparams((1, 2, 16_000, 0, "NONE", ""))
            sound.writeframes((9000 * np.sin(2 * np.pi * hertz * times) * np.cos(3 * times)).astype("<i2").tobytes())


def write_pairs(folder: Path) -> None:
    """Pairs under the names of the how-to pages and of the recipe of Multi30k, and a recipe for some of them."""
    test = PARTS["test"]
    write(folder / "other.en", ENGLISH[test])
    write(folder / "other.de", GERMAN[test])
    write(folder / "letters.en", ENGLISH[:3])
    write(folder / "letters.csv", ["number,text", *(f'{i},"{line}"' for i, line in enumerate(ENGLISH[:3]))])
    names = {"train": "train", "val": "valid", "test_2016_flickr": "test"}
    for name, part in names.items():
        for language, lines in (("en", ENGLISH), ("de", GERMAN)):
            write(folder / f"DATA/multi30k-en-de/{name}.lc.norm.tok.{language}.gz", lines[PARTS[part]])
    for name in ("news.en", "news.de", "other.en", "other.de"):
        write(folder / "DATA" / name, (folder / name).read_text().splitlines())
    (folder / "mine.toml").write_text(MINE)


def write_texts(folder: Path) -> None:
    """Running text, labelled text, questions and prompts."""
    write(folder / "book.txt", ENGLISH)
    write(folder / "books/book.txt", ENGLISH)
    write(folder / "DATA/tinyshakespeare/input.txt.gz", ENGLISH)
    for place in ("library/books", "DATA/gutenberg"):
        for book in ("one", "two"):
            write(folder / place / f"{book}.txt", CHAPTERS)
    write(folder / "DATA/newstest/newstest2013.en.gz", ENGLISH)
    write(folder / "reviews.tsv", LABELLED)
    write(folder / "reviews.csv", QUOTED)
    write(folder / "DATA/sst2/train.tsv.gz", LABELLED[PARTS["train"]])
    write(folder / "DATA/sst2/dev.tsv.gz", LABELLED[PARTS["valid"]])
    for name in ("texts.txt", "prompts.txt", "plots.txt"):
        write(folder / name, ENGLISH[:7])


def write(file: Path, lines: Iterable[str]) -> None:
    """Write a line each, packed where the name says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    file.write_bytes(gzip.compress(text, mtime=0) if file.suffix == ".gz" else text)
