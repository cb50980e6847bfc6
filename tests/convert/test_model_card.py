"""Every export has a model card, whose metadata the Hugging Face Hub reads and whose code runs in its folder."""

import json
import re

import pytest

import foreign_models
import heedful
from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.config.load import recipe_from_dict
from heedful.convert import FORMATS
from heedful.convert.model_card import PIPELINE_TAGS, split_card
from heedful.errors import InputError
from heedful.registry import TASKS
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

SETTINGS = {
    "name": "tiny",
    "task": "translation",
    "data": {
        "source_language": "en",
        "target_language": "zh",
        "train": [{"source": "corpora/train.en", "target": "corpora/train.zh"}],
        "valid": {"source": "corpora/valid.tsv"},
    },
    "model": {"d_model": 16, "d_ff": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1},
    "tokenizer": {"vocab_size": 300},
}


@pytest.fixture
def run(tmp_path):
    """A run with a model of random weights, and with scores."""
    recipe = recipe_from_dict(SETTINGS, "test")
    tokenizer = train_tokenizer(["one two three"] * 9, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    model = find_task("translation").build(recipe, pair)
    write_model(tmp_path / "run/model", recipe, pair, weights(model), update=1200)
    (tmp_path / "run/result.json").write_text(json.dumps({"update": 1200, "bleu": 12.345678, "loss": 2.5}))
    return tmp_path / "run"


def exported(model, folder, to="safetensors", **options):
    heedful.export(model, folder, to, inputs=[], **options)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_a_card_describes_the_model_its_data_and_its_scores(run, tmp_path):
    card = exported(run, tmp_path / "out")
    assert "# tiny\n" in card
    assert "| task | translation, English, Chinese |" in card
    assert "1+1 layers, d_model 16, d_ff 8, 2 heads of 8, post-norm; 8,432 parameters |" in card
    assert "| training data | train.en, train.zh |" in card
    assert "| updates | 1,200 |" in card
    assert r"| bleu | 12.35 | `nrefs:1\|case:mixed\|eff:no\|tok:zh\|smooth:exp` |" in card
    assert "| loss | 2.5 |  |" in card
    assert "corpora" not in card


def test_the_hugging_face_hub_reads_the_metadata(run, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    exported(run, tmp_path / "out")
    data = hub.ModelCard.load(tmp_path / "out/README.md").data
    assert (data.language, data.pipeline_tag, data.library_name) == (["en", "zh"], "translation", "heedful")
    assert (data.model_name, data.tags, data.metrics) == ("tiny", ["heedful"], ["bleu", "loss"])
    bleu = data.eval_results[0]
    assert (bleu.metric_type, bleu.metric_value, bleu.dataset_name) == ("bleu", 12.35, "valid.tsv")


def test_scores_of_another_state_of_the_run_are_left_out(run, tmp_path):
    (run / "result.json").write_text(json.dumps({"update": 600, "bleu": 12.345678}))
    card = exported(run, tmp_path / "out")
    assert "bleu" not in card
    assert "metrics" not in card


def test_what_authors_add_to_a_card_is_in_later_exports(run, tmp_path):
    card = exported(run, tmp_path / "first")
    edited = card.replace("tags: [heedful]", "tags: [heedful]\nlicense: mit").replace(
        "# tiny\n", "# tiny\n\nMy words.\n"
    )
    (tmp_path / "first/README.md").write_text(edited, encoding="utf-8")
    pytest.importorskip("ctranslate2")
    later = exported(tmp_path / "first", tmp_path / "second", "ctranslate2")
    assert "\nlicense: mit\n" in later
    assert "\nlibrary_name: ctranslate2\n---\n\n# tiny\n\nMy words.\n" in later
    assert "library_name: heedful" not in later
    assert later.count("## How to load it") == 1
    assert "import heedful" not in later


def test_a_card_that_was_changed_is_not_lost(run, tmp_path):
    assert exported(run, tmp_path / "out") == exported(run, tmp_path / "out")
    (tmp_path / "out/README.md").write_text("mine")
    with pytest.raises(InputError, match="contains something other than a heedful model"):
        exported(run, tmp_path / "out")
    assert (tmp_path / "out/README.md").read_text() == "mine"


@pytest.mark.parametrize("card", ["", "# A title\n\n---\nText\n---\n", "---\nno end\n"])
def test_text_without_metadata_has_none(card):
    assert split_card(card) == ("", card)


def test_every_task_has_a_tag():
    assert [*PIPELINE_TAGS] == sorted(TASKS.places)


def run_code(card, folder, monkeypatch):
    [code] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(code, {})


@pytest.mark.parametrize(
    ("to", "output"), [("safetensors", ""), ("ctranslate2", "Einige Text!\n"), ("sentencepiece", "['▁Some', '▁te', ")]
)
def test_the_code_of_a_card_of_a_translator_runs(to, output, tmp_path, monkeypatch, capsys):
    if to != "safetensors":
        pytest.importorskip(to)
    run_code(exported("en-de", tmp_path / "out", to), tmp_path / "out", monkeypatch)
    assert output in capsys.readouterr().out


@pytest.mark.parametrize("to", ["bert", "clip", "gpt2", "marian", "whisper"])
def test_the_code_of_a_card_for_transformers_runs(to, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    getattr(foreign_models, to)(tmp_path / "theirs")
    model = FORMATS[to].read(tmp_path / "theirs")
    write_model(tmp_path / "ours", model.recipe, model.tokenizers, model.weights)
    run_code(exported(tmp_path / "ours", tmp_path / "out", to), tmp_path / "out", monkeypatch)


@pytest.mark.parametrize("to", ["bert", "gpt2"])
def test_the_code_of_a_card_of_other_families_for_ctranslate2_runs(to, tmp_path, monkeypatch, capsys):
    pytest.importorskip("ctranslate2")
    pytest.importorskip("transformers")
    getattr(foreign_models, to)(tmp_path / "theirs")
    model = FORMATS[to].read(tmp_path / "theirs")
    write_model(tmp_path / "ours", model.recipe, model.tokenizers, model.weights)
    run_code(exported(tmp_path / "ours", tmp_path / "out", "ctranslate2"), tmp_path / "out", monkeypatch)
    assert capsys.readouterr().out
