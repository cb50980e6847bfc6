"""Layout of a run folder: the names of its checkpoints and the mark of the best one, read without their tensors."""

import re
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import InputError
from heedful.storage.manifest import DamagedError, parse, unseal

CHECKPOINTS = "checkpoints"
BEST = "best.json"


@dataclass(frozen=True)
class Best:
    """Best checkpoint of a run so far: its step, and the value of the validation metric."""

    step: int
    metric: str
    value: float


def _best_of(data: bytes) -> Best:
    best = Best(**unseal(data))
    if type(best.step) is not int or not isinstance(best.value, float | int) or not isinstance(best.metric, str):
        raise ValueError("values of another type")
    return best


def read_best(path: Path) -> Best | None:
    """Read the mark of the best checkpoint; None if no checkpoint is marked."""
    if not path.exists():
        return None
    try:
        return parse(path, _best_of)
    except DamagedError as error:
        raise InputError(f"{path.parent}: {error.reason}; remove it, and the next validation marks the best") from error


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def checkpoint_folders(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    folders = (run / CHECKPOINTS).glob("step-*")
    return sorted((folder for folder in folders if re.fullmatch(r"step-\d{8,}", folder.name)), key=step_of)
