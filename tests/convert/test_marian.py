"""Marian's models of Hugging Face and translators of heedful translate alike, whichever is made of the other."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import foreign_folders
import foreign_models
from foreign_folders import LINES, TEXTS
from heedful.architectures import EncoderDecoder, weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import DecodeConfig, TokenizerConfig
from heedful.config.validate import recipe_from_dict
from heedful.convert import FORMATS, Model
from heedful.errors import InputError
from heedful.registry import EXPORTERS
from heedful.search.beam import search
from heedful.text.hugging_face import pair_from_hugging_face
from heedful.text.pipeline import BOS, EOS, PAD
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

transformers = pytest.importorskip("transformers")

read, write = FORMATS["marian"].read, EXPORTERS["marian"].write
SENTENCES = ["the cats sit", "cat at the", "sit s at", "the the a cat", "it sat at the cats", "a"]


@pytest.fixture(scope="module", params=["swish", "relu", "gelu"])
def theirs(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "theirs"
    return folder, foreign_models.marian(folder, activation_function=request.param)


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory):
    converted = read(theirs[0])
    folder = tmp_path_factory.mktemp("marian") / "ours"
    write_model(folder, converted.recipe, converted.tokenizers, converted.weights)
    return load_model(folder)


@pytest.fixture(scope="module")
def old(theirs):
    return torch.from_numpy(pair_from_hugging_face(theirs[0])[1])


def sources(tokenizer):
    return [torch.tensor([[*tokenizer.encode(text), EOS]]) for text in SENTENCES]


def test_every_token_has_its_old_probability(theirs, ours, old):
    own = [i for i in range(len(old)) if i != BOS]
    for source in sources(ours.tokenizers.source):
        target = torch.cat([torch.tensor([[BOS]]), torch.randint(4, len(old), (1, 13))], dim=1)
        with torch.inference_mode():
            expected = theirs[1](input_ids=old[source], decoder_input_ids=old[target]).logits.log_softmax(-1)
            found = ours.model(source, source != PAD, target, torch.ones_like(target, dtype=torch.bool)).log_softmax(-1)
        assert expected.std() > 1
        torch.testing.assert_close(found[..., own], expected[..., old[own]], atol=1e-4, rtol=0)
        assert found[..., BOS].exp().eq(0).all()


@pytest.mark.parametrize("beam", [1, 4])
def test_search_finds_what_generate_finds(theirs, ours, old, beam):
    assert (ours.recipe.decode.penalty, ours.recipe.decode.alpha) == ("average", 1.0)
    outputs = set()
    for source in sources(ours.tokenizers.source):
        with torch.inference_mode():
            state = ours.model.start(source, source != PAD)
            (found,) = search(state, [11], replace(ours.recipe.decode, beam=beam))[0]
        expected = generated(theirs[1], old[source], beam, bad_words_ids=[[theirs[1].config.pad_token_id]])
        assert old[found.tokens + ([EOS] if found.complete else [])].tolist() == expected
        outputs.add(tuple(expected))
    assert len(outputs) > 2


def generated(model, source, beam, **settings):
    early = {"early_stopping": True} if beam > 1 else {}
    row = model.generate(source, num_beams=beam, do_sample=False, max_new_tokens=11, **early, **settings)[
        0, 1:
    ].tolist()
    end = model.config.eos_token_id
    return row[: row.index(end) + 1] if end in row else row


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_there_and_back_again_changes_nothing(ours, tmp_path):
    model = Model(recipe=ours.recipe, tokenizers=ours.tokenizers, weights=weights(ours.model))
    write(model, tmp_path / "theirs")
    again = read(tmp_path / "theirs")
    assert same(again.weights, model.weights)
    assert again.recipe.model == model.recipe.model
    assert again.tokenizers.source.digest == model.tokenizers.source.digest
    target = pair_from_hugging_face(tmp_path / "theirs" / "target")[0].source
    assert target.digest == model.tokenizers.target.digest


@pytest.fixture(scope="module", params=[{}, {"bias": False, "attention_bias": False}])
def trained(request):
    """A random translator of heedful with a tokenizer of its own and no output bias."""
    settings = {"kind": "bpe", "vocab_size": 307}
    tokenizer = train_tokenizer(LINES, TokenizerConfig(**settings))
    model = {"d_model": 26, "d_ff": 41, "heads": 2, "encoder_layers": 3, "decoder_layers": 2, "activation": "gelu"}
    recipe = recipe_from_dict({"tokenizer": settings, "model": model | request.param}, "test")
    built = EncoderDecoder(recipe.model, len(tokenizer), len(tokenizer)).eval()
    for name, parameter in built.named_parameters():
        parameter.data = torch.randn_like(parameter) * (1.0 if name.endswith("norm.weight") else 0.3)
    embeddings = built.get_parameter("source_embedding.weight")
    embeddings.data[[PAD, BOS]] *= 3  # so that both would be said if that were allowed
    return Model(recipe=recipe, tokenizers=TokenizerPair(tokenizer, tokenizer), weights=weights(built)), built


def test_transformers_translates_as_a_model_of_heedful(trained, tmp_path):
    model, built = trained
    write(model, tmp_path / "theirs")
    written, report = transformers.MarianMTModel.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not report["unexpected_keys"]
    assert not report["missing_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    outputs = set()
    for text in filter(None, TEXTS[:7]):
        source = tokenizer(text, return_tensors="pt")["input_ids"]
        assert source.tolist() == [[*model.tokenizers.source.encode(text), EOS]]
        with torch.inference_mode():
            (found,) = search(built.start(source, source != PAD), [11], DecodeConfig(penalty="average", alpha=1.0))[0]
        expected = generated(written.eval(), source, 4)
        assert [*found.tokens, *([EOS] if found.complete else [])] == expected
        outputs.add(tuple(expected))
    assert len(outputs) > 2


def test_a_model_of_heedful_gains_biases_of_zeros_only(trained, tmp_path):
    model, _ = trained
    write(model, tmp_path / "theirs")
    again = read(tmp_path / "theirs").weights
    gained = {name: again.pop(name) for name in again.keys() - model.weights.keys()}
    assert "output.bias" in gained
    assert all(name.endswith("bias") and not value.any() for name, value in gained.items())
    assert same(again, model.weights)


def test_a_decoder_may_begin_with_a_piece_that_can_be_said_too(tmp_path):
    the = foreign_folders.marian_pieces().index("▁the")
    original = foreign_models.marian(tmp_path / "theirs", decoder_start_token_id=the)
    model = read(tmp_path / "theirs")
    old = torch.from_numpy(pair_from_hugging_face(tmp_path / "theirs")[1])
    assert old[BOS] == the
    assert (old == the).sum() == 2
    write_model(tmp_path / "ours", model.recipe, model.tokenizers, model.weights)
    ours = load_model(tmp_path / "ours").model
    for source in sources(model.tokenizers.source):
        target = torch.cat([torch.tensor([[BOS]]), torch.randint(4, len(old), (1, 13))], dim=1)
        with torch.inference_mode():
            expected = original(input_ids=old[source], decoder_input_ids=old[target]).logits.softmax(-1)
            found = ours(source, source != PAD, target, torch.ones_like(target, dtype=torch.bool)).softmax(-1)
            (text,) = search(ours.start(source, source != PAD), [11], replace(model.recipe.decode, beam=4))[0]
        said = [i for i in range(len(old)) if i != BOS]
        torch.testing.assert_close(found[..., said], expected[..., old[said]], atol=1e-4, rtol=0)
        assert not found[..., BOS].any()
        expected = generated(original, old[source], 4, bad_words_ids=[[original.config.pad_token_id]])
        assert old[text.tokens + ([EOS] if text.complete else [])].tolist() == expected


def test_copies_and_positions_may_be_there(theirs, ours, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(theirs[0] / "model.safetensors")
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_positions.weight"] = getattr(theirs[1].model, side).embed_positions.weight.half()
        tensors[f"model.{side}.embed_tokens.weight"] = tensors["model.shared.weight"].clone()
    save_file(tensors, tmp_path / "model.safetensors")
    assert same(read(tmp_path).weights, weights(ours.model))
    for shape in ((61, 34), (61, 33), (0, 34), (61,), (61, 2, 17)):
        tensors["model.decoder.embed_positions.weight"] = torch.zeros(shape)
        save_file(tensors, tmp_path / "model.safetensors")
        with pytest.raises(InputError, match=r"model\.decoder\.embed_positions\.weight does not contain sinusoids"):
            read(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"decoder_ffn_dim": 47}, "encoder_ffn_dim and decoder_ffn_dim differ"),
        ({"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings is false"),
        ({"vocab_size": 7}, "the embeddings have 7 rows"),
        ({"model_type": "bart"}, r'model_type is "bart" .* such as MarianModel'),
        (
            {"decoder_start_token_id": "</s>"},
            r'config\.json: decoder_start_token_id is "</s>", but should be a token id',
        ),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id is -1, but should be a token id"),
        ({"decoder_start_token_id": 10**30}, "decoder_start_token_id is 10{30}, but should be a token id"),
        ({"max_position_embeddings": None}, r"data\.max_length must be a whole number"),
        ({"d_model": 38}, r"model\.shared\.weight is \(\d+, 34\), but the model needs \(\d+, 38\)"),
    ],
)
def test_settings_that_do_not_fit_are_refused(theirs, tmp_path, settings, message):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").unlink()
    config = json.loads((tmp_path / "config.json").read_text()) | settings
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_two_vocabularies_are_refused(trained, tmp_path):
    model, _ = trained
    two = replace(model.recipe.tokenizer, joint=False)
    recipe = replace(model.recipe, model=replace(model.recipe.model, tie="output"), tokenizer=two)
    with pytest.raises(InputError, match=r'model\.tie = "all", not "output"\n  tokenizer\.joint = true, not false$'):
        write(replace(model, recipe=recipe), tmp_path / "theirs")
