"""What would stop a run is found before a tokenizer or data is made, and by the same code in `config check`."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import toy_tasks
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.load import recipe_from_dict
from heedful.config.schema import CorpusConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.training.preflight import preflight
from heedful.training.startup_checks import check_processes
from interrupted import train
from reversal import SETTINGS

Changed = Callable[..., Recipe]


@pytest.fixture
def changed(text: Path) -> Changed:
    """The recipe that reverses words, with other values in some tables."""

    def change(**tables: Any) -> Recipe:
        values = {**SETTINGS, "data": {**SETTINGS["data"], "root": str(text)}}
        merged = {name: {**values.get(name, {}), **own} for name, own in tables.items()}
        return recipe_from_dict({**values, **merged}, "test")

    return change


def refused(settings: Recipe, folder: Path, words: str) -> None:
    """Both the checks alone and training refuse a recipe, and nothing is made."""
    for run in (preflight, lambda recipe: train(recipe, folder / "run")):
        with pytest.raises(InputError, match=words):
            run(settings)
    assert not (folder / "run").exists()


def test_a_recipe_that_can_be_trained_passes_and_stays_as_it_is(changed: Changed) -> None:
    settings = changed()
    assert preflight(settings) == settings


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no GPU": (
        {"train": {"device": "cuda:7"}},
        r'^train\.device = "cuda:7" cannot be used .* torch finds no GPU here; use "auto" or "cpu"$',
    ),
    "a small vocabulary": ({"tokenizer": {"vocab_size": 5, "byte_fallback": True}}, "vocab_size = 5 is too small"),
    "bytes without bytes": ({"tokenizer": {"kind": "byte"}}, r"set tokenizer\.byte_fallback = true"),
    "a tokenizer to be converted": ({"tokenizer": {"kind": "foreign"}}, "is converted, not trained"),
    "a lost tokenizer": ({"tokenizer": {"path": "lost"}}, "lost: no such tokenizer; train one"),
    "lost text": (
        {"data": {"train": [{"source": "lost.a", "target": "lost.b"}]}},
        r'^data\.train\.0\.source = "lost\.a", data\.train\.0\.target = "lost\.b": no such files in \S+; correct',
    ),
    "no text": ({"data": {"train": []}}, "has no training text"),
    "no language": (
        {"data": {"source_language": "Chinese", "target_language": "xx"}},
        r"2 problems.*\n  data\.source_language: .Chinese. is not .* you mean .zh.\?\n  data\.target_language: .xx. ",
    ),
    "lost validation": (
        {"data": {"valid": {"source": "lost.src", "target": "valid.tgt"}}},
        r'^data\.valid\.source = "lost\.src": no such file in \S+; correct the name, or give --data FOLDER',
    ),
    "uneven": ({"data": {"valid": {"source": "train.src", "target": "valid.tgt"}}}, "101 lines, but .* has 11"),
    "empty": (
        {"data": {"train": [{"source": "empty", "target": "empty"}]}},
        "empty: contains no pairs; check the files and data.filters",
    ),
    "a key": (
        {"data": {"train": [{"source": "pairs.jsonl"}]}},
        r"pairs\.jsonl, line 1: no key 'source'; it has 'en', 'de'",
    ),
    "a column": (
        {"data": {"valid": {"source": "one.tsv"}}},
        r"one\.tsv, line 1: has 1 column, but 2 are needed \(source, target\)",
    ),
    "other bytes": ({"data": {"valid": {"source": "utf16.tsv"}}}, r"utf16\.tsv: not UTF-8 text but UTF-16"),
    "a score": ({"train": {"best": "accuracy"}}, r'train\.best = "accuracy": task = "translation" has the scores'),
    "lost vectors": ({"model": {"tie": "none", "source_vectors": "lost"}}, "lost: no such file"),
    "narrow vectors": (
        {"model": {"tie": "none", "target_vectors": "vectors"}},
        "vectors of size 3, but model.d_model = ",
    ),
    "a lost start": ({"train": {"start": "lost"}}, 'no model "lost"'),
}


@pytest.mark.parametrize("name", BAD)
def test_what_would_stop_a_run_is_found_before_anything_is_made(name: str, changed: Changed, text: Path) -> None:
    (text / "empty").touch()
    (text / "pairs.jsonl").write_text('{"en": "a", "de": "b"}\n')
    (text / "one.tsv").write_text("alone\n")
    (text / "utf16.tsv").write_bytes("a\tb\n".encode("utf-16"))
    (text / "vectors").write_text("w1 0.1 0.2 0.3\n")
    tables, words = BAD[name]
    if model := tables.get("model"):
        tables["model"] = {key: str(text / value) if "vectors" in key else value for key, value in model.items()}
    refused(changed(**tables), text, words)


def test_several_processes_need_a_gpu_each_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def on(device: str) -> Recipe:
        return replace(Recipe(), train=replace(Recipe().train, device=device, accumulate=2))

    with pytest.raises(InputError, match=r'train\.device = "cuda:1" is one GPU'):
        check_processes(on("cuda:1"), 2, 1)
    check_processes(on("cuda:1"), 1, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match=r"2 processes need as many GPUs, but torch finds 1 here.*train\.device=cpu"):
        check_processes(on("auto"), 2, 2)
    check_processes(on("cpu"), 2, 2)
    check_processes(on("auto"), 2, 1)


def test_curves_need_a_package(changed: Changed, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = changed(train={"tensorboard": True})
    assert preflight(settings) == settings
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    refused(settings, text, r"train\.tensorboard = true needs the package tensorboard")


def test_all_that_can_be_found_at_once_is_listed(changed: Changed, text: Path) -> None:
    settings = changed(
        train={"device": "cuda:7", "best": "accuracy"},
        tokenizer={"vocab_size": 5, "byte_fallback": True},
        data={"valid": {"source": "lost.src", "target": "valid.tgt"}},
    )
    refused(settings, text, r"^4 problems would stop this run\n")
    with pytest.raises(InputError) as caught:
        preflight(settings)
    assert all(word in str(caught.value) for word in ("cuda:7", "accuracy", "vocab_size = 5", "lost.src"))


def test_a_folder_of_data_that_is_not_there_is_one_error(changed: Changed, text: Path) -> None:
    with pytest.raises(InputError, match=r"^.*/nowhere: no such data folder; .* with --data$"):
        preflight(changed(data={"root": str(text / "nowhere")}))


def test_corpora_that_training_does_not_read_are_checked_where_they_are_given(changed: Changed) -> None:
    test = CorpusConfig(source="lost.src", target="lost.tgt")
    settings = changed()
    settings = replace(settings, data=replace(settings.data, test=test))
    assert preflight(settings) == settings
    with pytest.raises(InputError, match=r'data\.test\.target = "lost\.tgt": no such files in \S+; '):
        preflight(settings, extra=[test])


def test_a_folder_of_texts_is_read_as_training_reads_it(tmp_path: Path) -> None:
    for name in ("books/deep/one.txt", "more/two.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("To be, or not to be.\n\nThat is the question.\n")
    data = {"train": [{"source": "books"}], "valid": {"source": "more"}}
    settings = toy_tasks.recipe("language_model", tmp_path, data=data)
    assert preflight(settings) == settings
    empty = toy_tasks.recipe("language_model", tmp_path, data={**data, "train": [{"source": "books/deep/.."}]})
    (tmp_path / "books/deep/one.txt").rename(tmp_path / "books/deep/one.pdf")
    refused(empty, tmp_path, r"no \.txt, \.text, \.md or \.jsonl files")


def test_labels_that_are_not_known_are_found_in_the_validation_set_too(tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    settings = toy_tasks.recipe("classification", tmp_path)
    assert set(preflight(settings).data.labels) == {"red", "green", "blue"}
    (tmp_path / "valid.tsv").write_text("a text\tpink\n")
    refused(settings, tmp_path, r"valid\.tsv, line 1: the label 'pink' is not in data.labels \(blue, green, red\)")


def test_the_run_of_a_classifier_whose_classes_come_from_its_data_can_go_on(tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    settings = toy_tasks.recipe("classification", tmp_path, train={"max_updates": 3})
    train(settings, tmp_path / "run")
    assert preflight(settings, tmp_path / "run").data.labels == ("blue", "green", "red")


def test_a_masked_language_model_needs_a_mask(tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    refused(toy_tasks.recipe("masked_lm", tmp_path, tokenizer={"mask": False}), tmp_path, r"set tokenizer\.mask = true")


@pytest.mark.parametrize("task", ["language_model", "masked_lm"])
def test_text_that_is_empty_is_found(task: str, tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    (tmp_path / "valid.txt").write_text("\n \n")
    refused(toy_tasks.recipe(task, tmp_path), tmp_path, r"valid\.txt: contains no texts; check the files")


def test_neighbours_are_not_told_from_strangers_in_one_document(tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    settings = toy_tasks.recipe("masked_lm", tmp_path, data={"documents": "file"})
    refused(settings, tmp_path, r"is a single document, but .* set masking\.next_sentence = false")
    alone = replace(settings, masking=replace(settings.masking, next_sentence=False))
    assert preflight(alone) == alone


def test_text_is_read_once_an_epoch_and_has_no_weight(tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    data = {"train": [{"source": "train.txt", "weight": 2.0}]}
    refused(
        toy_tasks.recipe("language_model", tmp_path, data=data), tmp_path, "weight = 2.0; running text is read once"
    )


SHAPE = {"d_model": 14, "d_ff": 23, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tie": "none"}
STARTS = {
    "translation": {},
    "masked_lm": {"family": "encoder"},
    "language_model": {"family": "decoder"},
}


@pytest.mark.parametrize(
    ("start", "task"),
    [
        ("translation", "language_model"),
        ("masked_lm", "language_model"),
        ("language_model", "masked_lm"),
    ],
)
def test_a_start_of_another_family_is_refused(start: str, task: str, tmp_path: Path) -> None:
    toy_tasks.write_text(tmp_path)
    tokenizer = train_tokenizer(["good bad"], TokenizerConfig(kind="word", byte_fallback=False, mask=True))
    pair = TokenizerPair(tokenizer, tokenizer)
    begun = recipe_from_dict({"task": start, "model": {**SHAPE, **STARTS[start]}}, "test")
    model = find_task(start).build(begun, pair)
    write_model(tmp_path / "start", begun, pair, weights(model))
    settings = toy_tasks.recipe(task, tmp_path, train={"start": str(tmp_path / "start")})
    families = " or ".join(find_task(task).spec.families)
    words = rf'start: this is a model of family "{begun.model.family}" .* needs a model of family {families}; start'
    refused(settings, tmp_path, words)


def test_the_folder_of_another_run_is_found(changed: Changed, text: Path) -> None:
    settings = changed(train={"max_updates": 2, "average_last": 1, "validate_every": 2, "save_every": 1})
    train(settings, text / "run")
    before = sorted((text / "run").rglob("*"))
    assert preflight(settings, text / "run") == settings
    other = replace(settings, model=replace(settings.model, dropout=0.3))
    with pytest.raises(
        InputError, match=r"the run finished at update 2, with different settings: model\.dropout is 0\.3"
    ):
        preflight(other, text / "run")
    assert sorted((text / "run").rglob("*")) == before
    with pytest.raises(InputError, match="is not empty and is not a heedful run"):
        preflight(settings, text)
    with pytest.raises(InputError, match="cannot be used as a run folder"):
        preflight(settings, text / "train.src" / "run")
    assert preflight(settings, text / "new" / "run") == settings
    assert not (text / "new").exists()


def test_a_start_whose_weights_have_no_place_is_found(tmp_path: Path, text: Path, changed: Changed) -> None:
    tokenizer = train_tokenizer(["w1 w2"], TokenizerConfig(kind="word", byte_fallback=False, mask=True))
    pair = TokenizerPair(tokenizer, tokenizer)
    begun = recipe_from_dict({"task": "masked_lm", "model": {**SHAPE, "family": "encoder", "segments": 2}}, "test")
    torch.manual_seed(1)
    write_model(tmp_path / "bert", begun, pair, weights(find_task("masked_lm").build(begun, pair)))
    settings = changed(train={"start": str(tmp_path / "bert")}, model={"tie": "none"})
    refused(settings, text, "can start from only if positions are learned")
