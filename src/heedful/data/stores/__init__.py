"""Stores of prepared data on disk: memory-mapped arrays of token ids, and the bytes of pictures and sounds."""
