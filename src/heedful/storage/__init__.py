"""Files and folders on disk that appear as a whole or not at all, and manifests that show changed bytes."""
