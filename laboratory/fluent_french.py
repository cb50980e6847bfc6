"""Does a language model remember "France" until "French"? python laboratory/fluent_french.py [--help]

Each text begins with the country where the narrator grew up, and ends with the language that the narrator speaks.
"""

import random

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import COLOURS, MODELS
from report import Prediction, arguments, check, publish
from torch import Tensor

from heedful.architectures import LanguageModel

LANGUAGES = {
    "Denmark": "Danish",
    "England": "English",
    "Finland": "Finnish",
    "France": "French",
    "Germany": "German",
    "Greece": "Greek",
    "Italy": "Italian",
    "Japan": "Japanese",
    "Poland": "Polish",
    "Russia": "Russian",
    "Spain": "Spanish",
    "Sweden": "Swedish",
}
FIRST, LAST = "I {began} in {country} .", "I speak fluent"  # and then the language
BETWEEN = (  # some name another country, or another language
    "on {day} we ate {food} .",
    "my {relative} is a good {job} .",
    "the {season} was {weather} and very long .",
    "our {animal} sleeps in the {room} .",
    "last {season} we travelled to {country} .",
    "my {relative} reads {language} books .",
)
WORDS = {
    "began": ("was born", "grew up", "went to school"),
    "country": tuple(LANGUAGES),
    "language": tuple(LANGUAGES.values()),
    "day": ("Monday", "Tuesday", "Friday", "Saturday", "Sunday"),
    "food": ("bread", "cheese", "fish", "noodles", "rice", "soup"),
    "relative": ("aunt", "brother", "cousin", "father", "mother", "sister", "uncle"),
    "job": ("baker", "doctor", "driver", "farmer", "nurse", "teacher"),
    "season": ("autumn", "spring", "summer", "winter"),
    "weather": ("cold", "dry", "hot", "rainy", "warm"),
    "animal": ("cat", "dog", "hamster", "parrot"),
    "room": ("cellar", "garden", "hall", "kitchen"),
}
TEMPLATES = (FIRST, LAST, *BETWEEN, *sum(WORDS.values(), ()))
VOCABULARY = sorted({word for template in TEMPLATES for word in template.split() if not word.startswith("{")})
IDS = {word: id for id, word in enumerate(VOCABULARY, start=1)}
PAD = 0
FAR = 4  # sentences in between, at most, in training
COUNTS = (0, 1, 2, FAR, 2 * FAR, 4 * FAR)
LAST_ONLY = "RNN, last word only"  # not trained to predict the other words
MODELS_AND_COLOURS = {name: (MODELS[name], COLOURS[name]) for name in ("RNN", "LSTM", "Transformer")} | {
    LAST_ONLY: (MODELS["RNN"], "#c9a227")
}
WIDTH, UPDATES, ROWS, TEST_ROWS, LEARNING_RATE = 64, 1000, 32, 256, 2e-3


def draw(rng: random.Random) -> dict[str, str]:
    """Draw a word or phrase of each kind."""
    return {kind: rng.choice(choices) for kind, choices in WORDS.items()}


def text(between: int, rng: random.Random) -> list[int]:
    """Draw a text with so many sentences between the first and the last; return the ids of its words."""
    narrator = draw(rng)
    others = [rng.choice(BETWEEN).format(**draw(rng)) for _ in range(between)]
    sentences = [FIRST.format(**narrator), *others, LAST, LANGUAGES[narrator["country"]]]
    return [IDS[word] for word in " ".join(sentences).split()]


def texts(between: int, count: int, rng: random.Random) -> Tensor:
    """Draw texts, padded on the right, (B, T)."""
    rows = [torch.tensor(text(between, rng)) for _ in range(count)]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


def accuracies(name: str, seed: int, updates: int, test_rows: int) -> list[float]:
    """Train a language model on texts; return how often its best guess for the last word is right, by distance."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model = LanguageModel(MODELS_AND_COLOURS[name][0](WIDTH), len(VOCABULARY) + 1)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / updates)

    def predictions(between: int, rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the logits of the next words, (B, T, V), the next words, and the same of the last word alone."""
        tokens = texts(between, rows, rng)
        inputs, words = tokens[:, :-1], tokens[:, 1:]
        logits = model(inputs, inputs != PAD)
        last = torch.arange(rows), (words != PAD).sum(1) - 1
        return logits, words, logits[last], words[last]

    for update in range(updates):
        longest = min(FAR, 2 * FAR * update // updates)  # texts become longer during the first half of the training
        logits, words, last_logits, languages = predictions(rng.randint(0, longest), ROWS)
        optimizer.zero_grad()
        loss = F.cross_entropy(last_logits, languages)
        if name != LAST_ONLY:
            # The last word counts as much as all words together; otherwise, it would hardly influence short trainings.
            loss = loss + F.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=PAD)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    curve = []
    for between in COUNTS:
        with torch.no_grad():
            _, _, logits, languages = predictions(between, test_rows)
        curve.append(float((logits.argmax(-1) == languages).float().mean()))
    print(name, seed, [round(accuracy, 3) for accuracy in curve], flush=True)
    return curve


def main() -> None:
    options = arguments(__doc__, seeds=5)
    updates, test_rows = (2, 5) if options.quick else (UPDATES, TEST_ROWS)
    curves = {
        name: torch.tensor([accuracies(name, seed, updates, test_rows) for seed in range(options.seeds)])
        for name in MODELS_AND_COLOURS
    }

    figure, axes = plt.subplots(figsize=(7, 3.4))
    for name, (_, colour) in MODELS_AND_COLOURS.items():
        axes.plot(curves[name].mean(0), color=colour, marker="o", label=name)
        axes.plot(curves[name].T, ".", color=colour, markersize=4, alpha=0.5)
    axes.axhline(1 / len(LANGUAGES), color="#999999", linestyle=":", linewidth=1)
    axes.axvline(COUNTS.index(FAR), color="#999999", linestyle=":", linewidth=1)
    axes.set_xticks(range(len(COUNTS)), list(map(str, COUNTS)))
    axes.set(xlabel="sentences in between", ylabel="accuracy of the language", ylim=(0, 1.05))
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.02, 1))

    def at(name: str, between: int) -> Prediction:
        values = curves[name][:, COUNTS.index(between)].tolist()
        return check("accuracy", values, least=0.9, name=name, between=between)

    predictions = [at(name, between) for name in MODELS_AND_COLOURS for between in (1, FAR, 2 * FAR)]
    points = {name: curve.tolist() for name, curve in curves.items()}
    publish("fluent_french", predictions, figure, options, sentences=COUNTS, curves=points)


if __name__ == "__main__":
    main()
