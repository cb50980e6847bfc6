"""Masked patches: the loss, files without labels, runs that go on to the bit, and images that are filled in."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import heedful
from heedful.checkpoint import load_model
from heedful.cli import app
from heedful.config.load import make_recipe
from heedful.errors import InputError
from heedful.tasks import find_task
from heedful.training.logger import RESULT
from interrupted import train
from toy_patches import drawn, recipe, write_pictures


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def prepared(folder: Path, place: Path, **tables):
    return find_task("masked_patches").prepare(recipe("masked_patches", folder, **tables), place, lambda _: None)


def test_the_loss_is_the_squared_error_of_hidden_patches_summed_in_float64(pictures, tmp_path):
    task = prepared(pictures, tmp_path / "data", masking={"rate": 0.4})
    model = task.build(task.recipe, task.tokenizers).eval()
    batch = task.data.batch(task.data.epoch(0)[0], 0, torch.device("cpu"))
    predicted = model(batch.inputs, batch.padding_mask, batch.masked).detach().double()
    total, count = 0.0, 0
    for b, r, q in batch.masked.nonzero().tolist():
        patch = batch.inputs[b, 5 * r : 5 * r + 5, 5 * q : 5 * q + 5].double().flatten()
        mean = sum(patch) / 25
        variance = sum((pixel - mean) ** 2 for pixel in patch) / 25
        errors = [
            (guess - (pixel - mean) / (variance + 1e-6) ** 0.5) ** 2
            for guess, pixel in zip(predicted[b, r, q], patch, strict=True)
        ]
        total += float(sum(errors) / 25)
        count += 1
    (loss,) = task.loss(model, batch)
    assert (loss.count, batch.counts) == (count, (count,))
    assert loss.count == len(batch.inputs) * 6  # 0.4 of 15 patches
    assert loss.sum.item() == pytest.approx(total, rel=1e-5)


def test_a_batch_is_a_pure_function_and_each_epoch_hides_other_patches(pictures, tmp_path):
    task = prepared(pictures, tmp_path / "data", image={"size": [15, 25], "patch": 5, "channels": 1, "shift": 2})
    ids = np.array([7, 3, 11])
    first, again, later = (task.data.batch(ids, epoch, torch.device("cpu")) for epoch in (2, 2, 3))
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.masked, again.masked)
    assert not torch.equal(first.masked, later.masked)
    alone = task.data.batch(ids[1:2], 2, torch.device("cpu"))
    assert torch.equal(alone.masked[0], first.masked[1])  # whatever else is in the batch
    assert first.masked.flatten(1).sum(1).tolist() == [11] * 3  # 0.75 of 15


def test_files_need_no_folders_of_classes_and_tables_no_targets(pictures, tmp_path):
    for number in range(7):
        Image.fromarray(drawn("rows", number)).save(tmp_path / f"{number}.png")
    (tmp_path / "files.csv").write_text("file\n" + "".join(f"{number}.png\n" for number in range(5)))
    table = {"source": "files.csv", "source_field": "file"}
    data = {"train": [{"source": "."}], "valid": table}
    task = prepared(tmp_path, tmp_path / "prepared" / "one", data=data)
    assert (len(task.data.examples.train[0]), len(task.data.examples.valid)) == (7, 5)
    both = prepared(pictures, tmp_path / "two", data={"train": [{"source": "train", "part": [0.0, 0.5]}]})
    assert len(both.data.examples.train[0]) == 3 * 6  # half of each folder, as with classes


def test_a_folder_without_pictures_is_refused(tmp_path):
    (tmp_path / "train").mkdir()
    with pytest.raises(InputError, match=r"train: contains no images \(\.png, "):
        prepared(tmp_path, tmp_path / "data")


def test_keys_that_the_task_has_no_use_for_are_refused(pictures, tmp_path):
    for tables, message in (
        ({"masking": {"mask": 0.5}}, r"uses only masking\.rate"),
        ({"image": {"mixup": 0.2}}, r"leave image\.mixup out"),
    ):
        with pytest.raises(InputError, match=message):
            train(recipe("masked_patches", pictures, **tables), tmp_path / "run")
    with pytest.raises(InputError, match="an image has only one patch, but at least one must be masked"):
        recipe("masked_patches", pictures, image={"size": [5, 5], "patch": 5})
    with pytest.raises(InputError, match=r'masked patches need a Transformer, .* "recurrent"'):
        make_recipe({"task": "masked_patches", "model": {"architecture": "recurrent"}})


@pytest.fixture(scope="module")
def run(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned the stripes."""
    place = tmp_path_factory.mktemp("run") / "run"
    model = {"dropout": 0.0, "d_model": 32, "d_ff": 64, "heads": 4, "encoder_layers": 2, "positions": "learned"}
    updates = {"max_updates": 150, "batch_tokens": 640, "validate_every": 150, "save_every": 150}
    image = {"size": [15, 25], "patch": 5, "channels": 1, "shift": 2}
    masking = {"rate": 0.4}
    train(recipe("masked_patches", pictures, model=model, train=updates, image=image, masking=masking), place)
    return place


@pytest.mark.slow
def test_stripes_are_continued_behind_hidden_patches(run, pictures):
    assert json.loads((run / RESULT).read_text())["loss"] < 0.5  # the mean of each patch: 1
    filler = heedful.load(run, "cpu", task="masked_patches")
    files = sorted((pictures / "valid").rglob("*.png"))
    errors, baseline = [], []
    for found, file in zip(filler.reconstruct(files, seed=3), files, strict=True):
        assert np.array_equal(found.original[:, :, 0], np.asarray(Image.open(file)))
        covered = np.kron(found.hidden, np.ones((5, 5), bool))
        assert np.array_equal(found.filled[~covered], found.original[~covered])
        assert (found.seen[covered] == 128).all()
        difference = found.filled[covered].astype(float) - found.original[covered]
        errors.append((difference**2).mean())
        baseline.append(found.original[covered].astype(float).var())
    assert np.mean(errors) < 0.5 * np.mean(baseline)
    picture = filler.predict(files[0])
    assert picture.side_by_side().shape == (15, 3 * 25 + 4, 1)
    assert [np.array_equal(one.filled, picture.filled) for one in filler.predict(files[:2])] == [True, False]


def test_a_trained_model_is_tested(run, pictures):
    loaded = load_model(run)
    assert set(loaded.test(recipe("masked_patches", pictures, data={"test": {"source": "valid"}}).data, print)) == {
        "loss"
    }
    tested = recipe("masked_patches", pictures, data={"test": {"source": "valid"}})
    assert loaded.results(tested.data, print).outcomes is None


def test_the_command_writes_a_picture_with_a_row_for_each(run, pictures, tmp_path):
    files = [str(pictures / "valid" / "rows"), str(pictures / "valid" / "columns" / "01.png")]
    out = tmp_path / "filled.png"
    said = CliRunner().invoke(app, ["fill", *files, "--model", str(run), "--output", str(out)], catch_exceptions=False)
    assert said.output == f"{out}: 6 images, each unchanged, with masked patches, and filled in\n"
    shown = np.asarray(Image.open(out))
    assert shown.shape == (6 * (15 + 2), 3 * 25 + 4)
    expected = heedful.load(run, "cpu", task="masked_patches").predict(files[1]).side_by_side()[:, :, 0]
    assert np.array_equal(shown[5 * 17 : 5 * 17 + 15], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "out.txt"], "give a file for the result, as in --output FILE.png"),
        ([], "give a file for the result"),
        (["--output", "out.png", "--count", "3", "--json"], "--count and --json are for gaps in texts"),
    ],
)
def test_what_the_command_has_no_use_for_is_refused(arguments, message, run, pictures):
    picture = str(pictures / "valid" / "rows" / "01.png")
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["fill", picture, "--model", str(run), *arguments], catch_exceptions=False)


def test_the_command_overwrites_none_of_the_pictures_that_it_reads(run, pictures):
    folder = pictures / "valid" / "rows"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for named in (folder, folder / "01.png"):
        arguments = ["fill", str(named), "--model", str(run), "--output", str(folder / "01.png")]
        with pytest.raises(InputError, match=r"01.png is also the input and would be overwritten"):
            CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
