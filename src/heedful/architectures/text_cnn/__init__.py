"""Text CNN."""
