"""A Whisper in CTranslate2's format becomes what the same Whisper of Hugging Face becomes."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from model_bin import written

import foreign_models
from foreign_folders import SPOKEN
from heedful.cli.convert import format_of
from heedful.convert import FORMATS, faster_whisper
from heedful.errors import InputError
from heedful.text.speech_tokens import SpeechTokens

pytest.importorskip("transformers")

read = FORMATS["faster-whisper"].read
PARTS = {
    "self_attn.out_proj": "self_attention/linear_1",
    "self_attn_layer_norm": "self_attention/layer_norm",
    "encoder_attn.q_proj": "attention/linear_0",
    "encoder_attn.out_proj": "attention/linear_2",
    "encoder_attn_layer_norm": "attention/layer_norm",
    "fc1": "ffn/linear_0",
    "fc2": "ffn/linear_1",
    "final_layer_norm": "ffn/layer_norm",
}
STACKED = {"self_attention/linear_0": ("self_attn", "qkv"), "attention/linear_1": ("encoder_attn", "kv")}


def module(model, name):
    """The weights of a module under CTranslate2's names; a projection to keys has a bias of zeros."""
    found = model.get_submodule(name)
    bias = torch.zeros(len(found.weight)) if found.bias is None else found.bias
    norm = name.endswith("norm")
    return {"gamma" if norm else "weight": found.weight, "beta" if norm else "bias": bias}


def their_variables(model):
    """The variables of model.bin for a model of transformers, written from the layout of CTranslate2."""
    found = {"decoder/embeddings/weight": model.model.decoder.embed_tokens.weight}
    for side, layers in (("encoder", 2), ("decoder", 3)):
        found[f"{side}/position_encodings/encodings"] = model.get_parameter(f"model.{side}.embed_positions.weight")
        places = {f"{side}/layer_norm": f"model.{side}.layer_norm"}
        for i in range(layers):
            own = {theirs: name for name, theirs in PARTS.items() if side == "decoder" or "encoder_attn" not in name}
            places |= {f"{side}/layer_{i}/{theirs}": f"model.{side}.layers.{i}.{name}" for theirs, name in own.items()}
            for theirs, (name, letters) in STACKED.items():
                if side == "encoder" and name == "encoder_attn":
                    continue
                each = [module(model, f"model.{side}.layers.{i}.{name}.{letter}_proj") for letter in letters]
                for key in each[0]:
                    found[f"{side}/layer_{i}/{theirs}/{key}"] = torch.cat([part[key] for part in each])
        found |= {f"{place}/{key}": v for place, name in places.items() for key, v in module(model, name).items()}
    for number in (1, 2):
        found |= {f"encoder/conv{number}/{k}": v for k, v in module(model, f"model.encoder.conv{number}").items()}
    numbers = {f"{side}/num_heads": ("int16", np.int16(2)) for side in ("encoder", "decoder")}
    numbers |= {"decoder/activation": ("int8", np.int8(3)), "decoder/pre_norm": ("int8", np.int8(1))}
    numbers |= {"decoder/scale_embeddings": ("int8", np.int8(0)), "decoder/alignment_heads": ("int16", np.int16(1))}
    return {name: ("float32", value.detach().numpy()) for name, value in found.items()} | numbers


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whisper") / "theirs"
    return folder, foreign_models.whisper(folder)


@pytest.fixture
def folder(original, tmp_path):
    """The same model in the format of CTranslate2."""
    generation = json.loads((original[0] / "generation_config.json").read_text())
    names = sorted((ids := ids_of(original[0])), key=ids.__getitem__)
    (tmp_path / "vocabulary.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer.json").write_bytes((original[0] / "tokenizer.json").read_bytes())
    config = {
        "suppress_ids": generation["suppress_tokens"],
        "suppress_ids_begin": generation["begin_suppress_tokens"],
        "lang_ids": list(generation["lang_to_id"].values()),
        "alignment_heads": [[1, 0]],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_bin(tmp_path, their_variables(original[1]))
    return tmp_path


def ids_of(folder):
    definition = json.loads((folder / "tokenizer.json").read_text())
    return definition["model"]["vocab"] | {token["content"]: token["id"] for token in definition["added_tokens"]}


def write_bin(folder, variables):
    aliases = [("decoder/projection/weight", "decoder/embeddings/weight")]
    (folder / "model.bin").write_bytes(written(variables, aliases, spec="WhisperSpec", revision=3))


def test_it_becomes_what_the_original_becomes(original, folder):
    found, expected = read(folder), FORMATS["whisper"].read(original[0])
    assert found.weights.keys() == expected.weights.keys()
    assert all(torch.equal(found.weights[name], value) for name, value in expected.weights.items())
    assert found.recipe.transcribe == replace(expected.recipe.transcribe, alignment_heads=(2,))  # 1 x 2 heads + 0
    assert found.recipe.audio == expected.recipe.audio
    assert found.recipe.model == expected.recipe.model
    assert SpeechTokens.of(found.tokenizers.target) == SpeechTokens.of(expected.tokenizers.target)
    assert list(found.recipe.transcribe.languages) == SPOKEN


def test_a_vocabulary_of_the_size_of_english_models_is_of_english(folder, monkeypatch):
    monkeypatch.setattr(faster_whisper, "MULTILINGUAL", len((folder / "vocabulary.txt").read_text().split("\n")))
    recipe = read(folder).recipe
    assert recipe.transcribe.languages == ()
    assert (recipe.data.source_language, recipe.data.target_language) == ("en", "en")


def test_the_format_is_told_by_the_name_of_its_specification(folder):
    assert format_of(str(folder)) == "faster-whisper"
    (folder / "model.bin").write_bytes(written({}, spec="TransformerBase"))
    assert format_of(str(folder)) == "opennmt"
    with pytest.raises(InputError, match="contains a TransformerBase, not a WhisperSpec"):
        read(folder)


@pytest.mark.parametrize(
    ("name", "kind", "value", "message"),
    [
        ("decoder/pre_norm", "int8", 0, "decoder.pre_norm is 0, but should be 1"),
        ("decoder/activation", "int8", 0, "decoder.activation is 0, but should be 3"),
        ("decoder/num_heads", "int16", 13, "decoder.num_heads is 13, but should be 2"),
    ],
)
def test_settings_of_another_model_are_refused(original, folder, name, kind, value, message):
    write_bin(folder, their_variables(original[1]) | {name: (kind, np.dtype(kind).type(value))})
    with pytest.raises(InputError, match=rf"not a Whisper model: {message}"):
        read(folder)


def test_what_is_missing_or_has_no_place_is_named(original, folder):
    variables = their_variables(original[1])
    write_bin(folder, {name: value for name, value in variables.items() if not name.startswith("encoder/conv1")})
    with pytest.raises(InputError, match=r"has no encoder\.conv1\.weight; is it complete"):
        read(folder)
    write_bin(folder, variables | {"encoder/conv3/weight": ("float32", np.ones((2, 3), np.float32))})
    with pytest.raises(InputError, match=r"cannot represent the weight 'encoder\.conv3\.weight'"):
        read(folder)
    del variables["decoder/layer_2/ffn/linear_1/bias"]
    write_bin(folder, variables)
    with pytest.raises(InputError, match=r"missing decoder\.blocks\.2\.feed_forward\.down\.bias \(26,\)"):
        read(folder)


def test_a_vocabulary_in_another_order_is_refused(folder):
    names = (folder / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    names[7], names[11] = names[11], names[7]
    (folder / "vocabulary.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="where the model's vocabulary has it"):
        read(folder)
