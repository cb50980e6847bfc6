"""`heedful search`, `encode` and `evaluate` with a model of images and texts: what the library finds, both ways."""

import json
import shutil
from functools import partial
from os import fsdecode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from invocation import invoke
from typer.testing import CliRunner

import heedful
from heedful.architectures import SentenceEncoder, weights
from heedful.architectures.input_layers import media_and_text
from heedful.checkpoint import write_model
from heedful.cli import app
from heedful.config.schema import ModelConfig, Recipe
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from toy_retrieval import TEXTS, recipe, write_tables

run = partial(invoke, "search")
QUERY = "a red square at the top b"
OPTIONS = ("--model", "model", "--corpus", "files", "--count", 3)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with images, tables and a model, and one of texts alone."""
    folder = write_tables(tmp_path_factory.mktemp("made") / "data")
    settings = recipe(folder)
    tokenizer = train_tokenizer(TEXTS, settings.tokenizer)
    torch.manual_seed(1)
    pair = TokenizerPair(tokenizer, tokenizer)
    write_model(folder / "model", settings, pair, weights(media_and_text(settings, len(tokenizer))))
    config = ModelConfig(family="encoder", d_model=14, d_ff=19, heads=2, encoder_layers=1)
    ranking = Recipe(task="ranking", model=config)
    write_model(folder / "ranking", ranking, pair, weights(SentenceEncoder(config, len(tokenizer))))
    (folder / "texts").write_text("".join(f"{text}\n" for text in TEXTS))
    return folder


@pytest.fixture
def place(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def shown(hits):
    return "".join(f"{rank:>3}  {hit.score:7.4f}  {hit.text}\n" for rank, hit in enumerate(hits, start=1))


def pictures():
    return sorted(Path("files").iterdir())


def test_a_sentence_finds_pictures_of_a_folder(place):
    found = heedful.load("model", "cpu").search([QUERY], pictures(), k=3)
    assert run(*OPTIONS, QUERY).stdout == shown(found[0])
    [line] = run(*OPTIONS, "--json", stdin=f"{QUERY}\n").stdout.splitlines()
    assert json.loads(line) == [
        {"rank": rank, "score": pytest.approx(hit.score), "file": hit.text} for rank, hit in enumerate(found[0], 1)
    ]


@pytest.mark.parametrize("again", [False, True])
def test_a_picture_that_cannot_be_read_is_told_of_and_the_others_are_searched(again, place, tmp_path):
    shutil.copytree("files", tmp_path / "files")
    (tmp_path / "files" / "valid-000.png").write_bytes(b"no picture")
    options = ("--model", "model", "--corpus", tmp_path / "files", "--count", 999, "--index", tmp_path / "index")
    if again:  # from the index
        CliRunner().invoke(app, ["search", *map(str, options), QUERY])
    found = CliRunner().invoke(app, ["search", *map(str, options), QUERY])
    lines = found.stdout.splitlines()
    assert len(lines) == len(pictures()) - 1
    assert not any("valid-000" in line for line in lines)
    said = f"1 of {len(pictures())} files could not be read:\n  {tmp_path}/files/valid-000.png: not searched"
    assert str(found.exception).startswith(said)


def test_a_picture_finds_texts_of_a_file_and_of_a_table(place):
    query = Path("files/valid-007.png")
    [found] = heedful.load("model", "cpu").search([query], TEXTS, k=2)
    [line] = run("--model", "model", "--corpus", "texts", "--count", 2, "--json", query).stdout.splitlines()
    assert json.loads(line) == [
        {"rank": rank, "score": pytest.approx(hit.score), "line": hit.number + 1, "text": hit.text}
        for rank, hit in enumerate(found, 1)
    ]
    [of_table] = run("--model", "model", "--corpus", "valid.jsonl", "--json", query).stdout.splitlines()
    assert json.loads(of_table)[0]["text"] == found[0].text


def test_pictures_and_sentences_may_be_queries_side_by_side(place):
    query = "files/valid-007.png"
    blocks = run(*OPTIONS, QUERY, query).stdout.split("\n\n")
    assert blocks[0] + "\n" == run(*OPTIONS, QUERY).stdout
    assert blocks[1] == run(*OPTIONS, query).stdout
    assert blocks[1].splitlines()[0].split() == ["1", "1.0000", query]


def test_a_folder_as_a_query_is_all_of_its_pictures(place):
    found = run("--model", "model", "--corpus", "texts", "--count", 1, "files").stdout
    assert found.count("\n\n") == len(pictures()) - 1


def test_queries_in_a_table_are_its_texts(place):
    found = run(*OPTIONS, "--input", "valid.jsonl", "--json").stdout.splitlines()
    texts = [json.loads(line)["text"] for line in Path("valid.jsonl").read_text().splitlines()]
    assert len(found) == len(texts)
    assert found[3] == run(*OPTIONS, "--json", texts[3]).stdout.rstrip("\n")


def test_an_index_of_pictures_is_made_once_and_of_this_folder_only(place, tmp_path):
    index = ("--index", tmp_path / "index")
    first = run(*OPTIONS, *index, QUERY).stdout
    assert run(*OPTIONS, *index, QUERY).stdout == first == run(*OPTIONS, QUERY).stdout
    other = tmp_path / "other"
    other.mkdir()
    for path in pictures()[:5]:
        (other / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="index: was built for a different corpus; delete it"):
        run("--model", "model", "--corpus", other, *index, QUERY)


def test_vectors_of_pictures_and_texts_are_written(place):
    lines = invoke("encode", "--model", "model", QUERY, "files/valid-007.png").stdout.splitlines()
    wanted = heedful.load("model", "cpu").encode([QUERY, Path("files/valid-007.png")])
    np.testing.assert_allclose([json.loads(line) for line in lines], wanted, atol=1e-6)


def test_a_model_is_evaluated_both_ways(place):
    facts = json.loads(invoke("evaluate", "model", "--json").stdout)
    assert set(facts["scores"]) > {"mrr", "text_recall@1", "image_recall@10", "loss"}
    table = invoke("evaluate", "model", "--source", "valid.jsonl").stdout
    assert f"image_recall@10  {facts['scores']['image_recall@10']:9.4f}" in table


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("ending", [".jsonl", ".npy", ".npz"])
def test_the_others_are_encoded_where_a_picture_cannot_be_read(place, tmp_path, ending, skip):
    bad, output = tmp_path / "bad.png", tmp_path / f"vectors{ending}"
    bad.write_text("no picture")
    inputs = ("files/valid-007.png", bad, QUERY)
    options = ("--model", "model", "--output", output, *(["--skip-bad"] if skip else []))
    if skip:
        assert "1 of 2 files could not be read" in invoke("encode", *options, *inputs).stderr
    else:
        with pytest.raises(InputError, match=r"1 of 2 files could not be read:\n.*bad.png.*\n.* --skip-bad"):
            invoke("encode", *options, *inputs)
    lines = [json.loads(line) for line in output.read_text().splitlines()] if ending == ".jsonl" else None
    found: Any = np.load(output) if ending != ".jsonl" else np.array(lines, np.float32)
    found = found["vectors"] if ending == ".npz" else found
    wanted = heedful.load("model", "cpu").encode([Path("files/valid-007.png"), QUERY])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_all_that_is_encoded_is_counted(place, reporters):
    run(*OPTIONS, QUERY, "files/valid-007.png")
    found = [(reporter.work, reporter.total, reporter.done) for reporter in reporters]
    assert found == [("encoding files", len(pictures()), len(pictures())), ("searching", 2, 2)]


MISTAKES = {
    r"absent\.png: no such file": (*OPTIONS, "absent.png"),
    "no file below this folder ends in": ("--model", "model", "--corpus", "model", QUERY),
    "files: is a folder, but ranking searches texts": ("--model", "ranking", "--corpus", "files", QUERY),
    "nothing: no such file": ("--model", "model", "--corpus", "nothing", QUERY),
    "texts were given together with --input": (*OPTIONS, QUERY, "--input", "texts"),
    "not an image": ("--model", "model", "--corpus", "texts", "broken.png"),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_message(place, message):
    Path("broken.png").write_text("no picture")
    with pytest.raises(InputError, match=message):
        run(*MISTAKES[message])


def test_a_picture_whose_name_has_a_space_or_is_no_utf_8_is_a_picture(place, tmp_path):
    picture = pictures()[0]
    want = run(*OPTIONS, picture).stdout
    for name in ("my photo.png", fsdecode(b"caf\xe9.png")):
        shutil.copyfile(picture, tmp_path / name)
        assert run(*OPTIONS, tmp_path / name).stdout == want
    named = run("--model", "model", "--corpus", tmp_path, "--json", QUERY)
    assert {hit["file"] for hit in json.loads(named.stdout)} == set(map(str, tmp_path.iterdir()))


def test_a_sentence_that_ends_like_a_picture_is_a_sentence(place):
    assert run(*OPTIONS, "the red one is top.png").stdout.count("\n") == 3
    assert run(*OPTIONS, "a " * 5000).stdout.count("\n") == 3


@pytest.mark.parametrize(
    "query", ["absent.png", "photos/my cat.JPG", "./absent", "/nowhere/cat", "../cat.heic", "a/b c.webp"]
)
def test_a_query_that_looks_like_a_path_and_is_not_there_is_an_error(query, place):
    with pytest.raises(InputError, match=r"no such file or folder"):
        run("--model", "model", "--corpus", "texts", query)


@pytest.mark.parametrize("query", ["a red circle/square", "what is a .png", "black & white", "and/or"])
def test_a_sentence_with_a_slash_or_an_ending_is_a_text(query, place):
    assert run("--model", "model", "--corpus", "texts", "--count", 1, query).stdout
