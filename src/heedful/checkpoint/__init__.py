"""Checkpoints and model folders on disk: written atomically, verified by checksums, and free of pickle.

The names below are imported on first use, so that commands that do not need torch do not wait for its import.
"""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.checkpoint.checkpoints import Checkpoints, CheckpointStore, Latest, Rejected, store_of
    from heedful.checkpoint.find import find_model
    from heedful.checkpoint.load import LoadedModel, load_model
    from heedful.checkpoint.lock import Claim, claim
    from heedful.checkpoint.model_folder import average
    from heedful.checkpoint.run_layout import Best
    from heedful.checkpoint.save import Checkpoint, write_model
    from heedful.storage.complete_folder import DamagedError

__all__ = [
    "Best",
    "Checkpoint",
    "CheckpointStore",
    "Checkpoints",
    "Claim",
    "DamagedError",
    "Latest",
    "LoadedModel",
    "Rejected",
    "average",
    "claim",
    "find_model",
    "load_model",
    "store_of",
    "write_model",
]

_MODULES = {
    "heedful.checkpoint.checkpoints": ["CheckpointStore", "Checkpoints", "Latest", "Rejected", "store_of"],
    "heedful.checkpoint.find": ["find_model"],
    "heedful.checkpoint.load": ["LoadedModel", "load_model"],
    "heedful.checkpoint.lock": ["Claim", "claim"],
    "heedful.checkpoint.model_folder": ["average"],
    "heedful.checkpoint.run_layout": ["Best"],
    "heedful.checkpoint.save": ["Checkpoint", "write_model"],
    "heedful.storage.complete_folder": ["DamagedError"],
}

__getattr__ = public_names(__name__, _MODULES)
