import os
import subprocess
import sys
import time

import pytest
import torch

from heedful.machine import precision
from heedful.machine.precision import PrecisionChoice, bfloat16_ratio, choose_precision, cpu_flags

CPU = torch.device("cpu")
ZEN_4 = frozenset({"avx2", "avx512f", "avx512_bf16"})


def measured(monkeypatch: pytest.MonkeyPatch, flags: frozenset[str], ratio: float) -> PrecisionChoice:
    monkeypatch.setattr(precision, "cpu_flags", lambda: flags)
    monkeypatch.setattr(precision, "bfloat16_ratio", lambda: ratio)
    return choose_precision(CPU)


@pytest.mark.parametrize(
    ("ratio", "chosen"), [(0.13, "float32"), (1.29, "float32"), (1.31, "bfloat16"), (9.7, "bfloat16")]
)
@pytest.mark.parametrize("flags", [ZEN_4, frozenset()])  # no flags: a system that does not list them
def test_the_faster_product_decides(monkeypatch, flags, ratio, chosen):
    choice = measured(monkeypatch, flags, ratio)
    assert choice.precision == chosen
    assert f"{ratio:.2g} times" in choice.reason


def test_a_processor_without_bfloat16_instructions_is_not_timed(monkeypatch):
    choice = measured(monkeypatch, frozenset({"avx2", "avx512f"}), 5.0)
    assert choice == PrecisionChoice("float32", "this processor has no bfloat16 instructions")


def test_another_device_computes_in_float32():
    assert choose_precision(torch.device("meta")).precision == "float32"


@pytest.mark.parametrize(
    "text", ["processor: 0\nflags\t\t: fpu avx2 avx512_bf16\n\nflags : none\n", "Features\t: fp avx2 avx512_bf16\n"]
)
def test_the_instructions_of_a_processor_are_read(monkeypatch, tmp_path, text):
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(precision, "CPU_INFO", tmp_path / "cpuinfo")
    assert {"avx2", "avx512_bf16"} <= cpu_flags()
    assert "none" not in cpu_flags()


def test_a_system_without_such_a_file_lists_no_instructions(monkeypatch, tmp_path):
    monkeypatch.setattr(precision, "CPU_INFO", tmp_path / "absent")
    assert cpu_flags() == frozenset()


def test_the_ratio_is_measured_on_one_thread_and_the_threads_are_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
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
