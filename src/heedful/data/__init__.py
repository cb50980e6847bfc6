"""Text files become filtered, encoded, memory-mapped pairs, and those the batches of training."""
