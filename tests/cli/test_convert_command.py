"""`heedful convert`: from a folder to a folder."""

import json

import pytest
import torch
from invocation import invoke
from safetensors.torch import load_file

import foreign_models
from heedful.checkpoint import load_model
from heedful.cli.convert import Source, Target, unused
from heedful.convert import FORMATS
from heedful.convert.model import read_only
from heedful.errors import InputError

transformers = pytest.importorskip("transformers")

MODELS = {"bert": foreign_models.bert, "gpt2": foreign_models.gpt2, "marian": foreign_models.marian}


@pytest.fixture(params=MODELS)
def kind(request, tmp_path):
    MODELS[request.param](tmp_path / "theirs")
    return request.param


def test_the_format_is_guessed_and_the_model_works(kind, tmp_path):
    result = invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    ours = load_model(tmp_path / "ours")
    count = sum(parameter.numel() for parameter in ours.model.parameters())
    assert result.stdout.split(": ")[1] == f'a model for the task "{ours.recipe.task}" with {count:,} parameters\n'
    command = {"bert": ["fill", "the [MASK] sat"], "gpt2": ["generate", ""], "marian": ["translate", "the cats"]}[kind]
    assert invoke(*command, "--model", tmp_path / "ours").exit_code == 0


def test_a_model_goes_there_and_back(kind, tmp_path):
    invoke("convert", tmp_path / "theirs", "--from", kind, "--out", tmp_path / "ours")
    result = invoke("convert", tmp_path / "ours", "--to", kind, "--out", tmp_path / "again")
    before, after = (load_file(tmp_path / place / "model.safetensors") for place in ("theirs", "again"))
    assert after.keys() == before.keys()
    numbers = sum(value.numel() for value in after.values())
    assert result.stdout == f"{tmp_path / 'again'}: a {kind} model with {numbers:,} parameters\n"
    norms = [name for name in before if ("orm" in name or "ln_" in name) and before[name].numel() in (22, 26)]
    assert kind == "marian" or len(norms) > 7
    assert all(torch.equal(before[name], after[name]) for name in norms)


def test_all_files_of_a_converted_model_have_the_permissions_that_are_usual(kind, tmp_path):
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    invoke("convert", tmp_path / "ours", "--to", kind, "--out", tmp_path / "again")
    (tmp_path / "usual").touch()
    files = [file for place in ("ours", "again") for file in (tmp_path / place).rglob("*") if file.is_file()]
    assert {file.name for file in files} >= {"model.safetensors", "config.json"}
    assert {file.stat().st_mode for file in files} == {(tmp_path / "usual").stat().st_mode}


def test_a_task_is_for_models_of_heedful(tmp_path):
    with pytest.raises(InputError, match="--task ranking: is for a model that becomes one of heedful's"):
        invoke("convert", "en-de", "--to", "marian", "--task", "ranking", "--out", tmp_path / "theirs")


def test_what_is_left_out_is_told(tmp_path):
    foreign_models.bert(tmp_path / "theirs", "BertModel")
    result = invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    assert 'for the task "ranking"' in result.stdout
    assert result.stderr.splitlines() == [
        'not used for the task "ranking": bert.pooler.dense.bias (22,)',
        'not used for the task "ranking": bert.pooler.dense.weight (22, 22)',
        "note: no file says how states become the vector of a text: their mean is taken, of length 1",
    ]


def test_what_each_layer_has_is_told_once():
    masks = {f"transformer.h.{i}.attn.bias": torch.ones(5, 5) for i in range(3)} | {"score.weight": torch.ones(2, 7)}
    assert dict(unused(masks)) == {"transformer.h.#.attn.bias (5, 5)": 3, "score.weight (2, 7)": 1}


def test_every_format_can_be_named():
    assert {source.value for source in Source} == {"heedful", *FORMATS}
    assert {target.value for target in Target} == {"heedful"} | {
        k for k, f in FORMATS.items() if f.writer is not read_only
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [("opennmt", "heedful reads this format and does not write it"), ("onnx", "there is no such format")],
)
def test_a_format_that_cannot_be_written_is_refused_with_those_that_can(tmp_path, name, reason):
    with pytest.raises(
        InputError, match=f"^--to {name}: {reason}; choose one of heedful, bert, gpt2, marian, vit, whisper$"
    ):
        invoke("convert", "en-de", "--to", name, "--out", tmp_path / "theirs")


def test_a_model_of_an_unknown_kind_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(InputError, match='model_type is "t5", and heedful converts bert, gpt2, marian, vit, whisper'):
        invoke("convert", tmp_path, "--out", tmp_path / "ours")
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match=r"config\.json: has no keys"):
        invoke("convert", tmp_path, "--out", tmp_path / "ours")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"has no model_type; if it is bert or gpt2 or marian or vit or whisper, say so"
    ):
        invoke("convert", tmp_path, "--out", tmp_path / "ours")


def test_a_model_of_heedful_is_not_converted_into_itself(tmp_path):
    foreign_models.gpt2(tmp_path / "theirs")
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    for source in ([], ["--from", "heedful"]):
        with pytest.raises(
            InputError, match=r"ours is a model of heedful already; .* one of bert, gpt2, marian, vit, whisper$"
        ):
            invoke("convert", tmp_path / "ours", *source, "--out", tmp_path / "again")


def test_a_foreign_model_is_not_converted_into_another_foreign_format(tmp_path):
    foreign_models.gpt2(tmp_path / "theirs")
    with pytest.raises(InputError, match="theirs is a gpt2 model, and --to bert takes one of heedful; leave --to out"):
        invoke("convert", tmp_path / "theirs", "--to", "bert", "--out", tmp_path / "other")


def test_both_directions_say_what_takes_its_time(tmp_path, reporters):
    foreign_models.gpt2(tmp_path / "theirs")
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    invoke("convert", tmp_path / "ours", "--to", "gpt2", "--out", tmp_path / "again")
    assert [reporter.work for reporter in reporters] == [f"converting {tmp_path / name}" for name in ("theirs", "ours")]
