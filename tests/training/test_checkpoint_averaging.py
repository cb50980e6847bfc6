import json
import math
import shutil
from pathlib import Path

import pytest
import torch

from heedful.checkpoint import load_model
from heedful.config.schema import OptimizerConfig, Recipe, TrainConfig
from heedful.errors import RunError
from heedful.training import loop, trainer
from heedful.training.checkpointing import AverageCandidate, choice_line, choose, updates_to_average
from heedful.training.logger import LOG, RESULT
from heedful.training.trainer import Trainer
from interrupted import stop_after, train, train_aloud
from reversal import fingerprint, recipe


@pytest.mark.parametrize(
    ("end", "warmup", "updates"),
    [
        (100, 0, (80, 90, 100)),
        (103, 0, (90, 100, 103)),
        (35, 0, (20, 30, 35)),
        (25, 0, (20, 25)),  # the checkpoint of update 10 is from the first half of the run
        (100, 80, (90, 100)),
        (100, 4000, (100,)),
        (7, 0, (7,)),
    ],
)
def test_averaged_are_the_last_checkpoints_but_none_from_the_warm_up_or_the_first_half(end, warmup, updates):
    optimizer = OptimizerConfig(lr=0.1, schedule="constant", warmup=warmup)
    train = TrainConfig(save_every=10, average_last=3)
    assert updates_to_average(Recipe(optimizer=optimizer, train=train), end) == updates


def test_without_averaging_the_last_update_stands_alone():
    assert updates_to_average(Recipe(train=TrainConfig(save_every=10, average_last=1)), 10_000) == (10_000,)


def candidate(*updates: int, bleu: float) -> AverageCandidate:
    return AverageCandidate(updates, {"bleu": bleu, "loss": 2.0})


@pytest.mark.parametrize(
    ("mean", "best", "end", "chosen"),
    [
        (31.0, 30.0, 29.0, 0),
        (30.0, 30.0, 29.0, 0),
        (29.9, 30.0, 30.0, 1),
        (29.0, 30.0, 30.5, 2),
        (math.nan, 1.0, 0.0, 1),
    ],
)
def test_a_mean_is_taken_unless_a_single_checkpoint_is_better(mean, best, end, chosen):
    candidates = [candidate(15, 19, bleu=mean), candidate(14, bleu=best), candidate(19, bleu=end)]
    assert choose(candidates, "bleu") is candidates[chosen]


@pytest.mark.parametrize(
    ("parts", "best", "chosen"),
    [
        ([30.0, 31.0, 30.0], 31.5, 0),  # their standard deviation is 0.71
        ([30.0, 31.0, 30.0], 32.5, 1),
        ([30.5, 30.4, 30.3], 31.5, 1),  # a trend is no scatter
        ([30.0, math.nan, 31.0], 32.5, 1),
        ([30.0, math.nan, 31.0], 32.4, 0),
        ([30.0], 31.5, 1),
    ],
)
def test_a_single_checkpoint_must_be_better_by_more_than_chance(parts, best, chosen):
    of_parts = [None, *({"bleu": value} for value in parts)]
    mean = AverageCandidate((10, 15, 17, 19), {"bleu": 31.0}, of_parts)
    candidates = [mean, candidate(14, bleu=best), candidate(19, bleu=parts[-1])]
    assert choose(candidates, "bleu") is candidates[chosen]
    assert ("within the range of chance" in choice_line(mean, candidates, "bleu")) == (best > 31)


def test_equal_scores_are_decided_by_the_loss():
    candidates = [AverageCandidate((updates,), {"bleu": 0.0, "loss": 5 - updates / 100}) for updates in (20, 120, 60)]
    assert choose(candidates, "bleu").updates == (120,)


def test_a_lower_loss_is_the_better_one():
    one, other = AverageCandidate((5,), {"loss": 2.0}), AverageCandidate((7,), {"loss": 1.0})
    assert choose([one, other], "loss") is other


def test_the_choice_is_told_with_what_it_was_compared_with():
    candidates = [candidate(10, 15, 19, bleu=31.25), candidate(14, bleu=30.5)]
    line = "final model: the mean of updates 10, 15 and 19, bleu 31.25, loss 2 (update 14: bleu 30.5)"
    assert choice_line(candidates[0], candidates, "bleu") == line
    alone = AverageCandidate((19,), None)
    assert choice_line(alone, [alone], "bleu") == "final model: update 19"


def result(folder: Path) -> dict:
    return json.loads((folder / RESULT).read_text())


def parameters(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder).model.state_dict()


def saved(folder: Path, update: int) -> dict[str, torch.Tensor]:
    return parameters(folder / "checkpoints" / f"step-{update:08d}")


def test_the_final_model_is_the_mean_that_it_says_it_is(text, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "choose", lambda candidates, *_: max(candidates, key=lambda one: len(one.updates)))
    _, said = train_aloud(recipe(text), tmp_path / "run")
    assert "final model: the mean of updates 15 and 19, loss" in said
    parts = [saved(tmp_path / "run", step) for step in (15, 19)]
    for name, value in parameters(tmp_path / "run").items():
        torch.testing.assert_close(value, (parts[0][name] + parts[1][name]) / 2)


def test_a_mean_that_is_worse_is_not_the_final_model(text, tmp_path, monkeypatch):
    honest = trainer.average

    def spoiled(folders):
        mean = honest(folders)
        return {name: value * (1 if len(folders) == 1 else -3) for name, value in mean.items()}

    monkeypatch.setattr(trainer, "average", spoiled)
    settings = recipe(text, train={"best": "loss"})
    _, said = train_aloud(settings, tmp_path / "run")
    assert "final model: update 19, loss" in said
    assert "the mean of updates 15 and 19: loss" in said
    final, last = parameters(tmp_path / "run"), saved(tmp_path / "run", 19)
    assert all(torch.equal(final[name], last[name]) for name in final)


def test_without_validation_data_the_final_model_is_the_mean(text, tmp_path):
    _, said = train_aloud(recipe(text, data={"valid": None}), tmp_path / "run")
    assert "final model: the mean of updates 15 and 19\n" in said
    assert result(tmp_path / "run") == {"update": 19}


@pytest.mark.parametrize("average_last", [1, 2])
def test_no_checkpoint_that_was_validated_is_better_than_the_final_model(average_last, text, tmp_path):
    train(recipe(text, train={"average_last": average_last, "best": "loss"}), tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    losses = [record["valid_loss"] for record in records if "valid_loss" in record]
    assert result(tmp_path / "run")["loss"] <= min(losses)


SHORT = {
    "few updates": {"max_updates": 3},
    "one epoch": {"max_epochs": 1},
    "patience": {"patience": 1, "validate_every": 1},
}


@pytest.mark.parametrize("reason", SHORT)
def test_a_run_that_ends_before_its_first_regular_checkpoint_has_a_model(reason, text, tmp_path):
    train(recipe(text, train={"save_every": 1000, **SHORT[reason]}), tmp_path / "run")
    assert load_model(tmp_path / "run").path == tmp_path / "run" / "model"


def test_what_the_numbers_of_a_run_mean_is_said_at_its_beginning(text, tmp_path):
    _, said = train_aloud(recipe(text, train={"max_updates": 3}), tmp_path / "smoothed")
    assert "the run ends at update 3, during the warm-up (optimizer.warmup = 5)" in said
    assert "losses include label smoothing (train.label_smoothing = 0.1); perplexity does not" in said
    _, said = train_aloud(recipe(text, train={"max_updates": 7, "label_smoothing": 0.0}), tmp_path / "plain")
    assert "warmup" not in said
    assert "smoothing" not in said


def test_a_run_that_ended_says_so_and_does_nothing(text, tmp_path, monkeypatch):
    train(recipe(text), tmp_path / "run")
    before = fingerprint(tmp_path / "run")
    monkeypatch.setattr(Trainer, "evaluated", lambda _: pytest.fail("it validates again"))
    monkeypatch.setattr(Trainer, "save", lambda _: pytest.fail("it saves again"))
    outcome, said = train_aloud(recipe(text), tmp_path / "run")
    assert outcome == loop.Outcome(19, 0)
    assert "this run ended after update 19: loss" in said
    assert "going on" not in said
    assert fingerprint(tmp_path / "run") == before


@pytest.mark.parametrize("settings", [{"max_updates": 14}, {"patience": 1, "validate_every": 1}])
def test_a_run_that_ended_with_a_validation_knows_that_it_did(settings, text, tmp_path):
    chosen = recipe(text, train=settings)
    outcome = train(chosen, tmp_path / "run")
    again, said = train_aloud(chosen, tmp_path / "run")
    assert again == outcome
    assert f"this run ended after update {outcome.update}" in said


def test_a_run_that_ended_and_lost_its_model_makes_it_again(text, tmp_path):
    train(recipe(text), tmp_path / "run")
    before = fingerprint(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    train(recipe(text), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == before


def test_a_run_that_was_interrupted_after_a_longer_one_was_asked_for_has_not_ended(text, tmp_path, monkeypatch):
    train(recipe(text), tmp_path / "run")
    longer = recipe(text, train={"max_updates": 31})
    with monkeypatch.context() as patch:
        stop_after(29, patch)
        train(longer, tmp_path / "run")
    monkeypatch.setattr(Trainer, "finish", lambda *_: None)
    assert train(longer, tmp_path / "run").update == 31
    monkeypatch.undo()
    _, said = train_aloud(longer, tmp_path / "run")
    assert "final model" in said
    assert result(tmp_path / "run")["update"] == 31


def test_a_lost_checkpoint_that_the_final_model_needs_ends_the_run_loudly_but_with_a_model(text, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(17, patch)
        train(recipe(text), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000015")
    for _ in range(2):  # once more, and it says so once more
        with pytest.raises(RunError, match=r"model was written, but not all .* are missing or damaged .update 15."):
            train(recipe(text), tmp_path / "run")
        assert load_model(tmp_path / "run").path == tmp_path / "run" / "model"
