"""CPU cores that this process may use. This module does not import torch."""

from pathlib import Path

import psutil


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use, given its affinity and its control group's quota."""
    cores = len(allowed_cores())
    quota = Path("/sys/fs/cgroup/cpu.max")
    if not quota.is_file():
        return cores
    # cgroup v2: the processor time allowed per period ("max" without a quota) and the period, both in microseconds.
    limit, period = quota.read_text().split()
    return cores if limit == "max" else max(1, min(cores, round(int(limit) / int(period))))


def allowed_cores() -> list[int]:
    """Return the numbers of the CPU cores on which this process may run; on macOS, that is every core."""
    process = psutil.Process()
    return process.cpu_affinity() if hasattr(process, "cpu_affinity") else list(range(psutil.cpu_count() or 1))
