"""Vision Transformers of Hugging Face and of heedful compute the same, whichever is made of the other."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import heedful
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.cli import app
from heedful.config.load import make_recipe
from heedful.convert import FORMATS, Model
from heedful.errors import InputError
from heedful.media.images import read_image
from heedful.registry import EXPORTERS
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import NoTokenizers
from interrupted import train

transformers = pytest.importorskip("transformers")

read, write = FORMATS["vit"].read, EXPORTERS["vit"].write
LABELS = ["cat", "dog", "crane", "eel", "crane"]  # two of one name, as in ImageNet
SIZES = {"odd": {"image_size": [12, 20], "patch_size": 4}, "published": {"image_size": 224, "patch_size": 16}}


def their_model(folder: Path, name: str, **settings) -> torch.nn.Module:
    """A random model of transformers, saved with the settings of its images."""
    shape = {"hidden_size": 22, "intermediate_size": 37, "num_attention_heads": 2, "num_hidden_layers": 3}
    classes = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
    config = transformers.ViTConfig(**shape | SIZES["odd"] | classes | settings)
    model = getattr(transformers, name)(config).eval()
    for parameter in model.parameters():
        parameter.data = 0.3 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    sides = [config.image_size] * 2 if isinstance(config.image_size, int) else config.image_size
    save_preprocessor(folder, height=sides[0], width=sides[1])
    return model


def save_preprocessor(folder: Path, height: int, width: int, **settings) -> None:
    given = {"size": {"height": height, "width": width}, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}
    steps = {"do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255, "resample": 2}
    contents = {"image_processor_type": "ViTImageProcessor", **steps, **given, **settings}
    (folder / "preprocessor_config.json").write_text(json.dumps(contents))


def loaded(model: Model, folder: Path):
    write_model(folder, model.recipe, model.tokenizers, model.weights)
    return load_model(folder)


def inputs(recipe) -> tuple[torch.Tensor, torch.Tensor]:
    height, width = recipe.image.size
    return torch.randn(2, height, width, recipe.image.channels), torch.ones(2, height, dtype=torch.bool)


def theirs_of(pixels: torch.Tensor) -> torch.Tensor:
    return pixels.permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    "settings",
    [
        SIZES["odd"],
        SIZES["published"],
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
        {"qkv_bias": False, "num_channels": 1},
    ],
)
@torch.inference_mode()
def test_a_converted_classifier_gives_the_same_logits_and_comes_back_the_same(settings, tmp_path):
    original = their_model(tmp_path / "theirs", "ViTForImageClassification", **settings)
    if settings.get("num_channels") == 1:
        save_preprocessor(tmp_path / "theirs", 12, 20, image_mean=[0.3], image_std=[0.2])
    converted = read(tmp_path / "theirs")
    assert not converted.left_out
    ours = loaded(converted, tmp_path / "ours")
    pixels, real = inputs(ours.recipe)
    expected = original(theirs_of(pixels)).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(ours.model(pixels, real), expected, atol=1e-4, rtol=0)
    write(converted, tmp_path / "again")
    again, report = transformers.ViTForImageClassification.from_pretrained(tmp_path / "again", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    torch.testing.assert_close(again.eval()(theirs_of(pixels)).logits, expected, atol=1e-5, rtol=0)
    once, twice = (load_file(tmp_path / place / "model.safetensors") for place in ("theirs", "again"))
    assert all(torch.equal(once[name], twice[name]) for name in once)


def test_a_fine_tuned_classifier_goes_out_as_it_came_and_comes_back_the_same(tmp_path):
    chance = np.random.default_rng(3)
    for label in ("crab", "newt", "owl"):
        (tmp_path / "train" / label).mkdir(parents=True)
        for number in range(3):
            pixels = chance.integers(0, 256, (17, 23, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "train" / label / f"{number}.png")
    their_model(tmp_path / "theirs", "ViTForImageClassification")
    ours = loaded(read(tmp_path / "theirs"), tmp_path / "ours")
    settings = make_recipe(
        {
            "task": "image_classification",
            "data": {"root": str(tmp_path), "train": [{"source": "train"}]},
            "image": {"size": [12, 20], "patch": 4, "resize": "squash"},
            "train": {"start": str(ours.path), "max_updates": 2, "batch_tokens": 100, "device": "cpu", "threads": 1},
            "optimizer": {"name": "adamw", "schedule": "constant", "lr": 0.01, "warmup": 1},
        }
    )
    train(settings, tmp_path / "run")
    tuned = load_model(tmp_path / "run")
    learned = weights(tuned.model)
    assert not torch.equal(
        learned["backbone.stack.blocks.0.self_attention.q.weight"],
        read(tmp_path / "theirs").weights["backbone.stack.blocks.0.self_attention.q.weight"],
    )
    write(Model(recipe=tuned.recipe, tokenizers=tuned.tokenizers, weights=learned), tmp_path / "again")
    again, report = transformers.ViTForImageClassification.from_pretrained(tmp_path / "again", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert list(again.config.id2label.values()) == ["crab", "newt", "owl"]
    rows, mask = inputs(tuned.recipe)
    with torch.inference_mode():
        expected = tuned.model(rows, mask)
        torch.testing.assert_close(again.eval()(theirs_of(rows)).logits, expected, atol=1e-5, rtol=0)
    back = read(tmp_path / "again").weights
    assert back.keys() == learned.keys()
    assert all(torch.equal(back[name], value) for name, value in learned.items())


@pytest.mark.parametrize("pooler", [True, False])
@torch.inference_mode()
def test_a_model_without_classes_gives_the_same_states_and_keeps_its_pooler(pooler, tmp_path):
    original = their_model(tmp_path / "theirs", "ViTModel")
    if not pooler:
        tensors = load_file(tmp_path / "theirs" / "model.safetensors")
        kept = {name: value for name, value in tensors.items() if "pooler" not in name}
        save_file(kept, tmp_path / "theirs" / "model.safetensors")
    converted = read(tmp_path / "theirs")
    assert converted.recipe.model.pooler == ("dense" if pooler else "none")
    assert "has no classification head" in converted.notes[-1]
    ours = loaded(converted, tmp_path / "ours")
    pixels, real = inputs(ours.recipe)
    expected = original(theirs_of(pixels))
    states, mask = ours.model.backbone.encode(pixels, real)
    torch.testing.assert_close(states, expected.last_hidden_state, atol=1e-4, rtol=0)
    assert not ours.model(pixels, real).any()  # zeros, until it is trained
    if pooler:
        torch.testing.assert_close(ours.model.pooler(states, mask), expected.pooler_output, atol=1e-4, rtol=0)
    write(converted, tmp_path / "again")
    again = transformers.AutoModel.from_pretrained(tmp_path / "again").eval()
    torch.testing.assert_close(
        again(theirs_of(pixels)).last_hidden_state, expected.last_hidden_state, atol=1e-5, rtol=0
    )
    if pooler:
        torch.testing.assert_close(again(theirs_of(pixels)).pooler_output, expected.pooler_output, atol=1e-5, rtol=0)


def random_classifier(*overrides: str) -> Model:
    """A random classifier of heedful in a shape that Hugging Face has."""
    values = {
        "name": "mine",
        "task": "image_classification",
        "data": {"labels": ["no", "yes", "perhaps"]},
        "image": {"size": [15, 25], "patch": 5, "resize": "squash", "mean": [0.4]},
        "model": {"d_model": 22, "d_ff": 37, "heads": 2, "encoder_layers": 3, "norm": "pre", "activation": "gelu"},
    }
    values["model"] |= {"positions": "learned", "max_positions": 31}
    recipe = make_recipe(values, overrides)
    built = find_task(recipe.task).build(recipe, NoTokenizers()).eval()
    random = {name: 0.3 * torch.randn_like(value) for name, value in weights(built).items()}
    return Model(recipe=recipe, tokenizers=NoTokenizers(), weights=random)


@pytest.mark.parametrize(
    "overrides", [[], ["model.bias=false", "model.attention_bias=false"], ["image.size=[15,15]", "image.resize=crop"]]
)
@torch.inference_mode()
def test_transformers_computes_the_logits_of_a_model_of_heedful(overrides, tmp_path):
    model = random_classifier(*overrides)
    write(model, tmp_path / "theirs")
    pixels, real = inputs(model.recipe)
    expected = loaded(model, tmp_path / "ours").model(pixels, real)
    written = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "theirs").eval()
    torch.testing.assert_close(written(theirs_of(pixels)).logits, expected, atol=1e-4, rtol=0)
    assert written.config.id2label == {0: "no", 1: "yes", 2: "perhaps"}
    again = read(tmp_path / "theirs").recipe
    assert (again.data.labels, again.image.resize) == (("no", "yes", "perhaps"), model.recipe.image.resize)
    assert again.image.mean == (0.4, 0.4, 0.4)


@pytest.mark.parametrize("resample", [0, 1, 2, 3])
def test_pictures_are_read_as_transformers_reads_them(resample, tmp_path):
    their_model(tmp_path / "theirs", "ViTForImageClassification")
    save_preprocessor(tmp_path / "theirs", 12, 20, resample=resample)
    recipe = read(tmp_path / "theirs").recipe
    assert recipe.image.resize == "squash"
    pixels = np.random.default_rng(1).integers(256, size=(31, 43, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    processor = ViTImageProcessorPil.from_pretrained(tmp_path / "theirs")
    expected = processor(Image.fromarray(pixels), return_tensors="np")["pixel_values"][0].transpose(1, 2, 0)
    decoded = read_image((tmp_path / "picture.png").read_bytes(), recipe.image)
    found = (decoded / 255 - np.array(recipe.image.mean)) / np.array(recipe.image.std)
    assert np.abs(found - expected).max() < 1e-5


def test_a_converted_classifier_names_classes_and_comes_by_the_command(tmp_path):
    their_model(tmp_path / "theirs", "ViTForImageClassification")
    result = CliRunner().invoke(
        app, ["convert", str(tmp_path / "theirs"), "--out", str(tmp_path / "ours")], catch_exceptions=False
    )
    assert "an image classification model with " in result.output
    assert load_model(tmp_path / "ours").recipe.data.labels == ("cat", "dog", "crane", "eel", "crane (4)")
    picture = np.random.default_rng(1).integers(256, size=(31, 43, 3), dtype=np.uint8)
    found = heedful.load(tmp_path / "ours", task="image_classification").predict(picture)
    assert set(found.probabilities) == {"cat", "dog", "crane", "eel", "crane (4)"}
    arguments = ["convert", str(tmp_path / "ours"), "--to", "vit", "--out", str(tmp_path / "again")]
    assert "B for Hugging Face, " in CliRunner().invoke(app, arguments, catch_exceptions=False).output


def test_without_a_preprocessor_the_usual_settings_are_taken_and_told(tmp_path):
    their_model(tmp_path / "theirs", "ViTForImageClassification")
    (tmp_path / "theirs" / "preprocessor_config.json").unlink()
    converted = read(tmp_path / "theirs")
    assert (converted.recipe.image.mean, converted.recipe.image.resample) == ((0.5,), "bilinear")
    assert "preprocessor_config.json is missing" in converted.notes[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"do_normalize": False, "resample": 7},
            "do_normalize is false, .*; resample is 7, but heedful has only nearest",
        ),
        ({"size": {"height": 20, "width": 20}}, r"resized to 20 x 20 pixels, but the model reads 12 x 20"),
        ({"rescale_factor": 1 / 127.5}, "rescale_factor is 0.0078"),
    ],
)
def test_pictures_that_would_be_read_otherwise_are_refused(settings, message, tmp_path):
    their_model(tmp_path / "theirs", "ViTForImageClassification")
    save_preprocessor(tmp_path / "theirs", **{"height": 12, "width": 20} | settings)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_act": "mish"}, "hidden_act is 'mish', but heedful has only relu, gelu"),
        ({"pooler_act": "relu"}, 'pooler_act is "relu", but heedful supports only "tanh"'),
        ({"patch_size": [4, 2]}, "patches are 4 x 2 pixels, but heedful's are square"),
        ({"image_size": "large"}, "image_size in config.json is 'large', but should be one number"),
        ({"id2label": {"1": "cat"}}, "id2label in config.json does not number the classes from 0"),
        ({"model_type": "deit", "architectures": ["DeiTModel"]}, 'read as a "vit" with an architecture such as ViTM'),
        ({"num_hidden_layers": 2}, r"unexpected vit\.encoder\.layer\.2\."),
    ],
)
def test_what_heedful_lacks_is_refused(settings, message, tmp_path):
    their_model(tmp_path / "theirs", "ViTForImageClassification")
    config = tmp_path / "theirs" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | settings))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "theirs")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.positions=rotary", "model.d_k=12"], r'model\.positions = "learned", not "rotary"'),
        (["model.norm=post"], r'model\.norm = "pre", not "post"'),
        (["image.class_token=false", "model.pooling=mean"], "image.class_token = true, not false"),
        (
            ["image.patch=1", "image.stem=convolutional", "model.max_positions=997"],
            r'image\.stem = "linear", not "conv',
        ),
        (["image.positions=learned", "image.resize=pad"], r'image.positions = "none", .*\n  image\.resize = "squash"'),
        (["model.pooler=dense"], r'model\.pooler = "none", not "dense"'),
    ],
)
def test_a_model_that_does_not_fit_is_refused_with_all_keys(overrides, message, tmp_path):
    with pytest.raises(InputError, match=message):
        write(random_classifier(*overrides), tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


def test_other_tasks_are_refused(tmp_path):
    their_model(tmp_path / "theirs", "ViTModel")
    with pytest.raises(InputError, match='can be converted for "image_classification", not for "captioning"'):
        read(tmp_path / "theirs", "captioning")


def test_heads_of_masked_pictures_are_left_out_by_name(tmp_path):
    their_model(tmp_path / "theirs", "ViTForMaskedImageModeling", image_size=[12, 12], encoder_stride=4)
    save_preprocessor(tmp_path / "theirs", 12, 12)
    left = read(tmp_path / "theirs").left_out
    assert set(left) == {"decoder.0.weight", "decoder.0.bias", "vit.embeddings.mask_token"}
