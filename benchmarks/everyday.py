"""How well a translator copes with what people type: python benchmarks/everyday.py MODEL --data DATA [--help]

MODEL translates from English to German. Its translations of tatoeba-en-de are scored by BLEU: of the test set, and of
`novel`, whose sentences have no near neighbour in the training set; both also in capitals and without punctuation at
the end.
Lines with URLs, e-mail addresses, numbers, placeholders, tags and emoji are made, and the share is counted that has all
of them in its translation; lines of odd text show whether translations loop. With --baseline OLD, the seconds for the
test set are measured for both models in turn.
"""

import gzip
import random
import re
import statistics
import string
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import record
from rich.console import Console

import heedful
from heedful.metrics.translation import Scoring, score
from heedful.predictors.literal_preserving_translator import LiteralPreservingTranslator
from heedful.predictors.translator import Translator

MARKS = string.whitespace + ".!?"
CHANGES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": str.upper,
    "without punctuation at the end": lambda text: text.rstrip(MARKS),
}
FRAMES = (
    "Call me at {0}.", "The price is {0}, not {1}.", "Please open {0} and look for {1}!", "{0} I am tired.",
    "My address is {0}.", "She sent {0} to {1} yesterday.", "Is {0} the same as {1}?", "I am tired {0}",
)  # fmt: skip


def literal(draw: random.Random) -> str:
    """Return something that is not language, and must be the same in a translation."""
    number = draw.randrange(10**6)
    return draw.choice(
        [
            f"https://example.org/p{number}?q={number % 97}",
            f"tom.{number}@mail.example",
            f"0{number % 1000} {number:07}",
            f"${number:,}.50",
            f"{number % 28 + 1}/{number % 12 + 1}/{1900 + number % 200}",
            f"{{name{number % 10}}}",
            f"%({'ab'[number % 2]})s",
            f"<b>{number}</b>",
            draw.choice("😀🎉🚀❤👍"),
        ]
    )


def odd_line(draw: random.Random, sentences: list[str]) -> str:
    """Return a line that no corpus has: repeated, shuffled, truncated or random words and characters."""
    words = draw.choice(sentences).split()
    kind = draw.randrange(6)
    if kind == 0:
        return " ".join([draw.choice(words)] * draw.randint(2, 60))
    if kind == 1:
        return " ".join(draw.sample(words, len(words)))
    if kind == 2:
        return " ".join(words)[: draw.randint(1, 20)]
    if kind == 3:
        return "".join(draw.choice(string.ascii_letters + string.punctuation + " ") for _ in range(draw.randint(1, 80)))
    if kind == 4:
        return "".join(draw.choice([str.upper, str.lower])(letter) for letter in " ".join(words))
    return " ".join(" ".join(draw.choice(sentences).split()) for _ in range(draw.randint(2, 6)))


def loops(source: str, translation: str) -> bool:
    """True if a translation has three words at least four times, and at least twice as often as its source has any."""

    def most(text: str) -> int:
        words = re.findall(r"\w+", text.lower())
        return max(Counter(zip(words, words[1:], words[2:], strict=False)).values(), default=0)

    return most(translation) >= max(4, 2 * most(source))


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--baseline", help="model whose seconds are measured, too, in float32 and with its own search")
    parser.add_argument("--precision", choices=["float32", "int8"], default="float32")
    parser.add_argument("--beam", type=int, help="default: the model's")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    console, draw = Console(width=120), random.Random(1)

    def lines(name: str) -> list[str]:
        with gzip.open(options.data / "tatoeba-en-de" / f"{name}.gz", "rt", encoding="utf-8") as file:
            return file.read().splitlines()

    def translator(model: str, precision: heedful.Precision, beam: int | None) -> LiteralPreservingTranslator:
        loaded = heedful.load(model, as_=Translator, engine="ctranslate2", precision=precision)
        return LiteralPreservingTranslator(loaded.with_options(beam=beam) if beam else loaded)

    def translate(model: LiteralPreservingTranslator, sources: list[str]) -> list[str]:
        return [result.alternatives[0].text for result in model.translate_lines(sources)]

    model = translator(options.model, options.precision, options.beam)
    results: dict[str, object] = {}
    scoring = Scoring(metrics=("bleu",), language="de")
    for name in ("test", "novel"):
        sources, references = lines(f"{name}.en"), lines(f"{name}.de")
        for title, change in CHANGES.items():
            translations = translate(model, list(map(change, sources)))
            [bleu] = score(translations, [list(map(change, references))], scoring)
            results[f"{name}, {title}"] = round(bleu.value, 2)
    made = []
    for _ in range(500):
        inserted = literal(draw), literal(draw)
        frame = draw.choice(FRAMES)
        used = inserted[: frame.count("{")]
        made.append((frame.format(*inserted), [part for one in used for part in re.findall(r"</?b>|[^<>]+", one)]))
    kept = zip(translate(model, [line for line, _ in made]), made, strict=True)
    results["lines with all literals"] = sum(all(part in text for part in parts) for text, (_, parts) in kept) / 500
    sentences = lines("test.en")
    odd = [odd_line(draw, sentences) for _ in range(3000)]
    results["loops in 3,000 odd lines"] = sum(map(loops, odd, translate(model, odd)))
    if options.baseline:
        systems = {"seconds": model, "seconds of the baseline": translator(options.baseline, "float32", None)}
        seconds: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(options.rounds):
            for name, system in systems.items():
                start = time.perf_counter()
                translate(system, sentences)
                seconds[name].append(time.perf_counter() - start)
        results |= {name: statistics.median(values) for name, values in seconds.items()}
    facts = {"model": Path(options.model).name, "precision": options.precision, "beam": options.beam}
    console.print(facts | results)
    record.append(__file__, record.machine(options.threads) | facts | {"results": results})


if __name__ == "__main__":
    main()
