"""Checkpoints and model folders on disk: written atomically, verified by checksums, without pickle.

What is named here is imported when it is used, so that a list of runs does not wait for torch.
"""

from typing import TYPE_CHECKING

from heedful.registry import public_names

if TYPE_CHECKING:
    from heedful.checkpoint.load import LoadedModel, find_model, load_model
    from heedful.checkpoint.lock import Claim, claim
    from heedful.checkpoint.model_folder import average, write_model
    from heedful.checkpoint.run_folder import Checkpoint, Checkpoints, CheckpointStore, Latest, Rejected, store_of
    from heedful.checkpoint.run_layout import Best
    from heedful.storage.manifest import DamagedError

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
    "heedful.checkpoint.load": ["LoadedModel", "find_model", "load_model"],
    "heedful.checkpoint.lock": ["Claim", "claim"],
    "heedful.checkpoint.model_folder": ["average", "write_model"],
    "heedful.checkpoint.run_folder": ["Checkpoint", "Checkpoints", "Latest", "Rejected", "CheckpointStore", "store_of"],
    "heedful.checkpoint.run_layout": ["Best"],
    "heedful.storage.manifest": ["DamagedError"],
}

__getattr__ = public_names(__name__, _MODULES)
