"""Models exported for transformers are compared there with the original on the spot."""

from dataclasses import replace

import pytest
from safetensors.torch import load_file, save_file
from test_gpt2 import random_model as random_gpt2
from test_llama import random_model as random_llama

import foreign_models
from foreign_folders import LINES
from heedful.checkpoint import load_model, write_model
from heedful.convert import FORMATS
from heedful.convert.exporter import export_model
from heedful.convert.transformers_check import compare_with_transformers
from heedful.errors import RunError
from heedful.registry import EXPORTERS

pytest.importorskip("transformers")

TEXTS = [*LINES[:4], "", "The cat and a <pad> [PAD]"]


def imported(kind):
    def read(folder):
        getattr(foreign_models, kind)(folder / "theirs")
        return FORMATS[kind].read(folder / "theirs")

    return read


MODELS = {
    "an own GPT-2": ("gpt2", lambda _: random_gpt2()[0]),
    "an own Llama": ("llama", lambda _: random_llama(kv_heads=2, scale_embeddings=True)[0]),
    "an imported GPT-2": ("gpt2", imported("gpt2")),
    "an imported Llama": ("huggingface", imported("llama")),
    "a BERT": ("bert", imported("bert")),
    "a Marian": ("marian", imported("marian")),
}


def loaded(read, folder):
    model = read(folder)
    write_model(folder / "ours", model.recipe, model.tokenizers, model.weights)
    return load_model(folder / "ours")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_the_outputs_of_an_export_are_those_of_the_model(name, tmp_path):
    to, read = MODELS[name]
    model = loaded(read, tmp_path)
    agreement = export_model(model, to, tmp_path / "out", inputs=TEXTS).agreement
    assert agreement.is_equal
    assert agreement.inputs >= 4
    assert agreement.program == "transformers"
    half = export_model(model, to, tmp_path / "half", "float16", inputs=TEXTS).agreement
    assert half.difference > agreement.difference


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_another_weight_shows(name, tmp_path):
    to, read = MODELS[name]
    model = loaded(read, tmp_path)
    export_model(model, to, tmp_path / "out", inputs=[])
    tensors = load_file(tmp_path / "out/model.safetensors")
    changed = next(key for key in tensors if any(part in key for part in ("mlp.", "fc1", "intermediate")))
    tensors[changed] += 0.1
    save_file(tensors, tmp_path / "out/model.safetensors", metadata={"format": "pt"})
    assert not compare_with_transformers(model, tmp_path / "out", TEXTS).is_equal


def test_an_export_that_differs_is_removed(tmp_path, monkeypatch):
    model = loaded(MODELS["an own GPT-2"][1], tmp_path)
    differs = replace(export_model(model, "gpt2", tmp_path / "first", inputs=TEXTS).agreement, equal=3)
    monkeypatch.setitem(EXPORTERS._imported, "gpt2", replace(EXPORTERS["gpt2"], compare=lambda *_: differs))
    message = (
        r"1 of 4 outputs differs between transformers and heedful \(log-probabilities or values differ by up to "
        r"\S+\), so the folder was deleted. This is rounding: .* Train it further"
    )
    with pytest.raises(RunError, match=message):
        export_model(model, "gpt2", tmp_path / "out", inputs=TEXTS)
    assert not (tmp_path / "out").exists()


def test_without_transformers_a_note_says_that_outputs_were_not_compared(tmp_path, monkeypatch):
    model = loaded(MODELS["an own GPT-2"][1], tmp_path)
    monkeypatch.setattr("heedful.convert.exporter.find_spec", lambda _: None)
    exported = export_model(model, "gpt2", tmp_path / "out", inputs=TEXTS)
    assert exported.agreement is None
    assert exported.notes == ("not compared with the model, because the package transformers is not installed",)
