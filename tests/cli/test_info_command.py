"""`heedful info`: exact counts of presets, recipes and models."""

from pathlib import Path

import pytest
from invocation import invoke

from heedful.architectures import EncoderDecoder, TextClassifier, weights
from heedful.checkpoint import write_model
from heedful.config.load import load_preset
from heedful.config.schema import DataConfig, ModelConfig, Recipe, TokenizerConfig
from heedful.errors import InputError, RunError
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


def test_a_mixture_of_experts_is_counted_with_the_share_that_computes_a_token() -> None:
    changes = ("feed_forward=experts", "experts=4", "experts_per_token=1", "attention=latent", "kv_rank=24")
    lines = run("tiny", "--vocab", 97, *(word for change in changes for word in ("--set", f"model.{change}")))
    [active] = [line for line in lines if line[:3] == ["active", "per", "token:"]]
    total = int(next(line for line in lines if line[:1] == ["total"])[3].replace(",", ""))
    width = load_preset("tiny").model.d_ff
    expert = 2 * 128 * width + width + 128
    assert int(active[3].replace(",", "")) == total - 8 * 3 * expert
    assert lines[2] == ["KV", "cache", "per", "token:", "160", "values,", "640", "bytes", "in", "float32"]


def test_sums_and_windows_have_a_size_that_no_text_exceeds() -> None:
    changes = ("--set", "model.attention=linear", "--set", "model.attention_dropout=0")
    [sums] = [line for line in run("gpt2-medium", *changes) if line[:3] == ["sums", "of", "all"]]
    # 24 layers of 16 heads: for each of 64 features, its sum over all keys and 64 sums of values
    assert sums[-6:] == ["1,597,440", "values,", "6,389,760", "bytes", "in", "float32"]
    lines = map(" ".join, run("gpt2-medium", "--set", "model.window=700"))
    assert "KV cache of a text: at most 1,400 tokens, which are two windows" in lines


def test_a_model_that_does_not_write_has_no_cache() -> None:
    assert not [line for line in run("bert-base") if line[:2] == ["KV", "cache"]]
    assert [line for line in run("gpt2-medium") if line[:2] == ["KV", "cache"]]


def test_a_model_is_drawn_as_an_image_and_as_text(tmp_path: Path) -> None:
    image, text = tmp_path / "tiny.svg", tmp_path / "tiny.MMD"
    ended = invoke("info", "tiny", "--vocab", 97, "--graph", image)
    assert f"{image}: the graph of tiny" in ended.stderr
    assert "total" in ended.stdout
    invoke("info", "tiny", "--vocab", 97, "--graph", text)
    assert "Embedding 97 × 128" in image.read_text(encoding="utf-8")
    assert text.read_text(encoding="utf-8").startswith("flowchart BT\n")
    invoke("info", "tiny", "--vocab", 101, "--graph", image)  # a file that heedful wrote is replaced
    assert "Embedding 101 × 128" in image.read_text(encoding="utf-8")


def test_a_trained_model_is_drawn(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["a b c", "d e f"], TokenizerConfig(vocab_size=307))
    config = ModelConfig(family="decoder", d_model=14, d_ff=23, heads=2, decoder_layers=1)
    recipe = Recipe(task="classification", model=config, data=DataConfig(labels=("no", "yes", "maybe")))
    model = TextClassifier(config, len(tokenizer), 3)
    write_model(tmp_path / "model", recipe, TokenizerPair(tokenizer, tokenizer), weights(model))
    invoke("info", tmp_path / "model", "--graph", tmp_path / "model.mmd")
    assert f"Embedding {len(tokenizer)} × 14" in (tmp_path / "model.mmd").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["graph.png", "graph", "svg"])
def test_a_graph_of_another_ending_is_refused(name, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"--graph .*{name}: the name must end in \.svg, for an image, or in \.mmd"):
        invoke("info", "tiny", "--graph", tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_graph_replaces_no_file_of_somebody_else(tmp_path: Path) -> None:
    drawing = tmp_path / "graph.svg"
    drawing.write_text("mine")
    with pytest.raises(InputError, match=r"--graph .*graph\.svg: already exists, but was not written by heedful"):
        invoke("info", "tiny", "--graph", drawing)
    assert drawing.read_text() == "mine"
    invoke("info", "tiny", "--graph", drawing, "--force")
    assert drawing.read_text(encoding="utf-8").startswith("<svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(InputError, match="is a folder; give a file"):
        invoke("info", "tiny", "--graph", tmp_path / "folder.svg")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that nobody can write to")
def test_a_graph_that_cannot_be_written_is_reported() -> None:
    with pytest.raises(RunError, match=r"cannot write /proc/graph\.svg"):
        invoke("info", "tiny", "--graph", "/proc/graph.svg")


def test_a_graph_is_that_of_a_single_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--graph and --set apply to a single model"):
        invoke("info", "--graph", tmp_path / "graph.svg")


def test_a_family_that_does_not_fit_the_task_is_refused() -> None:
    with pytest.raises(InputError, match=r'task = "translation" needs model\.family = "encoder_decoder"'):
        invoke("info", "vaswani-base", "--set", "model.family=decoder")
