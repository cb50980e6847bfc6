"""`heedful distill`: a student's recipe, whose training set is what a teacher makes of the given sources."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from invocation import invoke

import heedful
from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import load_recipe
from heedful.config.schema import DecodeConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.data.readers.corpus import read_pairs
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

run = partial(invoke, "distill")

RECIPE = """
name = "student"
[data]
source_language = "en"
[[data.train]]
source = "train.en"
target = "train.de"
[[data.train]]
source = "more.jsonl"
weight = 2.5
[data.valid]
source = "valid.en"
target = "valid.de"
[model]
d_model = 12
heads = 2
"""


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator with random weights."""
    torch.manual_seed(1)
    config = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1)
    tokenizer = train_tokenizer([f"w{number}" for number in range(31)], TokenizerConfig(kind="word"))
    network = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    folder = tmp_path_factory.mktemp("teacher") / "model"
    recipe = Recipe(model=config, decode=DecodeConfig(beam=2, max_extra=3))
    write_model(folder, recipe, TokenizerPair(tokenizer, tokenizer), weights(network))
    return folder


@pytest.fixture
def student(tmp_path: Path) -> Path:
    folder = tmp_path / "student"
    folder.mkdir()
    (folder / "config.toml").write_text(RECIPE)
    (folder / "train.en").write_text("w1 w2\nw3\n\nw4 w5\n")
    (folder / "train.de").write_text("one two\nthree\n\nfour five\n")
    (folder / "more.jsonl").write_text('{"source": "w6\\nw7", "target": "six"}\n')
    return folder


def test_a_student_learns_the_translations_of_the_teacher(student, teacher, tmp_path):
    out = tmp_path / "out"
    result = run(student, "--teacher", teacher, "--out", out, "--beam", 1)
    assert f"heedful train {out}" in result.stdout
    recipe, before = load_recipe(out), load_recipe(student)
    assert recipe.model == before.model
    assert Path(recipe.data.root).samefile(before.data.root)
    assert recipe.data.valid == before.data.valid
    assert [corpus.weight for corpus in recipe.data.train] == [1.0, 2.5]
    pairs = [
        (pair.source, pair.target)
        for corpus in recipe.data.train
        for pair in read_pairs(
            type(corpus)(source=str(student / corpus.source), target=str(student / (corpus.target or ""))), recipe.data
        )
    ]
    sources = ["w1 w2", "w3", "", "w4 w5", "w6 w7"]
    assert pairs == list(zip(sources, heedful.load(teacher).translate(sources, beam=1), strict=True))


def test_a_student_of_several_teachers_learns_from_each_and_from_the_given_translations(student, teacher, tmp_path):
    out = tmp_path / "out"
    run(student, "--teacher", teacher, "--teacher", teacher, "--keep-original", "--out", out)
    corpora = load_recipe(out).data.train
    assert corpora[:2] == load_recipe(student).data.train
    texts = [(student / str(corpus.target)).read_text() for corpus in corpora[2:]]
    assert texts[:2] == texts[2:]
    assert [corpus.weight for corpus in corpora[2:]] == [1.0, 2.5, 1.0, 2.5]


def test_a_student_learns_translations_of_more_sources(student, teacher, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "more.txt").write_text("w8 w9\nw10\n")
    run(student, "--teacher", teacher, "--keep-original", "--sources", tmp_path / "more.txt", "--out", out, "--beam", 1)
    corpora = load_recipe(out).data.train
    assert corpora[:2] == load_recipe(student).data.train
    assert len(corpora) == 5
    source, target = ((student / str(path)).read_text().splitlines() for path in (corpora[4].source, corpora[4].target))
    assert source == ["w8 w9", "w10"]
    assert target == heedful.load(teacher).translate(source, beam=1)


def test_the_same_command_resumes_and_changes_nothing(student, teacher, tmp_path):
    out = tmp_path / "out"
    arguments = [student, "--teacher", teacher, "--out", out]
    run(*arguments)
    first = {path: path.read_bytes() for path in out.rglob("*.t*t*")}
    (out / "config.toml").unlink()  # as if it had been killed before the end
    (out / "translations/1/train-1.txt").unlink()
    run(*arguments)
    assert {path: path.read_bytes() for path in out.rglob("*.t*t*")} == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "config.toml").write_text('task = "language_model"\n'),
            "for distillation, it must be",
        ),
        (lambda folder: (folder / "config.toml").write_text('name = "none"\n'), "has no training data"),
        (lambda folder: (folder / "train.de").write_text("one\n"), "train.de"),
    ],
)
def test_a_recipe_without_pairs_is_refused_before_anything_is_translated(student, teacher, tmp_path, change, message):
    change(student)
    with pytest.raises(InputError, match=message):
        run(student, "--teacher", teacher, "--out", tmp_path / "out")
    assert not (tmp_path / "out/sources").exists()


def test_a_teacher_of_another_task_is_refused_before_anything_is_written(student, teacher, tmp_path):
    other = load_model(teacher)
    recipe = replace(other.recipe, task="classification")
    write_model(tmp_path / "classes", recipe, other.tokenizers, weights(other.model))
    with pytest.raises(
        InputError, match=r'its task is "classification", but that of a teacher must be "translation", '
    ):
        run(student, "--teacher", tmp_path / "classes", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_refused_and_stays_as_it_is(student, teacher, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/heedful.lock").touch()
    with pytest.raises(InputError, match="out: contains other files; choose a new folder"):
        run(student, "--teacher", teacher, "--out", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["heedful.lock"]


def test_sources_that_have_changed_since_the_folder_was_started_are_refused(student, teacher, tmp_path):
    (tmp_path / "more.txt").write_text("w8 w9\n")
    (tmp_path / "other.txt").write_text("w8\n")
    arguments = (student, "--teacher", teacher, "--out", tmp_path / "out", "--sources")
    run(*arguments, tmp_path / "more.txt")
    with pytest.raises(InputError, match=r"train-3\.txt: was written from other texts than those now in .*other\.txt"):
        run(*arguments, tmp_path / "other.txt")
    (tmp_path / "out/config.toml").unlink()
    with pytest.raises(InputError, match="out/sources: contains the texts of other sources"):
        run(*arguments[:-1])


def test_a_table_of_sources_is_refused(student, teacher, tmp_path):
    with pytest.raises(InputError, match=r"--sources texts\.csv: is a table; save its texts to a file with one text"):
        run(student, "--teacher", teacher, "--out", tmp_path / "out", "--sources", "texts.csv")


def test_another_recipe_in_the_folder_is_not_replaced(student, teacher, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/config.toml").write_text('name = "mine"\n')
    with pytest.raises(
        InputError, match=r"out/config\.toml: already contains a different recipe; choose another folder"
    ):
        run(student, "--teacher", teacher, "--out", tmp_path / "out")
