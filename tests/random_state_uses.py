"""Uses of heedful's public functions, and which of them change the global generators of torch, numpy or random.

Run as a program, in a process of its own: the checks of types in tests draw random numbers themselves. It prints the
names of the uses with what changed, or what went wrong, as JSON.
"""

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

TASKS = (
    "translation",
    "dialogue",
    "language_model",
    "masked_lm",
    "classification",
    "regression",
    "ranking",
    "tagging",
    "span_qa",
    "word_vectors",
    "image_classification",
    "audio_classification",
    "captioning",
    "speech_recognition",
    "masked_patches",
    "image_text_retrieval",
)
TEXT = "w1 w2 T0a"


def states() -> dict[str, Any]:
    """The states of all global generators."""
    import numpy as np
    import torch

    words, place = np.random.get_state()[1:3]
    return {
        "torch": torch.random.get_rng_state().tolist(),
        "random": random.getstate(),
        "numpy": (words.tolist(), place),
    }


def changes(use: Callable[[], object]) -> str:
    """The generators that a use changes; empty: none."""
    before = states()
    try:
        result = use()
        if isinstance(result, Iterator):
            list(result)
    except Exception as error:  # a use that fails would show nothing
        return f"failed: {type(error).__name__}: {error}"
    after = states()
    return ", ".join(name for name in before if before[name] != after[name])


def methods(predictor: Any, given: Any) -> dict[str, Callable[[], object]]:
    """Calls of the methods of a predictor, by name."""
    texts = [given, given]
    calls: dict[str, Callable[[], object]] = {
        "predict": lambda: predictor.predict(texts),
        "translate_lines": lambda: predictor.translate_lines(texts, beam=2),
        "generate_lines": lambda: predictor.generate_lines(texts, max_tokens=3, temperature=1.0, seed=7),
        "stream": lambda: predictor.stream(given, max_tokens=3),
        "score": lambda: predictor.score([(TEXT, TEXT)] if hasattr(predictor, "translate") else texts),
        "predict_lines": lambda: predictor.predict_lines(texts),
        "encode_lines": lambda: predictor.encode_lines(texts),
        "search": lambda: predictor.search(given, texts, k=1) if hasattr(predictor, "encode") else None,
        "nearest": lambda: predictor.nearest(next(iter(predictor.table.words))),
        "tag": lambda: predictor.tag([["w1", "U.S."]]),
        "caption_files": lambda: predictor.caption_files(texts),
        "predict_files": lambda: predictor.predict_files(texts),
        "transcribe_each": lambda: predictor.transcribe_each(texts),
        "reconstruct": lambda: predictor.reconstruct(texts, seed=1),
    }
    return {name: call for name, call in calls.items() if hasattr(predictor, name)}


def given_to(task: str, data: Path) -> Any:
    """An input of the predictor of a task."""
    from heedful.predictors import Text

    files = sorted(path for path in data.rglob("*.*") if path.suffix in (".png", ".wav"))
    if files and task != "word_vectors":
        return str(files[0])
    return {"masked_lm": "T0a [MASK] T0c", "span_qa": Text("Which?", "the house")}.get(task, TEXT)


def uses_of(task: str, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What can be done with a recipe, its data and its model, in order: some uses need what earlier ones made."""
    import torch

    import heedful
    from every_task import RECIPES
    from heedful.architectures import weights
    from heedful.checkpoint import load_model, write_model
    from heedful.inspector.look import Question, look
    from heedful.tasks import find_task
    from heedful.tools.plan.plan import Hardware, make_plan
    from heedful.tools.verify import CHECKS, subject_of
    from heedful.training.preflight import preflight

    data, quiet = folder / "data", lambda _: None
    data.mkdir(parents=True)
    recipe = RECIPES[task](data)
    yield "preflight", lambda: preflight(recipe)
    prepared = find_task(task).prepare(recipe, folder / "prepared", quiet)
    yield "prepare", lambda: find_task(task).prepare(recipe, folder / "again", quiet)
    yield "batch", lambda: prepared.data.batch(prepared.data.epoch(0)[0], 0, torch.device("cpu"))
    model = prepared.build(prepared.recipe, prepared.tokenizers)
    yield "write_model", lambda: write_model(folder / "model", prepared.recipe, prepared.tokenizers, weights(model))
    yield "load", lambda: heedful.load(folder / "model", "cpu")
    loaded = load_model(folder / "model")
    if prepared.recipe.data.valid is not None:
        test = replace(prepared.recipe.data, test=prepared.recipe.data.valid)
        yield "evaluate", lambda: loaded.test(test, quiet)
    predictor, given = loaded.use(), given_to(task, data)
    given = next(iter(predictor.table.words)) if task == "word_vectors" else given
    yield from methods(predictor, given).items()
    if task not in ("masked_patches", "image_text_retrieval"):
        shown = "Who" if task == "span_qa" else given
        target = "the house" if task == "span_qa" else None
        yield "trace", lambda: heedful.trace(predictor, shown, target)
        if isinstance(given, str) and given == shown:
            question = Question(text=given) if not Path(given).is_file() else None
            yield "look", lambda: question and look(predictor, question)
    subject = None if task == "word_vectors" else subject_of(loaded, 0)
    for check in CHECKS if subject else ():
        if "process" not in check.name:
            yield f"verify: {check.name}", lambda check=check: check.measure(subject, loaded)
    if task in ("translation", "language_model"):
        yield "plan", lambda: make_plan(recipe, Hardware(gpu="h100"))


def other_uses(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Functions that belong to no task."""
    import torch

    from heedful.machine.speed import matmul_speed
    from heedful.metrics import score

    yield "matmul_speed", lambda: matmul_speed(8, 8, 8, torch.float32, torch.device("cpu"))
    yield "evaluate.score", lambda: score(["a b"], [["a c"]])
    del folder


def main(folder: Path) -> None:
    """Run all uses, and print those that change a generator."""
    found: dict[str, dict[str, str]] = {}
    for task in TASKS:
        found[task] = {name: changes(use) for name, use in uses_of(task, folder / task)}
    found["others"] = {name: changes(use) for name, use in other_uses(folder)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main(Path(sys.argv[1]))
