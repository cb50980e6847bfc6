"""`heedful doctor` says one line for each check, on any machine."""

from functools import partial

from invocation import invoke

from heedful.machine import doctor

run = partial(invoke, "doctor")


def test_every_check_has_a_row_and_advice_stands_beside_it(monkeypatch):
    checks = (lambda: doctor.Finding("cores", "7"), lambda: doctor.Finding("disk", "1 GB", "free some"))
    monkeypatch.setattr(doctor, "CHECKS", checks)
    lines = [line.split() for line in run().output.splitlines()[1:]]
    assert lines == [["cores", "7", "-"], ["disk", "1", "GB", "free", "some"]]


def test_the_real_machine_is_measured():
    output = run().output
    for subject in ("software", "threads", "matrix multiplications", "memory", "disk", "GPU"):
        assert subject in output
    assert "GFLOP/s" in output
