"""GPT-2s of Hugging Face and of heedful say the same, whichever is made of the other."""

import copy
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

import foreign_models
from foreign_folders import LINES, TEXTS
from heedful.architectures import LanguageModel, load_weights, weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import make_recipe
from heedful.config.schema import DecodeConfig, GenerateConfig, ModelConfig, TokenizerConfig
from heedful.config.validate import recipe_from_dict
from heedful.convert import FORMATS, Model
from heedful.errors import InputError
from heedful.predictors.generator import Generator
from heedful.registry import EXPORTERS
from heedful.search.beam import search
from heedful.text.hugging_face import from_hugging_face
from heedful.text.pipeline import BOS, EOS, PAD, UNK
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.training.loop import Outcome
from interrupted import stop_after, train

transformers = pytest.importorskip("transformers")

read, write = FORMATS["gpt2"].read, EXPORTERS["gpt2"].write


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt2") / "theirs"
    return folder, foreign_models.gpt2(folder)


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory):
    converted = read(theirs[0])
    folder = tmp_path_factory.mktemp("gpt2") / "ours"
    write_model(folder, converted.recipe, converted.tokenizers, converted.weights)
    return load_model(folder)


@pytest.fixture(scope="module")
def old(theirs):
    """The old id of each of ours, where it has one."""
    return torch.from_numpy(from_hugging_face(theirs[0])[1])


def prompts(ours):
    return [torch.tensor([BOS, *ours.tokenizers.source.encode(text)[:17]]) for text in TEXTS]


def test_every_token_has_its_old_probability(theirs, ours, old):
    own = [i for i in range(len(old)) if i not in (PAD, UNK, BOS)]
    for ids in prompts(ours):
        with torch.inference_mode():
            expected = theirs[1](old[ids][None]).logits.log_softmax(-1)
            found = ours.model(ids[None], torch.ones_like(ids[None], dtype=torch.bool)).log_softmax(-1)
        torch.testing.assert_close(found[..., own], expected[..., old[own]], atol=1e-4, rtol=0)
        assert found[..., [PAD, UNK, BOS]].exp().eq(0).all()


@pytest.mark.parametrize("beam", [1, 3])
def test_search_finds_what_generate_finds(theirs, ours, old, beam):
    config = DecodeConfig(beam=beam, penalty="average", alpha=1.0)
    lengths = set()
    for ids in prompts(ours)[:7]:
        with torch.inference_mode():
            state = ours.model.start(ids[None], torch.ones_like(ids[None], dtype=torch.bool))
            (found,) = search(state, [11], config)[0]
        expected = generated(theirs[1], old[ids], beam, len(ids) + 11)
        ends = [EOS] if found.complete else []
        assert old[found.tokens + ends].tolist() == expected
        lengths.add(len(expected))
    assert len(lengths) > 1


def generated(model, ids, beam, length):
    end = model.config.eos_token_id
    early = {"early_stopping": True} if beam > 1 else {}
    row = model.generate(
        ids[None],
        attention_mask=torch.ones_like(ids[None]),
        num_beams=beam,
        do_sample=False,
        max_length=length,
        pad_token_id=end,
        **early,
    )[0].tolist()[len(ids) :]
    return row[: row.index(end) + 1] if end in row else row


def test_a_model_without_its_output_and_with_its_masks_is_the_same(theirs, ours, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(theirs[0] / "model.safetensors")
    bare = {name.removeprefix("transformer."): value for name, value in tensors.items()}
    bare |= {"h.0.attn.bias": torch.ones(1, 1, 59, 59), "lm_head.weight": bare["wte.weight"].clone()}
    save_file(bare, tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text()) | {"n_inner": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"0\.mlp\.c_fc\.weight is \(26, 41\), but the model needs \(26, 104\)"):
        read(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"n_inner": 41}))
    again = read(tmp_path).weights
    assert all(torch.equal(again[name], value) for name, value in weights(ours.model).items())


def test_heads_are_left_out_by_name(theirs, ours, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(theirs[0] / "model.safetensors")
    save_file(tensors | {"score.weight": torch.zeros(5, 26)}, tmp_path / "model.safetensors")
    again = read(tmp_path)
    assert list(again.left_out) == ["score.weight"]
    assert all(torch.equal(again.weights[name], value) for name, value in weights(ours.model).items())


def test_wrong_weights_are_listed_in_their_terms(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(theirs[0] / "model.safetensors")
    del tensors["transformer.h.1.attn.c_attn.weight"]
    save_file(tensors | {"transformer.h.3.ln_1.bias": torch.zeros(26)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert str(caught.value).splitlines()[1:] == [
        "  missing transformer.h.1.attn.c_attn.weight (26, 78)",
        "  unexpected transformer.h.3.ln_1.bias (26,)",
    ]


def random_model(kind="bpe", **settings):
    """A random model of heedful with a tokenizer of its own."""
    config = {"kind": kind, "vocab_size": 307}
    tokenizer = train_tokenizer(LINES, TokenizerConfig(**config))
    model = {"d_model": 22, "d_ff": 37, "heads": 2, "decoder_layers": 3, "family": "decoder", "norm": "pre"}
    model |= {"positions": "learned", "max_positions": 53, "scale_embeddings": False, "activation": "gelu_tanh"}
    values = {"task": "language_model", "tokenizer": config, "model": model | settings, "data": {"max_length": 53}}
    recipe = recipe_from_dict(values, "test")
    built = LanguageModel(recipe.model, len(tokenizer)).eval()
    for parameter in built.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    pair = TokenizerPair(tokenizer, tokenizer)
    return Model(recipe=recipe, tokenizers=pair, weights=weights(built)), built


@pytest.fixture(scope="module")
def trained():
    return random_model()


def test_there_and_back_again_changes_nothing(trained, tmp_path):
    model, _ = trained
    write(model, tmp_path / "theirs")
    again = read(tmp_path / "theirs")
    assert again.weights.keys() == model.weights.keys()
    assert all(torch.equal(again.weights[name], value) for name, value in model.weights.items())
    assert replace(again.recipe.model, init=model.recipe.model.init) == model.recipe.model


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"activation": "gelu", "bias": False, "attention_bias": False},  # nanoGPT's, as in the presets of Shakespeare
        {"output_bias": True},
        {"tie": "none"},
        {"tie": "none", "output_bias": True, "bias": False},
    ],
)
def test_transformers_says_what_a_model_of_heedful_says(settings, tmp_path):
    model, built = random_model(**settings)
    write(model, tmp_path / "theirs")
    written, report = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "theirs", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    again = LanguageModel(read(tmp_path / "theirs").recipe.model, len(tokenizer)).eval()
    load_weights(again, read(tmp_path / "theirs").weights)
    for text in filter(None, TEXTS):
        ids = tokenizer(text, return_tensors="pt")["input_ids"][:, :41]
        assert ids[0].tolist() == model.tokenizers.source.encode(text)[:41]
        padding_mask = torch.ones_like(ids, dtype=torch.bool)
        with torch.inference_mode():
            found, expected = written.eval()(ids).logits, built(ids, padding_mask)
            torch.testing.assert_close(again(ids, padding_mask), expected, atol=1e-4, rtol=0)
        assert expected.std() > 0.2
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def test_a_gpt2_that_came_in_goes_out_as_it_was(theirs, old, tmp_path):
    write(read(theirs[0]), tmp_path / "again")
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "again").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    original = transformers.AutoTokenizer.from_pretrained(theirs[0])
    assert again.num_parameters() == theirs[1].num_parameters()
    assert (again.config.bos_token_id, again.config.eos_token_id, len(tokenizer)) == (0, 0, len(original))
    for text in filter(None, TEXTS):
        ids, before = (each(text, return_tensors="pt")["input_ids"][:, :53] for each in (tokenizer, original))
        assert torch.equal(old[ids + EOS], before)
        with torch.inference_mode():
            torch.testing.assert_close(again(ids).logits, theirs[1](before).logits[..., old[EOS:]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("frozen", [True, False], ids=["as it is trained now", "as older versions trained it"])
def test_a_fine_tuned_gpt2_goes_out_in_the_form_in_which_it_came(theirs, ours, tmp_path, frozen, monkeypatch):
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    if not frozen:
        monkeypatch.setattr("heedful.training.warm_start.output_bias_to_freeze", lambda _: ())
    settings = make_recipe(
        {
            "task": "language_model",
            "data": {"root": str(tmp_path), "train": [{"source": "text.txt"}], "max_length": 23},
            "train": {"start": str(ours.path), "max_updates": 5, "batch_tokens": 300, "device": "cpu", "threads": 1},
            "optimizer": {"weight_decay": 0.1, "warmup": 1},
        }
    )
    train(settings, tmp_path / "run")
    tuned = load_model(tmp_path / "run")
    model = Model(recipe=tuned.recipe, tokenizers=tuned.tokenizers, weights=weights(tuned.model))
    write(model, tmp_path / "again")
    told = EXPORTERS["gpt2"].changes(model)
    assert any("token ids differ from those of the original model" in line for line in told)
    assert any("folded into an output matrix, which is no longer tied" in line for line in told) != frozen
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "again").eval()
    assert again.get_input_embeddings().weight.shape == theirs[1].get_input_embeddings().weight.shape
    assert again.config.tie_word_embeddings == frozen
    ids = (again.config.bos_token_id, again.config.eos_token_id, again.config.pad_token_id, again.config.vocab_size)
    assert ids == (0, 0, None, theirs[1].config.vocab_size)
    tokens = [len(transformers.AutoTokenizer.from_pretrained(folder)) for folder in (theirs[0], tmp_path / "again")]
    assert tokens[0] == tokens[1]
    assert ("lm_head.weight" in load_file(tmp_path / "again" / "model.safetensors")) != frozen
    text = tuned.tokenizers.source.encode(next(filter(None, TEXTS)))[:17]
    with torch.inference_mode():
        expected = tuned.model(torch.tensor([text]), torch.ones(1, len(text), dtype=torch.bool)).log_softmax(-1)
        found = again(torch.tensor([text]) - EOS).logits.log_softmax(-1)
    torch.testing.assert_close(found, expected[..., EOS:], atol=1e-4, rtol=0)
    before = weights(ours.model)["backbone.stack.blocks.0.self_attention.q.weight"]
    assert not torch.equal(tuned.model.get_parameter("backbone.stack.blocks.0.self_attention.q.weight"), before)


def test_a_fine_tuned_gpt2_is_resumed_as_it_was_begun(ours, tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    settings = make_recipe(
        {
            "task": "language_model",
            "data": {"root": str(tmp_path), "train": [{"source": "text.txt"}], "max_length": 23},
            "train": {"start": str(ours.path), "max_updates": 5, "batch_tokens": 300, "device": "cpu", "threads": 1},
        }
    )
    for older in (False, True):
        folder = tmp_path / f"run-{older}"
        with monkeypatch.context() as begun:
            if older:
                begun.setattr("heedful.training.warm_start.output_bias_to_freeze", lambda _: ())
            stop_after(3, begun)
            train(settings, folder)
        assert train(settings, folder) == Outcome(5, 0)
        assert ("output.bias" in load_model(folder).recipe.train.freeze) != older


def test_a_gpt2_that_came_in_and_learned_more_goes_out(ours, tmp_path):
    """Its output bias has been trained like every other weight."""
    model = copy.deepcopy(ours.model)
    for parameter in model.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    write(Model(recipe=ours.recipe, tokenizers=ours.tokenizers, weights=weights(model)), tmp_path / "theirs")
    written = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "theirs").eval()
    for ids in prompts(ours):
        with torch.inference_mode():
            expected = model(ids[None], torch.ones_like(ids[None], dtype=torch.bool)).log_softmax(-1)
            found = written(ids[None]).logits.log_softmax(-1)
        torch.testing.assert_close(found[..., EOS:], expected[..., EOS:], atol=1e-4, rtol=0)
        assert found[..., :EOS].exp().eq(0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_heads": 1, "bias": False, "positions": "rotary"}, 'model.positions = "learned", not "rotary"'),
        ({"kv_heads": 1}, "to export to GPT2, train a model with:\n  model.kv_heads left out, not 1$"),
        ({"activation": "swiglu"}, 'model.activation = .*"gelu_tanh".*, not "swiglu"'),
        ({"family": "encoder"}, 'model.family = "decoder", not "encoder"$'),
    ],
)
def test_what_is_no_gpt2_is_not_written(trained, tmp_path, change, message):
    model, _ = trained
    recipe = replace(model.recipe, model=replace(model.recipe.model, **change))
    with pytest.raises(InputError, match=message):
        write(replace(model, recipe=recipe), tmp_path / "theirs")


def test_a_decoder_with_another_head_is_not_written_as_one_that_predicts_tokens(trained, tmp_path):
    model, _ = trained
    head = {"output.weight": torch.zeros(3, 22), "output.bias": torch.zeros(3)}
    tagger = replace(model, recipe=replace(model.recipe, task="tagging"), weights=model.weights | head)
    with pytest.raises(InputError, match='is for the task "tagging", but this format needs "language_model"'):
        write(tagger, tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_fields_that_say_the_same_in_other_words_are_written(trained, tmp_path):
    model, _ = trained
    same = replace(model.recipe.model, tie="output", kv_heads=2, d_k=11, d_v=11, encoder_layers=2, dropout=0.3)
    write(replace(model, recipe=replace(model.recipe, model=same)), tmp_path / "theirs")
    assert read(tmp_path / "theirs").recipe.model.dropout == 0.3
    assert isinstance(same, ModelConfig)


@pytest.mark.parametrize("settings", [{}, {"output_bias": True}, {"tie": "none", "activation": "gelu", "bias": False}])
def test_transformers_continues_a_text_as_heedful_does(settings, tmp_path):
    model, built = random_model(**settings)
    built.get_parameter("backbone.embedding.weight").data[[PAD, BOS]] *= 3  # both would be said if that were allowed
    write(replace(model, weights=weights(built)), tmp_path / "theirs")
    written = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "theirs").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    generator = Generator(built, model.tokenizers.source, GenerateConfig(temperature=0.0, max_tokens=11), 53)
    for text in LINES[:4]:
        prompt = tokenizer(text[:23], return_tensors="pt")
        assert prompt["input_ids"][0].tolist() == model.tokenizers.source.encode(text[:23])
        found = written.generate(**prompt, do_sample=False, max_new_tokens=11)[0].tolist()
        expected = generator.generate(text[:23])
        ends = [EOS] if expected.reason == "eos" else []
        assert found[prompt["input_ids"].size(1) :] == [*expected.tokens, *ends]
        assert tokenizer.decode(prompt["input_ids"][0]) == text[:23]


def test_a_gpt2_that_came_in_and_went_out_continues_texts_as_before(theirs, tmp_path):
    write(read(theirs[0]), tmp_path / "again")
    kinds = (transformers.AutoModelForCausalLM, transformers.AutoTokenizer)
    folders = (theirs[0], tmp_path / "again")
    (original, before), (again, after) = ([kind.from_pretrained(folder) for kind in kinds] for folder in folders)
    texts = set()
    for text in LINES[:4]:
        said = [
            tokenizer.decode(model.generate(**tokenizer(text, return_tensors="pt"), max_new_tokens=7)[0])
            for model, tokenizer in ((original, before), (again, after))
        ]
        assert said[0] == said[1]
        assert len(said[0]) > len(text)
        texts.add(said[0])
    assert len(texts) == 4


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character", "byte", "word"])
def test_the_pipeline_of_transformers_writes_what_heedful_writes(kind, tmp_path):
    model, built = random_model(kind=kind)
    write(model, tmp_path / "theirs")
    pipeline = transformers.pipeline("text-generation", model=str(tmp_path / "theirs"))
    generator = Generator(built, model.tokenizers.source, GenerateConfig(temperature=0.0, max_tokens=12))
    for text in (LINES[0][:20], LINES[2][:3], ""):
        ids = generator.tokenizer.encode(text) or [EOS]
        [output] = pipeline(text, max_new_tokens=12, do_sample=False, return_tensors=True)
        tokens = output["generated_token_ids"]
        assert tokens[: len(ids)] == ids
        written = tokens[len(ids) :]
        assert (written[:-1] if written[-1] == EOS else written) == generator.generate(text).tokens
