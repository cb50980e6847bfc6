"""Record, edit, name and store the tensors that a model computes in a forward pass over one input."""
