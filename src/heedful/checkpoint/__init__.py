"""Checkpoints and models on the disk: published whole, checked byte for byte, never pickled."""

from heedful.checkpoint.claim import claim
from heedful.checkpoint.load import LoadedModel, find_model, load_model
from heedful.checkpoint.manifest import DamagedError
from heedful.checkpoint.model import average, write_model
from heedful.checkpoint.run import Best, Checkpoint, Checkpoints, Latest, Rejected

__all__ = [
    "Best",
    "Checkpoint",
    "Checkpoints",
    "DamagedError",
    "Latest",
    "LoadedModel",
    "Rejected",
    "average",
    "claim",
    "find_model",
    "load_model",
    "write_model",
]
