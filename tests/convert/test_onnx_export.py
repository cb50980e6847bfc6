"""Models written as ONNX graphs compute there what they compute here, in programs without torch and heedful."""

import re
import subprocess
import sys
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.architectures import weights
from heedful.checkpoint import write_model
from heedful.checkpoint.load import LoadedModel
from heedful.config.load import make_recipe
from heedful.convert import Model
from heedful.convert.exporter import export_model
from heedful.convert.onnx import tracing
from heedful.errors import InputError, RunError
from heedful.registry import EXPORTERS
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.text.training import train_tokenizer

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

LINES = ["one two three four five", "six seven eight nine ten", "eleven twelve thirteen one six", "two four six"] * 5
TEXTS = ["one two three four five six", "ten", "eleven twelve\tthirteen", "seven seven eight nine ten one"]
TINY = {"d_model": 24, "d_ff": 20, "heads": 4, "encoder_layers": 1, "decoder_layers": 1, "max_positions": 310}
SHAPES: dict[str, dict[str, Any]] = {
    "of the paper": {"source_eos": False, "decoder_layers": 2},
    "of init": {"norm": "pre", "positions": "rotary", "d_k": 10, "d_v": 8},
    "Llama": {"norm": "pre", "positions": "rotary", "kv_heads": 2, "normalization": "rms", "activation": "swiglu"},
    "ALiBi": {"positions": "alibi", "norm": "pre", "kv_heads": 1, "tie": "none", "decoder_layers": 2},
    "T5": {"norm": "pre", "positions": "relative", "normalization": "rms", "bias": False, "tie": "none"},
    "BART": {
        "positions": "learned",
        "embedding_norm": True,
        "output_bias": True,
        "activation": "gelu_tanh",
        "norm_eps": 1e-3,
    },
}


def slow(shape):
    return pytest.param(shape, marks=pytest.mark.slow)


def loaded_model(task, model, **tables) -> LoadedModel:
    """A model with random weights, of which none is zero, and a tokenizer of its own words; two, if nothing is tied."""
    recipe = make_recipe({"name": "tiny", "task": task, "model": model, **tables})
    tokenizers: Any = NoTokenizers()
    if recipe.data.modality == "text" or task == "image_text_retrieval":
        tokenizer = train_tokenizer(LINES, recipe.tokenizer)
        has_two = task == "translation" and recipe.model.tie == "none"
        tokenizers = TokenizerPair(tokenizer, train_tokenizer(LINES[:2], recipe.tokenizer) if has_two else tokenizer)
    built = find_task(task).build(recipe, tokenizers).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return LoadedModel(recipe=recipe, model=built, tokenizers=tokenizers, path=None)


def write(loaded, folder, precision=None):
    model = Model(recipe=loaded.recipe, tokenizers=loaded.tokenizers, weights=weights(loaded.model))
    return EXPORTERS["onnx"].write(model, folder, precision)


WORDS = {"tokenizer": {"kind": "word", "byte_fallback": False}, "data": {"max_length": 64}}
ALONE = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
assert not {"torch", "heedful"} & sys.modules.keys()
"""


def run_alone(folder, *arguments) -> list[str]:
    """Run run.py of an exported model in a process that imports neither torch nor heedful; return what it prints."""
    command = [sys.executable, "-W", "error", "-c", ALONE, str(folder / "run.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check(loaded, folder, inputs=TEXTS) -> None:
    """Write a model, and compare the outputs of the folder with its own."""
    assert write(loaded, folder) == sum(parameter.numel() for parameter in loaded.model.parameters())
    agreement = EXPORTERS["onnx"].compare(loaded, folder, inputs)
    assert (agreement.inputs, agreement.equal) == (len(inputs), len(inputs))
    assert agreement.difference < 1e-4


@pytest.mark.parametrize("shape", [slow("of the paper"), "of init", slow("T5"), slow("BART")])
def test_a_translator_writes_the_same_tokens(shape, tmp_path):
    loaded = loaded_model("translation", {**TINY, **SHAPES[shape]}, **WORDS)
    check(loaded, tmp_path / "out")
    sources = ["one two three", "ten nine eight seven six five four three two one"]
    # As a special token <unk> is left out by the library tokenizers.
    ours = [re.sub(" ?<unk>", "", text).lstrip() for text in loaded.use().translate(sources, beam=1)]
    assert run_alone(tmp_path / "out", *sources) == ours


@pytest.mark.parametrize("shape", ["ALiBi", slow("Llama"), slow("BART")])
def test_a_gpt_writes_the_same_tokens(shape, tmp_path):
    loaded = loaded_model("language_model", {**TINY, **SHAPES[shape]}, **WORDS)
    check(loaded, tmp_path / "out")
    prompts = ["one two", "", "seven eight nine ten eleven"]
    outputs = loaded.use().generate(prompts, temperature=0.0, max_tokens=50)
    ours = [re.sub(" ?<unk>", "", prompt + output.text) for prompt, output in zip(prompts, outputs, strict=True)]
    assert run_alone(tmp_path / "out", *prompts) == ours


BERT = {"family": "encoder", "d_model": 24, "d_ff": 20, "heads": 4, "encoder_layers": 1, "norm": "pre"}
LABELS = ["O", "B-A", "I-A"]


def check_program(folder, arguments, expected) -> None:
    """Check what run.py prints; numbers may differ in the last digit."""
    number = re.compile(r"-?\d+\.\d{4}")
    printed = [line.split() for line in run_alone(folder, *arguments)]
    values = [[float(word) if number.fullmatch(word) else word for word in line] for line in printed]
    assert values == [
        [pytest.approx(float(word), abs=2e-4) if number.fullmatch(word) else word for word in line.split()]
        for line in expected
    ]


def test_a_classifier_of_pairs_gives_the_same_probabilities(tmp_path):
    data = {"max_length": 16, "labels": ["yes", "no", "perhaps"]}
    model = {**BERT, "segments": 2, "positions": "learned", "max_positions": 16, "embedding_norm": True}
    loaded = loaded_model("classification", model, tokenizer=WORDS["tokenizer"], data=data)
    check(loaded, tmp_path / "out")
    classifier: Any = loaded.use()
    answers = classifier.predict([tuple(text.split("\t")) if "\t" in text else text for text in TEXTS])
    lines = [f"{text} {a.label} {a.probabilities[a.label]:.4f}" for text, a in zip(TEXTS, answers, strict=True)]
    check_program(tmp_path / "out", TEXTS, lines)


@pytest.mark.slow
def test_a_regression_on_a_gpt_gives_numbers_in_the_unit_of_the_labels(tmp_path):
    data = {"max_length": 64, "label_mean": 5.5, "label_scale": 20.0}
    model = {**TINY, "family": "decoder", "positions": "relative", "pooler": "none"}
    loaded = loaded_model("regression", model, tokenizer=WORDS["tokenizer"], data=data)
    check(loaded, tmp_path / "out")
    texts = [text.replace("\t", " ") for text in TEXTS]
    lines = [f"{text} {answer.score:.4f}" for text, answer in zip(texts, loaded.use().predict(texts), strict=True)]
    check_program(tmp_path / "out", texts, lines)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kind", "family"), [("word", "encoder"), ("character", "decoder")])
def test_a_tagger_gives_the_same_tags(kind, family, tmp_path):
    data = {"max_length": 64, "labels": LABELS}
    model = {**TINY, "family": family, "positions": "rotary", "norm": "pre"}
    loaded = loaded_model("tagging", model, tokenizer={"kind": kind}, data=data)
    check(loaded, tmp_path / "out")
    lines = []
    for words in (["one", "two", "three", "four"], ["ten"]):
        [row] = loaded.use().rows(words)
        with torch.no_grad():
            tags = loaded.model(torch.tensor([row.ids]))[0].argmax(-1)
        lines.append(" ".join(f"{words[word]}/{LABELS[tags[place]]}" for word, place in row.places))
    check_program(tmp_path / "out", ["one two three four", "ten"], lines)


def test_a_model_of_answers_finds_the_same_ones(tmp_path):
    loaded = loaded_model("span_qa", {**BERT, "segments": 2}, **WORDS)
    check(loaded, tmp_path / "out")
    question, text = "two four", "one six seven eight nine ten three"
    answerer: Any = loaded.use()
    answer = answerer.predict([(question, text)])[0].answer
    assert run_alone(tmp_path / "out", question, text) == [answer]


@pytest.mark.slow
def test_an_encoder_of_sentences_gives_the_same_vectors(tmp_path):
    loaded = loaded_model("ranking", {**BERT, "positions": "alibi"}, **WORDS)
    check(loaded, tmp_path / "out")
    texts = ["one two", "three", "four five six seven eight nine"]
    first, *others = loaded.use().encode(texts)
    lines = [f"{text} {first @ vector:.4f}" for text, vector in zip(texts[1:], others, strict=True)]
    check_program(tmp_path / "out", texts, lines)


def test_a_masked_language_model_fills_gaps_with_the_same_words(tmp_path):
    tables = {**WORDS, "tokenizer": {**WORDS["tokenizer"], "mask": True}}
    loaded = loaded_model("masked_lm", {**BERT, "segments": 2, "positions": "none", "activation": "gelu"}, **tables)
    check(loaded, tmp_path / "out")
    text = "one [MASK] three [MASK]"
    lines = [f"{text} {[candidate.text for candidate in gap]}" for gap in loaded.use().fill(text)]
    assert run_alone(tmp_path / "out", text) == lines


def test_a_bag_of_words_gives_the_same_probabilities(tmp_path):
    data = {"max_length": 64, "labels": ["yes", "no"]}
    model = {"architecture": "bag_of_words", "family": "encoder", "d_model": 12}
    check(loaded_model("classification", model, tokenizer=WORDS["tokenizer"], data=data), tmp_path / "out")


def pictures(folder) -> list[str]:
    """Images of several sizes, one of them transparent, and one turned by its EXIF data."""
    pixels = np.random.default_rng(1).integers(256, size=(31, 23, 4), dtype=np.uint8)
    tag = Image.Exif()
    tag[0x0112] = 6
    Image.fromarray(pixels).save(folder / "transparent.png")
    Image.fromarray(pixels[:, :, :3]).save(folder / "turned.png", exif=tag)
    Image.fromarray(pixels[:20, :, 0]).save(folder / "grey.png")
    return [str(folder / name) for name in ("transparent.png", "turned.png", "grey.png")]


IMAGES = {
    "crop": {"size": [12, 18], "patch": 6, "resize": "crop"},
    "squash": {"size": [12, 18], "patch": 2, "resize": "squash", "stem": "convolutional", "resample": "bilinear"},
    "pad": {"size": [12, 12], "patch": 4, "resize": "pad", "channels": 1, "stem": "pooled", "positions": "sinusoidal"},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("resize", IMAGES)
def test_a_classifier_of_images_gives_the_same_probabilities(resize, tmp_path):
    data = {"labels": ["cat", "dog", "bird"]}
    model = {**BERT, "positions": "learned", "max_positions": 64}
    loaded = loaded_model("image_classification", model, data=data, image=IMAGES[resize])
    files = pictures(tmp_path)
    check(loaded, tmp_path / "out", files)
    answers = loaded.use().predict(files)
    lines = [f"{file} {a.label} {a.probabilities[a.label]:.4f}" for file, a in zip(files, answers, strict=True)]
    check_program(tmp_path / "out", files, lines)


@pytest.mark.slow
def test_an_encoder_of_images_and_texts_gives_the_same_similarities(tmp_path):
    text = {"text_d_model": 12, "text_d_ff": 8, "text_heads": 2, "text_layers": 1, "text_max_positions": 64}
    model = {"architecture": "dual_encoder", **BERT, **text, "projection": 7, "positions": "rotary"}
    loaded = loaded_model("image_text_retrieval", model, image=IMAGES["crop"], **WORDS)
    check(loaded, tmp_path / "out")
    file, *_ = pictures(tmp_path)
    texts = ["one two", "three", "four five six seven eight nine"]
    image, *vectors = loaded.use().encode([Path(file), *texts])
    lines = [f"{text} {image @ vector:.4f}" for text, vector in zip(texts, vectors, strict=True)]
    check_program(tmp_path / "out", [file, *texts], lines)


AUDIO = {
    "log-mel": {"rate": 1000, "window": 50, "hop": 20, "mels": 7, "max_seconds": 1.0},
    "samples": {"rate": 1000, "features": "samples", "hop": 20, "stem": "linear", "pad_seconds": 0.3},
}


@pytest.mark.slow
@pytest.mark.parametrize("features", AUDIO)
def test_a_classifier_of_audio_gives_the_same_probabilities(features, tmp_path):
    data = {"labels": ["high", "low"]}
    loaded = loaded_model("audio_classification", {**BERT, "positions": "rotary"}, data=data, audio=AUDIO[features])
    files = [str(tmp_path / f"{count}.wav") for count in (150, 517, 990)]
    for file in files:
        samples = np.random.default_rng(1).integers(-20_000, 20_000, size=int(Path(file).stem), dtype=np.int16)
        with wave.open(file, "wb") as clip:
            clip.setparams((1, 2, 1000, 0, "NONE", ""))
            clip.writeframes(samples.tobytes())
    check(loaded, tmp_path / "out", files)
    answers = loaded.use().predict(files)
    lines = [f"{file} {a.label} {a.probabilities[a.label]:.4f}" for file, a in zip(files, answers, strict=True)]
    check_program(tmp_path / "out", files, lines)


@pytest.mark.slow
@pytest.mark.parametrize("max_file", [tracing.MAX_FILE, 0])
def test_weights_are_stored_in_int8_and_next_to_a_large_graph(max_file, tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "MAX_FILE", max_file)
    loaded = loaded_model("ranking", {**BERT, "d_model": 96, "d_ff": 1500}, **WORDS)
    sizes, differences = [], []
    for precision in ("float32", "int8"):
        folder = tmp_path / precision
        write(loaded, folder, precision)
        sizes.append(sum(file.stat().st_size for file in folder.glob("model.onnx*")))
        differences.append(EXPORTERS["onnx"].compare(loaded, folder, TEXTS).difference)
        assert (folder / "model.onnx.data").exists() == (max_file == 0)
        names = {"config.json", "model.onnx", "run.py", "tokenizer.json", "tokenizer_config.json"}
        assert {file.name for file in folder.iterdir()} - {"model.onnx.data"} == names
    assert sizes[1] < sizes[0] / 2
    assert differences[0] < 1e-4 < differences[1] < 0.3


@pytest.mark.parametrize(
    ("task", "model", "problem"),
    [
        ("translation", {"architecture": "recurrent"}, 'its architecture is "recurrent", whose graph depends on'),
        ("language_model", {"architecture": "convolutional"}, 'its architecture is "convolutional", whose graph'),
        ("translation", {"architecture": "bytenet"}, 'its architecture is "bytenet", whose graph depends on'),
        ("classification", {"architecture": "text_cnn"}, 'its architecture is "text_cnn", whose graph depends on'),
        ("word_vectors", {"architecture": "word2vec"}, 'its task is "word_vectors"; the export supports translation'),
        ("captioning", {}, 'its task is "captioning"; the export supports translation'),
        (
            "language_model",
            {"attention": "latent"},
            'model.attention is "latent"; the export supports only "multi_head"',
        ),
        ("language_model", {"attention": "linear"}, 'model.attention is "linear"; the export supports only'),
        ("language_model", {"window": 7}, "model.window is 7; the export supports only attention to all tokens"),
        ("classification", {"feed_forward": "experts"}, 'model.feed_forward is "experts"; the export supports only'),
    ],
)
def test_what_has_no_graph_is_refused_before_anything_is_written(task, model, problem, tmp_path):
    recipe = make_recipe({"name": "tiny", "task": task, "model": model})
    with pytest.raises(InputError, match=problem):
        EXPORTERS["onnx"].write(Model(recipe=recipe, tokenizers=NoTokenizers(), weights={}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_package_is_named_with_a_remedy(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    recipe = make_recipe({"name": "tiny", "task": "translation"})
    with pytest.raises(InputError, match=r'pip install "heedful\[onnx\]"'):
        EXPORTERS["onnx"].write(Model(recipe=recipe, tokenizers=NoTokenizers(), weights={}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_graph_that_differs_from_the_model_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("heedful.convert.onnx.tracing.MAX_ROUNDING", 0.0)
    loaded = loaded_model("ranking", BERT, **WORDS)
    with pytest.raises(RunError, match=r"model\.onnx: vectors in ONNX Runtime differ by .* from the model's"):
        write(loaded, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_files_of_a_validation_set_are_not_read_as_texts(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPORTERS._imported, "onnx", replace(EXPORTERS["onnx"], writer=lambda *_: 0))
    (tmp_path / "valid.tsv").write_text("image\tlabel\na.png\tcat\n")
    data = {"labels": ["cat", "dog"], "root": str(tmp_path), "valid": {"source": "valid.tsv"}}
    loaded = loaded_model("image_classification", {**BERT, "positions": "rotary"}, data=data, image=IMAGES["crop"])
    (tmp_path / "out").mkdir()
    write_model(tmp_path / "model", loaded.recipe, loaded.tokenizers, weights(loaded.model))
    exported = export_model(replace(loaded, path=tmp_path / "model"), "onnx", tmp_path / "out")
    assert exported.agreement is None
    assert exported.notes == (
        "not compared with the model, because its validation set does not contain texts; give files with --inputs FILE",
    )
