"""Memory of the machine and of a GPU: what this process has needed at most, and whether an error says there is none."""

import sys
from pathlib import Path

import torch

STATUS = Path("/proc/self/status")  # Linux only


def peak_memory(device: torch.device) -> int:
    """Return the most memory, in bytes, that this process has held on a device so far.

    On a CPU that is all memory of the process, Python and torch included; on a GPU it is what torch's tensors took.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if STATUS.is_file():  # getrusage would count the process that started this one as well
        lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    import resource  # Unix only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def is_out_of_memory(error: Exception) -> bool:
    """True for an error by which Python, numpy or torch say that memory does not suffice."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in str(error) for words in ("can't allocate memory", "out of memory", "std::bad_alloc")
    )
