"""Are smaller units of text always better? python laboratory/units.py [--help]

Translators from English to Chinese read and write words, subwords, characters or bytes. The sentences are those of
`heedful scenes`, each of which has exactly one translation, and whose words the grammar knows.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from models import BLUE
from report import ROOT, arguments, check, publish

import heedful
from heedful.config.schema import TokenizerConfig
from heedful.corpora.scenes import ScenePair, Sentence, split
from heedful.predictors import Translator
from heedful.text.training import train_tokenizer

TRAINING, VALIDATION, TEST, UPDATES, BATCH_WORDS = 20_000, 100, 500, 600, 4096
SUBWORDS = 300  # merges and characters of each language; characters alone are about half of them
SPACE = "▁"
SETTINGS: dict[str, Any] = {
    "data.target_language": "zh",
    "data.train": [{"source": "train.en", "target": "train.zh"}],
    "data.valid": {"source": "valid.en", "target": "valid.zh"},
    "data.test": {"source": "test.en", "target": "test.zh"},
    "tokenizer.pretokenized": True,
    "model.d_model": 64,
    "model.d_ff": 128,
    "model.heads": 4,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "train.precision": "float32",
    "decode.max_extra": 200,
}
SMALL = {"model.d_model": 16, "model.d_ff": 16, "decode.max_extra": 3}  # with --quick


class Units(NamedTuple):
    """A way to write sentences as units that are separated by spaces, and texts back from them."""

    split: Callable[[Sentence], Sequence[str]]
    join: Callable[[Sequence[str]], str]


class Run(NamedTuple):
    """One training: the share of correct translations, and the mean number of units of a source and a target."""

    correct: float
    source_units: float
    target_units: float


def main() -> None:
    options = arguments(__doc__, seeds=3, models="units")
    parts = split("en-zh", *((300, 20, 20) if options.quick else (TRAINING, VALIDATION, TEST)), seed=1)
    runs: dict[str, list[Run]] = {}  # of each seed, by the units
    for name, sides in ways_to_write(parts["train"]).items():
        write(options.work / name, parts, sides)
        runs[name] = [trained(name, sides, parts, seed, options) for seed in range(1, options.seeds + 1)]
        print(name, runs[name], flush=True)

    def differences(one: str, other: str) -> list[float]:
        return [a.correct - b.correct for a, b in zip(runs[one], runs[other], strict=True)]

    predictions = [
        check("complete", [run.correct for run in runs["words"]], least=0.9),
        *(check("difference", differences(name, "words"), most=-0.05, name=name) for name in ("characters", "bytes")),
        check("difference", differences("subwords", "words"), least=-0.05, name="subwords"),
    ]
    points = [
        {"name": name, **{key: fmean(map(float, column)) for key, column in columns(runs[name])}} for name in runs
    ]
    publish("units", predictions, drawn(runs), options, points=points)


def ways_to_write(pairs: Sequence[ScenePair]) -> dict[str, tuple[Units, Units]]:
    """Return the units of both languages; subwords are learned from the training data."""
    words = Units(lambda sentence: sentence.words, " ".join), Units(lambda sentence: sentence.words, "".join)
    return {
        "words": words,
        "subwords": (subwords([pair.source for pair in pairs]), subwords([pair.target for pair in pairs])),
        "characters": (CHARACTERS, CHARACTERS),
        "bytes": (BYTES, BYTES),
    }


def subwords(sentences: Sequence[Sentence]) -> Units:
    """Learn subwords by byte-pair encoding (Sennrich et al. 2016)."""
    texts = [sentence.text for sentence in sentences]
    characters = len(set("".join(texts)))
    tokenizer = train_tokenizer(
        texts, TokenizerConfig(kind="bpe", vocab_size=characters + SUBWORDS, byte_fallback=False)
    )
    return Units(lambda sentence: tokenizer.pieces(tokenizer.encode(sentence.text)), joined)


def joined(pieces: Sequence[str]) -> str:
    return "".join(pieces).replace(SPACE, " ").strip()


def from_bytes(units: Sequence[str]) -> str:
    return bytes(int(unit, 16) for unit in units if len(unit) == 2).decode("utf-8", errors="replace")


CHARACTERS = Units(lambda sentence: sentence.text.replace(" ", SPACE), joined)
BYTES = Units(lambda sentence: [f"{byte:02x}" for byte in sentence.text.encode()], from_bytes)


def write(folder: Path, parts: dict[str, list[ScenePair]], sides: tuple[Units, Units]) -> None:
    """Write the data in these units."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, pairs in parts.items():
        for language, units, sentences in (
            ("en", sides[0], [pair.source for pair in pairs]),
            ("zh", sides[1], [pair.target for pair in pairs]),
        ):
            lines = (" ".join(units.split(sentence)) + "\n" for sentence in sentences)
            (folder / f"{part}.{language}").write_text("".join(lines), encoding="utf-8")


def trained(name: str, sides: tuple[Units, Units], parts: dict[str, list[ScenePair]], seed: int, options: Any) -> Run:
    """Train a translator, or load the one that is already trained, and translate the test set."""
    source, target = (
        fmean(len(units.split(getattr(pair, side))) for pair in parts["test"])
        for side, units in zip(("source", "target"), sides, strict=True)
    )
    words = fmean(len(pair.source.words) for pair in parts["test"])
    updates = 2 if options.quick else UPDATES
    changes = (
        SETTINGS
        | (SMALL if options.quick else {})
        | {
            "train.seed": seed,
            "train.max_updates": updates,
            "train.batch_tokens": round(BATCH_WORDS * max(source, target) / words),  # as many sentences in any units
            "train.threads": options.threads,
            "train.validate_every": updates,
            "train.save_every": updates,
            "optimizer.warmup": min(100, updates // 2),
        }
    )
    run = heedful.train(ROOT / "recipes/scenes-en-de", options.work / f"{name}-{seed}", options.work / name, changes)
    translator = heedful.load(run.folder, "cpu", as_=Translator).with_options(beam=1)
    outputs = translator.translate([" ".join(sides[0].split(pair.source)) for pair in parts["test"]])
    references = [pair.target.text for pair in parts["test"]]
    correct = [sides[1].join(o.split()) == reference for o, reference in zip(outputs, references, strict=True)]
    return Run(fmean(correct), source, target)


def columns(runs: Sequence[Run]) -> list[tuple[str, tuple[float, ...]]]:
    """Return each value with those of all seeds."""
    return list(zip(Run._fields, zip(*runs, strict=True), strict=True))


def drawn(runs: dict[str, list[Run]]) -> Any:
    """Draw the share of correct translations over the length of the sentences, for each kind of units."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for number, (name, each) in enumerate(runs.items()):
        length = (each[0].source_units + each[0].target_units) / 2
        correct = [run.correct for run in each]
        axes.plot([length] * len(each), correct, ".", color=BLUE, alpha=0.5)
        axes.plot(length, fmean(correct), "_", color=BLUE, markersize=14)
        place = 9, -11 if number % 2 else 3  # the labels of neighbours are on different sides
        axes.annotate(name, (length, fmean(correct)), xytext=place, textcoords="offset points", fontsize="small")
    axes.set(xlabel="units per sentence, mean of both languages", ylabel="correct translations")
    axes.set(xlim=(5, 50), ylim=(0, 1.05))
    return figure


if __name__ == "__main__":
    main()
