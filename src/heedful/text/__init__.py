"""Text to ids and back, on the `tokenizers` library."""
