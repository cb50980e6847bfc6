"""`heedful inspect`: a page that shows a model, live or as a file, and one message for each mistake."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from invocation import invoke

import subjects
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.cli.inspect import SAMPLE, inspect, listen, sample_of, served_name
from heedful.config.schema import CorpusConfig, DataConfig, DecodeConfig, ModelConfig, Recipe
from heedful.errors import InputError, RunError
from heedful.inspector.page import view

TEXT = "the old dog sees </script> the station ."

run = partial(invoke, "inspect")


def make_model(place, data):
    translator = subjects.translator()
    recipe = Recipe(data=data, model=subjects.SHAPE, decode=DecodeConfig(beam=2, max_extra=3))
    write_model(place / "model", recipe, translator.tokenizers, weights(translator.model))
    return place / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that knows nothing."""
    return make_model(tmp_path_factory.mktemp("inspect"), DataConfig())


def test_a_look_becomes_a_file(model, tmp_path):
    page = tmp_path / "page.html"
    result = run(model, TEXT, "--reference", "der alte Hund", "--out", page, "--head", "dec.2.cross.2")
    assert str(page) in result.stderr
    html = page.read_text(encoding="utf-8")
    assert 'data-part="dec.2.cross 1"' in html
    assert TEXT not in html
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize("beam", [1, 3])
def test_a_file_shows_as_many_hypotheses_as_the_beam_keeps(model, tmp_path, monkeypatch, beam):
    views = []
    monkeypatch.setattr("heedful.inspector.page.view", lambda *args: views.append(view(*args)) or views[-1])
    run(model, TEXT, "--beam", beam, "--out", tmp_path / "page.html")
    assert len(views[0].inspection.answers[0].options) == beam


def test_a_look_that_takes_its_time_says_so(model, tmp_path, reporters):
    run(model, TEXT, "--out", tmp_path / "page.html")
    assert [reporter.work for reporter in reporters] == [f"inspecting {model}"]


def test_a_file_may_show_a_translation_that_is_given(model, tmp_path):
    run(model, TEXT, "--target", "der alte Hund", "--out", tmp_path / "page.html")
    assert 'data-part="dec.2.cross 0"' in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("modality", "words"),
    [
        ("text", "--out needs a text to inspect"),
        ("image", "an image file to inspect: .* dog.jpg"),
        ("audio", "an audio file to inspect: .* speech.wav"),
    ],
)
def test_what_is_missing_is_named_by_what_the_model_reads(modality, words, monkeypatch, tmp_path):
    recipe = Recipe(data=DataConfig(modality=modality))
    monkeypatch.setattr("heedful.cli.inspect.recipe_of", lambda _: recipe)
    with pytest.raises(InputError, match=words):
        inspect("model", out=tmp_path / "a.html")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "a.html"], r"needs a text to inspect: heedful inspect \S+/model 'A dog barks.' --out a.html"),
        (["dog", "--out", "none/page.html"], "there is no folder none"),
        (["dog", "--out", "page.html", "--head", "cross"], "--head cross: must be a block and a number"),
        (["dog", "--out", "page.html", "--head", "dec.1.cross.0"], "cross.0: must be a block and a number from 1"),
        (["dog", "--out", "page.html", "--head", f"dec.1.cross.{'1' * 5000}"], "must be a block and a number from 1"),
        (["dog", "--out", "page.html", "--head", "dec.1.cross.3"], "3: dec.1.cross has 2 heads, counted from 1"),
        (["dog", "--out", "page.html", "--head", "dec.7.cross.1"], "dec.7.cross is not an attention sublayer"),
        (["  ", "--out", "page.html"], "the text is empty"),
        (["dog", "--head", "dec.1.cross.1"], "--head is for --out FILE"),
        (["dog", "--out", "page.html", "--beside", "en-de"], "--beside is for the live page"),
        (["dog", "--out", "page.txt"], r"--out page.txt: the name of a page must end in \.html or \.htm"),
        (["dog", "--out", "page.html", "--target", " "], "--target is empty"),
        (
            ["dog", "--out", "page.html", "--target", "Hund", "--reference", "x"],
            "--reference .* which --target replaces",
        ),
        (["dog", "--out", "page.html", "--target", "Hund", "--beam", "2"], "--beam is for .* which --target replaces"),
        (["dog", "--out", "page.html", "--data", "."], "--data is for the live page"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(model, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        run(model, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [("--reference", "a cat"), ("--beam", 2)])
def test_options_of_a_beam_search_are_refused_for_a_language_model(option, tmp_path, monkeypatch):
    recipe = Recipe(task="language_model", model=ModelConfig(family="decoder"))
    monkeypatch.setattr("heedful.cli.inspect.recipe_of", lambda _: recipe)
    with pytest.raises(
        InputError, match=f"{option[0]} is for models with a beam search, but lm has none; leave it out"
    ):
        run("lm", "dog", "--out", tmp_path / "page.html", *option)


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(InputError, match='no model "en-dd"'):
        run("en-dd", "dog", "--out", "page.html")


def test_an_address_that_cannot_be_listened_at_is_named():
    with pytest.raises(RunError, match=r"cannot listen on 203.0.113.7, port 0: .*--port 0 selects a free one"):
        run("en-de", "--host", "203.0.113.7", "--port", "0", "--no-open")


def test_a_name_that_no_host_can_have_is_named():
    with pytest.raises(InputError, match=r"--host ä\.\.: not a valid host name"):
        listen("ä..", 0)
    with pytest.raises(InputError, match="--host is empty; give an address"):
        listen(" ", 0)


def test_a_text_of_broken_bytes_is_refused_before_it_is_served(model):
    with pytest.raises(InputError, match="character 4 of the text is a lone surrogate"):
        run(model, "caf\udce9 dog", "--no-open")


@pytest.mark.parametrize("name", [".", ".."])
def test_a_model_that_is_named_by_dots_is_served_under_its_path(name):
    assert served_name(name) == str(Path(name).resolve())
    assert served_name(f"{name}/run") == f"{name}/run"


def test_heads_are_weighed_on_the_test_set_where_training_had_it(tmp_path, capsys):
    make_model(tmp_path, DataConfig(root=str(tmp_path), test=CorpusConfig(source="a", target="b")))
    (tmp_path / "a").write_text("the old dog\n" * 203)
    (tmp_path / "b").write_text("der alte Hund\n" * 203)
    assert sample_of(str(tmp_path / "model"), None) == (["the old dog"] * SAMPLE, ["der alte Hund"] * SAMPLE)
    assert capsys.readouterr().err == ""


def test_a_test_set_that_is_not_there_is_told_and_one_that_is_asked_for_refused(tmp_path, capsys):
    make_model(tmp_path, DataConfig(root=str(tmp_path / "gone"), test=CorpusConfig(source="a", target="b")))
    model = str(tmp_path / "model")
    assert sample_of(model, None) == ([], [])
    told = capsys.readouterr().err
    assert told.startswith("heedful: the importance of heads cannot be measured without a test set: ")
    assert "gone, which does not exist here" in told
    with pytest.raises(InputError, match=r"its test set .* not found; with --data, give the folder that contains \S+$"):
        sample_of(model, tmp_path)


def test_the_live_page_answers_until_it_is_ended(model):
    command = [
        Path(sys.executable).with_name("heedful"),
        "inspect",
        model,
        "a dog",
        "--beam",
        "3",
        "--port",
        "0",
        "--no-open",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert "the recipe has no data.test\n" in server.stderr.readline()
            said = server.stderr.readline()
            address = said.partition(" at ")[2].split()[0]
            assert address.endswith("#/answer?text=a+dog&beam=3")
            root = address.partition("#")[0]
            assert b"heedful inspector" in urlopen(root).read()
            body = json.dumps({"model": str(model), "text": "the old dog"}).encode()
            seen = json.load(urlopen(Request(f"{root}api/v1/traces", body)))
            assert seen["answers"][0]["options"]
        finally:
            os.kill(server.pid, signal.SIGINT)
        server.wait(120)
        assert "Traceback" not in server.stderr.read()
