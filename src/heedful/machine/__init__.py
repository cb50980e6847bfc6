"""This machine's hardware: device, CPU cores, precision, memory, measured speed, other processes."""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.machine.device import check_precision, choose_device, choose_precision, environment
    from heedful.machine.memory import is_out_of_memory
    from heedful.machine.other_work import wait_policy
    from heedful.machine.process import map_on_cores, prepare_process

__all__ = [
    "check_precision",
    "choose_device",
    "choose_precision",
    "environment",
    "is_out_of_memory",
    "map_on_cores",
    "prepare_process",
    "wait_policy",
]

_MODULES = {
    "heedful.machine.process": ["map_on_cores", "prepare_process"],
    "heedful.machine.device": ["check_precision", "choose_device", "environment", "choose_precision"],
    "heedful.machine.memory": ["is_out_of_memory"],
    "heedful.machine.other_work": ["wait_policy"],
}

__getattr__ = public_names(__name__, _MODULES)
