"""Checkpoints and model folders on disk: written atomically, verified by checksums, without pickle."""

from heedful.checkpoint.checkpoint import Checkpoint
from heedful.checkpoint.load import LoadedModel, find_model, load_model
from heedful.checkpoint.lock import Claim, claim
from heedful.checkpoint.model_folder import average, write_model
from heedful.checkpoint.run_folder import Best, Checkpoints, Latest, Rejected
from heedful.checkpoint.sharded_checkpoints import CheckpointStore, store_of
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
