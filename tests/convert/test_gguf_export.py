"""GPTs written as GGUF compute in llama.cpp what they compute here."""

import pytest
import torch

import foreign_models
from foreign_folders import LINES, SPLITTERS, TEXTS
from heedful.architectures import LanguageModel, weights
from heedful.checkpoint import load_model, write_model
from heedful.config.schema import TokenizerConfig
from heedful.config.validate import recipe_from_dict
from heedful.convert import FORMATS, Model, gguf_export
from heedful.convert.gguf_export import PRECISIONS, Engine, compare_outputs, write
from heedful.convert.weights import absent_tokens
from heedful.errors import InputError
from heedful.text.pipeline import EOS
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer

gguf = pytest.importorskip("gguf")

TOKENS = "tokenizer.ggml.tokens"
TINY = {"d_model": 24, "d_ff": 37, "heads": 4, "decoder_layers": 3, "family": "decoder", "norm": "pre"}
TINY |= {"positions": "rotary", "normalization": "rms", "activation": "swiglu", "bias": False}
TINY |= {"scale_embeddings": False, "attention_bias": False}
KNOWN = [text for text in TEXTS if text.strip()] + ["cat", "The <pad> 12 345", "aaaa aaa a"]
PROMPTS = [LINES[0], LINES[2], "  two  spaces ", "THE ÉCOLE ☃", "The <pad> 12 345"]


def random_model(kind="bpe", tokenizer=None, **settings):
    config = {"kind": kind, "vocab_size": 401, "byte_fallback": kind != "unigram"} | (tokenizer or {})
    trained = train_tokenizer(LINES, TokenizerConfig(**config))
    values = {"task": "language_model", "tokenizer": config, "model": TINY | settings, "data": {"max_length": 256}}
    recipe = recipe_from_dict(values, "test")
    torch.manual_seed(5)
    built = LanguageModel(recipe.model, len(trained)).eval()
    for parameter in built.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    return Model(recipe=recipe, tokenizers=TokenizerPair(trained, trained), weights=weights(built))


def loaded(model, folder):
    write_model(folder, model.recipe, model.tokenizers, model.weights)
    return load_model(folder)


def test_the_file_has_the_settings_of_the_model(tmp_path):
    model = random_model(kv_heads=2, rope_theta=5000.0, norm_eps=1e-3)
    count = write(model, tmp_path / "out")
    reader = gguf.GGUFReader(tmp_path / "out" / "model.gguf")
    settings = {name: reader.get_field(f"llama.{name}").contents() for name in ("context_length", "rope.freq_base")}
    assert settings == {"context_length": 256, "rope.freq_base": 5000.0}
    assert reader.get_field(TOKENS).contents()[:4] == ["<pad>", "<unk>", "<bos>", "<eos>"]
    assert sum(int(tensor.n_elements) for tensor in reader.tensors) == count


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_are_stored_in_any_precision(precision, tmp_path):
    write(random_model(d_model=32), tmp_path / "out", precision)
    types = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(tmp_path / "out/model.gguf").tensors}
    name = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "q8_0": "Q8_0"}[precision]
    assert types["blk.0.attn_q.weight"] == name
    assert types["blk.0.ffn_down.weight"] == ("F16" if precision == "q8_0" else name)  # rows of 37 values
    assert types["output_norm.weight"] == "F32"


SHAPES = {
    "plain": {},
    "grouped heads": {"kv_heads": 2, "rope_theta": 500.0, "norm_eps": 0.1},
    "own head size": {"d_k": 10, "kv_heads": 1},
    "biases and two matrices": {"attention_bias": True, "tie": "none"},
    "scaled embeddings": {"scale_embeddings": True},
    "unigram": {"kind": "unigram"},
    "characters": {"kind": "character"},
    "words at spaces": {"tokenizer": {"pretokenized": True}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_llama_cpp_computes_what_the_model_computes(shape, tmp_path):
    pytest.importorskip("llama_cpp")
    model = random_model(**SHAPES[shape])
    write(model, tmp_path / "out")
    agreement = compare_outputs(loaded(model, tmp_path / "ours"), tmp_path / "out", PROMPTS)
    assert agreement.inputs == len(PROMPTS)
    assert agreement.is_equal, agreement


@pytest.mark.parametrize("kind", ["llama", "smollm"])
def test_an_imported_llama_computes_the_same_in_llama_cpp(kind, tmp_path):
    pytest.importorskip("llama_cpp")
    foreign_models.llama(tmp_path / "theirs", kind, max_position_embeddings=256)
    model = FORMATS["llama"].read(tmp_path / "theirs")
    write(model, tmp_path / "out")
    start = "<s>" if kind == "llama" else "<|im_start|>"
    texts = [*PROMPTS, f"{start}The cat sits"]
    agreement = compare_outputs(loaded(model, tmp_path / "ours"), tmp_path / "out", texts)
    assert agreement.is_equal, agreement


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_llama_cpp_cuts_texts_into_the_same_tokens(kind, tmp_path):
    pytest.importorskip("llama_cpp")
    model = random_model(kind)
    write(model, tmp_path / "out")
    engine = Engine(tmp_path / "out", 256, range(len(model.tokenizers.source)))
    unknown = ["<unk> <0x41>", "x\u2028y  z\n\n\t the", "\U0001f600\u00a0é"]  # runs of them become one <unk> in unigram
    texts = KNOWN if kind == "unigram" else KNOWN + unknown
    for text in texts:
        assert engine._llama.tokenize(text.encode(), add_bos=False) == model.tokenizers.source.encode(text), text


@pytest.mark.parametrize("kind", ["llama", *SPLITTERS])
def test_llama_cpp_cuts_texts_into_the_tokens_of_an_imported_model(kind, tmp_path):
    pytest.importorskip("llama_cpp")
    foreign_models.llama(tmp_path / "theirs", kind, max_position_embeddings=256)
    model = FORMATS["llama"].read(tmp_path / "theirs")
    write(model, tmp_path / "out")
    tokenizer = model.tokenizers.source
    absent = absent_tokens(model.weights["output.bias"])
    present = [i for i in range(len(tokenizer)) if i not in absent]
    engine = Engine(tmp_path / "out", 256, present)
    start = "<s>" if kind == "llama" else "<|im_start|>"
    for text in [*KNOWN, "x\u2028y  z\n\n\t the", "\U0001f600\u00a0é", f"{start}The cat", "I'LL 12345 don't"]:
        ids = engine._llama.tokenize(text.encode(), add_bos=False)
        assert [present[i] for i in ids] == tokenizer.encode(text), text


@pytest.mark.parametrize("kind", ["gpt-2", "smollm"])
def test_a_pre_tokenizer_that_llama_cpp_lacks_is_refused(kind, tmp_path, monkeypatch):
    foreign_models.llama(tmp_path / "theirs", kind)
    model = FORMATS["llama"].read(tmp_path / "theirs")
    monkeypatch.delitem(gguf_export.SPLITTERS, kind)
    with pytest.raises(InputError, match=r"its pre-tokenizer is not one of .*ByteLevel"):
        write(model, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_text_without_a_prompt_follows_the_end_of_another(tmp_path):
    llama_cpp = pytest.importorskip("llama_cpp")
    write(random_model(), tmp_path / "out")
    llama = llama_cpp.Llama(str(tmp_path / "out/model.gguf"), verbose=False)
    assert (llama.token_bos(), llama.token_eos()) == (EOS, EOS)
    assert EOS not in llama.tokenize(b"The cat")


def test_a_wrong_rotation_shows(tmp_path, monkeypatch):
    pytest.importorskip("llama_cpp")
    monkeypatch.setattr("heedful.convert.gguf_export.ROTATED", "(?!)")
    model = random_model()
    write(model, tmp_path / "out")
    agreement = compare_outputs(loaded(model, tmp_path / "ours"), tmp_path / "out", PROMPTS)
    assert not agreement.is_equal


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"positions": "learned"}, 'model.positions = "rotary", not "learned"'),
        ({"kind": "word"}, 'tokenizer.kind = "word": must be "bpe", "unigram"'),
        ({"kind": "byte"}, 'tokenizer.kind = "byte": must be "bpe", "unigram"'),
        ({"kind": "wordpiece", "tokenizer": {"byte_fallback": False}}, 'tokenizer.kind = "wordpiece": must be'),
        ({"tokenizer": {"byte_fallback": False}}, "tokenizer.byte_fallback = false: must be true"),
        ({"kind": "unigram", "tokenizer": {"byte_fallback": True}}, "tokenizer.byte_fallback = true: must be false"),
        ({"tokenizer": {"normalization": "nfkc"}}, 'tokenizer.normalization = "nfkc": must be "none"'),
        ({"tokenizer": {"lowercase": True}}, "tokenizer.lowercase = true: must be false"),
    ],
)
def test_what_llama_cpp_cannot_compute_is_refused_before_anything_is_written(settings, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        write(random_model(**settings), tmp_path / "out")
    assert not (tmp_path / "out").exists()
