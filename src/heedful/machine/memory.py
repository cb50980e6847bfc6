"""Memory of the machine and of a GPU: peak, free and total memory, and out-of-memory errors."""

import threading
from typing import Self

import psutil
import torch

PERIOD = 0.02  # seconds between two readings of the memory of this process


class PeakMemory:
    """Context manager that measures the peak memory of this process on a device, in bytes.

    On a CPU, a thread samples the memory of the whole process, including Python and torch, within the block. On a GPU,
    the result is the peak of torch's tensors since the process started.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes = 0
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True, name="peak memory")

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._reader.join()
        if self.device.type == "cuda":
            self.bytes = torch.cuda.max_memory_allocated(self.device)

    def _read(self) -> None:
        process = psutil.Process()
        while True:
            ended = self._ended.wait(PERIOD)  # the last reading follows the end of the block
            self.bytes = max(self.bytes, process.memory_info().rss)
            if ended:
                return


def total_memory() -> int:
    return psutil.virtual_memory().total


def free_memory() -> int:
    """Return the bytes of memory that programs can still allocate."""
    return psutil.virtual_memory().available


def is_out_of_memory(error: Exception) -> bool:
    """Return True for an out-of-memory error from Python, numpy or torch."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in str(error) for words in ("can't allocate memory", "out of memory", "std::bad_alloc")
    )
