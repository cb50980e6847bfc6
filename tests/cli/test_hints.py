"""Names that other toolkits have for commands and options lead to those of heedful."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.invocation import invoke
from heedful.cli import app
from heedful.cli.hints import COMMANDS, OPTIONS, commands_of, name_options, options_of
from heedful.errors import InputError

ALL = {" ".join(words): command for words, command in commands_of(get_command(app))}


def test_a_setting_is_named_by_the_option_with_which_the_user_set_it():
    message = "decode.n_best = 3 is more than decode.beam = 2 of x/decode.beam; raise beam"
    assert name_options(message, ["--beam=2"]) == "decode.n_best = 3 is more than --beam 2 of x/decode.beam; raise beam"
    assert name_options("invalid option: tokenizer.kind must be", ["--kind", "x"]) == "--kind must be"
    assert name_options("train.best, task", ["--task", "x"]) == "train.best, task"
    assert name_options("set tokenizer.byte_fallback = true", ["--no-byte-fallback"]) == "leave out --no-byte-fallback"


def test_evaluate_names_the_columns_by_its_options():
    message = "no column. Set source_field and target_field (and pair_field) to these names"
    options = "no column. Set --source-field and --target-field (and --pair-field) to these names"
    assert name_options(message, ["heedful", "evaluate", "run"]) == options
    assert name_options(message, ["heedful", "train", "r"]) == message


def test_the_name_of_a_copy_is_neither_shown_nor_to_be_changed(monkeypatch):
    monkeypatch.setattr("heedful.cli.options.COPIED", {"/tmp/x/a.tsv.jsonl": "a.tsv"})
    message = "/tmp/x/a.tsv.jsonl: it seems to have 2 columns; give it a name that ends in .tsv"
    assert name_options(message, []) == "a.tsv: it seems to have 2 columns; give --input-format tsv"
    assert name_options("b: give it a name that ends in .tsv", []) == "b: give it a name that ends in .tsv"


def told(*arguments: str) -> str:
    """What a mistake is answered with, without the frame around it."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    return " ".join(result.stderr.replace("│", " ").split())


def test_a_second_setting_after_set_is_told_to_repeat_the_option():
    with pytest.raises(InputError, match="--set takes one setting; repeat it for each: --set b=2 --set c=3"):
        invoke("train", "recipe.toml", "--set", "a=1", "b=2", "c=3")


def test_help_is_not_suggested_for_an_option_that_is_only_spelled_like_it():
    assert told("runs", "list", "--keep").endswith("No such option: --keep " + "╰" + "─" * 78 + "╯")


@pytest.mark.parametrize(("name", "words"), COMMANDS.items())
def test_a_command_of_another_toolkit_names_the_one_that_does_this(name, words):
    assert f"No such command '{name}'. Did you mean `heedful {words}`?" in told(name, "x")
    assert words.startswith("--") or any(words.startswith(command) for command in ALL)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fine-tune", "train RECIPE --set train.start=MODEL"),
        ("Train", "train"),
        ("presets", "config presets"),
        ("check", "config check` or `heedful runs check"),
        ("run_s", "runs"),
    ],
)
def test_names_are_compared_without_case_and_hyphens_and_in_all_groups(name, words):
    assert f"Did you mean `heedful {words}`?" in told(name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("vectors neighbours x", "vectors nearest"),
        ("tokenizer learn", "tokenizer train"),
        ("tokenizer Encode", "tokenizer encode"),
        ("runs evaluate", "evaluate"),
    ],
)
def test_a_subcommand_of_another_toolkit_names_the_one_that_does_this(line, words):
    assert f"Did you mean `heedful {words}`?" in told(*line.split())


def test_a_slip_in_a_subcommand_names_the_one_that_is_spelled_like_it():
    assert "No such command 'neerest'. Did you mean 'nearest'?" in told("vectors", "neerest")


def test_a_slip_still_names_the_command_that_is_spelled_like_it():
    assert "Did you mean 'train'?" in told("trian")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("train r.toml --lr 3", "--lr. Did you mean --set optimizer.lr=VALUE?"),
        ("train r.toml --learning-rate=3", "--learning-rate. Did you mean --set optimizer.lr=VALUE?"),
        ("train r.toml --epochs 3", "--epochs. Did you mean --set train.max_epochs=VALUE?"),
        ("train r.toml --batch-size 3", "--batch-size. Did you mean --set train.batch_tokens=VALUE?"),
        ("train r.toml --batch_size 3", "--batch_size. Did you mean --set train.batch_tokens=VALUE?"),
        ("train r.toml --train.seed=3", "--train.seed. Did you mean --set train.seed=VALUE?"),
        ("train r.toml --patience 3", "--patience. Did you mean --set train.patience=VALUE?"),
        ("train r.toml --output_dir x", "--output_dir. Did you mean --out?"),
        ("train r.toml --gpus 2", "--gpus. Did you mean --processes?"),
        ("config check r.toml --epochs 3", "Did you mean --set train.max_epochs=VALUE?"),
        ("compare r.toml --out x --lr 3", "Did you mean --set optimizer.lr=VALUE?"),
        ("init a.en --lang en", "--lang. Did you mean --source-language?"),
        ("transcribe --lang en", "--lang. Did you mean --language?"),
        ("evaluate m --confusion x.png", "--confusion. Did you mean --plot?"),
        ("evaluate m --confusion-matrix x.png", "--confusion-matrix. Did you mean --plot?"),
        ("export m --out x", "--out. Did you mean the argument OUT, without --out?"),
        ("train --recipe r.toml", "--recipe. Did you mean the argument RECIPE, without --recipe?"),
        ("info --model m", "--model. Did you mean the argument MODEL, without --model?"),
        ("evaluate m --lang zh", "--lang. Did you mean --language?"),
        ("evaluate m --source a.en --target a.de", "--target. Did you mean --reference?"),
        ("evaluate --translations a.de", "--translations. Did you mean --hypotheses?"),
        ("search cat --model m --corpus a.en --top 3", "--top. Did you mean --count?"),
        ("init a.csv --text-field review", "--text-field. Did you mean --source-field?"),
        ("generate --num-samples 3", "--num-samples. Did you mean --samples?"),
        ("generate --max_new_tokens 3", "--max_new_tokens. Did you mean --max-tokens?"),
        ("translate --num-beams 3", "--num-beams. Did you mean --beam?"),
        ("transcribe --beam_size 3", "--beam_size. Did you mean --beam?"),
        ("translate --lenpen 1", "--lenpen. Did you mean --alpha?"),
        ("translate --batch-size 3", "--batch-size. Did you mean --batch-tokens?"),
        ("translate --gpu 0", "--gpu. Did you mean --device?"),
        ("generate --temp 1", "--temp. Did you mean --temperature?"),
        ("translate -src x", "-src. Did you mean --input?"),
        ("translate -o x", "-o. Did you mean --output?"),
        ("translate --lr 3", "--lr. Did you mean `heedful train RECIPE --set optimizer.lr=VALUE`?"),
        ("predict --temperature 1", "--temperature. Did you mean `heedful generate --temperature`?"),
        ("generate --temprature 1", "--temprature. Did you mean --temperature?"),
        ("tokenizer train a --vocab 9 --out x", "--vocab. Did you mean"),
    ],
)
def test_an_option_of_another_toolkit_names_the_option_or_the_key_that_does_this(line, meant):
    assert meant in told(*line.split())


def test_an_option_that_nobody_knows_is_only_refused():
    assert "No such option: --wibble " in f"{told('translate', '--wibble')} "


def test_every_option_of_a_hint_leads_to_something_that_is_there():
    known = {option for command in ALL.values() for option in options_of(command)}
    assert {option for options in OPTIONS.values() for option in options} <= known
