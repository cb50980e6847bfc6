"""Neural network layers: attention, embeddings, positions, masks and blocks, the parts of every model."""
