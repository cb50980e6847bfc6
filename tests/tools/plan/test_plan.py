import gzip
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toy_media
import toy_retrieval
import toy_tasks
from heedful.cli import app
from heedful.cli.plan import advice, plan_lines
from heedful.config.load import load_preset, make_recipe
from heedful.config.schema import TokenizerConfig
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.tasks.model_size import vocabulary_sizes
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.tools.plan import Hardware, Plan, make_plan
from heedful.tools.plan.data import bytes_per_token

GPT = {
    "task": "language_model",
    "tokenizer.vocab_size": 101,
    "data.max_length": 19,
    "model.family": "decoder",
    "model.d_model": 14,
    "model.d_ff": 31,
    "model.heads": 2,
    "model.decoder_layers": 3,
    "train.batch_tokens": 133,
    "train.accumulate": 12,
    "train.max_updates": 1009,
    "train.precision": "bfloat16",
}

PAIRS = {"task": "translation", "model.family": "encoder_decoder"}
SMALL = {"model.d_model": 16, "model.d_ff": 31, "model.heads": 2, "model.encoder_layers": 1, "model.decoder_layers": 1}
TO_SMALL = [f"--set={key}={value}" for key, value in SMALL.items()]


def planned(gpus: int = 1, changes: dict | None = None, **hardware: float | str) -> Plan:
    return planned_once(gpus, json.dumps(GPT | (changes or {})), **({"gpu": "h100"} | hardware))


@cache
def planned_once(gpus: int, settings: str, **hardware: float | str) -> Plan:
    return make_plan(make_recipe({}, json.loads(settings)), Hardware(gpus=gpus, **hardware))


def test_a_plan_is_for_the_machine_at_hand_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    recipe = make_recipe({}, GPT | {"train.precision": "auto"})
    here, there = make_plan(recipe, Hardware()), make_plan(recipe, Hardware(gpu="h100"))
    assert here.accelerator.name == "this machine's CPU"
    assert (there.accelerator.name, there.precision) == ("NVIDIA H100 SXM", "bfloat16")
    printed = CliRunner().invoke(app, ["plan", "tiny", *TO_SMALL])
    assert "this machine's CPU" in printed.stdout
    with pytest.raises(InputError, match="--gpu h100"):
        make_plan(recipe, Hardware(gpus=2))


def test_gpus_share_the_batches_of_an_update() -> None:
    one, five = planned(), planned(5)
    assert (one.work.batches_per_gpu, five.work.batches_per_gpu) == (12, 3)
    assert one.work.flops == five.work.flops == pytest.approx(five.work.flops_per_gpu * 4)
    assert one.work.tokens == five.work.tokens == 12 * 7 * 19


def test_time_follows_from_flops_utilisation_and_communication() -> None:
    plan = planned(3, utilisation=0.25, link=1e6)
    volume = 2 * 2 / 3 * 4 * plan.parameters
    seconds = plan.work.flops_per_gpu / (0.25 * 989.4e12) + volume / 1e6
    assert plan.speed.seconds == pytest.approx(seconds)
    assert plan.speed.hours == pytest.approx(1009 * seconds / 3600)
    assert plan.speed.gpu_hours == pytest.approx(3 * plan.speed.hours)
    assert plan.speed.tokens_per_second == pytest.approx(plan.work.tokens / seconds)


@pytest.mark.parametrize("gpus", [1, 3])
def test_a_run_that_minutes_end_is_planned_up_to_them(gpus: int) -> None:
    whole = planned(gpus, {"train.max_epochs": 7})
    minutes = 60 * whole.speed.hours / 4
    short = planned(gpus, {"train.max_epochs": 7, "train.max_minutes": minutes})
    assert short.work.updates == math.ceil(whole.work.updates / 4)
    assert short.speed.hours == pytest.approx(minutes / 60)
    assert short.speed.gpu_hours == pytest.approx(gpus * minutes / 60)
    assert planned(gpus, {"train.max_epochs": 7, "train.max_minutes": 5 * minutes}) == whole


def test_one_gpu_sends_nothing() -> None:
    assert [layout.volume for layout in planned().layouts] == [0, 0]


def test_shards_take_a_share_of_the_state_and_all_of_the_batch() -> None:
    plan = planned(4)
    whole, shard = plan.layouts
    assert shard.optimizer == pytest.approx(whole.optimizer / 4)
    assert shard.gradients == pytest.approx(whole.gradients / 4)
    assert shard.batch == whole.batch
    assert shard.total < whole.total


def test_a_checkpoint_is_as_large_as_the_weights_and_the_state_of_the_optimizer() -> None:
    plan = planned(disk=1000.0, failure_hours=10.0)
    saved = plan.checkpoints
    assert saved.model == 4 * plan.parameters
    assert saved.bytes == saved.model + plan.memory.optimizer
    assert saved.disk == 5 * saved.bytes + saved.model
    assert saved.interval == pytest.approx((2 * saved.bytes / 1000 * 36_000) ** 0.5)


def test_activation_checkpointing_needs_less() -> None:
    layout = planned(changes={"model.decoder_layers": 7}).layouts[0]
    assert layout.checkpointed is not None
    assert layout.checkpointed < layout.total


def test_a_model_that_no_machine_holds_is_planned_without_memory_for_it() -> None:
    d, inner, vocabulary = 131_072, 2048, 37_000
    changes = [f"model.d_model={d}", "model.encoder_layers=1", "model.decoder_layers=1"]
    recipe = load_preset("vaswani-base", [*changes, "train.batch_tokens=512", "train.accumulate=1"])
    attention, feedforward, norm = 4 * d * d, 2 * d * inner + inner + d, 2 * d
    encoder, decoder = attention + feedforward + 2 * norm, 2 * attention + feedforward + 3 * norm
    assert make_plan(recipe, Hardware(length=16)).parameters == encoder + decoder + vocabulary * d > 2e11


@pytest.mark.parametrize(
    ("changes", "hardware", "message"),
    [
        ({}, {"gpus": 13}, "--set train.accumulate=13 --set train.batch_tokens=122"),
        ({}, {"gpu": "abacus"}, "--gpu abacus: unknown GPU; choose h100"),
        ({}, {"gpus": 2, "gpu": "cpu"}, "leave --gpus out"),
        ({"task": "classification", "data.labels": ["a", "b"]}, {}, "--prepared RUN/data"),
        ({"task": "translation"}, {}, "model.family"),
        ({**PAIRS, "train.batch_tokens": 251}, {"length": 251}, "--length 251"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes: dict, hardware: dict, message: str) -> None:
    with pytest.raises(InputError, match=message.replace(".", r"\.")):
        planned(changes=changes, **hardware)


def test_word_vectors_are_not_planned() -> None:
    with pytest.raises(InputError, match="heedful info"):
        make_plan(make_recipe({"task": "word_vectors"}), Hardware())


def volume_of(root: Path, *corpora: dict) -> tuple[int, int, int, int]:
    recipe = make_recipe({}, GPT | {"model.decoder_layers": 1, "data.train": list(corpora)}, root)
    data = make_plan(recipe, Hardware(gpu="h100")).data
    assert data is not None
    return data.files, data.lines, data.bytes, data.tokens


def test_the_data_of_a_recipe_is_measured(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a line of text\n" * 41)
    assert volume_of(tmp_path, {"source": "text.txt"}) == (1, 41, 615, 154)
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress((tmp_path / "text.txt").read_bytes()))
    compressed = {"source": "text.txt.gz"}
    assert volume_of(tmp_path, compressed) == (1, 41, 615, 154)
    assert volume_of(tmp_path, compressed, {"source": "text.txt", "part": [0.2, 0.6]}) == (2, 57, 861, 215)
    missing = make_recipe({}, GPT | {"data.train": [{"source": "none.txt"}]}, tmp_path)
    assert make_plan(missing, Hardware()).data is None


def test_a_model_of_images_and_texts_has_a_vocabulary_and_one_of_images_has_none(tmp_path: Path) -> None:
    assert vocabulary_sizes(toy_retrieval.recipe(tmp_path)) == (37, 37)
    assert vocabulary_sizes(toy_media.recipe("image_classification", tmp_path)) == (0, 0)


def test_the_vocabulary_is_that_of_the_tokenizer_that_a_recipe_names(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(
        ["the old dog sees the cat"] * 5, TokenizerConfig(kind="character", vocab_size=101, byte_fallback=False)
    )
    TokenizerPair(tokenizer, tokenizer).save(tmp_path / "characters")
    assert vocabulary_sizes(make_recipe({}, GPT)) == (101, 101)
    assert vocabulary_sizes(make_recipe({}, GPT | {"tokenizer.path": "later"}, tmp_path)) == (101, 101)
    named = make_recipe({}, GPT | {"tokenizer.path": "characters"}, tmp_path)
    assert vocabulary_sizes(named) == (len(tokenizer), len(tokenizer))
    saved = planned().parameters - make_plan(named, Hardware()).parameters
    assert saved == 14 * (101 - len(tokenizer))


def test_batches_of_prepared_data_are_real(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"line {n} of a text\n" for n in range(211)))
    changes = {"data.train": [{"source": "text.txt"}], "train.accumulate": 2, "train.max_epochs": 3}
    recipe = make_recipe(
        {}, GPT | {"tokenizer.kind": "character", "tokenizer.byte_fallback": False} | changes, tmp_path
    )
    task = find_task("language_model").prepare(recipe, tmp_path / "data", lambda _: None)
    plan = make_plan(recipe, Hardware(), tmp_path / "data")
    batches = len(task.data.epoch(0))
    assert plan.work.epochs == 3
    assert plan.work.updates == 3 * -(-batches // 2)
    assert plan.work.origin == "the prepared data"
    other = make_recipe(recipe, {"tokenizer.vocab_size": 102}, tmp_path)
    with pytest.raises(InputError, match="prepared from different data"):
        make_plan(other, Hardware(), tmp_path / "data")
    with pytest.raises(InputError, match="contains no prepared data"):
        make_plan(recipe, Hardware(), tmp_path)


def test_prepared_data_with_other_settings_is_refused_and_stays(tmp_path: Path) -> None:
    recipe = toy_tasks.recipe("classification", toy_tasks.write_text(tmp_path / "files"))
    find_task("classification").prepare(recipe, tmp_path / "data", lambda _: None)
    before = {path: path.stat().st_ino for path in (tmp_path / "data").rglob("*")}
    other = replace(recipe, data=replace(recipe.data, max_length=8))
    with pytest.raises(InputError, match="with different settings than the recipe's"):
        make_plan(other, Hardware(gpu="cpu"), tmp_path / "data")
    assert {path: path.stat().st_ino for path in (tmp_path / "data").rglob("*")} == before


def test_the_command_prints_a_table_or_json() -> None:
    asked = ["plan", "tiny", "--gpus", "2", "--gpu", "h100", *TO_SMALL]
    asked += ["--set=train.accumulate=2", "--set=train.batch_tokens=300"]
    table = CliRunner().invoke(app, asked)
    assert table.exit_code == 0, table.output
    for words in ("parameters", "FSDP2 (estimate)", "peak memory", "GPU hours", "optimal checkpoint interval"):
        assert words in table.output
    made = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)
    assert made["gpus"] == 2
    assert [layout["name"] for layout in made["layouts"]] == ["replicated", "sharded"]


def test_what_does_not_fit_is_told_with_a_remedy() -> None:
    plan = planned()
    small = replace(plan, layouts=tuple(replace(layout, fits=False) for layout in plan.layouts))
    room = plan.memory.states + plan.memory.work / 2.5
    enough = replace(small, accelerator=replace(plan.accelerator, memory=room / 0.9))
    assert list(advice(plan)) == []
    assert list(advice(enough)) == ["fits with 1/3 of the batch size: train.batch_tokens / 3, train.accumulate x 3"]
    none = replace(small, accelerator=replace(plan.accelerator, memory=plan.memory.states / 2))
    assert "they fit only if sharded" in next(advice(none))


@pytest.mark.parametrize("task", [*toy_media.TASKS, "classification"])
def test_a_classifier_is_planned_from_the_data_that_a_run_prepared(task: str, tmp_path: Path) -> None:
    if task == "classification":
        recipe = toy_tasks.recipe(task, toy_tasks.write_text(tmp_path / "files"))
    else:
        recipe = toy_media.recipe(task, toy_media.write_files(task, tmp_path / "files"))
    kind = find_task(recipe.task)
    kind.prepare(kind.dataset.reader.resolve(recipe), tmp_path / "data", lambda _: None)  # as a run does
    plan = make_plan(recipe, Hardware(gpu="cpu"), tmp_path / "data")
    resolved = kind.dataset.reader.resolve(recipe)
    model = kind.build(resolved, kind.prepare(resolved, tmp_path / "data", str).tokenizers)
    assert plan.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_a_short_run_takes_less_than_a_second_and_the_assumption_is_named() -> None:
    plan = planned()
    short = replace(plan, speed=replace(plan.speed, hours=0.0001, gpu_hours=0.0001))
    [line] = [line for line in plan_lines(short) if line.startswith("total time")]
    assert line.split("  ")[-1].strip() in ("less than 1 s", "less than 1 s, less than 0.01 GPU hours")
    for kind, words in {"byte": "1 byte", "word": "6 bytes"}.items():
        recipe = make_recipe({}, GPT | {"tokenizer.kind": kind})
        assert bytes_per_token(recipe, [])[1] == f"assuming {words} per token"


def test_a_plan_names_the_parameters_that_compute_a_token() -> None:
    plan = planned(changes={"model.feed_forward": "experts", "model.experts": 5, "model.experts_per_token": 2})
    expert = 2 * 14 * 31 + 31 + 14
    assert plan.parameters - plan.active == 3 * 3 * expert
    assert f"{plan.active:,} ({plan.active / plan.parameters:.2%})" in "\n".join(plan_lines(plan))
    dense = planned()
    assert dense.active == dense.parameters
    assert "active" not in "\n".join(plan_lines(dense))
