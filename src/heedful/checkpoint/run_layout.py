"""Layout of a run folder: the names of its checkpoints, which of them is marked as the best, and the result.

This module does not import torch.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.storage.complete_folder import DamagedError, parse_file, unseal

LOCK = "heedful.lock"  # lock file, which only one process at a time can hold; it also marks a folder as a run folder
CHECKPOINTS = "checkpoints"
BEST = "best.json"
RESULT = "result.json"  # of a finished run: the scores of its final model on the validation set


@dataclass(frozen=True)
class Best:
    """Best checkpoint of a run so far: its step, and the validation metric by which it is the best."""

    step: int
    metric: str
    value: float


def read_best(path: Path) -> Best | None:
    """Read which checkpoint is marked as the best; return None if none is marked."""

    def parse_best(data: bytes) -> Best:
        best = Best(**unseal(data))
        if type(best.step) is not int or not isinstance(best.value, float | int) or not isinstance(best.metric, str):
            raise ValueError("values of the wrong type")
        return best

    if not path.exists():
        return None
    try:
        return parse_file(path, parse_best)
    except DamagedError as error:
        raise InputError(
            f"{path.parent}: {error.reason}; remove it, and the next validation creates it again"
        ) from error


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def checkpoint_folders(run: Path) -> list[Path]:
    """List the checkpoints of a run, oldest first."""
    # Damaged checkpoints, step-N.bad, are not listed.
    folders = (run / CHECKPOINTS).glob("step-*")
    return sorted((folder for folder in folders if re.fullmatch(r"step-\d{8,}", folder.name)), key=step_of)


def read_result(run: Path) -> dict[str, Any]:
    """Read the "update" at which a run ended and the scores of its final model; return {} if there is no valid file."""
    try:
        result = json.loads((run / RESULT).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) and type(result.get("update")) is int else {}
