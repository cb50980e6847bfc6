"""Tokenizers, based on the `tokenizers` library: text to token ids and back, training, padding, import and export."""
