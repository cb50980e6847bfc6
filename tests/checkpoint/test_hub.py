"""Models on the Hub, both ways, against a server on this machine: nothing but a model arrives, whole, or an error."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import huggingface_hub.constants as settings
import numpy as np
import pytest
import torch
from huggingface_hub.utils import logging

import foreign_models
import heedful
from cli.invocation import invoke
from heedful.architectures import weights
from heedful.checkpoint import find_model, write_model
from heedful.checkpoint.hub import download
from heedful.checkpoint.load import load_model
from heedful.config.load import recipe_from_dict
from heedful.errors import HeedfulError, InputError, RunError
from heedful.tasks import find_task
from heedful.text.pipeline import EOS
from heedful.text.shortlist import Shortlist
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.tools.compare.setup import parse_systems
from hub_server import TOKEN, serving

pytestmark = [
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),  # huggingface_hub uploads by data=
    pytest.mark.skipif(version("huggingface_hub") < "2", reason="older versions keep what can be resumed"),
]

NAME = "hf:someone/tiny"
FILES = "/{repo_id}/resolve/{revision}/{filename}"
RECIPE = {
    "name": "tiny",
    "task": "translation",
    "data": {"source_language": "en", "target_language": "de"},
    "model": {"d_model": 16, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "tokenizer": {"vocab_size": 300},
}


def saved_model(folder, **settings):
    """A model of random weights in a folder."""
    recipe = recipe_from_dict({**RECIPE, **settings}, "test")
    tokenizer = train_tokenizer(["one two three"] * 9, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    torch.manual_seed(1)
    write_model(folder, recipe, pair, weights(find_task(recipe.task).build(recipe, pair)))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty Hub, a user who is logged in, and an empty cache."""
    with serving() as hub:
        monkeypatch.setattr(settings, "ENDPOINT", hub.address)
        monkeypatch.setattr(settings, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + FILES)
        monkeypatch.setattr(settings, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(settings, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(settings, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def cached(tmp_path):
    """The names of all files of models in the cache."""
    return sorted({path.name for path in (tmp_path / "cache").glob("models--*/snapshots/*/**/*") if path.is_file()})


def message(error, *arguments, **options):
    """The message of an error that a call ends in, which never has the token."""
    with pytest.raises(error) as raised:
        heedful.load(*arguments, **options)
    assert TOKEN not in str(raised.value)
    return str(raised.value)


def test_a_model_that_is_pushed_is_loaded_by_its_name(hub, model):
    export = heedful.export(model, push=NAME, inputs=[])
    assert export.commit == f"{hub.address}/someone/tiny/commit/{hub.repositories['someone/tiny'].branches['main']}"
    assert 'heedful.load("hf:someone/tiny")' in hub.files("someone/tiny")["README.md"].decode()
    assert len(hub.commits) == 1
    here, there = heedful.load(model, "cpu"), heedful.load(NAME, "cpu")
    assert here.score([("one two", "two")]) == there.score([("one two", "two")])


def test_a_model_comes_with_its_shortlist(hub, model, tmp_path):
    plain = load_model(model)
    vocabulary = len(plain.tokenizers.target)
    shortlist = Shortlist.build(
        np.full((vocabulary, 2), 7), np.array([EOS]), ["x"] * vocabulary, [f"{i}" for i in range(vocabulary)]
    )
    recipe = replace(plain.recipe, decode=replace(plain.recipe.decode, shortlist=2))
    tokenizers = replace(plain.tokenizers, shortlist=shortlist)
    write_model(tmp_path / "listed", recipe, tokenizers, weights(plain.model))
    heedful.export(tmp_path / "listed", push=NAME, inputs=[])
    received = load_model(download(NAME)).tokenizers.shortlist
    assert received is not None
    assert np.array_equal(received.table, shortlist.table)


def test_a_branch_is_written_and_read_by_its_name(hub, model, tmp_path):
    heedful.export(model, tmp_path / "out", push=NAME, inputs=[])
    heedful.export(model, push=f"{NAME}@next", inputs=[])
    branches = hub.repositories["someone/tiny"].branches
    assert branches["main"] != branches["next"]
    assert download(f"{NAME}@next").name == branches["next"]
    assert download(f"{NAME}@{branches['main']}").name == branches["main"]
    assert (tmp_path / "out/manifest.json").is_file()


def test_commands_take_the_name_of_a_model(hub, model, tmp_path):
    hub.add_folder("someone/tiny", model)
    assert "1+1 layers" in invoke("info", NAME).stdout
    assert (
        invoke("translate", "--model", NAME, "one two").stdout
        == invoke("translate", "--model", model, "one two").stdout
    )
    (tmp_path / "texts").write_text("one\n")
    arguments = ("--source", tmp_path / "texts", "--reference", tmp_path / "texts", "--json")
    report = json.loads(invoke("evaluate", NAME, *arguments).stdout)
    assert report["system"] == f"{NAME}@{hub.repositories['someone/tiny'].branches['main']}"
    assert (
        report["files"]["model.safetensors"]
        == json.loads((model / "manifest.json").read_text())["files"]["model.safetensors"]["crc32"]
    )


def test_a_system_of_a_comparison_is_named_like_its_repository(hub, model):
    commit = hub.add_folder("someone/tiny", model)
    systems = parse_systems([NAME, f"other={NAME}@{commit}"], [])
    assert [(system.name, system.source.name) for system in systems] == [("tiny", commit), ("other", commit)]


def test_only_files_of_the_manifest_and_the_card_are_downloaded(hub, model, tmp_path):
    hub.add_folder("someone/tiny", model)
    hub.commit("someone/tiny", {"README.md": b"card", "run.py": b"1", "pytorch_model.bin": b"1", "x.json": b"{}"})
    find_model(NAME)
    manifest = json.loads((model / "manifest.json").read_text())
    assert cached(tmp_path) == sorted({"README.md", "manifest.json", *(Path(name).name for name in manifest["files"])})


def test_a_file_that_is_no_weights_and_no_json_stays_away_even_if_the_manifest_lists_it(hub, tmp_path):
    from heedful.storage.complete_folder import Entry, manifest_bytes

    files = {"code.py": Entry(1, "00000000"), "recipe.json": Entry(2, "00000000")}
    contents = {"manifest.json": manifest_bytes(files, {}), "code.py": b"1", "recipe.json": b"{}"}
    hub.commit("someone/tiny", contents)
    find_model(NAME)
    assert cached(tmp_path) == ["manifest.json", "recipe.json"]


def test_a_model_in_the_cache_is_used_without_a_connection(hub, model, monkeypatch):
    commit = hub.add_folder("someone/tiny", model)
    folder = find_model(NAME)
    hub.requests.clear()
    assert find_model(NAME) == folder
    assert len(hub.requests) == 1  # whether the branch has moved
    assert find_model(f"{NAME}@{commit}") == folder
    assert len(hub.requests) == 1
    monkeypatch.setattr(settings, "HF_HUB_OFFLINE", True)
    assert find_model(NAME) == folder
    assert "HF_HUB_OFFLINE" in message(RunError, "hf:someone/other")
    assert len(hub.requests) == 1


def test_without_a_network_the_error_says_so(hub, model, monkeypatch):
    hub.add_folder("someone/tiny", model)
    folder = find_model(NAME)
    monkeypatch.setattr(settings, "HUGGINGFACE_CO_URL_TEMPLATE", f"http://127.0.0.1:9{FILES}")
    verbosities = []
    sleep = "huggingface_hub.utils._http.time.sleep"
    monkeypatch.setattr(sleep, lambda _: verbosities.append(logging.get_verbosity()))
    assert find_model(NAME) == folder
    verbosities.clear()
    assert message(RunError, "hf:someone/other").startswith("hf:someone/other: the Hub cannot be reached")
    retries = len(verbosities)
    with pytest.raises(RunError, match="hf:someone/other: the Hub cannot be reached"):
        download("hf:someone/other", foreign=True)
    assert len(verbosities) == 2 * retries  # the second file of a foreign model is not tried
    assert set(verbosities) == {40}  # logging.ERROR: the library does not print its retries


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer/joint/tokenizer.json", "manifest.json"])
@pytest.mark.parametrize("fault", ["cut", "changed"])
def test_a_file_that_arrives_damaged_is_an_error_and_is_not_kept(hub, model, tmp_path, file, fault):
    hub.add_folder("someone/tiny", model)
    hub.faults[file] = fault
    text = message(RunError, NAME)
    assert text.startswith(f"{NAME}: ")
    assert "try again" in text
    assert ("connection was lost" if fault == "cut" else Path(file).name) in text
    assert Path(file).name not in cached(tmp_path)
    assert not [*(tmp_path / "cache").rglob("*.incomplete")]
    hub.faults.clear()
    heedful.load(NAME)


def test_a_file_that_the_repository_lacks_is_named(hub, model):
    hub.add_folder("someone/tiny", model)
    del hub.files("someone/tiny")["model.safetensors"]
    assert "lacks model.safetensors, which its manifest.json lists; push" in message(InputError, NAME)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hf:someone/absent", "does not exist on the Hub, or you have no access (404); check the name, or log in"),
        ("hf:someone/tiny@absent", "has no revision absent; give one of its branches"),
        ("hf:a/b/c", "not a Hub repository name; write hf:OWNER/NAME"),
        ("hf://someone/tiny", "not a Hub repository name; write hf:OWNER/NAME"),
        ("hf:", "not a Hub repository name; write hf:OWNER/NAME"),
        ("hf:someone/bare", "is not a heedful model, as it has no manifest.json; convert"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(hub, model, name, words):
    hub.add_folder("someone/tiny", model)
    hub.commit("someone/bare", {"config.json": b"{}"})
    assert words in message(InputError, name)


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_refused_is_an_error_that_does_not_print_it(hub, model, status):
    hub.add_folder("someone/tiny", model)
    hub.refusals["HEAD /someone/tiny"] = status
    text = message(HeedfulError, NAME)
    assert f"({status})" in text
    assert "HF_TOKEN" in text


def test_a_wrong_token_is_refused(hub, model, monkeypatch):
    hub.add_folder("someone/tiny", model)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    text = message(InputError, NAME)
    assert "the Hub rejects the token (401); log in" in text
    assert "hf_wrong" not in text


def test_a_private_repository_is_read_by_its_owner_only(hub, model, monkeypatch):
    heedful.export(model, push=NAME, private=True, inputs=[])
    assert hub.repositories["someone/tiny"].private
    find_model(NAME)
    monkeypatch.setenv("HF_TOKEN", "")
    monkeypatch.setattr(settings, "HF_HUB_CACHE", f"{settings.HF_HUB_CACHE}-of-another")
    monkeypatch.setattr(settings, "HF_TOKEN_PATH", "absent")
    assert "or you have no access (401)" in message(InputError, NAME)


def test_a_public_repository_gets_nothing_that_is_private(hub, model):
    hub.commit("someone/tiny", {"README.md": b"public"})
    with pytest.raises(InputError, match="exists and is public; make it private"):
        heedful.export(model, push=NAME, private=True, inputs=[])
    assert hub.files("someone/tiny") == {"README.md": b"public"}


@pytest.mark.parametrize("request_", ["POST /api/repos/create", "PUT /lfs/", "POST /api/models/someone/tiny/commit/"])
@pytest.mark.parametrize("status", [403, 500])
def test_an_upload_that_fails_commits_nothing(hub, model, tmp_path, monkeypatch, request_, status):
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    hub.refusals[request_] = status
    with pytest.raises(HeedfulError, match=str(status)) as raised:
        invoke("export", model, tmp_path / "out", "--push", NAME)
    assert TOKEN not in str(raised.value)
    assert ("using a token with write access" in str(raised.value)) == (status == 403)
    assert not hub.commits
    assert (tmp_path / "out/manifest.json").is_file()


def test_a_push_without_a_login_or_with_a_wrong_name_is_refused_before_the_export(hub, model, tmp_path, monkeypatch):
    with pytest.raises(InputError, match='not a Hub repository name; did you mean "hf:someone/tiny"'):
        invoke("export", model, tmp_path / "out", "--push", "someone/tiny")
    with pytest.raises(InputError, match="not a Hub repository name; write hf:OWNER/NAME"):
        invoke("export", model, tmp_path / "out", "--push", "tiny")
    with pytest.raises(InputError, match="give a folder"):
        invoke("export", model)
    with pytest.raises(InputError, match="add --push hf:OWNER/NAME"):
        invoke("export", model, tmp_path / "out", "--private")
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(InputError, match="needs a Hub token; log in"):
        invoke("export", model, tmp_path / "out", "--push", NAME)
    assert not (tmp_path / "out").exists()
    assert not hub.requests


@pytest.mark.parametrize("kind", ["gpt2", "marian", "whisper"])
def test_models_of_transformers_are_converted_by_their_names(hub, tmp_path, kind):
    getattr(foreign_models, kind)(tmp_path / "there")
    hub.add_folder(f"someone/{kind}", tmp_path / "there")
    commit = hub.commit(f"someone/{kind}", {"pytorch_model.bin": b"1", "modeling.py": b"1", "onnx/model.onnx": b"1"})
    output = invoke("convert", f"hf:someone/{kind}", "--out", tmp_path / "out").stdout
    assert f"from someone/{kind} at commit {commit}" in output
    assert not {"pytorch_model.bin", "modeling.py", "model.onnx"} & {*cached(tmp_path)}
    assert json.loads((tmp_path / "out/recipe.json").read_text())["recipe"]["name"] == kind
    invoke("convert", tmp_path / "there", "--out", tmp_path / "same")
    assert (tmp_path / "out/model.safetensors").read_bytes() == (tmp_path / "same/model.safetensors").read_bytes()


def test_a_model_of_transformers_arrives_whole_and_is_then_converted_without_a_connection(hub, tmp_path, monkeypatch):
    foreign_models.gpt2(tmp_path / "there")
    hub.add_folder("someone/gpt2", tmp_path / "there")
    hub.faults["model.safetensors"] = "changed"
    with pytest.raises(RunError, match="differs from the one that the Hub lists"):
        invoke("convert", "hf:someone/gpt2", "--out", tmp_path / "out")
    assert "model.safetensors" not in cached(tmp_path)
    assert not (tmp_path / "out").exists()
    hub.faults.clear()
    download("hf:someone/gpt2", foreign=True)
    monkeypatch.setattr(settings, "HF_HUB_OFFLINE", True)
    invoke("convert", "hf:someone/gpt2", "--out", tmp_path / "out")


def test_a_pickled_model_is_not_downloaded(hub, tmp_path):
    hub.commit("someone/old", {"config.json": b"{}", "pytorch_model.bin": b"1"})
    with pytest.raises(InputError, match=r"has no weights in model\.safetensors, and pickles are not downloaded"):
        invoke("convert", "hf:someone/old", "--out", tmp_path / "out")
    hub.commit("someone/none", {"model.safetensors": b"1"})
    with pytest.raises(InputError, match=r"has neither manifest\.json nor config\.json"):
        invoke("convert", "hf:someone/none", "--out", tmp_path / "out")
    assert "pytorch_model.bin" not in cached(tmp_path)


def test_a_warm_start_records_the_commit_and_the_card_the_base_model(hub, model, tmp_path):
    commit = hub.add_folder("someone/tiny", model)
    (tmp_path / "train.tsv").write_text("one two\ttwo three\n" * 9)
    data = {"root": str(tmp_path), "train": [{"source": "train.tsv"}], "valid": {"source": "train.tsv"}}
    train = {"start": NAME, "max_updates": 1, "device": "cpu"}
    settings = {**RECIPE, "data": {**RECIPE["data"], **data}, "train": train}
    result = heedful.train(settings, tmp_path / "run")
    recipe = json.loads((result.folder / "model/recipe.json").read_text())["recipe"]
    assert recipe["train"]["start"] == f"{NAME}@{commit}"
    heedful.export(result.folder, tmp_path / "out", inputs=[])
    card = (tmp_path / "out/README.md").read_text()
    assert 'base_model: "someone/tiny"' in card
    assert f"| started from | {NAME}@{commit} |" in card
    hub.commit("someone/tiny", {"README.md": b"another commit"})
    with pytest.raises(InputError, match=f'the run was started with "{NAME}@{commit}"'):
        heedful.train(settings, tmp_path / "run", set={"train.max_updates": 2})


def test_the_address_comes_from_the_environment_and_an_error_is_one_line(hub, tmp_path):
    environment = os.environ | {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-m", "heedful", "translate", "--model", NAME, "one"]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"heedful: {NAME}: does not exist on the Hub, or you have no access (404); check")


def test_a_model_on_this_machine_needs_no_hub(model):
    program = f"""
import sys
from heedful.checkpoint import find_model
find_model({str(model)!r})
assert "huggingface_hub" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
