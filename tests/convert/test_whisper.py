"""Whispers of Hugging Face and of heedful say the same, whichever is made of the other."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import load_file, save_file

import foreign_models
from foreign_folders import LINES, SPOKEN, TEXTS
from heedful.architectures import weights
from heedful.architectures.input_layers import media_to_text
from heedful.checkpoint import load_model, write_model
from heedful.config.load import make_recipe
from heedful.config.validate import recipe_from_dict
from heedful.convert import FORMATS, Model
from heedful.convert.whisper import languages
from heedful.errors import InputError
from heedful.predictors.cross_attention import head_weights
from heedful.predictors.transcriber import Transcriber
from heedful.registry import EXPORTERS
from heedful.text.pipeline import BOS, EOS, PAD, UNK
from heedful.text.speech_tokens import SpeechTokens, speech_tokenizer
from heedful.text.tokenizer_pair import TokenizerPair
from heedful.text.training import train_tokenizer
from interrupted import train

transformers = pytest.importorskip("transformers")

read, write = FORMATS["whisper"].read, EXPORTERS["whisper"].write
FRAMES, MELS = 100, 13  # transformers reads whole seconds only


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whisper") / "theirs"
    return folder, foreign_models.whisper(folder)


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory):
    converted = read(theirs[0])
    folder = tmp_path_factory.mktemp("whisper") / "ours"
    write_model(folder, converted.recipe, converted.tokenizers, converted.weights)
    return load_model(folder)


@pytest.fixture(scope="module")
def old(theirs):
    """The old id of each of ours; <pad> and <unk> have none."""
    return torch.from_numpy(speech_tokenizer(theirs[0], theirs[1].config.vocab_size)[1])


def some_sound():
    torch.manual_seed(11)
    return torch.randn(2, FRAMES, MELS)


def logits_of(model, frames, ids):
    with torch.inference_mode():
        return model(frames, torch.ones(frames.shape[:2], dtype=torch.bool), ids, torch.ones_like(ids) > 0)


def their_logits(model, frames, ids):
    with torch.inference_mode():
        return model(input_features=frames.transpose(1, 2), decoder_input_ids=ids).logits


def test_every_token_has_its_old_logit(theirs, ours, old):
    torch.manual_seed(3)
    ids = torch.randint(EOS, len(old), (2, 17))
    ids[:, 0] = BOS
    found, expected = logits_of(ours.model, some_sound(), ids), their_logits(theirs[1], some_sound(), old[ids])
    assert expected.std() > 0.5
    torch.testing.assert_close(found[..., BOS:], expected[..., old[BOS:]], atol=1e-4, rtol=0)
    assert found.softmax(-1)[..., [PAD, UNK]].eq(0).all()


def test_the_attention_that_times_words_is_that_of_transformers(theirs, ours, old):
    model = copy.deepcopy(theirs[1])
    model.set_attn_implementation("eager")
    frames = some_sound()[:1]
    ids = torch.randint(EOS, len(old), (1, 17), generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        layers = model(input_features=frames.transpose(1, 2), decoder_input_ids=old[ids], output_attentions=True)
    expected = torch.cat([layer[0] for layer in layers.cross_attentions])
    masks = torch.ones(1, FRAMES, dtype=torch.bool), torch.ones_like(ids, dtype=torch.bool)
    [found] = head_weights(ours.model, frames, masks[0], ids, masks[1], range(len(expected)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_settings_and_tokens_come_along(theirs, ours):
    recipe, tokenizer = ours.recipe, ours.tokenizers.target
    assert (recipe.audio.rate, recipe.audio.hop, recipe.audio.window, recipe.audio.mels) == (16_000, 160, 400, MELS)
    assert recipe.audio.pad_seconds == recipe.audio.max_seconds == pytest.approx(1.0)
    assert (recipe.model.max_positions, recipe.model.max_target_positions) == (50, 59)
    assert list(recipe.transcribe.languages) == SPOKEN
    assert {3, 7} == {i - 4 for i in recipe.transcribe.suppress if i < 23}
    assert EOS in recipe.transcribe.suppress_first
    tokens = SpeechTokens.of(tokenizer)
    assert tokenizer.encode("<|yue|><|0.04|>") == [tokens.languages["yue"], tokens.times[2]]
    assert [tokens.seconds(i) for i in (tokens.times[0], tokens.times[-1])] == pytest.approx([0.0, 1.0])
    assert {BOS, EOS}.isdisjoint(tokens.controls)
    original = transformers.AutoTokenizer.from_pretrained(theirs[0])
    for text in filter(None, TEXTS):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert len(tokenizer.encode(text)) == len(original(text, add_special_tokens=False)["input_ids"])


def test_sound_is_read_as_the_preprocessor_says(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    sound = {"feature_size": MELS, "sampling_rate": 8000, "hop_length": 80, "n_fft": 256}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(sound))
    audio = read(tmp_path).recipe.audio
    assert (audio.rate, audio.hop, audio.window, audio.mels, audio.pad_seconds) == (8000, 80, 256, MELS, 1.0)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(sound | {"feature_size": 11}))
    with pytest.raises(InputError, match=r"feature_size is 11, but the model reads 13"):
        read(tmp_path)


def test_time_stamps_that_the_tokenizer_lacks_are_the_last_rows(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    definition = json.loads((tmp_path / "tokenizer.json").read_text())
    definition["added_tokens"] = [token for token in definition["added_tokens"] if "." not in token["content"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition))
    before, after = read(theirs[0]), read(tmp_path)
    assert SpeechTokens.of(after.tokenizers.target) == SpeechTokens.of(before.tokenizers.target)
    assert all(torch.equal(after.weights[name], value) for name, value in before.weights.items())


def test_languages_that_no_file_names_are_those_of_the_vocabulary(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    named = read(tmp_path)
    del generation["lang_to_id"]
    (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    found = read(tmp_path)
    assert sorted(found.recipe.transcribe.languages) == sorted(named.recipe.transcribe.languages)
    assert found.recipe.data == named.recipe.data
    assert (named.notes, len(found.notes)) == ((), 1)
    (tmp_path / "generation_config.json").write_text(json.dumps(generation | {"is_multilingual": False}))
    assert read(tmp_path).recipe.transcribe.languages == ()


def test_heads_that_follow_the_speech_come_in_and_go_out(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    heads = [[0, 1], [1, 0]]
    (tmp_path / "generation_config.json").write_text(json.dumps(generation | {"alignment_heads": [*heads, [99, 0]]}))
    found = read(tmp_path)
    assert found.recipe.transcribe.alignment_heads == (1, found.recipe.model.heads)
    write(found, tmp_path / "again")
    assert json.loads((tmp_path / "again" / "generation_config.json").read_text())["alignment_heads"] == heads


@pytest.mark.parametrize(("rows", "expected"), [(51_864, []), (51_865, None)])
def test_without_a_word_on_languages_the_size_of_the_vocabulary_decides(rows, expected):
    assert languages({}, rows) == expected


def test_a_whisper_that_came_in_goes_out_as_it_was(theirs, ours, tmp_path):
    write(Model(recipe=ours.recipe, tokenizers=ours.tokenizers, weights=weights(ours.model)), tmp_path / "again")
    before, after = (load_file(folder / "model.safetensors") for folder in (theirs[0], tmp_path / "again"))
    assert before.keys() - after.keys() <= {"proj_out.weight"}
    assert all(torch.equal(before[name], after[name]) for name in after)
    again, report = transformers.WhisperForConditionalGeneration.from_pretrained(
        tmp_path / "again", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ids = torch.randint(0, again.config.vocab_size, (2, 13))
    expected = their_logits(theirs[1], some_sound(), ids)
    torch.testing.assert_close(their_logits(again.eval(), some_sound(), ids), expected, atol=1e-5, rtol=0)
    for key in ("suppress_tokens", "begin_suppress_tokens", "lang_to_id", "no_timestamps_token_id", "is_multilingual"):
        assert (
            getattr(again.generation_config, key) == json.loads((theirs[0] / "generation_config.json").read_text())[key]
        )
    kept = ("feature_size", "sampling_rate", "hop_length", "n_fft", "chunk_length")
    sounds = [
        json.loads((folder / "preprocessor_config.json").read_text()) for folder in (theirs[0], tmp_path / "again")
    ]
    assert [sounds[0][key] for key in kept] == pytest.approx([sounds[1][key] for key in kept])
    tokenizers = [transformers.AutoTokenizer.from_pretrained(folder) for folder in (theirs[0], tmp_path / "again")]
    for text in [*filter(None, TEXTS), "<|startoftranscript|><|de|><|transcribe|><|0.02|>cat<|0.10|>"]:
        first, second = (each(text, add_special_tokens=False)["input_ids"] for each in tokenizers)
        assert first == second


def test_a_fine_tuned_whisper_goes_out_as_it_came_and_comes_back_the_same(theirs, ours, old, tmp_path):
    chance = np.random.default_rng(3)
    for number in range(7):
        soundfile.write(tmp_path / f"{number}.wav", chance.normal(0, 0.1, 9_000), ours.recipe.audio.rate)
    rows = [f"{number}.wav\t{text}\n" for number, text in zip(range(7), filter(None, LINES), strict=False)]
    (tmp_path / "said.tsv").write_text("audio\ttext\n" + "".join(rows))
    settings = make_recipe(
        {
            "task": "speech_recognition",
            "data": {
                "root": str(tmp_path),
                "train": [{"source": "said.tsv"}],
                "target_language": "de",
                "filters": {"max_tokens": 40},
            },
            "decode": {"max_extra": 9},
            "audio": {"max_seconds": 1.0, "pad_seconds": 1.0},
            "train": {"start": str(ours.path), "max_updates": 2, "batch_tokens": 3000, "device": "cpu", "threads": 1},
            "optimizer": {"name": "adamw", "schedule": "constant", "lr": 0.01, "warmup": 1},
        }
    )
    train(settings, tmp_path / "run")
    tuned = load_model(tmp_path / "run")
    learned = weights(tuned.model)
    assert not all(torch.equal(learned[name], value) for name, value in weights(ours.model).items())
    write(Model(recipe=tuned.recipe, tokenizers=tuned.tokenizers, weights=learned), tmp_path / "again")
    again, report = transformers.WhisperForConditionalGeneration.from_pretrained(
        tmp_path / "again", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert again.config.vocab_size == theirs[1].config.vocab_size
    ids = torch.randint(EOS, len(old), (2, 17))
    ids[:, 0] = BOS
    expected = logits_of(tuned.model, some_sound(), ids)
    found = their_logits(again.eval(), some_sound(), old[ids])
    torch.testing.assert_close(found[..., old[EOS:]], expected[..., EOS:], atol=1e-4, rtol=0)
    converted = read(tmp_path / "again")
    write_model(tmp_path / "back", converted.recipe, converted.tokenizers, converted.weights)
    back = logits_of(load_model(tmp_path / "back").model, some_sound(), ids)
    torch.testing.assert_close(back[..., EOS:], expected[..., EOS:], atol=1e-4, rtol=0)  # without biases of keys


def random_model(**settings):
    """A model of heedful with a vocabulary of its own, with random weights."""
    tokenizer = train_tokenizer(LINES, replace(recipe_from_dict({}, "test").tokenizer, vocab_size=293))
    model = {"d_model": 22, "d_ff": 37, "heads": 2, "encoder_layers": 2, "decoder_layers": 3, "positions": "learned"}
    model |= {"max_positions": 50, "max_target_positions": 307, "norm": "pre", "activation": "gelu", "tie": "output"}
    model |= {"scale_embeddings": False, **settings}
    audio = {"mels": MELS, "pad_seconds": 1.0, "max_seconds": 1.0}
    values = {"task": "speech_recognition", "data": {"modality": "audio"}, "audio": audio, "model": model}
    recipe = recipe_from_dict(values, "test")
    torch.manual_seed(5)
    built = media_to_text(recipe, len(tokenizer)).eval()
    for parameter in built.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return Model(recipe=recipe, tokenizers=TokenizerPair(tokenizer, tokenizer), weights=weights(built)), built


@pytest.mark.parametrize("settings", [{}, {"bias": False, "attention_bias": False}])
def test_transformers_says_what_a_model_of_heedful_says(settings, tmp_path):
    model, built = random_model(**settings)
    numbers = write(model, tmp_path / "theirs")
    written, report = transformers.WhisperForConditionalGeneration.from_pretrained(
        tmp_path / "theirs", output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert numbers == written.num_parameters()
    torch.manual_seed(7)
    ids = torch.randint(EOS, len(model.tokenizers.target), (2, 19))
    found, expected = their_logits(written.eval(), some_sound(), ids), logits_of(built, some_sound(), ids)
    assert expected.std() > 0.3
    torch.testing.assert_close(found.log_softmax(-1), expected.log_softmax(-1), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": "rotary", "max_target_positions": None}, 'model.positions = "learned", not "rotary"'),
        ({"norm": "post"}, 'model.norm = "pre", not "post"'),
    ],
)
def test_what_is_no_whisper_is_not_written(tmp_path, change, message):
    model, _ = random_model()
    other = replace(model, recipe=replace(model.recipe, model=replace(model.recipe.model, **change)))
    with pytest.raises(InputError, match=message):
        write(other, tmp_path / "theirs")


def test_a_model_that_reads_other_frames_is_not_written(tmp_path):
    model, _ = random_model()
    other = replace(model, recipe=replace(model.recipe, audio=replace(model.recipe.audio, pad_seconds=0.0)))
    with pytest.raises(InputError, match=r"which reads audio with audio.pad_seconds = 1.0$"):
        write(other, tmp_path / "theirs")


def test_weights_without_a_place_are_named(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(tensors | {"model.encoder.extra.weight": torch.ones(3)}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"cannot represent the weight 'model\.encoder\.extra\.weight'"):
        read(tmp_path)
    del tensors["model.encoder.conv1.bias"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"missing source_embedding\.first\.bias \(26,\)"):
        read(tmp_path)


def test_a_tokenizer_without_the_tokens_of_speech_is_refused(theirs, tmp_path):
    for file in theirs[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (tmp_path / "tokenizer.json").read_text().replace("<|startoftranscript|>", "<|begin|>")
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(InputError, match=r"lacks <\|startoftranscript\|>; is it the tokenizer of a Whisper"):
        read(tmp_path)


def test_the_language_is_the_likeliest_after_the_beginning(theirs, ours, old):
    """What transformers finds, by its own features and its own method."""
    transcriber = ours.use_as(Transcriber)
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(theirs[0])
    heard = set()
    for seed in range(7):
        chance = np.random.default_rng(seed)
        tone = np.sin(np.arange(10_007) * chance.uniform(0.01, 1.5))
        samples = (tone * chance.uniform(0, 1) + chance.normal(0, 0.1, 10_007)).astype(np.float32)
        features = extractor(samples, sampling_rate=16_000, return_tensors="pt")["input_features"]
        with torch.inference_mode():
            start = torch.tensor([[theirs[1].config.decoder_start_token_id]])
            logits = theirs[1](input_features=features, decoder_input_ids=start).logits[0, -1]
        names = json.loads((theirs[0] / "generation_config.json").read_text())["lang_to_id"]
        expected = max(names, key=lambda name: logits[names[name]].item()).strip("<|>")
        assert transcriber.transcribe(samples, beam=1, vad=False).language == expected
        assert transcriber.transcribe(samples, beam=1, language="de").language == "de"
        heard.add(expected)
    assert len(heard) > 1
