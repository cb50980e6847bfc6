"""Files and folders on disk that appear as a whole or not at all, and manifests that show changed bytes."""

from heedful.storage.atomic import atomic_file, atomic_folder

__all__ = ["atomic_file", "atomic_folder"]
