"""Pictures of attention weights and of other recorded tensors, drawn with matplotlib."""
