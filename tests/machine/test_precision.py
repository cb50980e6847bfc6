import os
import subprocess
import sys
import time

import pytest
import torch

from heedful.machine import device as precision
from heedful.machine.device import bfloat16_ratio, choose_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("ratio", "chosen"), [(0.13, "float32"), (1.29, "float32"), (1.31, "bfloat16"), (9.7, "bfloat16")]
)
def test_the_faster_product_decides(monkeypatch, ratio, chosen):
    monkeypatch.setattr(precision, "bfloat16_ratio", lambda: ratio)
    choice = choose_precision(CPU)
    assert choice.precision == chosen
    assert f"{ratio:.2g} times" in choice.reason


def test_another_device_computes_in_float32():
    assert choose_precision(torch.device("meta")).precision == "float32"


def test_the_ratio_is_measured_on_one_thread_and_the_threads_are_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    bfloat16_ratio.cache_clear()
    try:
        assert bfloat16_ratio() > 0
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_time_in_which_other_processes_have_the_processor_does_not_count(monkeypatch):
    monkeypatch.setattr(precision.F, "linear", lambda *_: time.sleep(0.05))
    assert precision.product_seconds(torch.float32) < 0.02


def test_a_processor_that_is_kept_from_bfloat16_trains_in_float32():
    as_avx2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
    code = "import torch, heedful.machine as m; print(m.choose_precision(torch.device('cpu')).precision)"
    run = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | as_avx2, check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == "float32"
