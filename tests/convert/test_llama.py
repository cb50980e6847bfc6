"""Llamas of Hugging Face and of heedful compute the same, whichever is converted from the other."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import foreign_models
from foreign_folders import LINES, TEXTS
from heedful.architectures import LanguageModel, load_weights, weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import TokenizerConfig
from heedful.config.validate import recipe_from_dict
from heedful.convert import FORMATS, Model
from heedful.errors import InputError
from heedful.registry import EXPORTERS
from heedful.text.hugging_face import from_hugging_face
from heedful.text.pipeline import BOS, EOS, PAD, UNK
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

transformers = pytest.importorskip("transformers")

read, write = FORMATS["llama"].read, EXPORTERS["llama"].write

FORMS = {
    "TinyLlama": {"kind": "llama"},
    "SmolLM": {"kind": "smollm", "tie_word_embeddings": True, "rope_theta": 100_000.0},
    "one head of keys": {"kind": "smollm", "num_key_value_heads": 1, "head_dim": 4, "rope_theta": 500.0},
    "biases in attention": {"kind": "llama", "attention_bias": True, "num_key_value_heads": 6},
}


@pytest.fixture(scope="module", params=FORMS)
def pair(request, tmp_path_factory):
    """A folder of Hugging Face with its model, and the same model in heedful."""
    folder = tmp_path_factory.mktemp("llama")
    theirs = foreign_models.llama(folder / "theirs", **FORMS[request.param])
    converted = read(folder / "theirs")
    write_model(folder / "ours", converted.recipe, converted.tokenizers, converted.weights)
    return folder / "theirs", theirs, load_model(folder / "ours")


def old_ids(folder):
    """The old id of each of ours; -1 for a special token that the folder lacks."""
    return torch.from_numpy(from_hugging_face(folder, begins=False)[1])


def test_every_token_has_its_old_probability(pair):
    folder, theirs, ours = pair
    old = old_ids(folder)
    own = [i for i in range(len(old)) if old[i] >= 0 and i != BOS]
    absent = sorted({*range(len(old))} - {*own})
    assert PAD in absent
    for text in filter(None, TEXTS):
        ids = torch.tensor([EOS, *ours.tokenizers.source.encode(text)[:40]])
        with torch.inference_mode():
            expected = theirs(old[ids][None]).logits.log_softmax(-1)
            found = ours.model(ids[None], torch.ones_like(ids[None], dtype=torch.bool)).log_softmax(-1)
        assert expected.std() > 0.2
        torch.testing.assert_close(found[..., own], expected[..., old[own]], atol=1e-4, rtol=0)
        assert found[..., absent].exp().eq(0).all()


def test_texts_have_their_old_tokens(pair):
    folder, _, ours = pair
    tokenizer, old = transformers.AutoTokenizer.from_pretrained(folder), old_ids(folder)
    start = next(name for name in ("<s>", "<|im_start|>") if name in tokenizer.get_vocab())
    for text in (*TEXTS, f"{start}The cat", f"The mat{start}A man"):
        expected = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = ours.tokenizers.source.encode(text)
        assert old[ids].tolist() == expected
        assert text not in TEXTS or ours.tokenizers.source.decode(ids) == text


def test_greedy_search_writes_what_generate_writes(pair):
    folder, theirs, ours = pair
    old = old_ids(folder)
    prompts = [text[:20] for text in TEXTS if text]
    outputs = ours.use().generate(prompts, temperature=0.0, max_tokens=17)
    lengths = set()
    for prompt, output in zip(prompts, outputs, strict=True):
        ids = old[ours.tokenizers.source.encode(prompt)][None]
        end = theirs.config.eos_token_id
        row = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=17, pad_token_id=end
        )[0].tolist()[ids.size(1) :]
        assert old[output.tokens].tolist() == (row[: row.index(end)] if end in row else row)
        lengths.add(len(output.tokens))
    assert max(lengths) > 5


def test_padding_changes_nothing(pair):
    folder, theirs, ours = pair
    old = old_ids(folder)
    rows = [ours.tokenizers.source.encode(text)[:30] for text in (LINES[0], LINES[2][:5])]
    width = max(map(len, rows))
    for left in (True, False):
        pads = [[PAD] * (width - len(row)) for row in rows]
        ids = torch.tensor([pad + row if left else row + pad for pad, row in zip(pads, rows, strict=True)])
        mask = ids != PAD
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        with torch.inference_mode():
            found = ours.model(ids, mask)
            expected = theirs(old[ids].clamp(min=0), attention_mask=mask.long(), position_ids=positions).logits
        shared = [i for i in range(len(old)) if old[i] >= 0 and i != BOS]
        torch.testing.assert_close(found[mask][:, shared], expected[mask][:, old[shared]], atol=1e-4, rtol=0)


def test_a_llama_that_came_in_goes_out_as_it_was(pair, tmp_path):
    folder, theirs, ours = pair
    write(Model(recipe=ours.recipe, tokenizers=ours.tokenizers, weights=weights(ours.model)), tmp_path / "again")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again").eval()
    assert again.num_parameters() == theirs.num_parameters()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    original = transformers.AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == len(original)
    kept = old_ids(folder)
    kept = torch.stack([i for place, i in enumerate(kept) if i >= 0 and place != BOS])
    for text in filter(None, TEXTS):
        ids, before = (
            each(text, return_tensors="pt", add_special_tokens=False)["input_ids"] for each in (tokenizer, original)
        )
        assert torch.equal(kept[ids], before)
        with torch.inference_mode():
            torch.testing.assert_close(again(ids).logits, theirs(before).logits[..., kept], atol=1e-5, rtol=0)


def copy_of(folder, new, config=None, tensors=None):
    new.mkdir()
    for file in folder.iterdir():
        (new / file.name).write_bytes(file.read_bytes())
    if config is not None:
        old = json.loads((folder / "config.json").read_text())
        contents = {key: value for key, value in {**old, **config}.items() if value != "absent"}
        (new / "config.json").write_text(json.dumps(contents))
    if tensors is not None:
        save_file(load_file(folder / "model.safetensors") | tensors, new / "model.safetensors")
    return new


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "tiny"
    foreign_models.llama(folder)
    return folder


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "rope_parameters": None}, "rope_scaling is "),
        (
            {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}},
            "rope_scaling is .*llama3.* supports only null",
        ),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ({"mlp_bias": True}, "mlp_bias is true, but heedful supports only false"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', but heedful has only silu"),
        ({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}, 'model_type is "qwen2"'),
        ({"num_hidden_layers": "absent"}, "num_hidden_layers is missing"),
        (
            {"num_key_value_heads": 3},
            r"layers\.0\.self_attn\.k_proj\.weight is \(20, 24\), but the model needs \(30, 24\)",
        ),
    ],
)
def test_what_heedful_cannot_compute_is_refused_by_name(config, problem, tiny, tmp_path):
    with pytest.raises(InputError, match=problem):
        read(copy_of(tiny, tmp_path / "copy", config))


def test_biases_of_qwen2_are_refused_by_name(tiny, tmp_path):
    names = [f"model.layers.{layer}.self_attn.{part}_proj.bias" for layer in range(3) for part in "qkv"]
    sizes = {"q": 60, "k": 20, "v": 20}
    biases = {name: torch.ones(sizes[name.split(".")[-2][0]]) for name in names}
    with pytest.raises(InputError, match=r"unexpected model\.layers\.0\.self_attn\.k_proj\.bias \(20,\)"):
        read(copy_of(tiny, tmp_path / "copy", tensors=biases))


def test_files_of_older_versions_are_read(tiny, tmp_path):
    """Without the keys that have defaults, with the angles of rotary positions, and with a head for classes."""
    older = dict.fromkeys(("rope_parameters", "attention_bias", "mlp_bias", "tie_word_embeddings"), "absent")
    older |= {"rope_scaling": None, "rope_theta": 10_000.0}
    tensors = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": torch.ones(5) for layer in range(3)}
    again = read(copy_of(tiny, tmp_path / "copy", older, tensors | {"score.weight": torch.ones(2, 24)}))
    expected = read(tiny).weights
    assert again.weights.keys() == expected.keys()
    assert all(torch.equal(again.weights[name], value) for name, value in expected.items())
    assert list(again.left_out) == ["score.weight"]


def random_model(kind="bpe", **settings):
    """A random model of heedful with its own tokenizer."""
    config = {"kind": kind, "vocab_size": 401}
    tokenizer = train_tokenizer(LINES, TokenizerConfig(**config))
    model = {"d_model": 24, "d_ff": 37, "heads": 4, "decoder_layers": 3, "family": "decoder", "norm": "pre"}
    model |= {"positions": "rotary", "normalization": "rms", "activation": "swiglu", "bias": False}
    model |= {"scale_embeddings": False, "attention_bias": False}
    values = {"task": "language_model", "tokenizer": config, "model": model | settings, "data": {"max_length": 53}}
    recipe = recipe_from_dict(values, "test")
    torch.manual_seed(5)
    built = LanguageModel(recipe.model, len(tokenizer)).eval()
    for parameter in built.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    return Model(recipe=recipe, tokenizers=TokenizerPair(tokenizer, tokenizer), weights=weights(built)), built


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kv_heads": 2, "rope_theta": 500_000.0},
        {"d_k": 10, "kv_heads": 1, "norm_eps": 0.1},
        {"attention_bias": True, "tie": "none", "bias": True},
        {"scale_embeddings": True},
        {"scale_embeddings": True, "tie": "none"},
        {"kind": "unigram"},
        {"kind": "character"},
    ],
)
def test_transformers_computes_what_a_model_of_heedful_computes(settings, tmp_path):
    model, built = random_model(**settings)
    write(model, tmp_path / "theirs")
    written, report = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert type(written).__name__ == "LlamaForCausalLM"
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert written.config.max_position_embeddings == 53
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    converted = read(tmp_path / "theirs")
    again = LanguageModel(converted.recipe.model, len(tokenizer)).eval()
    load_weights(again, converted.weights)
    for text in filter(None, TEXTS):
        ids = tokenizer(text, return_tensors="pt")["input_ids"][:, :41]
        assert ids[0].tolist() == model.tokenizers.source.encode(text)[:41]
        padding_mask = torch.ones_like(ids, dtype=torch.bool)
        with torch.inference_mode():
            found, expected = written.eval()(ids).logits, built(ids, padding_mask)
            torch.testing.assert_close(again(ids, padding_mask), expected, atol=1e-4, rtol=0)
        assert expected.std() > 0.2
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_there_and_back_again_changes_nothing(tmp_path):
    model, _ = random_model(kv_heads=2, d_k=8, tie="none", rope_theta=777.0, norm_eps=0.01, max_positions=53)
    write(model, tmp_path / "theirs")
    again = read(tmp_path / "theirs")
    assert again.weights.keys() == model.weights.keys()
    assert all(torch.equal(again.weights[name], value) for name, value in model.weights.items())
    assert replace(again.recipe.model, init=model.recipe.model.init) == model.recipe.model


def test_separate_embeddings_are_announced():
    model, _ = random_model(scale_embeddings=True)
    assert "multiplied by sqrt(model.d_model)" in EXPORTERS["llama"].changes(model)[0]
    assert EXPORTERS["llama"].changes(random_model()[0]) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"positions": "learned"},
            'to export to Llama, train a model with:\n  model.positions = "rotary", not "learned"$',
        ),
        ({"normalization": "layer"}, 'model.normalization = "rms", not "layer"$'),
        ({"norm": "post"}, 'model.norm = "pre", not "post"$'),
        ({"activation": "silu"}, 'model.activation = "swiglu", not "silu"$'),
        ({"output_bias": True}, "model.output_bias = false, not true$"),
        ({"d_v": 5}, "model.d_v left out, not 5$"),
        ({"segments": 2}, "model.segments = 0, not 2$"),
        ({"attention": "latent"}, 'model.attention = "multi_head", not "latent"$'),
        ({"attention": "linear", "positions": "none"}, 'model.attention = "multi_head", not "linear"'),
        ({"window": 7}, "model.window left out, not 7$"),
        ({"feed_forward": "experts"}, 'model.feed_forward = "dense", not "experts"$'),
    ],
)
def test_what_is_not_a_llama_is_not_written(change, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write(random_model(**change)[0], tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_special_tokens_of_llama_2_have_their_roles(tiny):
    tokenizer, old = from_hugging_face(tiny, begins=False)
    assert old[[PAD, UNK, BOS, EOS]].tolist() == [-1, 0, -1, 2]
    assert old[tokenizer.encode("<s>The")[0]] == 1
