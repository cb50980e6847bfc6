"""Vector index on disk, so that a corpus is encoded once: a safetensors file with digests of its sources.

Its metadata hold the SHA-256 of the vectors, their shape, and by name the SHA-256 of everything that the vectors depend
on.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heedful.errors import InputError, RunError
from heedful.storage.atomic import atomic_file

VECTORS, DIGEST, SHAPE = "vectors", "sha256", "shape"


def write_index(path: Path, vectors: np.ndarray, made_of: Mapping[str, str]) -> None:
    """Write vectors (N, D), float32, as an index file; the file appears as a whole or not at all.

    Args:
        path: the file; an existing file is replaced.
        vectors: one vector for each text.
        made_of: the digests of all that the vectors depend on, such as the model and the corpus.

    Raises:
        RunError: the file cannot be written.
    """
    stored = np.ascontiguousarray(vectors, np.float32)
    try:
        with atomic_file(path) as file:
            file.write(save({VECTORS: stored}, {**made_of, DIGEST: digest(stored), SHAPE: str(stored.shape)}))
    except OSError as error:
        raise RunError(f"cannot write {path}: {error}; make room for it or name another file") from error


def read_index(path: Path, made_of: Mapping[str, str]) -> np.ndarray:
    """Read the vectors of an index file that `write_index` wrote.

    Raises:
        InputError: the file is not an index, a byte of it was changed, its vectors have another type or shape than
            those that were written, or its sources have other digests.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            facts, vectors = file.metadata() or {}, file.get_tensor(VECTORS)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: no readable index ({error}); delete it, or name another file") from error
    shape = facts.get(SHAPE, str(vectors.shape))  # an older index does not say it
    is_sound = vectors.dtype == np.float32 and vectors.ndim == 2 and str(vectors.shape) == shape
    if not is_sound or facts.get(DIGEST) != digest(vectors):
        raise InputError(f"{path}: does not hold the vectors that were written; delete it, and it is made again")
    other = [name for name, value in made_of.items() if facts.get(name) != value]
    if other:
        raise InputError(
            f"{path}: was made of another {' and another '.join(other)}; delete it, and it is made again, or name "
            "another file"
        )
    return vectors


def digest(vectors: np.ndarray) -> str:
    """Compute the SHA-256 digest of the bytes of vectors."""
    return hashlib.sha256(np.ascontiguousarray(vectors).data).hexdigest()
