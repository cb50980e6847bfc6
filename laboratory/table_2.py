"""Table 2 of "Attention Is All You Need" in miniature: python laboratory/table_2.py --data DATA [--help]

Each system is trained with the same number of FLOPs. Its results are appended to table-2-systems.jsonl, which is part
of the repository; the same command resumes after an interruption, and --only names some of the systems.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from captions import bleu, caption_arguments, test_set
from models import COLOURS
from report import RESULTS, ROOT, Prediction, check, publish

import heedful
from heedful.architectures.parameters import count_parameters
from heedful.predictors import Translator
from heedful.tasks import find_task
from heedful.tools.compare.measure import flops_per_update
from heedful.training.in_process import TrainingResult, as_recipe

BUDGET, VALIDATIONS = 1.2e13, 6
RATES, RATE_SHARE = (2e-3, 4e-3, 8e-3, 16e-3), 0.2  # tried with this share of the budget
TRANSFORMER: dict[str, Any] = {
    "positions": "sinusoidal",
    "norm": "post",
    "dropout": 0.1,
    "d_model": 64,
    "d_ff": 256,
    "heads": 8,
    "encoder_layers": 3,
    "decoder_layers": 3,
}
BASE = "Transformer (base)"


class System(NamedTuple):
    """A system of the table: the recipe and settings of its miniature, and what was published."""

    recipe: str
    model: dict[str, Any]
    bleu: float  # on newstest2014, English to German
    ensemble: float | None = None
    flops: float | None = None  # of training; the paper does not state those of ByteNet


SYSTEMS = {
    "ByteNet": System(
        "multi30k-en-de-convs2s",
        {"architecture": "bytenet", "encoder_layers": 15, "decoder_layers": 15, "d_model": 128},
        23.75,
    ),
    "GNMT": System(
        "multi30k-en-de-lstm", {"layers": 4, "residual": True, "d_model": 128}, 24.6, ensemble=26.30, flops=2.3e19
    ),
    "ConvS2S": System(
        "multi30k-en-de-convs2s",
        {"encoder_layers": 8, "decoder_layers": 8, "d_model": 64},
        25.16,
        ensemble=26.36,
        flops=9.6e18,
    ),
    "mixture of experts": System(
        "multi30k-en-de",
        TRANSFORMER | {"feed_forward": "experts", "experts": 8, "d_expert": 128},
        26.03,
        flops=2.0e19,
    ),
    BASE: System("multi30k-en-de", TRANSFORMER, 27.3, flops=3.3e18),
    "Transformer (big)": System(
        "multi30k-en-de", TRANSFORMER | {"d_model": 128, "d_ff": 512, "heads": 16}, 28.4, flops=2.3e19
    ),
}
SMALL = {"tokenizer.vocab_size": 500, "decode.max_extra": 3}  # with --quick


@dataclass
class Outcome:
    """What was measured of a system."""

    system: str
    parameters: int
    flops_per_update: float
    updates: int
    lr: float
    curves: list[list[tuple[float, float]]]  # of each seed: FLOPs of training, and BLEU on the validation set
    bleu: list[float]  # of each seed, on the test set
    ensemble: float  # BLEU of the models of all seeds together


def main() -> None:
    options = caption_arguments(
        __doc__,
        seeds=4,
        models="table-2",
        only={"nargs": "+", "choices": SYSTEMS, "help": "some of the systems, in one of several processes"},
    )
    file = options.out / RESULTS / "table-2-systems.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in options.only or SYSTEMS:
        if name not in stored(file):
            outcome = measured(name, options)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(outcome)) + "\n")
    outcomes = stored(file)
    if outcomes.keys() == SYSTEMS.keys():
        results = {name: outcomes[name] for name in SYSTEMS}
        publish("table_2", predictions(results), drawn(results), options, budget=BUDGET, points=points(results))


def stored(file: Path) -> dict[str, Outcome]:
    """Read the results so far, by the name of the system."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {outcome.system: outcome for outcome in (Outcome(**json.loads(line)) for line in lines)}


def measured(name: str, options: Any) -> Outcome:
    """Choose the learning rate of a system, train it with every seed, or resume, and test the models."""
    system = SYSTEMS[name]
    source = ROOT / "recipes" / system.recipe
    settings: dict[str, Any] = {
        "tokenizer.vocab_size": 4000,
        "optimizer.name": "adam",
        "train.threads": options.threads,
        "train.precision": "float32",
        "train.average_last": 1,
        **{f"model.{key}": value for key, value in system.model.items()},
        **(SMALL if options.quick else {}),
    }
    recipe = as_recipe(source, settings, options.data)
    task = find_task(recipe.task).prepare(recipe, options.work / f"{name}-flops", lambda _: None)
    model = task.build(recipe, task.tokenizers)
    flops = flops_per_update(task, model, recipe)

    def train(folder: str, seed: int, lr: float, share: float) -> TrainingResult:
        updates = 4 if options.quick else round(share * BUDGET / flops)
        changes = {
            "train.seed": seed,
            "train.max_updates": updates,
            "train.validate_every": math.ceil(updates / VALIDATIONS),
            "optimizer.lr": lr,
            "optimizer.warmup": updates // 4,
        }
        return heedful.train(source, options.work / folder, options.data, settings | changes)

    losses = {
        lr: train(f"{name}-{lr}", 0, lr, RATE_SHARE).scores["loss"] for lr in RATES[: 2 if options.quick else None]
    }
    lr = min(losses, key=losses.__getitem__)
    runs = [train(f"{name}-{seed}", seed, lr, 1) for seed in range(1, options.seeds + 1)]
    test = test_set(recipe.data)
    return Outcome(
        system=name,
        parameters=count_parameters(model).total,
        flops_per_update=flops,
        updates=runs[0].update,
        lr=lr,
        curves=[curve(run, flops) for run in runs],
        bleu=[bleu(translator([run]), *test) for run in runs],
        ensemble=bleu(translator(runs), *test),
    )


def curve(run: TrainingResult, flops: float) -> list[tuple[float, float]]:
    """Return FLOPs and BLEU of all validations; the log does not contain the one at the end of a run."""
    validations = {row["update"]: row["valid_bleu"] for row in run.log if "valid_bleu" in row}
    validations[run.update] = run.scores["bleu"]
    return [(flops * update, score) for update, score in sorted(validations.items())]


def translator(runs: Sequence[TrainingResult]) -> Translator:
    """Load a model or, of several runs, an ensemble."""
    return heedful.load([run.folder for run in runs], "cpu", as_=Translator)


def predictions(outcomes: Mapping[str, Outcome]) -> list[Prediction]:
    """Check that the Transformer has a higher BLEU than the other systems, and than ensembles of them by 2."""
    transformer = outcomes[BASE].bleu
    others = [name for name in outcomes if not name.startswith("Transformer")]
    ensemble = max(outcomes[name].ensemble for name in others)
    return [
        *(
            check(
                "single",
                [ours - other for ours, other in zip(transformer, outcomes[name].bleu, strict=True)],
                0,
                name=name,
            )
            for name in others
        ),
        check("ensemble", [ours - ensemble for ours in transformer], least=2),
    ]


def points(outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """Return what the image shows: mean BLEU, and the published values."""
    return [
        {
            "system": name,
            "bleu": fmean(outcome.bleu),
            "ensemble": outcome.ensemble,
            "parameters": outcome.parameters,
            "updates": outcome.updates,
            "lr": outcome.lr,
            "published_bleu": SYSTEMS[name].bleu,
            "published_ensemble": SYSTEMS[name].ensemble,
            "published_flops": SYSTEMS[name].flops,
        }
        for name, outcome in outcomes.items()
    ]


def drawn(outcomes: Mapping[str, Outcome]) -> Any:
    """Draw BLEU over the FLOPs of training: of the miniatures during training, and the published values."""
    figure, (here, published) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for (name, outcome), colour in zip(outcomes.items(), COLOURS.values(), strict=False):
        flops, *_ = zip(*outcome.curves[0], strict=True)
        means = [fmean(values) for values in zip(*([y for _, y in curve] for curve in outcome.curves), strict=True)]
        here.plot(flops, means, ".-", color=colour, label=name)
        system = SYSTEMS[name]
        if system.flops:
            published.plot(system.flops, system.bleu, "o", color=colour)
            published.annotate(
                name, (system.flops, system.bleu), xytext=(5, 4), textcoords="offset points", fontsize="small"
            )
            if system.ensemble:
                published.axhline(system.ensemble, color=colour, linestyle=":", linewidth=1)
    here.set(xlabel="FLOPs of training", ylabel="BLEU on the validation set", title="in miniature, Multi30k")
    here.legend(fontsize="small")
    published.set(xlabel="FLOPs of training", xscale="log", ylabel="BLEU", title="published, WMT 2014 en-de")
    return figure


if __name__ == "__main__":
    main()
