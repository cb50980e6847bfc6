"""Recall, agreement and copying against distance, trained: python laboratory/distance.py [--help]"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import findings
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from far_answers import TASKS, VOCABULARY
from findings import Check
from opponents import COLOURS, OPPONENTS
from torch import Tensor

from heedful.architectures import LanguageModel

WIDTH, UPDATES, ROWS = 64, 1200, 64


def accuracies(task: str, name: str, seed: int, updates: int, count: int) -> list[float]:
    """Train a language model on the answers of a task, and score it on so many rows at each distance."""
    torch.manual_seed(seed)
    one = TASKS[task]
    model = LanguageModel(OPPONENTS[name](WIDTH), VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / updates)

    def logits(tokens: Tensor, answers: Tensor) -> Tensor:
        return model(tokens, torch.ones_like(tokens, dtype=torch.bool))[:, -answers.size(1) :]

    for _ in range(updates):
        tokens, answers = one.rows(int(torch.randint(1, one.longest + 1, ())), ROWS)
        loss = F.cross_entropy(logits(tokens, answers).flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        tests = [one.rows(distance, count) for distance in one.distances]
        found = [float((logits(*test).argmax(-1) == test[1]).float().mean()) for test in tests]
    print(task, name, seed, [round(value, 3) for value in found], flush=True)
    return found


def main() -> None:
    options = findings.arguments(__doc__, seeds=3)
    updates, count = (1, 5) if options.quick else (UPDATES, 256)
    jobs = [(task, name, seed, updates, count) for task in TASKS for name in OPPONENTS for seed in range(options.seeds)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.threads, context, torch.set_num_threads, (1,)) as processes:
        curves = dict(zip(jobs, processes.map(accuracies, *zip(*jobs, strict=True)), strict=True))
    figure, panels = plt.subplots(1, len(TASKS), figsize=(12, 4), sharey=True)
    for panel, (task, one) in zip(panels, TASKS.items(), strict=True):
        for name in OPPONENTS:
            means = torch.tensor([curves[job] for job in jobs if job[:2] == (task, name)]).mean(0)
            panel.plot(one.distances, means, marker="o", label=name, color=COLOURS[name])
        panel.axhline(one.chance, color="#999999", linestyle=":", linewidth=1)
        panel.axvline(one.longest, color="#999999", linestyle=":", linewidth=1)
        panel.set(title=task, xlabel="distance", ylabel="accuracy", xscale="log")
    panels[0].legend(fontsize="small")

    def check(task: str, name: str, distance: int, **bounds: float) -> Check:
        place = TASKS[task].distances.index(distance)
        values = [curves[job][place] for job in jobs if job[:2] == (task, name)]
        return Check(task, values, case={"name": name, "distance": distance}, **bounds)

    checks = []
    for task, one in TASKS.items():
        checks += [
            check(task, "RNN", one.longest, most=(1 + one.chance) / 2),
            *[check(task, name, one.longest, least=0.9) for name in ("GRU", "LSTM", "Transformer")],
            check(task, "Transformer", 2 * one.longest, least=0.9),
            check(task, "CNN, 8 layers", 8, least=0.9),
            *[check(task, f"CNN, {n} layers", 2 * one.longest, most=one.chance + 0.1) for n in (2, 8)],
        ]
    findings.publish("distance", checks, figure, options)


if __name__ == "__main__":
    main()
