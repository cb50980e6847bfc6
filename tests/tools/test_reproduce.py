"""Reproduction: the stored results of the recipes are those of their pages, and a new run is judged by them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from cli.invocation import invoke
from heedful.cli.answering import recipe_of
from heedful.config.load import load_recipe
from heedful.data.catalogue import public_sets
from heedful.errors import InputError, RunError
from heedful.metrics import Scoring, score
from heedful.tasks.specs import SPECS, score_names
from heedful.tools import reproduce
from heedful.tools.reproduce import RESULTS, StoredResults, comparison, prepare, stored_results
from toy_model import TOY_MODEL

RECIPES = Path(__file__).parents[2] / "recipes"
STORED = sorted(path.parent.name for path in RECIPES.glob(f"*/{RESULTS}"))


def results_of(*scores, **keys):
    runs = [{"seed": seed, "score": value, "precision": "float32"} for seed, value in enumerate(scores, start=1)]
    return StoredResults.model_validate({"metric": "accuracy", "runs": runs, **keys})


def test_the_interval_is_the_prediction_interval_of_student():
    # Of 1, 2 and 3, the mean is 2 and the standard deviation 1. The margin is 4.303 * sqrt(1 + 1/3) = 4.9687.
    assert results_of(1, 2, 3).interval == pytest.approx((2 - 4.9687, 2 + 4.9687), abs=1e-4)


def test_more_stored_runs_than_the_table_has_degrees_have_an_interval():
    interval = results_of(*[0.5, 0.7] * 10).interval
    assert interval is not None
    low, high = interval
    assert low < 0.5
    assert high > 0.7


def test_a_score_in_the_interval_is_reproduced_and_one_outside_is_not():
    results = results_of(1, 2, 3)
    lines, is_reproduced = comparison(results, 7, {"accuracy": 6.9})
    assert is_reproduced
    assert lines[0] == "accuracy on the test set, seed 7: 6.9"
    assert lines[2] == "  stored, seed 2 (float32): 2"
    assert "  reproduced: it is between -2.969 and 6.969" in lines[-1]
    for outside in (7.0, -3.0):
        lines, is_reproduced = comparison(results, 7, {"accuracy": outside})
        assert not is_reproduced
        assert "not reproduced: it is not between" in lines[-1]


def test_a_single_stored_run_gives_no_interval():
    results = results_of(0.5)
    assert results.interval is None
    lines, is_reproduced = comparison(results, 2, {"accuracy": 0.1})
    assert is_reproduced
    assert "difference: -0.4; one run gives no interval" in lines[-1]


def test_a_metric_that_the_evaluation_does_not_have_is_an_error_that_names_those_it_has():
    with pytest.raises(InputError, match=r'metric = "accuracy" .* no such score, but loss and bleu'):
        comparison(results_of(1, 2), 3, {"loss": 1.0, "bleu": 2.0})


def test_a_recipe_without_stored_results_is_an_error_that_names_the_file(tmp_path):
    with pytest.raises(InputError, match=r"results\.toml: no such file"):
        stored_results(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metric =", "is not a TOML file"),
        ('metric = "loss"', "runs: Field required"),
        ('metric = "loss"\nruns = []', "runs: List should have at least 1 item"),
        ('metric = "loss"\nruns = [{seed = 1, precision = "float32"}]', r"runs\.0\.score: Field required"),
        ('metric = "loss"\npart = "train"\nruns = [{seed = 1, precision = "a", score = 1}]', "part: Input should be"),
        (
            'metric = "loss"\ndata = ["sst"]\nruns = [{seed = 1, precision = "a", score = 1}]',
            'data: .*"sst" is not a public',
        ),
        (
            'metric = "loss"\nprepare = ["rm x"]\nruns = [{seed = 1, precision = "a", score = 1}]',
            '.*"rm x" does not begin',
        ),
        ('metric = "loss"\nsource = ["sst2"]\nruns = [{seed = 1, precision = "a", score = 1}]', "source: Extra inputs"),
    ],
)
def test_broken_stored_results_are_an_error_that_names_the_file_and_the_key(text, message, tmp_path):
    (tmp_path / RESULTS).write_text(text)
    with pytest.raises(InputError, match=rf"results\.toml: {message}"):
        stored_results(tmp_path)


def test_prepared_data_is_not_written_again(tmp_path):
    command = "python -c \"from pathlib import Path; Path(r'{data}', 'text').mkdir(exist_ok=True); {command}\""
    writes = command.replace("{command}", "Path(r'{data}', 'text', 'last').open('a').write('x')")
    results = results_of(1, folder="text", prepared="text/last", prepare=[writes])
    (tmp_path / "text").mkdir()  # as a download or an interruption leaves it
    for _ in range(2):
        prepare(results, tmp_path, tmp_path)
    assert (tmp_path / "text/last").read_text() == "x"
    prepare(results_of(1, folder="text", prepare=["python missing.py"]), tmp_path, tmp_path)


def test_a_command_that_fails_is_an_error_that_names_it(tmp_path):
    with pytest.raises(RunError, match=r"`python \{recipe\}/missing\.py` in .*results\.toml has failed"):
        prepare(results_of(1, folder="text", prepare=["python {recipe}/missing.py"]), tmp_path, tmp_path)


@pytest.mark.parametrize("name", STORED)
def test_stored_results_are_those_of_the_page_of_the_recipe(name):
    page = (RECIPES / name / "README.md").read_text(encoding="utf-8")
    printed = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)", page)
    results = stored_results(RECIPES / name)
    for run in results.runs:
        forms = {f"{value:.{digits}f}" for value in (run.score, 100 * run.score) for digits in range(1, 5)}
        assert forms & set(printed), run
        assert run.precision in page
    assert len({run.seed for run in results.runs}) == len(results.runs)


@pytest.mark.parametrize("name", STORED)
def test_stored_results_fit_their_recipe(name):
    recipe, results = load_recipe(RECIPES / name), stored_results(RECIPES / name)
    assert recipe.data.test if results.part == "test" else recipe.data.valid
    if results.part == "test" and recipe.task == "translation":
        metrics = ("bleu", "chrf", "ter", *["tokenised-bleu"] * ("--tokenised" in results.evaluate))
        assert results.metric in [each.name for each in score(["a"], [["a"]], Scoring(metrics=metrics))]
    else:
        assert results.metric in score_names(SPECS[recipe.task], recipe)


@pytest.mark.parametrize("name", STORED)
def test_the_data_of_stored_results_is_public_or_prepared(name):
    recipe, results = load_recipe(RECIPES / name), stored_results(RECIPES / name)
    assert set(results.data) <= set(public_sets())
    if results.folder == ".":
        corpora = [*recipe.data.train, recipe.data.valid, recipe.data.test]
        assert {corpus.source.split("/")[0] for corpus in corpora if corpus} == set(results.data)
    else:
        assert results.prepare or results.folder in results.data
    assert not results.prepared or results.prepared.startswith(f"{results.folder}/")
    for command in results.prepare:
        program, *words = shlex.split(command)
        assert program in reproduce.COMMANDS
        assert all(Path(word.format(recipe=RECIPES / name)).is_file() for word in words if "{recipe}" in word)


WRITE = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
folder.mkdir(parents=True)
for side in ("src", "tgt"):
    (folder / f"pairs.{side}").write_text("".join(f"w{i % 7} w{i % 5} w{i % 3}\\n" for i in range(31)))
"""
TOY = f"""
name = "toy"
[data]
source_language = "en"
target_language = "en"
train = [{{source = "pairs.src", target = "pairs.tgt"}}]
valid = {{source = "pairs.src", target = "pairs.tgt"}}
test = {{source = "pairs.src", target = "pairs.tgt"}}
[train]
threads = 1
device = "cpu"
precision = "float32"
max_updates = 3
[decode]
beam = 1
max_extra = 2
[tokenizer]
kind = "word"
vocab_size = 300
{TOY_MODEL}"""


def reproduced(*scores, **keys):
    """Reproduce the recipe in the folder toy, with these stored scores, and return how the command ends."""
    keys |= {"folder": "text", "prepare": ["python {recipe}/write.py {data}/text"]}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    lines += [f'[[runs]]\nseed = {seed}\nprecision = "float32"\nscore = {value}' for seed, value in enumerate(scores)]
    Path("toy", RESULTS).write_text("\n".join(lines))
    return invoke("reproduce", "toy", "--seed", "5")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("toy").mkdir()
    Path("toy/config.toml").write_text(TOY)
    Path("toy/write.py").write_text(WRITE)


def test_the_exit_code_says_whether_a_run_is_in_the_interval(toy):
    score = {"metric": "perplexity", "part": "validation"}
    result = reproduced(0, 300, **score)
    assert result.exit_code == 0
    assert "perplexity on the validation set, seed 5: " in result.stdout
    assert "\n  reproduced: " in result.stdout
    assert recipe_of("runs/toy-5").train.seed == 5
    result = reproduced(-1000, -1001, **score)  # the run has ended already
    assert result.exit_code == 1
    assert "\n  not reproduced: " in result.stdout
    assert reproduced(-1000, **score).exit_code == 0


def test_a_score_on_the_test_set_is_that_of_the_command_evaluate(toy):
    result = reproduced(90, 110, metric="TER", evaluate=["--metrics", "ter", "--max-extra", "0"])
    assert result.exit_code == 0
    assert "TER on the test set, seed 5: 100\n" in result.stdout  # of empty translations
    assert "\n  reproduced: " in result.stdout
