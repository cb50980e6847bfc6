"""Speed and quality of word vectors beside gensim: python benchmarks/word_vectors.py --data DATA --gensim PYTHON

Skip-gram with negative sampling on the words that a recipe has prepared, with the same vocabulary and settings: size,
window, negatives, sub-sampling, rate, epochs, threads. Systems take turns, one process for each training. Words a
second are all words of the text, also those that sub-sampling drops; preparing the text is not timed, for neither.
gensim comes from an environment of its own (peers/environments.sh). Afterwards the vectors are compared with people's
judgements of similarity, and solve analogies.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import record
from rich.console import Console
from rich.table import Table

from heedful.architectures.word2vec.data import word_numbers
from heedful.checkpoint import Checkpoints, claim
from heedful.config.load import load_recipe
from heedful.config.schema import Recipe
from heedful.data.word_vectors import VectorSpace, VectorTable, read_vectors, write_vectors
from heedful.machine import prepare_process, wait_policy
from heedful.metrics.word_vectors import analogy_scores, read_analogies, read_judgements, similarity_score
from heedful.tasks.word_vectors import WordVectorTraining, options_of
from heedful.training.loop import open_logger
from heedful.training.trainer import Trainer

PEER = Path(__file__).parent / "peers" / "gensim_word_vectors.py"
JUDGED = {"WS-353": "wordsim353.tsv.gz", "SimLex-999": "simlex999.txt.gz", "MEN": "EN-MEN-TR-3k.txt"}
QUESTIONS = "questions-words.txt.gz"
QUIET = Console(quiet=True)


def recipe_of(options: argparse.Namespace, seed: int) -> Recipe:
    """The recipe, in so many updates as the epochs have, and without checkpoints before the end."""
    changes = [f"train.seed={seed}", f"train.threads={options.threads}", *options.set]
    recipe = load_recipe(options.recipe, changes, options.data)
    updates = options.epochs * len(prepared(recipe, options).data.epoch(0))
    return replace(recipe, train=replace(recipe.train, max_updates=updates, save_every=updates, validate_every=updates))


def prepared(recipe: Recipe, options: argparse.Namespace) -> WordVectorTraining:
    """The task with its prepared text."""
    return WordVectorTraining.prepare(recipe, options.out / "data", lambda _: None)


def heedful(seed: int, options: argparse.Namespace, file: Path) -> dict[str, Any]:
    """Train with the trainer, log and all, but for the checkpoint at the end; write the vectors."""
    recipe = recipe_of(options, seed)
    prepare_process(options.threads)
    task = prepared(recipe, options)
    folder = options.out / f"heedful-{seed}"
    with claim(folder):
        trainer = Trainer(
            task, folder, Checkpoints(folder, recipe.train.keep_last, every=recipe.train.save_every), QUIET
        )
        with (
            open_logger(trainer) as trainer.logger,
            wait_policy(trainer.device, lambda _: None) as waiting,
        ):
            start = time.perf_counter()
            while trainer.state.update < recipe.train.max_updates - 1:
                trainer.update()
                waiting.adapt()
            seconds = time.perf_counter() - start
            words = trainer.state.tokens
            trainer.update()
    model: Any = trainer.model
    space = task.use(model, recipe, task.tokenizers).space
    write_vectors(file, VectorTable(space.words, space.matrix), "binary")
    return {"words": words, "seconds": seconds}


def gensim(seed: int, options: argparse.Namespace, file: Path) -> dict[str, Any]:
    """Train with gensim on the same words, in the environment that has it."""
    recipe = recipe_of(options, seed)
    task, model = prepared(recipe, options), options_of(recipe)
    names = {i: word for word, i in word_numbers(task.tokenizers.source).items()}
    settings = {
        "vector_size": model.d_model,
        "window": model.window,
        "negative": model.negatives,
        "ns_exponent": model.noise_power,
        "sample": model.subsample,
        "sg": int(model.kind == "skip_gram"),
        "alpha": recipe.optimizer.lr,
        "min_alpha": recipe.optimizer.min_lr,
        "epochs": options.epochs,
        "workers": options.threads,
        "min_count": 1,
        "seed": seed,
    }
    asked = {
        "store": str(options.out / "data" / "train"),
        "dtype": str(task.data.examples.train[0].ids.dtype),
        "words": [names.get(i, "") for i in range(len(task.tokenizers.source))],
        "settings": settings,
        "file": str(file),
    }
    run = subprocess.run([options.gensim, PEER], input=json.dumps(asked), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


SYSTEMS = {"heedful": heedful, "gensim": gensim}


def scores(file: Path, folder: Path) -> dict[str, float]:
    """The correlations with people's judgements and the accuracy on analogies, in percent."""
    space = VectorSpace(read_vectors(file))
    found = {name: similarity_score(space, read_judgements(folder / path)) for name, path in JUDGED.items()}
    sections = list(analogy_scores(space, read_analogies(folder / QUESTIONS)))
    accuracy = sum(score.right for score in sections) / max(1, sum(score.covered for score in sections))
    return {name: 100 * score.correlation for name, score in found.items()} | {"analogies": 100 * accuracy}


def measure(name: str, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """One training in a process of its own, with its speed and its scores."""
    file = options.out / f"{name}-{seed}.bin"
    command = [sys.executable, __file__, *sys.argv[1:], "--system", name, "--seed", str(seed)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout.splitlines()[-1])
    return {"words/s": found["words"] / found["seconds"]} | scores(file, options.data / options.judged)


def main(options: argparse.Namespace) -> None:
    prepared(load_recipe(options.recipe, options.set, options.data), options)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SYSTEMS}
    for seed in range(1, options.seeds + 1):
        for name in list(SYSTEMS)[:: 1 if seed % 2 else -1]:
            found[name].append(measure(name, seed, options))
            print(json.dumps({"system": name, "seed": seed, **found[name][-1]}), file=sys.stderr, flush=True)
    table = Table(box=None, pad_edge=False)
    for column in ("system", *found["gensim"][0]):
        table.add_column(column, justify="left" if column == "system" else "right")
    for name, rows in found.items():
        table.add_row(name, *(spread([row[column] for row in rows]) for column in rows[0]))
    Console().print(table)
    ratios = [a["words/s"] / b["words/s"] for a, b in zip(found["heedful"], found["gensim"], strict=True)]
    print(f"words/s of heedful / gensim: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    facts = {"recipe": options.recipe.name, "epochs": options.epochs, "settings": options.set}
    record.append(__file__, record.machine(options.threads) | facts | found)


def spread(values: list[float]) -> str:
    """Mean and standard deviation of several seeds."""
    digits = 0 if values[0] > 1000 else 1
    return f"{mean(values):,.{digits}f} ± {stdev(values) if len(values) > 1 else 0:,.{digits}f}"


if __name__ == "__main__":
    arguments = record.parser(__doc__)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--gensim", required=True, help="the python of the environment with gensim")
    arguments.add_argument("--recipe", type=Path, default=Path(__file__).parent.parent / "recipes" / "word-vectors")
    arguments.add_argument("--judged", default="word-vector-eval", help="folder below DATA with pairs and analogies")
    arguments.add_argument("--epochs", type=int, default=5)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--set", action="append", default=[])
    arguments.add_argument("--out", type=Path, default=Path("build/word-vectors"))
    arguments.add_argument("--system", choices=SYSTEMS, help="train one system in this process, and print its speed")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    if given.system:
        out = given.out / f"{given.system}-{given.seed}.bin"
        print(json.dumps(SYSTEMS[given.system](given.seed, given, out)))
    else:
        main(given)
