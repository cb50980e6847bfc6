"""Tasks: what the examples are, how they become a batch, and what the loss is. One file a task."""
