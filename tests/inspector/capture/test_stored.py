"""What is stored in fewer bits comes back within bounds, and whole numbers of the grid come back exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heedful.inspector.capture.trace import STORED


def there_and_back(name, values):
    return STORED[name].decode(STORED[name].encode(values))


@given(arrays(np.float32, 13, elements=st.floats(0, 1, width=32)))
def test_attention_weights_in_a_byte_are_off_by_less_than_the_step_at_one(weights):
    found = there_and_back("sqrt_u8", weights)
    assert np.abs(found - weights).max() <= 0.5 / 255 * 2
    assert np.all(np.abs(np.sqrt(found) - np.sqrt(weights)) <= 0.5 / 255 + 1e-6)


def test_zero_and_one_and_every_step_stay_what_they_are():
    steps = np.square(np.arange(256, dtype=np.float32) / 255)
    assert np.array_equal(there_and_back("sqrt_u8", steps), steps)
    assert STORED["sqrt_u8"].encode(np.float32([0.0, 1.0, 1.5, -0.1])).tolist() == [0, 255, 255, 0]


@given(arrays(np.float32, 13, elements=st.floats(-60000, 60000, width=32)))
def test_half_precision_keeps_three_digits(values):
    np.testing.assert_allclose(there_and_back("f16", values), values, rtol=2**-11, atol=2**-24)


def test_a_mask_stays_finite_in_half_precision():
    assert np.isfinite(there_and_back("f16", np.float32([-1e9, 1e9]))).all()


@pytest.mark.parametrize("name", STORED)
def test_what_comes_back_is_float32(name):
    assert there_and_back(name, np.float32([0.25])).dtype == np.float32


def test_single_precision_is_exact():
    values = np.random.default_rng(1).normal(size=7).astype(np.float32)
    assert np.array_equal(there_and_back("f32", values), values)
