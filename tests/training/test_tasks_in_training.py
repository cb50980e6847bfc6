"""Every task in the loop: interrupted or not the same, and what is there to be learned is learned."""

import hashlib
import json
import signal
import time
from pathlib import Path

import pytest
from rich.console import Console

import heedful
from heedful.config.schema import GenerateConfig
from heedful.errors import InputError
from heedful.predictors.classifier import Classifier
from heedful.predictors.generator import GenerationRequest
from heedful.predictors.text_predictor import Text
from heedful.tasks import TASKS as TASK_CLASSES
from heedful.training import loop
from heedful.training.logger import LOG, RESULT
from heedful.training.trainer import Trainer
from heedful.training.training_step import TrainingStep
from interrupted import begin, train
from toy_tasks import TASKS, recipe, write_text


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text"))


def fingerprint(folder: Path) -> tuple[str, bytes, bytes]:
    weights = (folder / "model" / "model.safetensors").read_bytes()
    return hashlib.sha256(weights).hexdigest(), (folder / LOG).read_bytes(), (folder / RESULT).read_bytes()


def result(folder: Path) -> dict[str, float]:
    return json.loads((folder / RESULT).read_text())


@pytest.mark.parametrize("task", TASKS)
def test_a_long_validation_text_fits_into_learned_positions(task, tmp_path):
    folder = write_text(tmp_path / "text")
    for name in ("valid.txt", "valid.tsv"):
        first, *others = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join([first.replace(" ", " w1" * 97 + " ", 1), *others]))
    settings = recipe(task, folder, model={"positions": "learned", "max_positions": 19}, train={"max_updates": 4})
    assert train(settings, tmp_path / "run") == loop.Outcome(4, 0)


def test_a_validation_text_without_a_token_to_predict_is_told_of_once_and_chooses_no_model(tmp_path, capsys):
    folder = write_text(tmp_path / "text")
    (folder / "valid.txt").write_text("zz yy! xx!\n\n" * 7)
    plain = {"kind": "word", "byte_fallback": False, "mask": True}
    updates = {"max_updates": 4, "validate_every": 2, "save_every": 2}
    loop.train(recipe("masked_lm", folder, tokenizer=plain, train=updates), tmp_path / "run", Console(stderr=True))
    assert " ".join(capsys.readouterr().err.split()).count("nothing in this text can be predicted") == 1
    records = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    assert [record["valid_loss"] for record in records if "valid_loss" in record] == [None, None]


def test_other_classes_cannot_go_on_with_a_run(text, tmp_path):
    settings = recipe("classification", text)
    train(settings, tmp_path / "run")
    other = recipe("classification", text, data={"labels": ["red", "green", "blue"]}, train={"max_updates": 13})
    with pytest.raises(InputError, match=r'data\.labels is \["red", "green", "blue"\], but the run was started with'):
        train(other, tmp_path / "run")


@pytest.mark.slow
def test_a_run_that_was_killed_equals_a_whole_run_bit_for_bit(text, tmp_path):
    settings = recipe("masked_lm", text, train={"max_updates": 41, "save_every": 7})
    train(settings, tmp_path / "whole")
    begun = begin(settings, tmp_path / "parts")
    while not list((tmp_path / "parts").glob("checkpoints/step-*")) and begun.is_alive():
        time.sleep(0.01)
    begun.kill()
    begun.join()
    assert begun.exitcode == -signal.SIGKILL
    train(settings, tmp_path / "parts")
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("work", ["rehearse", "gradient", "evaluate"])
def test_a_run_that_was_stopped_within_an_update_or_a_validation_equals_a_whole_run(
    work, task, text, tmp_path, monkeypatch
):
    settings = recipe(task, text)
    train(settings, tmp_path / "whole")
    holder, times = {"evaluate": (TASK_CLASSES[task], 2), "gradient": (TrainingStep, 2), "rehearse": (TrainingStep, 1)}[
        work
    ]
    with monkeypatch.context() as stopped:
        abandon(holder, work, times, stopped)
        with pytest.raises(Killed):
            train(settings, tmp_path / "parts")
    last = max(path.name for path in (tmp_path / "parts" / "checkpoints").glob("step-*"))
    assert last == {"rehearse": "step-00000000", "gradient": "step-00000001", "evaluate": "step-00000008"}[work]
    train(settings, tmp_path / "parts")
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def abandon(holder: type, name: str, times: int, patch: pytest.MonkeyPatch) -> None:
    """Let a method abandon the work of the trainer at its end, as a signal would, when it is called so often."""
    method, build, trainers, calls = getattr(holder, name), Trainer.__init__, [], []

    def remember(self, *args, **settings):
        build(self, *args, **settings)
        trainers.append(self)

    def call(self, *args, **settings):
        result = method(self, *args, **settings)
        calls.append(name)
        if len(calls) == times:
            assert trainers[0].work.abandon()
            raise Killed
        return result

    patch.setattr(Trainer, "__init__", remember)
    patch.setattr(holder, name, call)


LONGER = {"train": {"max_updates": 80, "batch_tokens": 509, "validate_every": 80, "save_every": 80}}
STEADY = {"model": {"dropout": 0.0}}


def test_a_language_model_learns_what_always_follows(text, tmp_path):
    train(recipe("language_model", text, **LONGER, **STEADY), tmp_path / "run")
    generator = heedful.load(tmp_path / "run", "cpu")
    (found,) = generator.generate([GenerationRequest("T3a T3b", GenerateConfig(max_tokens=7, temperature=0.0))])
    assert found.text.startswith(" T3c T3d T3e! T3a T3b")


@pytest.mark.slow
def test_a_masked_language_model_learns_to_fill_and_to_tell_neighbours(text, tmp_path):
    model = {"dropout": 0.0, "d_model": 32, "heads": 4, "norm": "pre", "positions": "learned"}
    masking = {"rate": 0.25, "mask": 1.0, "random": 0.0, "short": 0.0}
    updates = LONGER["train"] | {"max_updates": 200, "validate_every": 200}
    train(recipe("masked_lm", text, model=model, masking=masking, train=updates), tmp_path / "run")
    scores = result(tmp_path / "run")
    assert scores["accuracy"] > 0.85
    assert scores["next_sentence_accuracy"] > 0.7
    filler = heedful.load(tmp_path / "run", "cpu", task="masked_lm")
    (gap,) = filler.fill("T3a T3b [MASK] T3d T3e!")
    assert gap[0].text == "T3c"


@pytest.mark.parametrize("family", ["encoder", "decoder"])
def test_a_classifier_learns_from_scratch(family, text, tmp_path):
    tables = {**LONGER, "model": {"dropout": 0.0, "family": family}}
    train(recipe("classification", text, **tables), tmp_path / "run")
    assert result(tmp_path / "run")["accuracy"] > 0.95
    classifier = heedful.load(tmp_path / "run", "cpu", as_=Classifier)
    said = [str(answer) for answer in classifier.predict([Text("w1 red w2"), Text("w3 w5 blue"), Text("good green")])]
    assert said == ["red", "blue", "green"]


def test_numbers_are_learned_from_pairs(text, tmp_path):
    updates = LONGER["train"] | {"max_updates": 120}
    train(recipe("regression", text, train=updates, **STEADY), tmp_path / "run")
    assert result(tmp_path / "run")["spearman"] > 0.9
