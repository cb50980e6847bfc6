"""`heedful info`: exact counts of presets, recipes and models."""

from pathlib import Path

import pytest
from invocation import invoke

from heedful.architectures import EncoderDecoder, TextClassifier, weights
from heedful.checkpoint import write_model
from heedful.config.schema import DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer


def run(*arguments: object) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in invoke("info", *arguments).output.splitlines()]


def test_a_preset_is_counted_by_kind() -> None:
    lines = run("tiny", "--vocab", 9712)
    assert ["embeddings", "1,243,136", "0", "1,243,136", "48.4%"] in lines
    assert ["cross-attention", "262,144", "2,048", "264,192", "10.3%"] in lines
    assert ["total", "2,556,416", "11,776", "2,568,192", "100.0%"] in lines


def test_a_model_of_the_paper_stands_beside_the_printed_figure() -> None:
    lines = run("vaswani-base")
    assert lines[-1] == ["vaswani-base", "65,000,000", "63,045,632", "65,126,400"]
    assert ["vaswani-base"] not in [line[:1] for line in run("vaswani-base", "--set", "model.heads=4")]


def test_without_a_name_all_of_table_3_is_counted() -> None:
    lines = run()
    assert ["vaswani-C-d1024", "168,000,000", "163,815,424", "167,976,960"] in lines
    assert ["vaswani-A-h32", "63,045,632", "65,126,400"] in lines
    assert len(lines) == 3 + 20


def test_a_recipe_is_counted_at_its_largest_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[tokenizer]\nvocab_size = 7001\njoint = false\n[model]\ntie = "output"\n')
    lines = run(tmp_path, "--set", "model.d_model=128")
    assert lines[0][-3:] == ["7,001", "+", "7,001"]
    assert ["embeddings", f"{2 * 7001 * 128:,}"] in [line[:2] for line in lines]
    assert run(tmp_path / "config.toml", "--set", "model.d_model=128") == lines


def test_a_model_that_writes_about_pictures_has_one_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('task = "captioning"\n[tokenizer]\nvocab_size = 7001\n')
    assert run(tmp_path)[0][-2:] == ["vocabulary", "7,001"]


@pytest.mark.parametrize(
    ("name", "layers", "vocabulary", "total"),
    [("bert-base", "12", "30,522", "110,106,428"), ("gpt2-medium", "24", "50,257", "354,823,168")],
)
def test_bert_and_gpt_are_counted_with_their_own_layers(name, layers, vocabulary, total) -> None:
    lines = run(name)
    assert (lines[0][0], lines[0][-1]) == (layers, vocabulary)
    assert (lines[-1][0], lines[-1][3]) == ("total", total)


def test_the_head_of_a_task_is_counted() -> None:
    changed = ("bert-tiny", "--vocab", 1009, "--set", "task=classification")
    with pytest.raises(InputError, match=r"the classes are unknown; list them: data\.labels"):
        run(*changed)
    totals = [int(run(*changed, "--set", f"data.labels={list('abcde'[:n])}")[-1][3].replace(",", "")) for n in (2, 5)]
    assert totals[1] - totals[0] == 3 * (128 + 1)


def test_a_classifier_is_counted_as_it_is(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["a b c", "d e f"], TokenizerConfig(vocab_size=307))
    config = ModelConfig(family="decoder", d_model=14, d_ff=23, heads=2, decoder_layers=1)
    recipe = Recipe(task="classification", model=config, data=DataConfig(labels=("no", "yes", "maybe")))
    model = TextClassifier(config, len(tokenizer), 3)
    write_model(tmp_path / "model", recipe, TokenizerPair(tokenizer, tokenizer), weights(model))
    assert run(tmp_path / "model")[-1][3] == f"{sum(p.numel() for p in model.parameters()):,}"


def test_a_model_is_counted_as_it_is(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["a b c", "d e f"], TokenizerConfig(vocab_size=307))
    config = ModelConfig(d_model=14, d_ff=23, heads=2, encoder_layers=1, decoder_layers=1)
    model = EncoderDecoder(config, len(tokenizer), len(tokenizer))
    write_model(tmp_path / "model", Recipe(model=config), TokenizerPair(tokenizer, tokenizer), weights(model))
    lines = run(tmp_path / "model")
    assert lines[-1][:1] + lines[-1][3:4] == ["total", f"{sum(p.numel() for p in model.parameters()):,}"]
    with pytest.raises(InputError, match="is a trained model; only recipes and presets can be changed"):
        run(tmp_path / "model", "--set", "model.heads=1")


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(InputError, match=r'no model "vaswani".* There is no such recipe or preset either'):
        run("vaswani")
    with pytest.raises(InputError, match="apply to a single model"):
        run("--vocab", 97)
