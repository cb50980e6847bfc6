"""Accuracy of recall, agreement and copying against distance: python laboratory/distance.py [--help]"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from long_range import TASKS, VOCABULARY
from models import COLOURS, MODELS
from report import Prediction, arguments, check, publish
from torch import Tensor

from heedful.architectures import LanguageModel

WIDTH, UPDATES, ROWS, TEST_ROWS = 64, 1200, 64, 256


def accuracies(task_name: str, name: str, seed: int, updates: int, test_rows: int) -> list[float]:
    """Train a language model on the answers of a task; return its accuracy on new rows at each distance."""
    torch.manual_seed(seed)
    task = TASKS[task_name]
    model = LanguageModel(MODELS[name](WIDTH), VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / updates)

    def logits(tokens: Tensor, answers: Tensor) -> Tensor:
        return model(tokens, torch.ones_like(tokens, dtype=torch.bool))[:, -answers.size(1) :]

    for _ in range(updates):
        tokens, answers = task.rows(int(torch.randint(1, task.max_distance + 1, ())), ROWS)
        loss = F.cross_entropy(logits(tokens, answers).flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        tests = [task.rows(distance, test_rows) for distance in task.distances]
        curve = [float((logits(*test).argmax(-1) == test[1]).float().mean()) for test in tests]
    print(task_name, name, seed, [round(accuracy, 3) for accuracy in curve], flush=True)
    return curve


def main() -> None:
    options = arguments(__doc__, seeds=3)
    updates, test_rows = (1, 5) if options.quick else (UPDATES, TEST_ROWS)
    jobs = [
        (task, name, seed, updates, test_rows) for task in TASKS for name in MODELS for seed in range(options.seeds)
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.threads, context, torch.set_num_threads, (1,)) as processes:
        curves = dict(zip(jobs, processes.map(accuracies, *zip(*jobs, strict=True)), strict=True))

    figure, panels = plt.subplots(1, len(TASKS), figsize=(12, 4), sharey=True)
    for panel, (task_name, task) in zip(panels, TASKS.items(), strict=True):
        for name in MODELS:
            means = torch.tensor([curves[job] for job in jobs if job[:2] == (task_name, name)]).mean(0)
            panel.plot(task.distances, means, marker="o", label=name, color=COLOURS[name])
        panel.axhline(task.chance, color="#999999", linestyle=":", linewidth=1)
        panel.axvline(task.max_distance, color="#999999", linestyle=":", linewidth=1)
        panel.set(title=task_name, xlabel="distance", ylabel="accuracy", xscale="log")
    panels[0].legend(fontsize="small")

    def at(task_name: str, name: str, distance: int, **bounds: float) -> Prediction:
        index = TASKS[task_name].distances.index(distance)
        values = [curves[job][index] for job in jobs if job[:2] == (task_name, name)]
        return check(task_name, values, **bounds, name=name, distance=distance)

    predictions = []
    for task_name, task in TASKS.items():
        far = task.max_distance
        predictions += [
            at(task_name, "RNN", far, most=(1 + task.chance) / 2),
            *[at(task_name, name, far, least=0.9) for name in ("GRU", "LSTM", "Transformer")],
            at(task_name, "Transformer", 2 * far, least=0.9),
            at(task_name, "CNN, 8 layers", 8, least=0.9),
            *[at(task_name, f"CNN, {n} layers", 2 * far, most=task.chance + 0.1) for n in (2, 8)],
        ]
    publish("distance", predictions, figure, options)


if __name__ == "__main__":
    main()
