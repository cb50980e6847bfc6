"""Matrices are stored as integers, in int8 as CTranslate2 computes with them, and read as what they stand for."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import heedful
from engine_models import LINES, write_random_model
from heedful.architectures import weights
from heedful.checkpoint import load_model
from heedful.checkpoint.model_folder import WEIGHTS
from heedful.checkpoint.quantisation import EXACT, SCALE, dequantised, quantised
from heedful.checkpoint.safetensors_format import read_shapes
from heedful.checkpoint.save import model_files
from heedful.convert import engine
from heedful.convert.ctranslate2 import read_model_bin
from heedful.errors import InputError
from heedful.storage.atomic import write_folder
from heedful.storage.complete_folder import ENGINES
from heedful.storage.disk import DISK

MATRIX = torch.tensor([[0.5, -1.27, 0.003], [0.0, 0.0, 0.0], [1e-20, 3e-20, -2e-20]])


@pytest.fixture(params=["sinusoidal", "learned", "relative"])
def folder(request, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "MAX_SHARE", 1.0)  # of <pad>, which the untrained model gives a large one
    return write_random_model(tmp_path / "model", "translation", {"encoder_layers": 1, "positions": request.param})


def test_a_weight_is_rounded_by_at_most_half_a_step_of_its_row():
    values = {"a.weight": torch.randn(17, 29) * torch.logspace(-3, 3, 17)[:, None], "a.bias": torch.randn(17)}
    rounded = dequantised(quantised(values), "here")
    assert rounded.keys() == values.keys()
    step = values["a.weight"].abs().amax(1, keepdim=True) / 127
    assert ((rounded["a.weight"] - values["a.weight"]).abs() <= 0.5001 * step).all()
    assert rounded["a.bias"].equal(values["a.bias"])


def test_rows_of_zeros_and_of_tiny_weights_stay_what_they_are():
    rounded = dequantised(quantised({"w": MATRIX}), "here")["w"]
    assert rounded[1].eq(0).all()
    torch.testing.assert_close(rounded[0], MATRIX[0], rtol=0, atol=0.005)
    torch.testing.assert_close(rounded[2], MATRIX[2], rtol=0.02, atol=0)
    assert dequantised(quantised({"w": torch.full((1, 3), 1e-38)}), "here")["w"].max() < 1e-37


def test_rounded_weights_are_rounded_to_the_same_integers():
    once = quantised({"w": torch.randn(211, 31)})
    assert quantised(dequantised(once, "here"))["w"].equal(once["w"])


def test_in_int4_a_weight_is_rounded_by_at_most_half_a_step_of_its_group():
    values = {"a.weight": torch.randn(17, 96) * torch.logspace(-30, 30, 17)[:, None], "a.bias": torch.randn(17)}
    stored = quantised(values, "int4")
    rounded = dequantised(stored, "here")
    assert rounded.keys() == values.keys()
    assert stored["a.weight"].nbytes + stored["a.weight.scale"].nbytes == 17 * (96 // 2 + 3 * 2)
    groups = values["a.weight"].unflatten(1, (3, 32))
    step = groups.abs().amax(2, keepdim=True) / 8
    error = (rounded["a.weight"].unflatten(1, (3, 32)) - groups).abs()
    # A weight that is nearly as large as the largest one, with the opposite sign, is rounded by a whole step.
    assert (error <= 1.05 * step).all()
    assert (error <= 0.53 * step).float().mean() > 0.9
    assert rounded["a.bias"].equal(values["a.bias"])


def test_in_int4_sixteen_integers_of_either_sign_are_exact_and_zeros_stay_zeros():
    matrix = torch.zeros(4, 64)
    matrix[1, :16] = torch.arange(-8, 8)
    matrix[2, 32:48] = 0.5 * torch.arange(8, -8, -1)
    matrix[3, 33] = 1e-42  # so small that its step is zero
    rounded = dequantised(quantised({"w": matrix}, "int4"), "here")["w"]
    assert rounded[:3].equal(matrix[:3])
    assert rounded[3].abs().max() <= 1e-42


def test_in_int4_matrices_that_have_no_groups_are_stored_in_int8():
    stored = quantised({"w": torch.randn(4, 33)}, "int4")
    assert stored["w"].dtype == torch.int8


@pytest.mark.parametrize(
    "scale",
    [
        torch.ones(2, 2),
        torch.ones(2, 1, dtype=torch.bfloat16),
        torch.full((2, 2), torch.nan, dtype=torch.bfloat16),
    ],
)
def test_in_int4_steps_that_do_not_fit_are_refused(scale):
    stored = quantised({"w": torch.randn(2, 64)}, "int4") | {"w" + SCALE: scale}
    with pytest.raises(InputError, match=r"here: w\.scale is not a valid scale of w"):
        dequantised(stored, "here")


@pytest.mark.parametrize(
    "scale", [torch.ones(2), torch.ones(3).half(), torch.tensor([1.0, 0.0, 1.0]), torch.tensor([1.0, torch.nan, 1.0])]
)
def test_scales_that_do_not_fit_are_refused(scale):
    stored = quantised({"w": MATRIX}) | {"w" + SCALE: scale}
    with pytest.raises(InputError, match=r"here: w\.scale is not a valid scale of w"):
        dequantised(stored, "here")


@pytest.mark.parametrize("shape", [(), (3,), (3, 2, 2)])
def test_integers_that_are_not_a_matrix_are_refused(shape):
    with pytest.raises(InputError, match=r"w\.scale is not a valid scale of w"):
        dequantised({"w": torch.ones(shape, dtype=torch.int8), "w.scale": torch.ones(3)}, "here")


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_weights_that_are_not_numbers_are_refused(value):
    with pytest.raises(InputError, match="w: has infinite or NaN values"):
        quantised({"w": torch.tensor([[1.0, value]])})


def test_a_weight_whose_name_ends_like_scales_is_read_as_it_is():
    values = {"norm": torch.ones(3), "norm.scale": torch.ones(3)}
    assert dequantised(values, "here").keys() == quantised(values).keys() == values.keys()


def test_an_exported_model_in_int4_takes_a_seventh_of_the_bytes_and_is_listed_with_its_shapes(tmp_path):
    folder = write_random_model(tmp_path / "model", "translation", {"d_model": 64, "d_ff": 96})
    heedful.export(folder, tmp_path / "int4", precision="int4")
    whole, small = (load_model(each) for each in (folder, tmp_path / "int4"))
    expected = dequantised(quantised(weights(whole.model), "int4"), "here")
    assert all(value.equal(expected[name]) for name, value in weights(small.model).items())
    shapes, whole_shapes = (read_shapes(each / WEIGHTS) for each in (tmp_path / "int4", folder))
    assert shapes == whole_shapes
    large, seventh = (matrix_bytes(each / WEIGHTS) for each in (folder, tmp_path / "int4"))
    assert seventh < large / 7


def test_an_exported_model_takes_a_quarter_of_the_bytes_and_writes_nearly_the_same(folder, tmp_path):
    heedful.export(folder, tmp_path / "int8", precision="int8")
    whole, small = (load_model(each) for each in (folder, tmp_path / "int8"))
    expected = dequantised(quantised(weights(whole.model)), "here")
    assert all(value.equal(expected[name]) for name, value in weights(small.model).items())
    large, quarter = (matrix_bytes(each / WEIGHTS) for each in (folder, tmp_path / "int8"))
    assert quarter == large / 4
    pairs = list(zip(LINES, LINES, strict=True))
    before, after = ([each.total for each in loaded.use().score(pairs)] for loaded in (whole, small))
    assert before != after
    assert after == pytest.approx(before, rel=0.2)


def matrix_bytes(path):
    return sum(value.nbytes for name, value in load_file(path).items() if value.ndim == 2 and not EXACT.fullmatch(name))


def test_ctranslate2_computes_in_int8_with_the_stored_integers(folder, tmp_path):
    heedful.export(folder, tmp_path / "int8", precision="int8")
    for source in (folder, tmp_path / "int8"):
        heedful.export(source, tmp_path / f"{source.name}-ct2", to="ctranslate2", precision="int8", inputs=LINES[:2])
    first, second = (read_model_bin(tmp_path / f"{name}-ct2" / "model.bin").variables for name in ("model", "int8"))
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(second[name], value, rtol=1e-6)


def test_one_conversion_answers_in_both_precisions_and_in_float32_as_torch_does(folder, tmp_path):
    heedful.export(folder, tmp_path / "int8", precision="int8")
    ours = heedful.load(tmp_path / "int8", engine="torch")
    exact, rounded = (
        heedful.load(tmp_path / "int8", precision=precision, engine="ctranslate2") for precision in ("float32", "int8")
    )
    assert len(list((tmp_path / "int8" / ENGINES).iterdir())) == 1
    pairs = list(zip(LINES, LINES, strict=True))
    expected, computed, near = ([each.total for each in loaded.score(pairs)] for loaded in (ours, exact, rounded))
    assert computed == pytest.approx(expected, rel=1e-4)
    assert near != pytest.approx(expected, rel=1e-4)
    assert np.mean(near) == pytest.approx(np.mean(expected), rel=0.2)  # kernels without VNNI saturate


def test_a_matrix_without_scales_is_refused(folder, tmp_path):
    loaded = load_model(folder)
    stored = quantised(weights(loaded.model))
    del stored[next(name for name in stored if name.endswith(SCALE))]
    write_folder(tmp_path / "other", model_files(loaded.recipe, loaded.tokenizers, stored), {"kind": "model"}, DISK)
    with pytest.raises(InputError, match="has the type int8"):
        load_model(tmp_path / "other")
