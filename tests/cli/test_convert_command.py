"""`heedful convert`: from a folder to a folder."""

import json
import re
import subprocess
import sys

import pytest
import torch
from invocation import invoke
from safetensors.torch import load_file

import foreign_models
from heedful.checkpoint import load_model
from heedful.cli.convert import count_unused
from heedful.errors import InputError
from heedful.registry import EXPORTERS, FORMATS
from heedful.tasks.specs import kind_of_model

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
    assert result.stdout.split(": ")[1] == f"{kind_of_model(ours.recipe.task)} with {count:,} parameters\n"
    command = {"bert": ["fill", "the [MASK] sat"], "gpt2": ["generate", ""], "marian": ["translate", "the cats"]}[kind]
    assert invoke(*command, "--model", tmp_path / "ours").exit_code == 0


def test_a_model_goes_there_and_back(kind, tmp_path):
    invoke("convert", tmp_path / "theirs", "--from", kind, "--out", tmp_path / "ours")
    result = invoke("convert", tmp_path / "ours", "--to", kind, "--out", tmp_path / "again")
    before, after = (load_file(tmp_path / place / "model.safetensors") for place in ("theirs", "again"))
    assert after.keys() == before.keys()
    numbers = sum(value.numel() for value in after.values())
    assert re.fullmatch(rf".*again: [.0-9]+ [kM]B for Hugging Face, {numbers:,} parameters in float32\n", result.stdout)
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
    with pytest.raises(InputError, match="--task ranking: applies only to models from other toolkits, but en-de"):
        invoke("convert", "en-de", "--to", "marian", "--task", "ranking", "--out", tmp_path / "theirs")


def test_what_is_left_out_is_told(tmp_path):
    foreign_models.bert(tmp_path / "theirs", "BertModel")
    result = invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    assert "a ranking model" in result.stdout
    assert result.stderr.splitlines() == [
        'not used for the task "ranking": bert.pooler.dense.bias (22,)',
        'not used for the task "ranking": bert.pooler.dense.weight (22, 22)',
        "note: no file specifies the pooling: a text's vector is the mean of its states, scaled to length 1",
    ]


def test_what_each_layer_has_is_told_once():
    masks = {f"transformer.h.{i}.attn.bias": torch.ones(5, 5) for i in range(3)} | {"score.weight": torch.ones(2, 7)}
    assert dict(count_unused(masks)) == {"transformer.h.#.attn.bias (5, 5)": 3, "score.weight (2, 7)": 1}


def test_the_options_list_the_formats_of_the_registry(monkeypatch):
    assert all(FORMATS[name].reader for name in FORMATS)
    assert all(EXPORTERS[name].writer for name in EXPORTERS)
    monkeypatch.setenv("COLUMNS", "300")
    converts, exports = invoke("convert", "--help").stdout, invoke("export", "--help").stdout
    assert f"<{'|'.join(['heedful', *FORMATS])}>" in converts
    assert f"<{'|'.join(['heedful', *EXPORTERS])}>" in converts
    assert f"<{'|'.join(EXPORTERS)}>" in exports


def test_an_exporter_is_a_line_of_the_registry():
    """A new process, in which the command is imported after the line is there."""
    code = (
        "import heedful.registry as r; r.EXPORTERS.places['mine'] = r.EXPORTERS.places['gpt2']\n"
        "import sys, heedful.cli.convert as c\n"
        "assert not [name for name in sys.modules if name.startswith('heedful.convert') or name == 'torch']\n"
        "from pathlib import Path\n"
        "try: c.export('en-de', Path('nowhere/out'), 'mine')\n"
        "except Exception as error: assert 'language_model' in str(error), error\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("opennmt", "heedful reads this format but does not write it"), ("mine", "unknown format")],
)
def test_a_format_that_cannot_be_written_is_refused_with_those_that_can(tmp_path, name, reason):
    with pytest.raises(InputError, match=f"^--to {name}: {reason}; choose one of heedful, safetensors, "):
        invoke("convert", "en-de", "--to", name, "--out", tmp_path / "theirs")


def test_a_model_of_an_unknown_kind_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(
        InputError,
        match='model_type "t5" is not supported; heedful converts only bert, clip, gpt2, llama, marian, vit, whisper',
    ):
        invoke("convert", tmp_path, "--out", tmp_path / "ours")
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match=r"config\.json: is not a JSON object"):
        invoke("convert", tmp_path, "--out", tmp_path / "ours")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="has no model_type; if the model is bert, clip, gpt2, llama, marian, vit or "):
        invoke("convert", tmp_path, "--out", tmp_path / "ours")


def test_a_model_of_heedful_is_not_converted_into_itself(tmp_path):
    foreign_models.gpt2(tmp_path / "theirs")
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    for source in ([], ["--from", "heedful"]):
        with pytest.raises(
            InputError, match=r"ours is a heedful model already; .* one of safetensors, huggingface, .*, gpt2$"
        ):
            invoke("convert", tmp_path / "ours", *source, "--out", tmp_path / "again")


def test_a_refused_format_is_followed_by_the_formats_that_fit(tmp_path):
    with pytest.raises(InputError, match=r'en-de: .*needs "masked_lm".*\nformats for this model: .*, argos, onnx, '):
        invoke("export", "en-de", tmp_path / "out", "--to", "bert")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("out", "problem"), [("run", "contains"), ("run/model", "is")])
def test_an_export_does_not_replace_its_model(tmp_path, out, problem):
    foreign_models.gpt2(tmp_path / "theirs")
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "run/model")
    with pytest.raises(InputError, match=f"{out}: {problem} the model that is read; choose another folder"):
        invoke("export", tmp_path / "run", tmp_path / out, "--force")
    assert (tmp_path / "run/model/manifest.json").is_file()


def test_an_invalid_setting_is_named_as_in_the_file_of_the_model(tmp_path):
    foreign_models.llama(tmp_path / "theirs")
    settings = json.loads((tmp_path / "theirs/config.json").read_text())
    (tmp_path / "theirs/config.json").write_text(json.dumps(settings | {"num_attention_heads": 5}))
    problem = r"config\.json: num_attention_heads = 5 .* num_key_value_heads = "
    with pytest.raises(InputError, match=problem) as caught:
        invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    assert "model." not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_git_lfs_pointer_is_recognised(name, tmp_path):
    foreign_models.gpt2(tmp_path / "theirs")
    (tmp_path / "theirs" / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(InputError, match=f"{name}: is a Git LFS pointer, not the file itself; run `git lfs pull` in"):
        invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")


def test_a_foreign_model_is_not_converted_into_another_foreign_format(tmp_path):
    foreign_models.gpt2(tmp_path / "theirs")
    with pytest.raises(
        InputError, match="theirs: has the format gpt2, but --to bert converts only heedful models; leave --to out"
    ):
        invoke("convert", tmp_path / "theirs", "--to", "bert", "--out", tmp_path / "other")


def test_a_format_that_the_folder_does_not_have_is_named_with_the_real_one(tmp_path):
    foreign_models.gpt2(tmp_path / "theirs")
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    for name, source, real in (("ours", "gpt2", "heedful"), ("theirs", "opennmt", "gpt2")):
        with pytest.raises(InputError, match=f"--from {source}: .*{name} has the format {real}; leave --from out"):
            invoke("convert", tmp_path / name, "--out", tmp_path / "other", "--from", source)


def test_both_directions_say_what_takes_its_time(tmp_path, reporters):
    foreign_models.gpt2(tmp_path / "theirs")
    invoke("convert", tmp_path / "theirs", "--out", tmp_path / "ours")
    invoke("convert", tmp_path / "ours", "--to", "gpt2", "--out", tmp_path / "again")
    work = [f"converting {tmp_path / 'theirs'}", f"exporting {tmp_path / 'ours'}"]
    assert [reporter.work for reporter in reporters] == work
