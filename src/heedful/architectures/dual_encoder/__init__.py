"""Dual encoder for images and texts (CLIP)."""
