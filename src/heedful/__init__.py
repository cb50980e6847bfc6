"""heedful: the Transformer, whole."""
