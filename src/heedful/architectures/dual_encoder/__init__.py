"""Dual encoder of images and texts (CLIP)."""
