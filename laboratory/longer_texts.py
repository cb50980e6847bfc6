"""Do position encodings work beyond the training length? python laboratory/longer_texts.py [--help]

The measurement is that of Press et al. (2022, section 2), with tasks that have the same answers at every length.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import TRANSFORMER
from report import Prediction, arguments, check, publish
from torch import Tensor

from heedful.architectures import LanguageModel
from heedful.nn.positions import sinusoids

LENGTH, TIMES = 32, 10  # of the texts in training; new texts are ten times as long
WIDTH, UPDATES, ROWS, TEST_ROWS, LEARNING_RATE = 64, 500, 32, 128, 2e-3
SYMBOLS, VOCABULARY, BACK = 8, 16, 3  # symbols are ids 0 to 7, noise 8 to 15
NO_ANSWER = -100
WINDOW = LENGTH // 4  # positions of a mean
SCHEMES = {
    "sinusoidal": "#b5651d",
    "learned": "#c9a227",
    "rotary": "#222222",
    "alibi": "#5a8fc8",
    "relative": "#3a7d44",
    "none": "#a05195",
}
LABELS = {"alibi": "ALiBi"}


class Task(NamedTuple):
    """A task with an answer at every position: draws rows of a length, (N, T), and their answers; chance; title."""

    rows: Callable[[int, int], tuple[Tensor, Tensor]]
    chance: float
    title: str


def back(count: int, length: int) -> tuple[Tensor, Tensor]:
    """Random tokens; the answer is the token at a fixed distance."""
    tokens = torch.randint(0, VOCABULARY, (count, length))
    answers = torch.full_like(tokens, NO_ANSWER)
    answers[:, BACK:] = tokens[:, :-BACK]
    return tokens, answers


def latest(count: int, length: int) -> tuple[Tensor, Tensor]:
    """Noise in which every eighth token on average is a symbol; the answer is the latest symbol so far."""
    is_symbol = torch.rand(count, length) < 1 / 8
    noise = torch.randint(SYMBOLS, VOCABULARY, (count, length))
    tokens = torch.where(is_symbol, torch.randint(0, SYMBOLS, (count, length)), noise)
    places = torch.where(is_symbol, torch.arange(length), -1).cummax(1).values  # of the latest symbol; -1: none so far
    return tokens, tokens.gather(1, places.clamp(min=0)).masked_fill(places < 0, NO_ANSWER)


TASKS = {
    "back": Task(back, 1 / VOCABULARY, f"the token {BACK} positions back"),
    "latest": Task(latest, 1 / SYMBOLS, "the latest symbol"),
}


def accuracies(task: Task, scheme: str, seed: int, updates: int, test_rows: int) -> list[float]:
    """Train a language model on short texts; return its accuracy in each window of long ones."""
    torch.manual_seed(seed)
    config = replace(TRANSFORMER, positions=scheme, d_model=WIDTH, d_ff=2 * WIDTH, max_positions=TIMES * LENGTH)
    model = LanguageModel(config, VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / updates)

    def logits(tokens: Tensor) -> Tensor:
        return model(tokens, torch.ones_like(tokens, dtype=torch.bool))

    for _ in range(updates):
        tokens, answers = task.rows(ROWS, LENGTH)
        optimizer.zero_grad()
        F.cross_entropy(logits(tokens).flatten(0, 1), answers.flatten(), ignore_index=NO_ANSWER).backward()
        optimizer.step()
        schedule.step()
    model.eval()
    tokens, answers = task.rows(test_rows, TIMES * LENGTH)
    with torch.no_grad():
        is_correct = logits(tokens).argmax(-1) == answers
    correct, answered = (mask.unflatten(1, (-1, WINDOW)).sum((0, 2)) for mask in (is_correct, answers != NO_ANSWER))
    return (correct / answered).tolist()


def difference_of_products() -> float:
    """Return by how much the products of two sinusoidal codes with the same distance differ at most."""
    codes = sinusoids(TIMES * LENGTH, WIDTH)
    products = codes @ codes.T
    return max(float(equal.max() - equal.min()) for equal in map(products.diagonal, range(len(codes))))


def main() -> None:
    options = arguments(__doc__, seeds=5)
    updates, test_rows = (2, 9) if options.quick else (UPDATES, TEST_ROWS)
    curves: dict[tuple[str, str], Tensor] = {}  # by task and scheme: accuracies of each seed in each window
    for task_name, task in TASKS.items():
        for scheme in SCHEMES:
            runs = [accuracies(task, scheme, seed, updates, test_rows) for seed in range(options.seeds)]
            curves[task_name, scheme] = torch.tensor(runs)
            print(
                task_name,
                scheme,
                [round(accuracy, 2) for accuracy in curves[task_name, scheme].mean(0).tolist()],
                flush=True,
            )

    figure, panels = plt.subplots(1, len(TASKS), figsize=(10, 3.6), sharey=True, layout="constrained")
    positions = torch.arange(WINDOW, TIMES * LENGTH + 1, WINDOW)  # the last one of each window
    for panel, (task_name, task) in zip(panels, TASKS.items(), strict=True):
        for scheme, colour in SCHEMES.items():
            panel.plot(positions, curves[task_name, scheme].mean(0), color=colour, label=LABELS.get(scheme, scheme))
        panel.axhline(task.chance, color="#999999", linestyle=":", linewidth=1)
        panel.axvline(LENGTH, color="#999999", linestyle=":", linewidth=1)
        panel.set(title=task.title, xlabel="position")
        panel.set_xscale("log", base=2)
        panel.set_xticks([8, 16, 32, 64, 128, 256], ["8", "16", "32", "64", "128", "256"])
    panels[0].set_ylabel("accuracy")
    panels[0].legend(fontsize="small")

    def at(task_name: str, scheme: str, times: int) -> Prediction:
        """The accuracy in the last window of a text that is so many times as long as those in training."""
        last = times * LENGTH
        values = curves[task_name, scheme][:, last // WINDOW - 1].tolist()
        name = LABELS.get(scheme, scheme)
        return check(task_name, values, least=0.9, name=name, first=last - WINDOW + 1, last=last)

    predictions = [check("products", [difference_of_products()], most=1e-4)]
    for task_name in TASKS:
        predictions += [at(task_name, "sinusoidal", times) for times in (1, 2, TIMES)]
        predictions += [at(task_name, scheme, TIMES) for scheme in ("rotary", "alibi", "relative")]
    points = {f"{task_name}, {scheme}": curve.tolist() for (task_name, scheme), curve in curves.items()}
    publish("longer_texts", predictions, figure, options, window=WINDOW, curves=points)


if __name__ == "__main__":
    main()
