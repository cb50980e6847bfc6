"""Speech models that are exported for CTranslate2, or computed by it, transcribe as they do in torch."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest
import soundfile
import torch
from typer.testing import CliRunner

import foreign_models
import heedful
from foreign_folders import SPOKEN
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.cli import app
from heedful.convert import FORMATS, Model, ctranslate2_export, faster_whisper
from heedful.convert.exporter import export_model
from heedful.errors import InputError, RunError
from heedful.predictors.ctranslate2_transcriber import MULTILINGUAL, CTranslate2Transcriber, ids_by_name
from heedful.predictors.transcriber import Transcriber, padded_frames
from heedful.text.pipeline import PAD, UNK

ctranslate2 = pytest.importorskip("ctranslate2")
pytest.importorskip("transformers")

RATE = 16_000


def converted(place, unused="ġ", redrawn=True):
    """A Whisper with another name for a token that no text has, and other weights."""
    foreign_models.whisper(place / "theirs")
    definition = (place / "theirs" / "tokenizer.json").read_text(encoding="utf-8")
    definition = definition.replace('"ġ": ', f'"{unused}": ')
    (place / "theirs" / "tokenizer.json").write_text(definition, encoding="utf-8")
    model = FORMATS["whisper"].read(place / "theirs")
    # All heads of the upper half follow the speech, as CTranslate2 needs heads that do.
    heads = replace(model.recipe.transcribe, alignment_heads=(2, 3))
    recipe = replace(model.recipe, transcribe=heads, decode=replace(model.recipe.decode, max_extra=9))
    torch.manual_seed(3)
    for name, value in model.weights.items() if redrawn else ():
        if name != "output.bias":  # it leaves out tokens
            value.normal_(std=0.5)
        if name.endswith("cross_attention.out.weight"):
            value.mul_(5)  # what is written depends on what is heard
    if redrawn:
        model.weights["target_embedding.weight"] *= 0.1  # texts do not repeat one token
        model.weights["decoder.norm.weight"] *= 10
        model.weights["target_embedding.weight"][[PAD, UNK]] = 0.0
    write_model(place / "ours", recipe, model.tokenizers, model.weights)
    return place / "ours"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return converted(tmp_path_factory.mktemp("whisper"))


@pytest.fixture
def model(folder):
    loaded = load_model(folder)
    return Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))


def sound(seed, seconds):
    chance = np.random.default_rng(seed)
    times = np.arange(round(seconds * RATE))
    tone = np.sin(times * chance.uniform(0.01, 1.5)) * np.sin(times * chance.uniform(0, 0.001))
    return (chance.uniform(0, 1) * tone + chance.normal(0, 0.1, len(times))).astype(np.float32)


SOUNDS = [sound(seed, seconds) for seed, seconds in enumerate((1.2, 0.4, 0.8))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options",
    [
        {"beam": 1},
        {"beam": 1, "timestamps": "never"},
        {"beam": 5, "initial_prompt": "the cat sits", "penalty": "gnmt", "alpha": 0.6},
        {"beam": 3, "timestamps": "never", "max_extra": 100, "task": "translate"},
    ],
)
def test_transcripts_are_those_of_torch(folder, options):
    pair = [heedful.load(folder, engine=engine) for engine in ("ctranslate2", "torch")]
    there, here = (each.transcribe(SOUNDS, vad=False, language="de", **options) for each in pair)
    assert sum(len(transcript.segments) for transcript in here) > len(SOUNDS)
    for ours, theirs in zip(here, there, strict=True):
        assert (ours.text, ours.language, ours.complete) == (theirs.text, theirs.language, theirs.complete)
        for one, other in zip(ours.segments, theirs.segments, strict=True):
            assert (one.start, one.end, one.tokens) == (other.start, other.end, other.tokens)
            assert list(one.token_scores) == pytest.approx(list(other.token_scores), abs=1e-4)


def test_a_model_that_is_stored_in_int8_writes_what_torch_writes(folder, tmp_path):
    heedful.export(folder, tmp_path / "int8", precision="int8")
    pair = [heedful.load(tmp_path / "int8", engine=engine) for engine in ("ctranslate2", "torch")]
    there, here = (each.transcribe(SOUNDS[0], vad=False, language="de", beam=1) for each in pair)
    assert [one.tokens for one in here.segments] == [one.tokens for one in there.segments]
    scores = [[score for one in each.segments for score in one.token_scores] for each in (here, there)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def test_json_in_int8_has_scores(folder, tmp_path):
    soundfile.write(tmp_path / "one.wav", SOUNDS[0], RATE)
    options = ["--language", "de", "--beam", "1", "--no-vad", "--format", "json", "--precision", "int8"]
    result = CliRunner().invoke(app, ["transcribe", str(tmp_path / "one.wav"), "--model", str(folder), *options])
    assert result.exit_code == 0, (result.output, result.exception)
    [segment, *_] = json.loads(result.stdout)["segments"]
    assert len(segment["token_scores"]) == len(segment["pieces"]) > 0


def test_silence_is_left_out_as_in_torch(folder):
    pair = [heedful.load(folder, engine=engine) for engine in ("ctranslate2", "torch")]
    probable = []
    for each in pair:
        transcriber = each.with_options(beam=1, language="de", vad=False)
        readings = [transcriber.begin(clip) for clip in SOUNDS]
        probable.append([silence for [(_, silence)] in transcriber.search_windows([[each] for each in readings])])
    assert probable[0] == pytest.approx(probable[1], rel=1e-3)
    assert len(set(probable[1])) == len(SOUNDS)


def test_what_ctranslate2_cannot_do_is_named_or_left_to_torch(folder, caplog):
    caplog.set_level(logging.INFO)
    engine = heedful.load(folder, engine="ctranslate2")
    with pytest.raises(InputError, match=r"transcribe\.word_timestamps = true: must be false"):
        engine.transcribe(SOUNDS[0], word_timestamps=True, language="de")
    with pytest.raises(InputError, match=r"transcribe\.language: must be set"):
        engine.transcribe(SOUNDS[0])
    assert type(heedful.load(folder, engine="auto")) is Transcriber
    assert "using torch, because CTranslate2 does not support: transcribe.language" in caplog.text


def test_languages_are_detected_as_in_torch(tmp_path):
    place = converted(tmp_path, MULTILINGUAL, redrawn=False)
    pair = [heedful.load(place, engine=engine).with_options(beam=1, max_extra=0) for engine in ("auto", "torch")]
    assert type(pair[0]) is CTranslate2Transcriber
    sounds = [sound(seed, 0.6) for seed in range(7)]
    languages = [[each.transcribe(clip, vad=False).language for clip in sounds] for each in pair]
    assert languages[0] == languages[1]
    assert len(set(languages[0])) > 1


@pytest.mark.slow
def test_an_exported_folder_is_compared_and_comes_back_with_its_weights(folder, model, tmp_path, monkeypatch):
    files = []
    for number, samples in enumerate(SOUNDS):
        soundfile.write(tmp_path / f"{number}.wav", samples, RATE)
        files.append(str(tmp_path / f"{number}.wav"))
    exported = export_model(load_model(folder), "ctranslate2", tmp_path / "out", inputs=files)
    assert (exported.agreement.inputs, exported.agreement.is_equal) == (len(SOUNDS), True)
    assert {"tokenizer.json", "vocabulary.json", "preprocessor_config.json"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }

    back = FORMATS["faster-whisper"].read(tmp_path / "out")
    assert all(torch.equal(back.weights[name], value) for name, value in model.weights.items())
    assert back.recipe.model == model.recipe.model
    assert back.recipe.audio == model.recipe.audio
    assert back.recipe.transcribe.alignment_heads == (2, 3)
    assert list(back.recipe.transcribe.languages) == SPOKEN

    fill = ctranslate2_export.fill
    damaged = {"decoder.layer_0.ffn.linear_0.bias": np.full(37, 3.0, dtype=np.float32)}
    monkeypatch.setattr(faster_whisper, "fill", lambda spec, variables: fill(spec, variables | damaged))
    with pytest.raises(RunError, match="the folder was deleted"):
        export_model(load_model(folder), "ctranslate2", tmp_path / "other", inputs=files)
    assert not (tmp_path / "other").exists()


def test_a_plain_program_writes_the_same_and_aligns_words(folder, model, tmp_path):
    ctranslate2_export.write(model, tmp_path / "out", "int8")
    ctranslate2_export.write(model, tmp_path / "whole")
    names = json.loads((tmp_path / "whole" / "vocabulary.json").read_text())
    prompt = [names.index(name) for name in ("<|startoftranscript|>", "<|de|>", "<|transcribe|>", "<|notimestamps|>")]
    ids = ids_by_name(model.tokenizers.target)
    ours = load_model(folder).use_as(Transcriber).with_options(language="de", timestamps="never", beam=1)
    engine = ctranslate2.models.Whisper(str(tmp_path / "whole"), compute_type="float32")
    for samples in SOUNDS[1:]:
        values = padded_frames([samples], ours.settings.audio)[0].mT.contiguous().numpy()
        frames = ctranslate2.StorageView.from_array(values)
        [result] = engine.generate(frames, [prompt], beam_size=1, max_length=2 * 50)
        [segment] = ours.transcribe(samples, vad=False, max_extra=0).segments
        found = [ids[names[place]] for place in result.sequences_ids[0]]
        assert found[: len(segment.tokens)] == segment.tokens
        [alignment] = engine.align(frames, prompt, [[4, 5, 6]], 100)
        assert {token for token, _ in alignment.alignments} >= {0, 1, 2}
        [result] = ctranslate2.models.Whisper(str(tmp_path / "out")).generate(frames, [prompt], max_length=20)
        assert result.sequences_ids[0]


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("model", {"positions": "rotary", "max_target_positions": None}, r'model\.positions = "learned", not "rotary"'),
        ("model", {"norm": "post"}, r'model\.norm = "pre", not "post"'),
        ("audio", {"pad_seconds": 0.0}, r"reads audio with audio\.pad_seconds = 1\.0"),
    ],
)
def test_what_is_not_a_whisper_is_refused_by_key(model, tmp_path, table, change, message):
    recipe = replace(model.recipe, **{table: replace(getattr(model.recipe, table), **change)})
    with pytest.raises(InputError, match=rf"(?s)audio models in Whisper's layout only.*{message}"):
        ctranslate2_export.EXPORTER.reject_misfit(replace(model, recipe=recipe))
