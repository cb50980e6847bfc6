"""Atomic writes of files and folders, and manifests that detect changed bytes."""
