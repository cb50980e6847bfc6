"""Warm start of models of images and audio: what goes over, what is new, and images of another size."""

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

import toy_media
from heedful.architectures import weights
from heedful.checkpoint import load_model, write_model
from heedful.config.load import make_recipe
from heedful.config.schema import Recipe
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.text.tokenizer_pair import NoTokenizers, TokenizerPair
from heedful.text.training import train_tokenizer
from heedful.training import loop
from heedful.training.preflight import preflight
from heedful.training.warm_start import copy_start_weights, with_warm_start
from interrupted import train, train_aloud
from toy_patches import SIDES, recipe, write_pictures

DEEPER = {"encoder_layers": 3, "positions": "learned", "max_positions": 16}
TOLD = "learned positions of 3 x 5 patches are interpolated to 4 x 6"
GRID = {"size": [15, 25], "patch": 5, "channels": 1, "positions": "learned"}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def trained(folder: Path, settings: Recipe) -> Path:
    """A model folder; its weights are random, none of them zero."""
    network = find_task(settings.task).build(settings, NoTokenizers())
    values = {name: torch.randn_like(value) for name, value in weights(network).items()}
    write_model(folder, settings, NoTokenizers(), values)
    return folder


def begun(settings: Recipe) -> tuple[Any, list[str], list[str]]:
    """A model with the weights that its recipe starts from, the names of those that are fresh, and what was told."""
    settings, notes = with_warm_start(settings), []
    model = find_task(settings.task).build(settings, NoTokenizers()).eval()
    return model, copy_start_weights(settings, model, NoTokenizers(), notes.append), notes


def check_only_the_head_is_fresh(settings: Recipe, start: Path) -> None:
    """Check that a model begins with the whole backbone of another, and that nothing had to be told of it."""
    model, fresh, notes = begun(settings)
    theirs = weights(load_model(start).model)
    for name, value in weights(model.backbone).items():
        assert torch.equal(value, theirs[f"backbone.{name}"])
    assert fresh == ["output.weight", "output.bias"]
    assert notes == []


def classifier(folder: Path, start: Path, labels: tuple[str, ...] = SIDES, **tables: Any) -> Recipe:
    given = {"data": {"labels": list(labels)}, "train": {"start": str(start)}}
    return recipe("image_classification", folder, **given, **tables)


@pytest.fixture(scope="module")
def masked(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("masked") / "model"
    return trained(place, recipe("masked_patches", pictures, model=DEEPER, image=GRID | {"mean": [0.3], "std": [0.2]}))


def test_a_classifier_begins_with_input_layer_backbone_and_positions_of_masked_patches(pictures, masked):
    settings = classifier(pictures, masked, image={"positions": "sinusoidal", "channels": 3, "flip": True})
    shaped = with_warm_start(settings)
    assert (shaped.image.patch, shaped.image.channels, shaped.image.positions) == (5, 1, "learned")
    assert (shaped.image.mean, shaped.image.std) == ((0.3,), (0.2,))  # the scale that was learned
    assert (shaped.image.flip, shaped.model.encoder_layers) == (True, 3)
    check_only_the_head_is_fresh(settings, masked)


def test_masked_patches_begin_with_a_classifier(pictures, masked, tmp_path):
    there = trained(tmp_path / "there", recipe("image_classification", pictures, data={"labels": list(SIDES)}))
    model, fresh, _ = begun(recipe("masked_patches", pictures, train={"start": str(there)}))
    assert fresh == ["backbone.embedding.hidden_patch", "output.weight", "output.bias"]
    assert torch.equal(model.backbone.embedding.class_token, load_model(there).model.backbone.embedding.class_token)


@pytest.mark.parametrize(
    ("labels", "same"), [(SIDES, True), (("cat", "dog", "eel"), False), (("cat", "dog"), False), (SIDES[::-1], False)]
)
def test_the_head_goes_over_to_the_same_classes_only(pictures, tmp_path, labels, same):
    old = recipe("image_classification", pictures, data={"labels": list(SIDES)})
    there = trained(tmp_path / "there", old)
    model, fresh, _ = begun(classifier(pictures, there, labels))
    assert fresh == ([] if same else ["output.weight", "output.bias"])
    assert torch.equal(model.output.weight, load_model(there).model.output.weight) == same


@pytest.mark.parametrize("size", [(20, 40), (15, 25), (25, 15)])
def test_positions_that_rise_evenly_do_so_on_a_grid_of_another_size(size, pictures, tmp_path):
    image, model = {"size": [35, 55], "patch": 5, "channels": 1}, {"positions": "learned", "max_positions": 97}
    settings = recipe("masked_patches", pictures, image=image, model=model)
    network = find_task("masked_patches").build(settings, NoTokenizers())
    table = network.get_parameter("backbone.stack.positions.table.weight")
    row, column = torch.meshgrid(torch.arange(7) + 0.5, torch.arange(11) + 0.5, indexing="ij")
    with torch.no_grad():
        table[1:78] = (row / 7 + 2 * column / 11).flatten()[:, None] * torch.arange(1, 17)
    write_model(tmp_path / "there", settings, NoTokenizers(), weights(network))
    changed = classifier(pictures, tmp_path / "there", image={"size": list(size), "patch": 5, "channels": 1})
    model, _, notes = begun(changed)
    rows, columns = size[0] // 5, size[1] // 5
    assert notes == [f"learned positions of 7 x 11 patches are interpolated to {rows} x {columns}"]
    found = model.get_parameter("backbone.stack.positions.table.weight")
    assert torch.equal(found[0], table[0])  # the class token
    places = found[1 : 1 + rows * columns].unflatten(0, (rows, columns))
    row, column = torch.meshgrid(
        (torch.arange(rows) + 0.5) / rows, (torch.arange(columns) + 0.5) / columns, indexing="ij"
    )
    expected = (row + 2 * column)[..., None] * torch.arange(1, 17)
    inside = (row * 7 > 2) & (row * 7 < 5) & (column * 11 > 2) & (column * 11 < 9)  # four neighbours in each direction
    assert inside.any()
    torch.testing.assert_close(places[inside], expected[inside], atol=0, rtol=0.02)  # bicubic is not exact on a slope


def test_more_patches_than_positions_were_learned_for_get_a_larger_table(pictures, masked):
    model, fresh, notes = begun(classifier(pictures, masked, image={"size": [35, 25]}))
    assert model.backbone.stack.positions.table.weight.shape == (36, 16)
    assert model.backbone.embedding.positions.rows.shape == (7, 16)
    old = load_model(masked).model.backbone
    assert torch.equal(model.backbone.embedding.positions.columns, old.embedding.positions.columns)
    evenly = torch.nn.functional.interpolate(old.embedding.positions.rows.T[None], 7, mode="linear")[0].T
    torch.testing.assert_close(model.backbone.embedding.positions.rows, evenly)
    assert fresh == ["output.weight", "output.bias"]
    assert notes == ["learned positions of 3 x 5 patches are interpolated to 7 x 5"]


@torch.no_grad()
def test_a_picture_of_the_same_size_is_computed_as_before(pictures, masked):
    model, _, _ = begun(classifier(pictures, masked))
    pixels, real = torch.randn(2, 15, 25, 1), torch.ones(2, 15, dtype=torch.bool)
    assert torch.equal(model.backbone(pixels, real), load_model(masked).model.backbone(pixels, real))


def test_a_run_begins_with_masked_patches_of_another_size_and_tells(pictures, masked, tmp_path):
    image = {"size": [20, 30], "patch": 5, "channels": 1}
    settings = recipe("image_classification", pictures, image=image, train={"start": str(masked), "batch_tokens": 150})
    assert preflight(settings).data.labels == ("columns", "rows", "slopes")
    outcome, screen = train_aloud(preflight(settings), tmp_path / "run")
    assert outcome == loop.Outcome(11, 0)
    assert TOLD in screen
    assert re.search(f"starts with the weights of {masked}: .*; fresh: output.weight, output.bias", screen)
    assert load_model(tmp_path / "run").recipe.image.size == (20, 30)


def test_a_captioner_begins_its_encoder_with_masked_patches(pictures, masked, tmp_path):
    names = [f"{label}/{number:02}.png" for label in SIDES for number in range(5)]
    rows = "".join(f"{name}\tstripes in {name.split('/')[0]}\n" for name in names)
    (pictures / "valid" / "texts.tsv").write_text("source\ttarget\n" + rows)
    corpus = {"source": "valid/texts.tsv"}
    settings = recipe(
        "captioning",
        pictures,
        data={"train": [corpus], "valid": corpus, "filters": {"max_tokens": 31}},
        tokenizer={"kind": "character", "vocab_size": 61, "byte_fallback": False},
        model={"decoder_layers": 1},
        decode={"max_extra": 3},
        train={"start": str(masked), "max_updates": 2, "validate_decoding": False},
    )
    assert train(preflight(settings), tmp_path / "run") == loop.Outcome(2, 0)
    assert load_model(tmp_path / "run").recipe.model.encoder_layers == 3


def test_a_model_that_reads_something_else_is_refused(pictures, masked, tmp_path):
    sounds = {"task": "audio_classification", "data": {"labels": ["high", "low"]}, "train": {"start": str(masked)}}
    with pytest.raises(InputError, match='this model reads images, but one for the task "audio_classification" reads'):
        with_warm_start(make_recipe(sounds))
    texts = {"task": "classification", "model": {"family": "encoder"}, "train": {"start": str(masked)}}
    with pytest.raises(InputError, match='this model reads images, but one for the task "classification" reads text'):
        with_warm_start(make_recipe(texts))


def listener(folder: Path, labels: list[str], **audio: Any) -> Recipe:
    settings = {"rate": 1000, "window": 50, "hop": 20, "mels": 7, "max_seconds": 1.0}
    model = {"d_model": 16, "d_ff": 23, "heads": 2, "encoder_layers": 1, "positions": "learned", "max_positions": 25}
    data = {"root": str(folder), "labels": labels, "train": [{"source": "train"}]}
    train = {"max_updates": 2, "threads": 1, "device": "cpu", "precision": "float32", "batch_tokens": 101}
    values = {"data": data, "audio": settings | audio, "model": model, "train": train}
    return make_recipe({"task": "audio_classification", **values})


def test_a_classifier_of_sounds_begins_with_another_and_refuses_longer_ones(tmp_path):
    old = trained(tmp_path / "old", listener(tmp_path, ["high", "low"]))
    for label in ("loud", "quiet"):
        (tmp_path / "train" / label).mkdir(parents=True)
        soundfile.write(tmp_path / "train" / label / "1.wav", np.random.default_rng(1).normal(0, 0.1, 700), 1000)
    settings = make_recipe(listener(tmp_path, ["loud", "quiet"], hop=25, mels=5), [f"train.start={old}"])
    _, fresh, _ = begun(settings)
    assert fresh == ["output.weight", "output.bias"]
    assert train(preflight(settings), tmp_path / "run") == loop.Outcome(2, 0)
    loaded = load_model(tmp_path / "run").recipe
    assert (loaded.audio.hop, loaded.audio.mels) == (20, 7)
    longer = make_recipe(settings, ["audio.max_seconds=1.5", "model.max_positions=38"])
    with pytest.raises(InputError, match=r"has learned 25 positions, .* audio of 38: set audio\.max_seconds = 1,"):
        with_warm_start(longer)


def writer(folder: Path, recipe: Recipe) -> Any:
    """An encoder-decoder that writes texts, in a folder."""
    tokenizers = TokenizerPair(*[train_tokenizer(["one", "two"], recipe.tokenizer)] * 2)
    model = find_task(recipe.task).build(recipe, tokenizers).eval()
    write_model(folder, recipe, tokenizers, weights(model))
    return model


TEXTS = {
    "tokenizer": {"kind": "character"},
    "decode": {"max_extra": 5},
    "model": {"family": "encoder_decoder", "decoder_layers": 1, "max_target_positions": 17, "tie": "all"},
}


def test_a_classifier_of_sounds_begins_with_the_encoder_of_a_speech_recogniser(tmp_path):
    old = listener(tmp_path, ["high", "low"])
    audio = asdict(old.audio) | {"pad_seconds": 2.0, "max_seconds": 2.0}
    model = asdict(old.model) | TEXTS["model"] | {"max_positions": 50}
    values = {"data": {"filters": {"max_tokens": 5}}, "audio": audio, "model": model}
    there = writer(tmp_path / "there", make_recipe(TEXTS | values | {"task": "speech_recognition"}))
    here, fresh, _ = begun(make_recipe(old, [f"train.start={tmp_path / 'there'}", "audio.speed=0.2"]))
    assert fresh == ["output.weight", "output.bias"]
    frames, mask = torch.randn(2, 20, 7), torch.arange(20) < torch.tensor([[20], [13]])
    states, padding_mask = here.backbone.encode(frames, mask)
    expected = there.encode(frames, mask)
    torch.testing.assert_close(states, expected.states)
    assert torch.equal(padding_mask, expected.padding_mask)


def test_a_classifier_of_larger_pictures_begins_with_the_encoder_of_a_captioner_and_tells(pictures, tmp_path):
    old = recipe("image_classification", pictures, data={"labels": list(SIDES)}, model=DEEPER, image=GRID)
    model = asdict(old.model) | TEXTS["model"]
    values = {"data": {"filters": {"max_tokens": 5}}, "image": asdict(old.image), "model": model}
    there = writer(tmp_path / "there", make_recipe(TEXTS | values | {"task": "captioning"}))
    same, fresh, notes = begun(make_recipe(old, [f"train.start={tmp_path / 'there'}"]))
    pixels, mask = torch.randn(2, 15, 25, 1), torch.ones(2, 15, dtype=torch.bool)
    torch.testing.assert_close(same.backbone.encode(pixels, mask)[0], there.encode(pixels, mask).states)
    assert (fresh, notes) == (["output.weight", "output.bias"], [])
    larger = ["image.size=[20, 30]", "model.max_positions=25"]
    _, fresh, notes = begun(make_recipe(old, [f"train.start={tmp_path / 'there'}", *larger]))
    assert (fresh, notes) == (["output.weight", "output.bias"], [TOLD])


def test_a_classifier_of_videos_begins_with_another_that_has_its_frames_and_their_size(tmp_path):
    given = {"video": {"frames": 10, "tubelet": 5, "positions": "learned"}, "model": {"positions": "learned"}}
    old = toy_media.recipe("video_classification", tmp_path, data={"labels": ["a", "b"]}, **given)
    there = trained(tmp_path / "there", old)
    settings = toy_media.recipe(
        "video_classification",
        tmp_path,
        data={"labels": ["c", "d"]},
        image={"size": [28, 28], "flip": True},
        video={"max_frames": 31},
        train={"start": str(there)},
    )
    shaped = with_warm_start(settings)
    assert (shaped.image.size, shaped.image.flip, shaped.model.positions) == ((14, 21), True, "learned")
    assert shaped.video == replace(old.video, max_frames=31)
    check_only_the_head_is_fresh(settings, there)


def test_a_classifier_of_videos_does_not_begin_with_one_of_pictures(pictures, masked, tmp_path):
    settings = toy_media.recipe(
        "video_classification", tmp_path, data={"labels": ["a", "b"]}, train={"start": str(masked)}
    )
    with pytest.raises(InputError, match='reads images, but one for the task "video_classification" reads videos'):
        with_warm_start(settings)


@pytest.mark.parametrize(
    ("task", "learned", "given", "told"),
    [
        ("image_classification", {"image": {"resize": "squash"}}, {}, 'image.resize = "squash"'),
        (
            "image_classification",
            {"image": {"resize": "squash", "resample": "bilinear"}},
            {"image": {"resize": "pad"}},
            'image.resize = "squash", image.resample = "bilinear"',
        ),
        ("image_classification", {"image": {"resize": "squash"}}, {"image": {"resize": "squash"}}, None),
        ("audio_classification", {"audio": {"pad_seconds": 1.0}}, {}, "audio.pad_seconds = 1.0"),
        ("audio_classification", {"audio": {"pad_seconds": 1.0}}, {"audio": {"pad_seconds": 1.0}}, None),
        ("video_classification", {}, {}, None),
    ],
)
def test_settings_that_read_files_otherwise_than_the_start_model_learned_are_told(task, learned, given, told, tmp_path):
    toy_media.write_files(task, tmp_path)
    labels = {"data": {"labels": list(toy_media.LABELS[task])}}
    start = trained(tmp_path / "start", toy_media.recipe(task, tmp_path, **labels, **learned))
    _, _, notes = begun(toy_media.recipe(task, tmp_path, **labels, **given, train={"start": str(start)}))
    if told is None:
        assert notes == []
    else:
        assert [note.partition(", but this recipe")[0] for note in notes] == [
            f"the model that training starts from was trained with {told}"
        ]
