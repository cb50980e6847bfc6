"""Recurrent translators with and without attention: python laboratory/without_attention.py [--help]

The translators are trained on sentences of `heedful scenes`, each of which has exactly one translation.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from models import COLOURS
from report import Prediction, arguments, check, publish
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.architectures.recurrent.model import RecurrentEncoderDecoder
from heedful.architectures.recurrent.settings import RecurrentConfig
from heedful.corpora.scenes import ScenePair, split
from heedful.text.tokenizer import BOS, EOS, PAD

TRAINING, TEST, UPDATES, ROWS, WIDTH, LEARNING_RATE = 20_000, 1_000, 1_000, 32, 64, 8e-3
CONFIG = RecurrentConfig(d_model=WIDTH, dropout=0.0, tie="output")
CELLS = {"gru": "GRU", "lstm": "LSTM"}
ATTENTION = {"none": "without attention", "general": "with attention"}
LENGTHS = {"3-6": range(3, 7), "7-9": range(7, 10), "10-12": range(10, 13), "13+": range(13, 100)}
SHORT, *_, LONG = LENGTHS
FIRST_WORD = EOS + 1  # the first id of a word

Curves = dict[tuple[str, str], list[list[float]]]  # by cell and attention: for each seed, the accuracy at each length


class Pairs(NamedTuple):
    """Sentence pairs as ids of their words, padded, and the number of words of each source."""

    source: Tensor  # (B, N)
    target: Tensor  # (B, T + 1), with BOS
    lengths: Tensor  # (B,)

    def of(self, rows: Tensor) -> "Pairs":
        return Pairs(self.source[rows], self.target[rows], self.lengths[rows])

    @property
    def real(self) -> Tensor:
        """True for the target tokens to predict, (B, T)."""
        return self.target[:, 1:] != PAD


def main() -> None:
    options = arguments(__doc__, seeds=3)
    training_size, test_size, updates = (300, 100, 1) if options.quick else (TRAINING, TEST, UPDATES)
    parts = split("en-de", training_size, test_size, 0, seed=1)
    source_ids: dict[str, int] = {}
    target_ids: dict[str, int] = {}
    training, test = (as_ids(parts[part], source_ids, target_ids) for part in ("train", "valid"))
    curves: Curves = {(cell, attention): [] for cell in CELLS for attention in ATTENTION}
    for seed in range(options.seeds):
        for cell, attention in curves:
            torch.manual_seed(seed)
            vocabularies = (FIRST_WORD + len(ids) for ids in (source_ids, target_ids))
            model = RecurrentEncoderDecoder(replace(CONFIG, cell=cell, attention=attention), *vocabularies)
            learn(model, training, updates)
            curves[cell, attention].append(accuracies(model, test))
            print(seed, cell, attention, [round(value, 3) for value in curves[cell, attention][-1]], flush=True)
    publish("without_attention", predictions(curves), drawn(curves), options, points=points(curves))


def as_ids(examples: Sequence[ScenePair], source_ids: dict[str, int], target_ids: dict[str, int]) -> Pairs:
    """Number the words of sentence pairs, whatever their case; new words are added to the ids."""

    def words(text: str, ids: dict[str, int]) -> list[int]:
        return [ids.setdefault(word, FIRST_WORD + len(ids)) for word in text.lower().split()]

    sources = [torch.tensor([*words(pair.source.text, source_ids), EOS]) for pair in examples]
    targets = [torch.tensor([BOS, *words(pair.target.text, target_ids), EOS]) for pair in examples]
    lengths = torch.tensor([len(source) - 1 for source in sources])
    return Pairs(pad_sequence(sources, True, PAD), pad_sequence(targets, True, PAD), lengths)


def logits(model: RecurrentEncoderDecoder, pairs: Pairs) -> Tensor:
    """Compute the logits of all real target tokens, (N, V)."""
    before = pairs.target[:, :-1]
    return model.output(model.hidden(pairs.source, pairs.source != PAD, before, before != PAD)[pairs.real])


def learn(model: RecurrentEncoderDecoder, training: Pairs, updates: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: min((update + 1) / 50, 1 - update / updates))
    for _ in range(updates):
        batch = training.of(torch.randint(len(training.source), (ROWS,)))
        optimizer.zero_grad()
        F.cross_entropy(logits(model, batch), batch.target[:, 1:][batch.real]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


@torch.no_grad()
def accuracies(model: RecurrentEncoderDecoder, test: Pairs) -> list[float]:
    """Return the share of sentences of each length whose greedy translation is correct."""
    # Greedy search writes the reference exactly if every token of it is the best one after those before it.
    best = torch.zeros_like(test.target[:, 1:]).masked_scatter(test.real, logits(model, test).argmax(-1))
    correct = ((best == test.target[:, 1:]) | ~test.real).all(1)
    groups = [torch.isin(test.lengths, torch.tensor(group)) for group in LENGTHS.values()]
    return [float(correct[group].float().mean()) for group in groups]


def predictions(curves: Curves) -> list[Prediction]:
    """Check for each cell that attention helps, and that long sentences lose less with it."""
    checks = []
    for cell, name in CELLS.items():
        without, attending = curves[cell, "none"], curves[cell, "general"]
        pairs = list(zip(attending, without, strict=True))
        checks += [
            check("attending", [curve[0] for curve in attending], least=0.5, name=name, length=SHORT),
            check("gain", [high[0] - low[0] for high, low in pairs], least=0.1, name=name, length=SHORT),
            check("gain", [high[-1] - low[-1] for high, low in pairs], least=0.1, name=name, length=LONG),
            check("kept", [kept(high) - kept(low) for high, low in pairs], least=0, name=name),
        ]
    return checks


def kept(curve: Sequence[float]) -> float:
    """Return the accuracy for long sentences as a share of that for short ones."""
    return curve[-1] / curve[0] if curve[0] else 0.0


def points(curves: Curves) -> list[dict[str, Any]]:
    means = {key: map(fmean, zip(*each, strict=True)) for key, each in curves.items()}
    return [
        {"cell": cell, "attention": attention, "correct": dict(zip(LENGTHS, each, strict=True))}
        for (cell, attention), each in means.items()
    ]


def drawn(curves: Curves) -> Any:
    """Draw the share of correct translations over the length of the source."""
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for (cell, attention), each in curves.items():
        means, colour = list(map(fmean, zip(*each, strict=True))), COLOURS[CELLS[cell]]
        line, label = "--" if attention == "none" else "-", f"{CELLS[cell]} {ATTENTION[attention]}"
        axes.plot(list(LENGTHS), means, line, marker="o", label=label, color=colour)
        for curve in each:
            axes.plot(list(LENGTHS), curve, ".", color=colour, markersize=3, alpha=0.6)
    axes.set(xlabel="words of the source", ylabel="correct translations", ylim=(-0.03, 1.03))
    axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main()
