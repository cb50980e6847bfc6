"""Neural network layers that models are made of: attention, embeddings, positions, masks and dropout."""
