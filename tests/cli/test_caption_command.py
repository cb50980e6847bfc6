"""`heedful caption`: a text about each image, from files and folders."""

import csv
import json
from pathlib import Path

import pytest
import torch
from invocation import invoke

from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.errors import InputError
from heedful.predictors.captioner import Captioner
from heedful.tasks import TASKS as ALL
from toy_captions import recipe, write_table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with images in data/files, and an untrained captioner in model."""
    folder = tmp_path_factory.mktemp("captions")
    settings = recipe("captioning", write_table("captioning", folder / "data"))
    task = ALL["captioning"].prepare(settings, folder / "prepared", lambda _: None)
    torch.manual_seed(1)
    model = task.build(settings, task.tokenizers)
    torch.nn.init.normal_(model.output.weight)
    write_model(folder / "model", settings, task.tokenizers, weights(model))
    return folder


@pytest.fixture
def files(made):
    return sorted((made / "data" / "files").iterdir())


def test_each_line_is_a_file_and_its_caption(made, files):
    captioner = load_model(made / "model").use_as(Captioner)
    wanted = "".join(f"{file}\t{captioner.caption(file)}\n" for file in files[:3])
    assert invoke("caption", "--model", made / "model", *files[:3]).stdout == wanted
    greedy = invoke("caption", "--model", made / "model", "--beam", 1, files[0]).stdout
    assert greedy == f"{files[0]}\t{captioner.caption(files[0], beam=1)}\n"


def test_a_folder_stands_for_the_pictures_below_it(made, files):
    lines = invoke("caption", "--model", made / "model", made / "data").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(file) for file in files]


def test_a_table_stands_for_the_pictures_that_it_names(made, files, tmp_path):
    table = tmp_path / "some.csv"
    table.write_text("file,text\n" + "".join(f"{file},a text\n" for file in files[2:4]))
    wanted = invoke("caption", "--model", made / "model", *files[2:4]).stdout
    assert invoke("caption", "--model", made / "model", table).stdout == wanted
    for output in (table, files[3]):
        with pytest.raises(InputError, match="would be overwritten"):
            invoke("caption", "--model", made / "model", table, "--output", output, "--force")


def test_json_has_the_n_best_captions_with_their_tokens(made, files):
    found = json.loads(invoke("caption", "--model", made / "model", "--json", "--n-best", 2, files[0]).stdout)
    assert found["file"] == str(files[0])
    assert len(found["captions"]) == 2
    for caption in found["captions"]:
        assert caption.keys() == {"text", "score", "pieces", "token_scores", "complete"}
        assert len(caption["pieces"]) == len(caption["token_scores"])


def test_a_bad_file_is_told_of_and_the_others_are_captioned(made, files, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(files[0].read_bytes()[:50])
    out = tmp_path / "captions.tsv"
    with pytest.raises(InputError, match=rf"1 of 3 files could not be read:\n  {bad}: "):
        invoke("caption", "--model", made / "model", "--output", out, files[0], bad, files[1])
    assert [line.split("\t")[0] for line in out.read_text().splitlines()] == ["file", str(files[0]), str(files[1])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.png"], "nowhere.png: no such file or folder"),
        (["--n-best", 2, "FILE"], "add --json"),
        (["--beam", 0, "FILE"], "--beam must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, made, files):
    given = [files[0] if argument == "FILE" else argument for argument in arguments]
    with pytest.raises(InputError, match=message):
        invoke("caption", "--model", made / "model", *given)


def test_captions_are_a_table_by_the_outputs_name_and_names_do_not_break_lines(made, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a\tb\nc.png"
    Path(name).write_bytes(files[0].read_bytes())
    [line] = invoke("caption", "--model", made / "model", "--json", name).stdout.splitlines()
    text = json.loads(line)["captions"][0]["text"]
    assert invoke("caption", "--model", made / "model", "-", stdin=f"{files[0]}\n").stdout == f"{files[0]}\t{text}\n"
    assert invoke("caption", "--model", made / "model", name).stdout == f"a\\tb\\nc.png\t{text}\n"
    invoke("caption", "--model", made / "model", name, "--output", "out.csv")
    with Path("out.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["file", "caption"], [name, text]]
