"""The machine that a run is on: its device, its memory, its limits, and what to change about it."""

from heedful.machine.cores import map_on_cores
from heedful.machine.device import choose_device, environment
from heedful.machine.memory import keep_freed_memory

__all__ = ["choose_device", "environment", "keep_freed_memory", "map_on_cores"]
