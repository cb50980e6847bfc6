"""Hardware of this machine: device, CPU cores, precision, memory, measured speed, other processes."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.machine.cores import map_on_cores
    from heedful.machine.device import choose_device, environment
    from heedful.machine.memory import is_out_of_memory
    from heedful.machine.other_work import wait_policy
    from heedful.machine.precision import choose_precision
    from heedful.machine.process import prepare_process

__all__ = [
    "choose_device",
    "choose_precision",
    "environment",
    "is_out_of_memory",
    "map_on_cores",
    "prepare_process",
    "wait_policy",
]

_MODULES = {
    "heedful.machine.cores": ("map_on_cores",),
    "heedful.machine.device": (
        "choose_device",
        "environment",
    ),
    "heedful.machine.memory": ("is_out_of_memory",),
    "heedful.machine.other_work": ("wait_policy",),
    "heedful.machine.precision": ("choose_precision",),
    "heedful.machine.process": ("prepare_process",),
}

__getattr__ = public_names(__name__, _MODULES)
