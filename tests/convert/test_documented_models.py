"""The models that the documentation shows can be converted where it says so, and are refused where it says that."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from foreign_folders import LINES
from heedful.architectures import weights
from heedful.cli import app
from heedful.config.load import load_preset, load_recipe
from heedful.config.schema import GenerateConfig
from heedful.convert import Model
from heedful.corpora.scenes import generate
from heedful.errors import InputError
from heedful.predictors.generator import GenerationRequest, Generator
from heedful.registry import EXPORTERS
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from subjects import gated

transformers = pytest.importorskip("transformers")

ROOT = Path(__file__).parents[2]
SMALL = ["d_model=28", "d_ff=37", "heads=2", "encoder_layers=2", "decoder_layers=3", "max_positions=300"]
CONTEXT = ["data.max_length=256", "tokenizer.vocab_size=401", "train.batch_tokens=4096"]


def small(*overrides: str) -> list[str]:
    return [*(f"model.{size}" for size in SMALL), *CONTEXT, *overrides]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", text, re.DOTALL)


def shown(page: str, name: str, folder: Path) -> Path:
    """The recipe of this name on a page, as a file."""
    (found,) = [block for block in blocks(page, "toml") if f'name = "{name}"' in block]
    (folder / "recipe.toml").write_text(found, encoding="utf-8")
    return folder / "recipe.toml"


def random_model(recipe):
    """A model with random weights and a tokenizer of its own."""
    tokenizer = train_tokenizer(LINES, recipe.tokenizer)
    pair = TokenizerPair(tokenizer, tokenizer)
    torch.manual_seed(3)
    built = find_task(recipe.task).build(recipe, pair).eval()
    for parameter in built.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    return Model(recipe=recipe, tokenizers=pair, weights=weights(built)), built


def inputs(tokenizer):
    ids = tokenizer(LINES[0], return_tensors="pt")["input_ids"]
    return ids, torch.ones_like(ids, dtype=torch.bool)


@torch.inference_mode()
@pytest.mark.parametrize("page", ["how-to/bert-and-gpt.md", "zh/bert-and-gpt.md"])
def test_the_gpt_of_the_docs_is_a_gpt2(page, tmp_path):
    model, built = random_model(load_recipe(shown(page, "my-gpt", tmp_path), small()))
    EXPORTERS["gpt2"].write(model, tmp_path / "theirs")
    written = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs").eval()
    ids, padding_mask = inputs(transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs"))
    torch.testing.assert_close(written(ids).logits, built(ids, padding_mask), atol=1e-4, rtol=0)


@pytest.mark.parametrize("page", ["how-to/convert.md", "zh/convert.md"])
def test_the_program_of_the_docs_continues_a_text_as_heedful_does(page, tmp_path, monkeypatch, capsys):
    model, built = random_model(load_recipe(shown("how-to/bert-and-gpt.md", "my-gpt", tmp_path), small()))
    EXPORTERS["gpt2"].write(model, tmp_path / "my-gpt-hf")
    program = blocks(page, "python")[0]
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("program.py")
    greedy = GenerateConfig(temperature=0.0, max_tokens=50)
    generator = Generator(built, model.tokenizers.source, greedy, model.recipe.data.max_length)
    expected = "".join(generator.stream(GenerationRequest("Once upon a time", greedy)))
    assert len(expected) > 40
    assert capsys.readouterr().out == f"<unk>nce <unk>pon a time{expected}\n"


@torch.inference_mode()
def test_the_bert_of_the_docs_is_one_without_what_they_say_to_leave_out(tmp_path):
    path = shown("how-to/bert-and-gpt.md", "my-bert", tmp_path)
    with pytest.raises(InputError, match=r'positions = "learned", not "rotary"\n  model\.norm = "post", not "pre"$'):
        EXPORTERS["bert"].write(random_model(load_recipe(path, small()))[0], tmp_path / "theirs")
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("positions =", "norm =", "init ="))]
    assert len(kept) == len(lines) - 3
    path.write_text("\n".join(kept), encoding="utf-8")
    computes_as_a_bert(load_recipe(path, small()), tmp_path / "theirs")


@pytest.mark.parametrize("page", ["how-to/convert.md", "zh/convert.md"])
def test_the_bert_of_the_docs_that_is_to_be_converted_is_one(page, tmp_path):
    recipe = load_recipe(shown(page, "my-bert-as-published", tmp_path), small())
    computes_as_a_bert(recipe, tmp_path / "theirs")


@torch.inference_mode()
def computes_as_a_bert(recipe, folder):
    model, built = random_model(recipe)
    EXPORTERS["bert"].write(model, folder)
    written = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids, padding_mask = inputs(transformers.AutoTokenizer.from_pretrained(folder))
    torch.testing.assert_close(written(ids).logits, built(ids, padding_mask, torch.zeros_like(ids)), atol=1e-4, rtol=0)


@torch.inference_mode()
@pytest.mark.parametrize("preset", ["tiny", "vaswani-base"])
def test_a_translator_as_published_is_a_marian(preset, tmp_path):
    model, built = random_model(load_preset(preset, small()))
    EXPORTERS["marian"].write(model, tmp_path / "theirs")
    written = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "theirs").eval()
    ids, padding_mask = inputs(transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs"))
    found = written(input_ids=ids, decoder_input_ids=ids).logits
    torch.testing.assert_close(found, built(ids, padding_mask, ids, padding_mask), atol=1e-4, rtol=0)


def test_what_keeps_a_translator_from_being_a_marian_is_listed(tmp_path):
    changed = small('model.positions="rotary"', 'model.norm="pre"')
    with pytest.raises(InputError, match=r'positions = "sinusoidal", not "rotary"\n  model\.norm = "post", not "pre"$'):
        EXPORTERS["marian"].write(random_model(load_preset("tiny", changed))[0], tmp_path / "theirs")


OWN_TEXT = {  # for `heedful init`, in the order in which the page tells what to change in its recipes
    "gpt2": ["book.txt"],
    "bert": ["book.txt", "--task", "masked_lm"],
    "marian": ["news.en", "news.de"],
}


@pytest.mark.parametrize("page", ["how-to/convert.md", "zh/convert.md"])
@pytest.mark.parametrize("kind", OWN_TEXT)
def test_a_recipe_of_init_makes_a_model_to_convert_with_what_the_docs_change_in_it(kind, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = list(generate("en-de", 307, seed=1))
    texts = {"news.en": [pair.source.text for pair in pairs], "news.de": [pair.target.text for pair in pairs]}
    for name, lines in (texts | {"book.txt": texts["news.en"]}).items():
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    CliRunner().invoke(app, ["init", *OWN_TEXT[kind], "--out", "first"], catch_exceptions=False)
    with pytest.raises(InputError) as caught:
        EXPORTERS[kind].write(random_model(load_recipe("first", small()))[0], tmp_path / "refused")

    parts = [block for block in blocks(page, "toml") if "name =" not in block]
    tables = tomllib.loads(parts[list(OWN_TEXT).index(kind)])
    changes = {f"{table}.{key}": json.dumps(value) for table, keys in tables.items() for key, value in keys.items()}
    changed = load_recipe("first", small(*(f"{key}={value}" for key, value in changes.items())))
    EXPORTERS[kind].write(random_model(changed)[0], tmp_path / "theirs")
    listed = [re.match(r"  (\S+) = (\S+), not ", line) for line in str(caught.value).splitlines()[1:]]
    assert {found[1]: found[2] for found in listed if found}.items() <= changes.items()


def test_a_model_of_ones_own_architecture_is_refused_by_name(tmp_path):
    loaded = gated()
    model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
    with pytest.raises(InputError, match='its architecture is "gated:GatedRecurrent", but models in this format'):
        EXPORTERS["marian"].write(model, tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()
