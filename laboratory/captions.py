"""Arguments, test set and BLEU of the experiments on captions (Multi30k)."""

import argparse
import gzip
from pathlib import Path
from typing import Any

import sacrebleu
from report import arguments

from heedful.config.schema import DataConfig
from heedful.corpora.scenes import split
from heedful.corpora.scenes.corpus import corpus_files
from heedful.data.readers.corpus import read_pairs
from heedful.predictors import Translator

FOLDER = "multi30k-en-de"


def caption_arguments(docstring: str | None, seeds: int, models: str, **further: dict[str, Any]) -> argparse.Namespace:
    """Parse the options of an experiment on captions; with --quick, sentences of a grammar take their place."""
    data = {"type": Path, "help": f"folder of the data, which has {FOLDER}/"}
    options = arguments(docstring, seeds=seeds, models=models, data=data, **further)
    if options.quick:
        options.data = options.out / "data"
        write_small_data(options.data / FOLDER)
    return options


def write_small_data(folder: Path) -> None:
    """Write sentences of a grammar in place of the data, to see that the script runs."""
    folder.mkdir(parents=True)
    files = corpus_files("en-de", split("en-de", train=60, valid=8, test=8, seed=1))
    for part, name in {"train": "train", "valid": "val", "test": "test_2016_flickr"}.items():
        for language in ("en", "de"):
            content = gzip.compress(files[f"{part}.{language}"].encode())
            (folder / f"{name}.lc.norm.tok.{language}.gz").write_bytes(content)


def test_set(data: DataConfig) -> tuple[list[str], list[str]]:
    """Return the sources and the references of the test set."""
    pairs = list(read_pairs(data.test, data)) if data.test else []
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def bleu(translator: Translator, sources: list[str], references: list[str]) -> float:
    """Return the BLEU of translations; the text is tokenised and lower-cased."""
    return sacrebleu.corpus_bleu(translator.translate(sources), [references], tokenize="none").score
