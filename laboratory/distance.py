"""Recall of a token against its distance, trained: python laboratory/distance.py [--help]

Each model reads one token to be remembered, then noise, then says the token.
"""

import math

import findings
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from findings import Check
from opponents import COLOURS, OPPONENTS, classifier

SYMBOLS, NOISE = 8, 8  # tokens to remember, tokens between
WIDTH, LONGEST, UPDATES, ROWS = 64, 64, 1200, 64
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 96, 128)


def rows(distance: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and symbols: a symbol, then so many tokens of noise."""
    symbols = torch.randint(0, SYMBOLS, (count,))
    noise = torch.randint(SYMBOLS, SYMBOLS + NOISE, (count, distance))
    return torch.cat([symbols[:, None], noise], dim=1), symbols


def accuracies(name: str, seed: int, updates: int, count: int) -> list[float]:
    """Train a model, and score it on so many rows at each distance."""
    torch.manual_seed(seed)
    model = classifier(name, WIDTH, SYMBOLS + NOISE, SYMBOLS)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / updates)
    for _ in range(updates):
        tokens, symbols = rows(int(torch.randint(1, LONGEST + 1, ())), ROWS)
        loss = F.cross_entropy(model(tokens, torch.ones_like(tokens, dtype=torch.bool)), symbols)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    found = []
    with torch.no_grad():
        for distance in DISTANCES:
            tokens, symbols = rows(distance, count)
            said = model(tokens, torch.ones_like(tokens, dtype=torch.bool)).argmax(-1)
            found.append(float((said == symbols).float().mean()))
    print(name, seed, [round(value, 3) for value in found], flush=True)
    return found


def main() -> None:
    options = findings.arguments(__doc__, seeds=3)
    updates, count = (3, 5) if options.quick else (UPDATES, 512)
    curves = {name: [accuracies(name, seed, updates, count) for seed in range(options.seeds)] for name in OPPONENTS}
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, found in curves.items():
        axes.plot(DISTANCES, torch.tensor(found).mean(0), marker="o", label=name, color=COLOURS[name])
    axes.axhline(1 / SYMBOLS, color="#999999", linestyle=":", linewidth=1)
    axes.axvline(LONGEST, color="#999999", linestyle=":", linewidth=1)
    axes.set(xlabel="tokens between", ylabel="accuracy", xscale="log")
    axes.legend(fontsize="small")

    def check(name: str, distance: int, least: float = -math.inf, most: float = math.inf) -> Check:
        values = [curve[DISTANCES.index(distance)] for curve in curves[name]]
        return Check("accuracy", values, least, most, {"name": name, "distance": distance})

    checks = [
        check("RNN", 64, most=0.5),
        check("LSTM", 64, least=0.9),
        check("CNN, 2 layers", 64, most=0.2),
        check("CNN, 8 layers", 8, least=0.9),
        check("CNN, 8 layers", 64, most=0.2),
        check("Transformer", 64, least=0.9),
        check("Transformer", 128, least=0.9),
    ]
    findings.publish("distance", checks, figure, options)


if __name__ == "__main__":
    main()
